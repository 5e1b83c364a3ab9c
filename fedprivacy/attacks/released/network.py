"""The attack network of Nasr, Shokri and Houmansadr 2019 on one released model.

One branch for each observation of a record (the gradient by the last layer, the output, the loss, the label)
and an encoder of all branches, which outputs the membership. The gradient goes through a
convolution whose kernels are as wide as the layer's inputs, as in the paper. It learns from known
memberships, those of other folds than it is measured on.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fedprivacy.attacks.cross_fitting import cross_fitted
from fedprivacy.attacks.released.gradients import LastLayer
from fedprivacy.attacks.released.signals import Signals, scaled
from fedprivacy.attacks.targets import Flags, Numbers, check_folds
from fedprivacy.randomness.streams import Streams


@dataclass(frozen=True)
class Seen:
    """The view that a white-box attacker has of some records.

    Args:
        logs: Log-probabilities, shape (records, classes).
        y: Labels, shape (records,).
        gradients: By the last layer; None for an attacker that sees outputs alone.
    """

    logs: Signals
    y: NDArray[np.int64]
    gradients: LastLayer | None = None


@dataclass(frozen=True)
class Fitting:
    """Settings of the attack network's training by Adam.

    Args:
        epochs: Passes over the known records.
        batch_size: Records of a step.
        learning_rate: The step size.
        weight_decay: Times the weights, added to the gradient.
        filters: Kernels of the convolution over a gradient.
    """

    epochs: int = 15
    batch_size: int = 128
    learning_rate: float = 1e-3
    weight_decay: float = 3e-3
    filters: int = 16


class AttackNetwork(nn.Module):
    """Branches and encoder; to one logit of membership a record, shape (records,).

    Args:
        classes: Of the target's output.
        gradient: Inputs of the last layer, with the bias, and its outputs; None without that branch.
        filters: See `Fitting`.
    """

    def __init__(self, classes: int, gradient: tuple[int, int] | None, filters: int) -> None:
        super().__init__()
        self.output = _branch(classes)
        self.loss = _branch(1)
        self.label = _branch(classes)
        self.kernels = self.gradient = None
        if gradient is not None:
            width, rows = gradient
            self.kernels = nn.Linear(width, filters, bias=False)
            self.gradient = nn.Sequential(nn.ReLU(), nn.Flatten(), _branch(rows * filters))
        self.encoder = nn.Sequential(
            nn.Linear((3 + (gradient is not None)) * 64, 256),
            nn.ReLU(),
            nn.Linear(256, 128),
            nn.ReLU(),
            nn.Linear(128, 64),
            nn.ReLU(),
            nn.Linear(64, 1),
        )

    def forward(self, parts: list[Tensor]) -> Tensor:
        output, loss, label, *factors = parts
        features = [self.output(output), self.loss(loss), self.label(label)]
        if self.kernels is not None and self.gradient is not None:
            backs, inputs = factors
            # A kernel times a row of the outer product is the row's number times (kernel times inputs).
            features.append(self.gradient(backs[:, :, None] * self.kernels(inputs)[:, None, :]))
        return torch.as_tensor(self.encoder(torch.cat(features, dim=1))[:, 0])


def network(seen: Seen, members: Flags, folds: Numbers, streams: Streams, fitting: Fitting) -> Signals:
    """The logit of membership, by networks fitted on other folds, shape (directions, records).

    Args:
        seen: Of the records.
        members: Whether a record is a member, shape (records,).
        folds: The fold of each record, shape (records,).
        streams: Initial weights and batches are drawn from them.
        fitting: How it learns.

    Raises:
        InputError: a direction lacks members or non-members.
    """
    check_folds(members, folds, len(seen.y))
    seeds = count(streams.torch_seed("released/network"))

    def fit(known: Flags, _: int) -> Signals:
        places = np.flatnonzero(known)
        return _fit(_parts(seen, places), places, members[known], next(seeds), fitting)

    return cross_fitted(fit, members, folds, by_direction=False)


def _parts(seen: Seen, known: NDArray[np.int64]) -> list[Tensor]:
    """The inputs of the branches, each column standardised by the known records."""
    logs = torch.from_numpy(seen.logs).float()
    odds = torch.from_numpy(scaled(seen.logs, seen.y)).float()[:, None]
    rows = torch.from_numpy(known)
    parts = [_standardised(logs, rows), _standardised(odds, rows)]
    parts.append(nn.functional.one_hot(torch.from_numpy(seen.y), logs.shape[1]).float())
    if seen.gradients is not None:
        backs, inputs = seen.gradients.backs.cpu(), seen.gradients.inputs.cpu()
        # Gradients of members are smaller by orders of magnitude: lengths on a logarithmic scale, directions
        # kept.
        lengths = backs.norm(dim=1, keepdim=True).clamp_min(1e-12)
        logarithms = torch.log1p(lengths / lengths[rows].median())
        parts += [backs / lengths * logarithms, inputs / inputs[rows].norm(dim=1).mean().clamp_min(1e-12) * 4]
    return parts


def _standardised(values: Tensor, rows: Tensor) -> Tensor:
    return (values - values[rows].mean(dim=0)) / values[rows].std(dim=0).clamp_min(1e-6)


def _fit(parts: list[Tensor], rows: NDArray[np.int64], truth: Flags, seed: int, fitting: Fitting) -> Signals:
    """Fits a network on some rows and applies it to all, shape (records,)."""
    gradient = (parts[4].shape[1], parts[3].shape[1]) if len(parts) > 3 else None
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed % 2**63)
        model = AttackNetwork(parts[0].shape[1], gradient, fitting.filters)
        optimiser = torch.optim.Adam(
            model.parameters(), fitting.learning_rate, weight_decay=fitting.weight_decay, fused=True
        )
        inputs = [part[torch.from_numpy(rows)] for part in parts]
        wanted = torch.from_numpy(truth).float()
        with torch.enable_grad():
            for _ in range(fitting.epochs):
                for batch in torch.randperm(len(rows)).split(fitting.batch_size):
                    optimiser.zero_grad()
                    logits = model([part[batch] for part in inputs])
                    nn.functional.binary_cross_entropy_with_logits(logits, wanted[batch]).backward()
                    optimiser.step()
    with torch.no_grad():
        logits = [model([part[batch] for part in parts]) for batch in torch.arange(len(parts[0])).split(1024)]
        predicted = torch.cat(logits).double().numpy()
    return np.asarray(predicted)


def _branch(inputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU())
