"""All attacks on released models: prepared once on reference models, then run on each target."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from fedprivacy.attacks.released import thresholds
from fedprivacy.attacks.released.gradients import last_layer
from fedprivacy.attacks.released.lira import Variance, lira
from fedprivacy.attacks.released.network import Fitting, Seen, network
from fedprivacy.attacks.released.references import Models
from fedprivacy.attacks.released.rmia import GAMMA, OFFLINE_A, rmia
from fedprivacy.attacks.released.shadow import Shadow, fit_shadow
from fedprivacy.attacks.released.signals import Signals, confidences, log_probabilities
from fedprivacy.attacks.targets import Flags, Numbers
from fedprivacy.errors import InputError
from fedprivacy.randomness.streams import Streams

THRESHOLDS = ("loss", "confidence", "entropy", "modified-entropy", "loss-by-class")
NETWORKS = ("network-outputs", "network-gradients")
# What is known to work goes first (`choose_score`).
ATTACKS = ("lira", "lira-global", "rmia", "lira-offline", "rmia-offline", "shadow", *NETWORKS, *THRESHOLDS)
FITTED = ("loss-by-class", *NETWORKS)  # on known memberships of the target: scores by direction
SHADOWS = 16  # of the references, of whose outputs the attack network of each class learns


@dataclass(frozen=True)
class Scored:
    """The scores of one attack, for each target.

    Args:
        scores: Larger means rather a member; shape (targets,), or of `FITTED` (directions, targets), as
            `fedprivacy.attacks.targets.Targets` takes them.
        seconds: Of processor time on this target model, without the shared preparation.
    """

    scores: Signals
    seconds: float


def features(scored: Mapping[str, Scored]) -> dict[str, Signals]:
    """The scores of each attack by name."""
    return {name: score.scores for name, score in scored.items()}


@dataclass(frozen=True)
class Battery:
    """The attacks on target models that were trained on records of one pool.

    Args:
        module: The model; its trained weights are not read.
        x: The pool, float32, shape (pool, *features).
        y: Its labels, int64, shape (pool,).
        population: Records z that no model was trained on, and their labels.
        references: Models on halves of the pool.
        streams: Those of the run.
        attacks: Which of them, by name.
        gamma: Of RMIA.
        offline_a: Of RMIA.
        fitting: Of the attack networks.

    Raises:
        InputError: there is no such attack.
    """

    module: nn.Module
    x: Tensor
    y: Tensor
    population: tuple[Tensor, Tensor]
    references: Models
    streams: Streams
    attacks: Sequence[str] = ATTACKS
    gamma: float = GAMMA
    offline_a: float = OFFLINE_A
    fitting: Fitting = field(default_factory=Fitting)

    def __post_init__(self) -> None:
        if unknown := [name for name in self.attacks if name not in ATTACKS]:
            raise InputError(f"attacks: no {', '.join(unknown)}; there are {', '.join(ATTACKS)}.")

    def run(
        self,
        weights: Tensor,
        members: Flags,
        folds: Numbers,
        places: NDArray[np.int64] | None = None,
    ) -> dict[str, Scored]:
        """Runs the attacks on one target model.

        Args:
            weights: Of the target, shape (parameters,).
            members: Whether each judged record is a member, shape (targets,).
            folds: The fold of each, shape (targets,).
            places: The indices of the targets in the pool, shape (targets,); None: all of it.

        Raises:
            InputError: a direction lacks members or non-members, or there are too few references.
        """
        where = np.arange(len(self.y)) if places is None else places
        case = _Case(self, weights, members, folds, where)
        results = {}
        for name in ATTACKS:
            if name in self.attacks:
                began = time.process_time()
                scores = case.ways[name]()
                results[name] = Scored(scores, time.process_time() - began)
        return results

    @cached_property
    def reference_confidences(self) -> tuple[Signals, Signals]:
        """The references' signals of the pool, shape (models, pool), and of z, shape (models, population)."""
        weights = self.references.weights
        return (
            confidences(self.module, weights, self.x, self.y),
            confidences(self.module, weights, *self.population),
        )

    @cached_property
    def shadow(self) -> Shadow:
        """The attack network of each class."""
        some = self.references.weights[:SHADOWS]
        logs = np.stack([log_probabilities(self.module, weights, self.x) for weights in some])
        return fit_shadow(logs, self.y.cpu().numpy(), self.references.members[: len(some)], self.streams)

    def prepare(self) -> float:
        """Prepares shared results for all target models; returns the seconds of processor time."""
        began = time.process_time()
        if set(self.attacks) & {"lira", "lira-global", "lira-offline", "rmia", "rmia-offline"}:
            _ = self.reference_confidences
        if "shadow" in self.attacks:
            _ = self.shadow
        return time.process_time() - began


class _Case:
    """One target model under attack; arguments as in `Battery.run`."""

    def __init__(
        self, battery: Battery, weights: Tensor, members: Flags, folds: Numbers, places: NDArray[np.int64]
    ) -> None:
        self._battery, self._weights = battery, weights
        self._members, self._folds, self._places = members, folds, places
        self._x, self._y = battery.x[places], battery.y[places]
        self._labels = self._y.cpu().numpy()
        self.ways: dict[str, Callable[[], Signals]] = {
            "lira": lambda: self._lira("per-record", False),
            "lira-global": lambda: self._lira("global", False),
            "lira-offline": lambda: self._lira("per-record", True),
            "rmia": lambda: self._rmia(False),
            "rmia-offline": lambda: self._rmia(True),
            "shadow": lambda: battery.shadow.scores(self._logs, self._labels),
            "network-outputs": lambda: self._network(False),
            "network-gradients": lambda: self._network(True),
            "loss": lambda: thresholds.loss(self._logs, self._labels),
            "confidence": lambda: thresholds.confidence(self._logs),
            "entropy": lambda: thresholds.entropy(self._logs),
            "modified-entropy": lambda: thresholds.modified_entropy(self._logs, self._labels),
            "loss-by-class": self._by_class,
        }

    @cached_property
    def _logs(self) -> Signals:
        return log_probabilities(self._battery.module, self._weights, self._x)

    @cached_property
    def _target_confidences(self) -> tuple[Signals, Signals]:
        """The target's confidences in the whole pool, shape (pool,), and in z, shape (population,)."""
        battery, weights = self._battery, self._weights[None]
        return (
            confidences(battery.module, weights, battery.x, battery.y)[0],
            confidences(battery.module, weights, *battery.population)[0],
        )

    def _lira(self, variance: Variance, offline: bool) -> Signals:
        confidences_of_references, members = (
            self._battery.reference_confidences[0],
            self._battery.references.members,
        )
        return lira(
            self._target_confidences[0],
            confidences_of_references,
            members,
            variance=variance,
            offline=offline,
        )[self._places]

    def _rmia(self, offline: bool) -> Signals:
        battery, (pair, others) = self._battery, self._target_confidences
        confidences, confidences_of_others = battery.reference_confidences
        members, gamma, a = battery.references.members, battery.gamma, battery.offline_a
        scores = rmia(
            pair, confidences, members, others, confidences_of_others, gamma=gamma, offline=offline, a=a
        )
        return scores[self._places]

    def _network(self, gradients: bool) -> Signals:
        battery = self._battery
        layer = last_layer(battery.module, self._weights, self._x, self._y) if gradients else None
        seen = Seen(self._logs, self._labels, layer)
        return network(seen, self._members, self._folds, battery.streams, battery.fitting)

    def _by_class(self) -> Signals:
        scores = thresholds.loss(self._logs, self._labels)
        return thresholds.by_class(scores, self._labels, self._members, self._folds)
