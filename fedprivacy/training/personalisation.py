"""Models of each client's own, beside the model that all clients train: a class for each kind.

A personal model is trained on its client's records without noise and is in no message. Fine-tuning and Ditto
only read what the server sends, so no update depends on them. With `Partial` later updates do depend on the
personal part, that is on which earlier rounds the client took part in, and this is why the guarantee of the
shared part stays what it is.

Take two neighbouring data sets, which differ in client i alone, and fix the coins of all other clients, of
sampling and of batches: a mixture over coins of equal law diverges no more than its worst term. What the
others send is then a function of the released models. Let h be the earlier rounds of client i and its
batches. Given what was released, the sum of round t is Gaussian around the others' sum plus I_t u(h): the
coin I_t is independent of h and of all that was released, and |u(h)| <= C by clipping, whatever h is. So the
round's law is a mixture over h of the laws of a sampled Gaussian with an update of norm C at most. Under
add-remove and zero-out the other world has no u, and joint convexity bounds the mixture by its worst h. Under
replace-one the other world has its own h', with weights of its own: the product of both weights couples them,
and each pair (h, h') is a pair of the mechanism that is accounted for. Each round is therefore dominated
given the past by the pair that the ledger composes (Zhu, Dong and Wang 2022, on adaptive composition), and no
event changes. With `sampling = "all"`, and under local trust, no coin is needed: each message has its own
noise, and its update has norm C at most whatever the client keeps.

With cohorts of a fixed size the others' coins cannot be fixed apart from client i's: whom it displaced is in
that client's personal part later on. With records as the unit, an update is no sum over records of bounded
terms of each: the personal part that all gradients read has been trained on the record. Both are refused
(`fedprivacy.mechanisms.combinations`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from fedprivacy.models.by_name import flat_weights
from fedprivacy.models.partial_training import trained_parameters
from fedprivacy.sampling.batches import ShuffledBatches
from fedprivacy.scenario.training import Training
from fedprivacy.training.model_spec import ModelSpec
from fedprivacy.training.task import Index, Task
from fedprivacy.training.updates import Stack, Updates

Rows = NDArray[np.float32]
Call = Callable[[Task], tuple[Updates, Index]]


@dataclass(frozen=True)
class Personalisation(ABC):
    """How clients get models of their own.

    Args:
        size: The numbers that each client keeps from round to round.
    """

    name: ClassVar[str]
    size: int

    @classmethod
    @abstractmethod
    def of(cls, options: Training, model: ModelSpec, whole: nn.Module) -> Personalisation:
        """That of a scenario.

        Args:
            options: Its section `training`.
            model: The specification of its model.
            whole: The model that a client trains (`ModelSpec.of_client`).
        """

    @abstractmethod
    def initial(self, sent: Rows) -> Rows:
        """What a client keeps that has not taken part, float32, shape (size,).

        Args:
            sent: The model that the server sends, shape (parameters,).
        """

    def common(self, sent: Rows) -> Rows:
        """The whole model of a client that keeps nothing, shape (whole parameters,).

        Args:
            sent: As of `initial`.
        """
        return sent

    @abstractmethod
    def models(self, task: Task, states: Rows, beside: Call) -> Rows:
        """The personal models of some clients after the run, shape (clients, whole parameters).

        Args:
            task: Training from the final model.
            states: What each keeps, shape (clients, size).
            beside: Trains them by plain SGD.
        """


@dataclass(frozen=True)
class Partial(Personalisation):
    """Parameters that stay at each client and are trained with the shared ones (FedPer, Arivazhagan 2019).

    Args:
        shared: Which numbers of the whole model are sent, bool, shape (whole parameters,).
        start: The personal part of a client that has not taken part, which is public, shape (size,).
    """

    name: ClassVar[str] = "partial"
    shared: NDArray[np.bool_]
    start: Rows

    @classmethod
    def of(cls, options: Training, model: ModelSpec, whole: nn.Module) -> Partial:
        """As `Personalisation` has it."""
        personal = set(model.personal)
        shared = np.concatenate(
            [
                np.full(value.numel(), name not in personal)
                for name, value in trained_parameters(whole).items()
            ]
        )
        start = flat_weights(whole)[~shared].copy()
        return cls(len(start), shared, start)

    def initial(self, sent: Rows) -> Rows:
        """As `Personalisation` has it: the public start, whatever was sent."""
        return self.start

    def common(self, sent: Rows) -> Rows:
        """As `Personalisation` has it: the shared part with the public start."""
        return self._whole(sent, self.start[None])[0]

    def train(self, task: Task, states: Rows, call: Call) -> tuple[Updates, Index, Rows]:
        """Trains the clients of a call in a round: the shared part of what each has learned is its update.

        Args:
            task: Their training from the model that was sent.
            states: What each keeps, shape (clients, size).
            call: Trains them as the plan has it.

        Returns:
            Updates to be clipped and sent; what `call` counts; and what each client keeps now.
        """
        starts = self._whole(task.weights, states)
        updates, counts = call(replace(task, weights=starts[0], starts=starts))
        changes = updates.stack()
        sent = Stack(changes[:, torch.from_numpy(self.shared)])
        return sent, counts, _moved(states, changes[:, torch.from_numpy(~self.shared)])

    def models(self, task: Task, states: Rows, beside: Call) -> Rows:
        """As `Personalisation` has it."""
        return self._whole(task.weights, states)

    def _whole(self, sent: Rows, states: Rows) -> Rows:
        whole = np.empty((len(states), len(self.shared)), np.float32)
        whole[:, self.shared], whole[:, ~self.shared] = sent, states
        return whole


@dataclass(frozen=True)
class FineTuning(Personalisation):
    """Each client trains the final model further, on its own records, after the run.

    Args:
        epochs: How often it goes through them.
    """

    name: ClassVar[str] = "fine-tune"
    epochs: int

    @classmethod
    def of(cls, options: Training, model: ModelSpec, whole: nn.Module) -> FineTuning:
        """As `Personalisation` has it."""
        assert options.personal_epochs is not None
        return cls(0, options.personal_epochs)

    def initial(self, sent: Rows) -> Rows:
        """As `Personalisation` has it: nothing."""
        return sent[:0]

    def models(self, task: Task, states: Rows, beside: Call) -> Rows:
        """As `Personalisation` has it; one that is not finite stays the final model."""
        size = getattr(task.options.batches, "batch_size", None)
        options = replace(task.options, batches=ShuffledBatches(self.epochs, size))
        updates, _ = beside(replace(task, options=options, drawn=None))
        starts = np.broadcast_to(task.weights, (len(task.clients), len(task.weights)))
        return _moved(starts, updates.stack())


@dataclass(frozen=True)
class Ditto(Personalisation):
    """A copy of the model that each client trains beside, pulled to the sent one (Li et al. 2021).

    A copy begins as the model that its client is sent first, and is trained in each round where it takes
    part. A client that takes part in none has the final model.

    Args:
        proximal: lambda, the strength of the pull.
    """

    name: ClassVar[str] = "ditto"
    proximal: float

    @classmethod
    def of(cls, options: Training, model: ModelSpec, whole: nn.Module) -> Ditto:
        """As `Personalisation` has it."""
        assert options.personal_proximal is not None
        return cls(len(flat_weights(whole)), options.personal_proximal)

    def initial(self, sent: Rows) -> Rows:
        """As `Personalisation` has it: the model that was sent."""
        return sent

    def train(self, task: Task, states: Rows, beside: Call) -> Rows:
        """Trains the copies of a round, shape (clients, size); updates are formed without them.

        Args:
            task: The clients' training from the model that was sent.
            states: Their copies, shape (clients, size).
            beside: Trains them by plain SGD.
        """
        options = replace(task.options, proximal=self.proximal)
        changes, _ = beside(replace(task, options=options, starts=states))
        return _moved(states, changes.stack())

    def models(self, task: Task, states: Rows, beside: Call) -> Rows:
        """As `Personalisation` has it."""
        return states


def _moved(rows: Rows, changes: torch.Tensor) -> Rows:
    """Rows plus their changes; a row whose change is not finite stays where it is."""
    moved = rows + changes.numpy().astype(np.float32)
    broken = ~np.isfinite(moved).all(axis=1)
    moved[broken] = rows[broken]
    return moved


MODES: dict[str, type[Personalisation]] = {mode.name: mode for mode in (Partial, FineTuning, Ditto)}
