"""The loss of one record in each task, which clients descend and whose gradient DP-SGD clips.

A loss is a function of the outputs for one record and its targets alone, so clipping, noise and accounting
are the same for every loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from fedprivacy.data.tasks import CLASSIFICATION, MULTI_LABEL, NEXT_TOKEN, REGRESSION


class Loss(Protocol):
    """The loss of single records."""

    @property
    def task(self) -> str:
        """The task of `fedprivacy.data.tasks` that it belongs to."""

    @property
    def target_dimensions(self) -> int:
        """The dimensions of a record's targets: 0 for a class."""

    def losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The loss of each record, shape (records,).

        Args:
            outputs: Of the model, shape (records, outputs), or of texts (records, positions, tokens).
            targets: Classes int64, shape (records,); numbers or labels, shape (records, outputs); or tokens
                int64, shape (records, positions).
        """

    def total(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The sum of the records' losses, of one number."""

    def gradient(self, outputs: Tensor, targets: Tensor, shares: Tensor | None = None) -> Tensor:
        """The gradient of each record's loss by its outputs, of their shape.

        Args:
            outputs: As `losses` has them; not differentiated.
            targets: As there.
            shares: By what each gradient is multiplied, shape (records,); None: 1.
        """

    def check(self, targets: Tensor) -> None:
        """Refuses targets that the loss would take for something else.

        Raises:
            IndexError: a label is below 0.
        """

    def example_targets(self, x: Tensor, outputs: int) -> Tensor:
        """Made-up targets of some records, with which a model is tried.

        Args:
            x: The records, shape (records, *features).
            outputs: The number of classes, targets or tokens.
        """


@dataclass(frozen=True)
class CrossEntropy:
    """The cross-entropy of one class of several."""

    task: str = CLASSIFICATION
    target_dimensions: int = 0

    def losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """As `Loss` has it."""
        return nn.functional.cross_entropy(outputs, targets, reduction="none")

    def total(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """As `Loss` has it."""
        return nn.functional.cross_entropy(outputs, targets, reduction="sum")

    def gradient(self, outputs: Tensor, targets: Tensor, shares: Tensor | None = None) -> Tensor:
        """As `Loss` has it.

        The very kernels that autograd calls, so the same bits, without its bookkeeping, which for a small
        model takes as long as all the rest.

        Raises:
            RuntimeError: A label is out of range.
        """
        if outputs.requires_grad:
            outputs = outputs.detach()
        losses_back, label = torch.zeros_like(outputs), targets[:, None]
        if shares is None:
            losses_back.scatter_(1, label, -1.0)
        else:
            losses_back.scatter_(1, label, -shares[:, None])
        logs = torch.log_softmax(outputs, 1)
        return torch._log_softmax_backward_data(losses_back, logs, 1, outputs.dtype)

    def check(self, targets: Tensor) -> None:
        """As `Loss` has it."""
        if (targets < 0).any():  # cross_entropy takes one of -100 for a record to skip
            raise IndexError("a label is below 0")

    def example_targets(self, x: Tensor, outputs: int) -> Tensor:
        """As `Loss` has it."""
        return torch.arange(len(x)) % outputs


class _PerOutput:
    """A loss that is the mean over the outputs of a function of each output and its target."""

    target_dimensions = 1

    def losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """As `Loss` has it."""
        return self._each(outputs, targets.to(outputs.dtype)).mean(dim=1)

    def total(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """As `Loss` has it."""
        return self.losses(outputs, targets).sum()

    def gradient(self, outputs: Tensor, targets: Tensor, shares: Tensor | None = None) -> Tensor:
        """As `Loss` has it."""
        slopes = self._slopes(outputs.detach(), targets) / outputs.shape[1]
        return slopes if shares is None else slopes * shares[:, None]

    def check(self, targets: Tensor) -> None:
        """As `Loss` has it: a target that is no number makes the gradient none, which counts as zero."""

    def example_targets(self, x: Tensor, outputs: int) -> Tensor:
        """As `Loss` has it: zeros and ones, which are numbers and labels."""
        places = torch.arange(len(x) * outputs).reshape(len(x), outputs)
        return (places % 2).to(torch.float32)

    def _each(self, outputs: Tensor, targets: Tensor) -> Tensor:
        raise NotImplementedError

    def _slopes(self, outputs: Tensor, targets: Tensor) -> Tensor:
        raise NotImplementedError


@dataclass(frozen=True)
class SquaredError(_PerOutput):
    """The mean squared error over a record's targets."""

    task: str = REGRESSION

    def _each(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return (outputs - targets) ** 2

    def _slopes(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return 2 * (outputs - targets)


@dataclass(frozen=True)
class Huber(_PerOutput):
    """Half the squared error up to a threshold and linear beyond (Huber 1964).

    Args:
        threshold: Where it becomes linear; its slope is never larger.
    """

    threshold: float = 1.0
    task: str = REGRESSION

    def _each(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return nn.functional.huber_loss(outputs, targets, reduction="none", delta=self.threshold)

    def _slopes(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return (outputs - targets).clamp(-self.threshold, self.threshold)


@dataclass(frozen=True)
class LabelCrossEntropy(_PerOutput):
    """The mean over labels of the binary cross-entropy."""

    task: str = MULTI_LABEL

    def _each(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return nn.functional.binary_cross_entropy_with_logits(outputs, targets, reduction="none")

    def _slopes(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return outputs.sigmoid() - targets


@dataclass(frozen=True)
class NextToken:
    """The mean over the positions of a text of the cross-entropy of the token that follows."""

    task: str = NEXT_TOKEN
    target_dimensions: int = 1

    def losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """As `Loss` has it."""
        each = nn.functional.cross_entropy(outputs.flatten(0, 1), targets.flatten(), reduction="none")
        return each.view(targets.shape).mean(dim=1)

    def total(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """As `Loss` has it."""
        return self.losses(outputs, targets).sum()

    def gradient(self, outputs: Tensor, targets: Tensor, shares: Tensor | None = None) -> Tensor:
        """As `Loss` has it."""
        slopes = outputs.detach().softmax(dim=2)
        slopes = slopes.scatter_add(2, targets[:, :, None], -torch.ones_like(slopes[:, :, :1]))
        slopes /= targets.shape[1]
        return slopes if shares is None else slopes * shares[:, None, None]

    def check(self, targets: Tensor) -> None:
        """As `Loss` has it."""
        if (targets < 0).any():  # cross_entropy takes one of -100 for a position to skip
            raise IndexError("a token is below 0")

    def example_targets(self, x: Tensor, outputs: int) -> Tensor:
        """As `Loss` has it."""
        return torch.arange(x.numel()).reshape(x.shape) % outputs


CROSS_ENTROPY: Loss = CrossEntropy()


def loss_of(task: str, name: str | None = None, threshold: float | None = None) -> Loss:
    """The loss of a task.

    Args:
        task: One of `fedprivacy.data.tasks`.
        name: Of a regression "squared" or "huber"; None: the usual one of the task.
        threshold: Of Huber's loss; None: 1.
    """
    if task == REGRESSION:
        return Huber(1.0 if threshold is None else threshold) if name == "huber" else SquaredError()
    if task == NEXT_TOKEN:
        return NextToken()
    return LabelCrossEntropy() if task == MULTI_LABEL else CROSS_ENTROPY


def trial_records(count: int, features: Sequence[int], outputs: int, task: str) -> Tensor:
    """Made-up records that a model is tried with, float32, shape (count, *features).

    Args:
        count: The number of records.
        features: The shape of one.
        outputs: The number of the model's outputs, or of tokens.
        task: One of `fedprivacy.data.tasks`.
    """
    if task == NEXT_TOKEN:
        return torch.randint(outputs, (count, *features)).to(torch.float32)
    return torch.rand(count, *features)


def trial_loss(task: str, outputs: int) -> Loss:
    """The loss that a model is tried with; of one class the cross-entropy is 0.

    Args:
        task: One of `fedprivacy.data.tasks`.
        outputs: The number of the model's outputs.
    """
    if task == NEXT_TOKEN:
        return NextToken()
    return CROSS_ENTROPY if outputs > 1 else SquaredError()
