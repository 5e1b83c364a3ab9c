"""Trap units: hidden units that react to one record alone, and move only if a client trains on it.

A malicious server replaces weights and not the architecture (Boenisch et al. 2021, "When the curious abandon
honesty"; Nguyen et al. 2023, "Active membership inference attack under local differential privacy in
federated learning"). For each target it

    1. finds the direction in which the target is furthest from other records, by the inverse covariance of
       the inputs of the last hidden layer on reference records;
    2. gives some pairs of units this direction, each pair with a random part of its own, so steep that they
       are saturated on every record but the target, where their activation has a slope;
    3. connects these units with the target's logit, those of a pair with opposite signs: one changes its sign
       just before the target and the other just behind it, so that they cancel on both sides, and the loss
       rises to a level on the target alone.

A saturated unit has no gradient. The weights into the units move if the target is trained on; if not, most of
them move only by a record that lies on the slope of most. A ReLU is not saturated behind the target: it would
raise the loss of all records there, and they would move it.

The units that are replaced no longer do what they had learned, so the loss of all records changes: on digits
by an MLP with 128 units, of which 40 are replaced, from a mean of .03 to .09. A client that compares losses
can notice that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call

from fedprivacy.attacks.signals import Probe
from fedprivacy.errors import InputError
from fedprivacy.models.by_name import unflatten
from fedprivacy.models.partial_training import refuse_frozen

STEEPNESS = 10_000.0
MOST_REFERENCES = 1000
RIDGE = 0.1  # added to the covariance, in mean variances of an input
SPREAD = 0.2  # of the random part on references, where the target's distance from their mean is 1
SLOPE = 0.5  # the input on the target of a pair's first unit, and minus that of its second
LEAST_RISE = 1.0  # of the target's logit, so that its gradient reaches the units
_ACTIVATIONS = (nn.Tanh, nn.Sigmoid)  # those that are saturated on both sides


@dataclass(frozen=True)
class Covariance:
    """The covariance of records, with a ridge.

    Args:
        mean: Shape (inputs,).
        centred: The records less their mean, float64, shape (records, inputs).
        ridge: Added to each variance.
        factor: The Cholesky factor of the records' products over their number, with the ridge.
    """

    mean: Tensor
    centred: Tensor
    ridge: float
    factor: Tensor

    @classmethod
    def of(cls, records: Tensor) -> Covariance:
        """That of some records, float64, shape (records, inputs)."""
        mean = records.mean(dim=0)
        centred, count = records - mean, len(records)
        ridge = RIDGE * float(centred.square().mean()) or 1.0
        products = centred @ centred.T / count + ridge * torch.eye(count).double()
        return cls(mean, centred, ridge, torch.linalg.cholesky(products))

    def solve(self, vectors: Tensor) -> Tensor:
        """Rows times the inverse of the covariance (Woodbury identity), shape (vectors, inputs)."""
        dual = torch.cholesky_solve(self.centred @ vectors.T / len(self.centred), self.factor)
        return (vectors - dual.T @ self.centred) / self.ridge


class TrapUnits:
    """Plants trap units in a model.

    Args:
        module: The model, whose last layers are linear, activation, linear.
        references: Records that the attacker has and no client trains on, shape (records, *features).
        stream: Draws the random parts of the directions.
        units: The number of units for each target, which is even.
        level: The loss that a target is raised to.
        steepness: The input of a unit on the references' mean is minus this.

    Raises:
        InputError: the module has no such layers, or frozen parameters, the number of units is odd, or
            there are fewer than two references.
    """

    def __init__(
        self,
        module: nn.Module,
        references: NDArray[np.float32],
        stream: np.random.Generator,
        *,
        units: int,
        level: float = 3.0,
        steepness: float = STEEPNESS,
    ) -> None:
        refuse_frozen(module, "trap_units")
        if not _has_hidden_layer(module):
            raise InputError(
                "model: trap units need a chain of layers that ends with linear, tanh or sigmoid, and "
                "linear: others are not saturated on both sides of a target. Remove trap_units, or take "
                "another model."
            )
        if units % 2:
            raise InputError(f"trap_units = {units}: come in pairs. Set an even number.")
        if len(references) < 2:
            raise InputError(
                f"data: trap units are fitted on test records, of which there are {len(references)}. Set "
                "data.test_records higher."
            )
        assert isinstance(module, nn.Sequential)
        self.units, self.level, self.steepness = units, level, steepness
        self._module, self._before = module, module[:-3]
        rows = stream.permutation(len(references))[:MOST_REFERENCES]
        self._references = torch.from_numpy(np.asarray(references[rows], dtype=np.float32))
        self._mixtures = torch.from_numpy(stream.standard_normal((len(rows), units // 2)))
        self._signs = torch.tensor([1.0, -1.0]).repeat(units // 2).double()
        self._fixed: Covariance | None = None
        self._hidden, self._last = (f"{len(module) + layer}" for layer in (-3, -1))

    def climb(self, probe: Probe, weights: Tensor) -> Tensor:
        """The weights with trap units for all records of the probe, shape (parameters,).

        The units of the first target are the first ones of the last hidden layer, and so on.
        """
        parts = {name: part.clone() for name, part in unflatten(self._module, weights).items()}
        into, out = parts[f"{self._hidden}.weight"], parts[f"{self._last}.weight"]
        self._check_room(len(probe.y), len(into))
        planted = len(probe.y) * self.units
        targets = self._inputs(parts, probe.x)
        directions = self._directions(self._covariance(parts), targets)
        into[:planted] = directions.flatten(0, 1).float()
        # From the rounded directions: steep units would magnify any error of their input on the target.
        products = (into[:planted].double().view_as(directions) * targets[:, None]).sum(dim=2)
        parts[f"{self._hidden}.bias"][:planted] = (self._signs * SLOPE - products).flatten().float()
        self._connect(parts, out, probe, planted)
        return torch.cat([part.reshape(-1) for part in parts.values()])

    def parameters(self, targets: int) -> Tensor:
        """The places of the weights into each target's units, int64, shape (targets, units, inputs + 1)."""
        count = sum(parameter.numel() for parameter in self._module.parameters())
        places = unflatten(self._module, torch.arange(count))
        planted = targets * self.units
        weight, bias = (places[f"{self._hidden}.{name}"][:planted] for name in ("weight", "bias"))
        return torch.cat([weight, bias[:, None]], dim=1).view(targets, self.units, -1)

    def planted(self, targets: int) -> Tensor:
        """The places of all weights into and out of the targets' units, int64, shape (places,)."""
        count = sum(parameter.numel() for parameter in self._module.parameters())
        places = unflatten(self._module, torch.arange(count))
        out = places[f"{self._last}.weight"][:, : targets * self.units]
        return torch.cat([self.parameters(targets).reshape(-1), out.reshape(-1)])

    def _check_room(self, targets: int, width: int) -> None:
        if targets * self.units > width:
            raise InputError(
                f"trap_units = {self.units}: {targets} targets a round need {targets * self.units} units, "
                f"and the last hidden layer has {width}. Set targets_per_round or trap_units lower."
            )

    def _inputs(self, parts: dict[str, Tensor], x: Tensor) -> Tensor:
        """The inputs of the last hidden layer, float64, shape (records, inputs)."""
        earlier = {name: parts[name] for name, _ in self._before.named_parameters()}
        with torch.no_grad():
            inputs: Tensor = functional_call(self._before, earlier, x)
        return inputs.double()

    def _covariance(self, parts: dict[str, Tensor]) -> Covariance:
        """The covariance of the inputs; the same in each round where no weights are before them."""
        if self._fixed is not None:
            return self._fixed
        covariance = Covariance.of(self._inputs(parts, self._references))
        if not any(True for _ in self._before.parameters()):
            self._fixed = covariance
        return covariance

    def _directions(self, covariance: Covariance, targets: Tensor) -> Tensor:
        """The weights into each target's units, equal for a pair, shape (targets, units, inputs)."""
        distant = targets - covariance.mean
        towards = covariance.solve(distant)
        lengths = (towards * distant).sum(dim=1, keepdim=True)
        towards = torch.where(lengths > 0, towards / lengths.clamp_min(1e-300), 0.0)
        random = covariance.solve(self._mixtures.T @ covariance.centred)
        deviations = (random @ covariance.centred.T).std(dim=1, keepdim=True)
        random = torch.where(deviations > 0, SPREAD * random / deviations.clamp_min(1e-300), 0.0)
        return self.steepness * (towards[:, None] + random).repeat_interleave(2, dim=1)

    def _connect(self, parts: dict[str, Tensor], out: Tensor, probe: Probe, planted: int) -> None:
        """Connects the units with the targets' logits, so that the loss reaches the level on each."""
        out[:, :planted] = 0.0
        labels, rows = probe.y, torch.arange(len(probe.y))
        with torch.no_grad():
            logits = functional_call(self._module, parts, probe.x).double()
        correct = logits[rows, labels]
        others = logits.index_put((rows, labels), torch.tensor(-torch.inf).double()).logsumexp(dim=1)
        # A class of probability p = exp(-level) has a logit that is log(p / (1 - p)) above the others.
        odds = -self.level - np.log(-np.expm1(-self.level))
        rise = (correct - others - odds).clamp_min(LEAST_RISE)
        before, behind = self._module[-2](torch.tensor([SLOPE, -SLOPE])).double()
        each = (rise / (self.units / 2 * (before - behind))).float()
        for target, label in enumerate(labels.tolist()):
            place = slice(target * self.units, (target + 1) * self.units)
            out[label, place] = -each[target] * self._signs.float()


def response(gradients: Tensor, update: Tensor, places: Tensor) -> Tensor:
    """By how many gradient steps on a target its units were moved: their lower median, shape (targets,).

    Args:
        gradients: Each target's own gradient, shape (targets, parameters).
        update: Shape (parameters,).
        places: Which parameters lead into the units, shape (targets, units, inputs + 1).
    """
    slopes = gradients[torch.arange(len(places))[:, None, None], places]
    squares = slopes.square().sum(dim=2)
    steps = -(slopes * update[places]).sum(dim=2)
    return torch.where(squares > 0, steps / squares.clamp_min(1e-30), 0.0).median(dim=1).values


def _has_hidden_layer(module: nn.Module) -> bool:
    if not isinstance(module, nn.Sequential) or len(module) < 3:
        return False
    hidden, activation, last = module[-3], module[-2], module[-1]
    if not (isinstance(hidden, nn.Linear) and isinstance(last, nn.Linear)):
        return False
    return isinstance(activation, _ACTIVATIONS) and hidden.bias is not None and last.bias is not None
