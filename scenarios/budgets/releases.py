"""What budgets of pure mechanisms have in common: rounds of one release, at a total epsilon and delta."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import dp_accounting

from fedprivacy.accounting.calibration import noise_multiplier as least_noise
from fedprivacy.accounting.epsilon import epsilon as accounted
from fedprivacy.errors import InputError
from fedprivacy.guarantees.statement import printed
from fedprivacy.mechanisms.ranges import LEAST_EPSILON, MOST_EPSILON
from scenarios.budgets.question import (
    ADJACENCIES,
    DELTA_OR_ZERO,
    ROUNDS,
    Question,
    Range,
    flag,
    plural,
    promise,
)

M = TypeVar("M")


@dataclass(frozen=True)
class ReleasesQuestion(Question):
    """Rounds of one and the same release of pure epsilon-DP, each with noise of its own.

    Args:
        epsilon: Find the mechanism for this epsilon of all rounds together.
        rounds: How many releases about the same people.
        delta: 0: epsilons add up. Above: the tightest composition that is known of the mechanism.
        adjacency: "replace-one", "add-remove" or "zero-out".
    """

    epsilon: float | None = None
    rounds: int = 1
    delta: float = 0.0
    adjacency: str = "replace-one"

    def allowed(self) -> Range:
        """What the epsilon of one release may be."""
        return Range(LEAST_EPSILON, MOST_EPSILON, "0.1 to 10 is usual")

    def shared_problems(self) -> list[str | None]:
        """What is wrong with the options that all these questions have."""
        allowed = self.allowed()
        epsilon = Range(allowed.low, allowed.high * max(self.rounds, 1), allowed.usual)
        return [
            self.outside("epsilon", epsilon),
            self.outside("rounds", ROUNDS),
            self.outside("delta", DELTA_OR_ZERO),
            self.none_of("adjacency", ADJACENCIES),
        ]

    def largest(self, at: Callable[[float], M], event: Callable[[M], dp_accounting.DpEvent]) -> M:
        """The mechanism of most epsilon a release whose rounds cost `epsilon` together at most.

        Args:
            at: Epsilon of a release -> the mechanism.
            event: The mechanism -> what one release costs.

        Raises:
            InputError: Each release would have less epsilon than a mechanism takes.
        """
        assert self.epsilon is not None
        allowed = self.allowed()
        if self.rounds == 1 or self.delta == 0:
            once = self.epsilon / self.rounds
        else:

            def together(noise: float) -> dp_accounting.DpEvent:
                return self.repeated(event(at(min(max(1 / noise, allowed.low), allowed.high))))

            # No release tells more than the largest epsilon allows, whatever the budget.
            if accounted(together(1 / allowed.high), self.delta, self.adjacency).epsilon <= self.epsilon:
                return at(allowed.high)
            once = 1 / least_noise(together, self.epsilon, self.delta, self.adjacency)
        if once not in allowed:
            raise InputError(
                f"{flag('epsilon')} {self.epsilon:g}: makes epsilon = {once:.3g} for each of "
                f"{plural(self.rounds, 'round')}, which must be {allowed.words}."
            )
        return at(once)

    def repeated(self, event: dp_accounting.DpEvent) -> dp_accounting.DpEvent:
        """The event of all rounds."""
        return dp_accounting.SelfComposedDpEvent(event, self.rounds)

    def cost(self, event: dp_accounting.DpEvent, once: float, noise: str) -> dict[str, Any]:
        """The guarantee of all rounds, as the fields of the document, `words` among them.

        Args:
            event: Of one release.
            once: Its epsilon.
            noise: What is released, in words.
        """
        spent = accounted(self.repeated(event), self.delta, self.adjacency)
        times = "" if self.rounds == 1 else f", in {plural(self.rounds, 'round')},"
        words = (
            f"{noise}{times} costs {promise(spent.epsilon, self.delta, self.adjacency, spent.accountant)}."
        )
        if self.rounds > 1:
            words += f" One round alone costs epsilon = {printed(once)} at delta = 0."
        return {
            "epsilon": spent.epsilon,
            "delta": self.delta,
            "rounds": self.rounds,
            "unit": "client",
            "adjacency": self.adjacency,
            "accountant": spent.accountant,
            "epsilon_of_one_round": once,
            "words": words,
        }


@dataclass(frozen=True)
class MechanismQuestion(ReleasesQuestion, Generic[M]):
    """Rounds of a release by one mechanism, which has nothing to choose but its epsilon."""

    @abstractmethod
    def at(self, epsilon: float) -> M:
        """The mechanism that spends epsilon on each release."""

    @abstractmethod
    def event(self, mechanism: M) -> dp_accounting.DpEvent:
        """What one release costs."""

    def calibrated(self) -> M:
        """The mechanism whose rounds cost `epsilon` together at most."""
        return self.largest(self.at, self.event)
