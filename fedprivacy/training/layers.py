"""The weights of one layer for each client of a chunk, while the clients train.

After some steps of SGD the weights of a linear layer are the sent weights, times a number, less a sum of
outer products of the layer's inputs (h) and the gradients at its outputs (d). `FactoredLinear` keeps these
factors and forms no client's weights: it multiplies all records by the sent weights at once, and corrects
each product by (h H^T) D. The first layer sees the same records in every epoch, so its factors have as many
rows as a client has records, for any number of steps. `FormedLinear` keeps the weights of each client, which
is cheaper where they are few.

Both are exact up to rounding, with momentum, weight decay and the proximal term too: all are linear in
weights and gradients.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor, nn

from fedprivacy.mechanisms.clipping import ROUNDING


@dataclass(frozen=True)
class Step:
    """One step of SGD, the same for all layers.

    Args:
        learning_rate: The step size.
        momentum: The share of the last step that is kept.
        weight_decay: Times the weights, added to the gradient.
        proximal: Times the way from the weights that were sent, added to the gradient.
        active: Which clients make it, 1.0 or 0.0, shape (clients, 1, 1); None: all.
    """

    learning_rate: float
    momentum: float
    weight_decay: float
    proximal: float
    active: Tensor | None = None

    @property
    def pull(self) -> float:
        """The strength with which a path is pulled back to its start."""
        return self.weight_decay + self.proximal

    def of_active(self, way: Tensor) -> Tensor:
        """A way, shape (clients, ...), for those that make the step."""
        if self.active is None:
            return way
        return way * self.active.view(-1, *(1,) * (way.ndim - 1))


class Scale:
    """The factor of the sent weights in the weights and the momentum of each client.

    Args:
        like: A tensor with a row for each client; None where nothing draws weights to zero: it stays 1.
    """

    def __init__(self, like: Tensor | None) -> None:
        self.weight = None if like is None else like.new_ones(len(like), 1, 1)
        self._momentum = None if like is None else like.new_zeros(len(like), 1, 1)

    def of(self, way: Tensor) -> Tensor:
        """The sent weights' output for an input, shape (clients, ...), at the clients' scale."""
        return way if self.weight is None else way * self.weight

    def descend(self, step: Step) -> None:
        """Makes a step."""
        if self.weight is None or self._momentum is None:
            return
        pulled = step.weight_decay * self.weight + step.proximal * (self.weight - 1.0)
        self._momentum = step.momentum * self._momentum + pulled
        self.weight = self.weight - step.learning_rate * step.of_active(self._momentum)


Place = slice | Tensor


def rows_at(values: Tensor, place: Place) -> Tensor:
    """The rows of a batch, shape (clients, batch, ...), of all rows, shape (clients, rows, ...)."""
    if isinstance(place, slice):
        return values[:, place]
    return values.flatten(0, 1).index_select(0, place).unflatten(0, (len(values), -1))


class Layer(Protocol):
    """A layer with weights, for the clients of a chunk."""

    def forward(self, inputs: Tensor | None, place: Place) -> Tensor:
        """Outputs, shape (clients, batch, *outputs).

        Args:
            inputs: Shape (clients, batch, *inputs); None for a first layer that was given its rows.
            place: The batch's place in the given rows: the same columns for all clients, or indices of the
                rows of all clients, shape (clients * batch,).
        """

    def backward(self, back: Tensor) -> Tensor:
        """The gradient at the inputs of the last `forward`, from the gradient at its outputs."""

    def descend(self, back: Tensor, step: Step) -> None:
        """Makes a step along the gradient of the last `forward`, from the gradient at its outputs."""

    def squares(self) -> Tensor:
        """The squared norm of each client's update, never below it; float64, shape (clients,)."""

    def errors(self) -> Tensor:
        """Bounds the norm of each client's rounding error in `total`; float64, shape (clients,)."""

    def total(self, shares: Tensor) -> list[Tensor]:
        """The sum of all updates times shares, float64, by parameter.

        Args:
            shares: Float64, shape (clients,). One of 0 leaves out an update that is not finite.
        """

    def stack(self) -> list[Tensor]:
        """Each client's update, shape (clients, *shape of the parameter), by parameter."""


class FactoredLinear:
    """A linear layer with factored weights: the sent weights plus factors^T rows.

    Args:
        sent: The weight that was sent, shape (outputs, inputs), and the bias if there is one.
        rows: The layer's inputs, shape (clients, rows, inputs); or room for them.
        scale: The factor of the sent weights, shared by all layers.
        given: Whether the rows are there from the beginning; else each step appends its batch.
    """

    def __init__(self, sent: list[Tensor], rows: Tensor, scale: Scale, *, given: bool) -> None:
        self._weight, self._bias = sent[0], sent[1] if len(sent) > 1 else None
        self._rows, self._scale, self._given = rows, scale, given
        self._factors = rows.new_zeros(*rows.shape[:2], len(self._weight))
        self._momentum: Tensor | None = None
        self._moved = 0  # the number of leading rows that may have factors
        self._place: Place = slice(0)

    def forward(self, inputs: Tensor | None, place: Place) -> Tensor:
        """As `Layer` has it."""
        if self._given:
            self._place = place
            base = rows_at(self._base, place)
        else:
            assert inputs is not None
            self._place = slice(self._moved, self._moved + inputs.shape[1])
            self._rows[:, self._place] = inputs
            base = self._sent(inputs.flatten(0, 1)).unflatten(0, inputs.shape[:2])
        if not self._moved:
            return base
        if self._given:
            met = rows_at(self._met, place)[:, :, : self._moved]
        else:
            assert inputs is not None
            met = torch.bmm(inputs, self._rows[:, : self._moved].mT)
            met = met if self._bias is None else met.add_(1.0)
        return torch.baddbmm(self._scale.of(base), met, self._factors[:, : self._moved], alpha=-1.0)

    def backward(self, back: Tensor) -> Tensor:
        """As `Layer` has it."""
        base = (back.flatten(0, 1) @ self._weight).unflatten(0, back.shape[:2])
        if not self._moved:
            return base
        met = torch.bmm(back, self._factors[:, : self._moved].mT)
        return torch.baddbmm(self._scale.of(base), met, self._rows[:, : self._moved], alpha=-1.0)

    def descend(self, back: Tensor, step: Step) -> None:
        """As `Layer` has it."""
        place = self._place
        old = self._factors[:, : self._moved]
        if step.momentum:
            if self._momentum is None:
                self._momentum = torch.zeros_like(self._factors)
            self._momentum.mul_(step.momentum)
            if step.pull:
                self._momentum[:, : self._moved].sub_(old, alpha=step.pull)
            self._add(self._momentum, back, 1.0)
            self._factors.add_(step.of_active(self._momentum), alpha=step.learning_rate)
        else:
            if step.pull:
                old.sub_(step.of_active(old), alpha=step.learning_rate * step.pull)
            self._add(self._factors, back, step.learning_rate)
        self._moved = place.stop if isinstance(place, slice) else self._rows.shape[1]

    def squares(self) -> Tensor:
        """As `Layer` has it: by the products of rows with rows, and of factors with factors.

        Adds a bound of the rounding error: where parts cancel, little of the products remains.
        """
        factors = self._factors.double()
        squares_of_norms = (self._gram * torch.bmm(factors, factors.mT)).sum(dim=(1, 2))
        rows, (outputs, inputs) = self._rows.shape[1], self._weight.shape
        terms = inputs + outputs + rows**2
        if self._scale.weight is not None:
            way = self._scale.weight.double().flatten() - 1.0
            weight, bias = self._weight.double(), None if self._bias is None else self._bias.double()
            sent = nn.functional.linear(self._exact, weight, bias)
            squares_of_norms = (
                squares_of_norms
                - 2.0 * way * (sent * factors).sum(dim=(1, 2))
                + way.square() * self._sent_square
            )
            terms += rows * outputs + inputs * outputs
        return (
            squares_of_norms.clamp_min(0.0) + 2.0 * (terms + 8) * ROUNDING * self._reach.square()
        )  # NaN stays

    def errors(self) -> Tensor:
        """As `Layer` has it: a sum of all clients' rows rounds by as many units as it has terms."""
        return 2.0 * (self._rows.shape[0] * (self._rows.shape[1] + 1) + 8) * ROUNDING * self._reach

    def total(self, shares: Tensor) -> list[Tensor]:
        """As `Layer` has it: one product of all factors with all rows."""
        out = (shares == 0)[:, None, None]
        rows, factors = self._exact, self._factors.double() * -shares[:, None, None]
        if out.any():  # 0 * NaN would be NaN
            rows, factors = rows.masked_fill(out, 0.0), factors.masked_fill(out, 0.0)
        factors = factors.flatten(0, 1)
        totals = [factors.T @ rows.flatten(0, 1)]
        if self._bias is not None:
            totals.append(factors.sum(dim=0))
        if self._scale.weight is not None and not out.all():  # what was sent may not be finite
            ways = (self._scale.weight.double() - 1.0).masked_fill(out, 0.0).flatten()
            way = (ways * shares).sum()
            totals[0] += way * self._weight.double()
            if self._bias is not None:
                totals[1] += way * self._bias.double()
        return totals

    def stack(self) -> list[Tensor]:
        """As `Layer` has it."""
        totals = [-torch.bmm(self._factors.mT, self._rows)]
        if self._bias is not None:
            totals.append(-self._factors.sum(dim=1))
        if self._scale.weight is not None:
            totals[0] += (self._scale.weight - 1.0) * self._weight
            if self._bias is not None:
                totals[1] += (self._scale.weight[:, 0] - 1.0) * self._bias
        return totals

    def _sent(self, inputs: Tensor) -> Tensor:
        return nn.functional.linear(inputs, self._weight, self._bias)

    def _add(self, to: Tensor, back: Tensor, alpha: float) -> None:
        """Adds what came back to the rows of the batch; where places are named, padding names one twice."""
        if isinstance(self._place, slice):
            to[:, self._place].add_(back, alpha=alpha)
        else:
            to.flatten(0, 1).index_add_(0, self._place, back.flatten(0, 1), alpha=alpha)

    @cached_property
    def _base(self) -> Tensor:
        """The sent weights' outputs for all rows, shape (clients, rows, outputs)."""
        return self._sent(self._rows.flatten(0, 1)).unflatten(0, self._rows.shape[:2])

    @cached_property
    def _met(self) -> Tensor:
        """The product of each row with each of its client's, shape (clients, rows, rows)."""
        return self._gram.to(self._rows.dtype)

    @cached_property
    def _reach(self) -> Tensor:
        """The norms of all products that make up an update, added up, shape (clients,)."""
        lengths = self._gram.diagonal(dim1=1, dim2=2).sqrt()
        reach = (lengths * torch.linalg.vector_norm(self._factors, dim=2, dtype=torch.float64)).sum(dim=1)
        if self._scale.weight is None:
            return reach
        return reach + (self._scale.weight.double().flatten() - 1.0).abs() * self._sent_square.sqrt()

    @cached_property
    def _sent_square(self) -> Tensor:
        """The squared norm of the sent weights."""
        parts = [part for part in (self._weight, self._bias) if part is not None]
        return torch.stack([part.double().square().sum() for part in parts]).sum()

    @cached_property
    def _exact(self) -> Tensor:
        """All rows in float64, when they are there."""
        return self._rows.double()

    @cached_property
    def _gram(self) -> Tensor:
        """The same in float64."""
        gram = torch.bmm(self._exact, self._exact.mT)
        return gram if self._bias is None else gram.add_(1.0)


class FormedLayer:
    """A layer with formed weights for each client; until the first step all share the sent ones.

    The layer stores the difference from the sent weights, and forms the weights when a second step needs
    them.

    Args:
        sent: The weights that were sent, and the bias if there is one.
    """

    def __init__(self, sent: list[Tensor]) -> None:
        self._sent = self._here = sent
        self._ways: list[Tensor] = []
        self._momentum: list[Tensor] = []
        self._inputs = sent[0]

    @property
    def _shared(self) -> bool:
        """Whether all clients still have the weights that were sent."""
        return not self._ways

    def form(self) -> list[Tensor]:
        """The weights from which the next step is made, with a dimension of clients unless all share them."""
        if self._shared:
            return self._sent
        if self._here is self._sent:
            self._here = [torch.empty_like(way) for way in self._ways]
        for here, sent, way in zip(self._here, self._sent, self._ways, strict=True):
            torch.add(sent, way, out=here)
        return self._here

    def move(self, gradients: list[Tensor], step: Step) -> None:
        """Makes a step along gradients, shape (clients, *shape of the parameter), which are written to."""
        if step.proximal:
            for gradient, way in zip(gradients, self._ways, strict=False):
                gradient.add_(way, alpha=step.proximal)
        if step.weight_decay:
            for gradient, here in zip(gradients, self._here, strict=True):
                gradient.add_(here, alpha=step.weight_decay)
        if step.momentum:
            for gradient, last in zip(gradients, self._momentum, strict=False):
                gradient.add_(last, alpha=step.momentum)
            self._momentum = gradients
        steps = [step.of_active(gradient) for gradient in gradients]
        if self._shared:
            self._ways = [way * -step.learning_rate for way in steps]
        else:
            for way, change in zip(self._ways, steps, strict=True):
                way.sub_(change, alpha=step.learning_rate)

    def squares(self) -> Tensor:
        """As `Layer` has it."""
        parts = [torch.linalg.vector_norm(way, dim=1) for way in self._exact]
        terms = max(way.shape[1] for way in self._exact)
        return torch.stack(parts).square().sum(dim=0) * (1.0 + 2.0 * (terms + 8) * ROUNDING)

    def errors(self) -> Tensor:
        """As for `Layer`: a sum of one term for each client."""
        return 2.0 * (len(self._ways[0]) + 8) * ROUNDING * self.squares().sqrt()

    def total(self, shares: Tensor) -> list[Tensor]:
        """As `Layer` has it."""
        out, ways = (shares == 0)[:, None], self._exact
        if out.any():  # 0 * NaN would be NaN
            ways = [way.masked_fill(out, 0.0) for way in ways]
        return [(shares @ way).view(like.shape[1:]) for way, like in zip(ways, self._ways, strict=True)]

    def stack(self) -> list[Tensor]:
        """As `Layer` has it."""
        return self._ways

    @cached_property
    def _exact(self) -> list[Tensor]:
        """The updates in float64 after the last step, a client in each row."""
        return [way.flatten(1).double() for way in self._ways]


# Whether weights lie in memory with the inputs in front. With AVX2 (measured on AMD) small products of many
# clients take two to four times as long so. With AVX-512 they keep the order that is faster on Intel.
_INPUTS_IN_FRONT = torch.backends.cpu.get_cpu_capability() == "AVX512"


class FormedLinear(FormedLayer):
    """A linear layer with formed weights for each client."""

    def __init__(self, sent: list[Tensor]) -> None:
        super().__init__([sent[0].T.contiguous().T if _INPUTS_IN_FRONT else sent[0], *sent[1:]])

    def forward(self, inputs: Tensor | None, place: Place) -> Tensor:
        """As `Layer` has it."""
        assert inputs is not None
        self._inputs = inputs
        weight, *bias = self.form()
        if self._shared:
            outputs = (inputs.flatten(0, 1) @ weight.T).unflatten(0, inputs.shape[:2])
        else:
            outputs = torch.bmm(inputs, weight.mT)
        for totals in bias:
            outputs += totals if self._shared else totals[:, None]
        return outputs

    def backward(self, back: Tensor) -> Tensor:
        """As `Layer` has it."""
        if self._shared:
            return (back.flatten(0, 1) @ self._sent[0]).unflatten(0, back.shape[:2])
        return torch.bmm(back, self._here[0])

    def descend(self, back: Tensor, step: Step) -> None:
        """As `Layer` has it."""
        inputs = self._inputs
        # Either product lies as the weights do.
        weight = torch.bmm(inputs.mT, back).mT if _INPUTS_IN_FRONT else torch.bmm(back.mT, inputs)
        self.move([weight, back.sum(dim=1)][: len(self._sent)], step)
