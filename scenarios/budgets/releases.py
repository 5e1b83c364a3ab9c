"""Shared by budgets of pure mechanisms: rounds of one release, at a total epsilon and delta."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from dp_accounting import dp_event as dp

from fedprivacy.accounting.epsilon import epsilon as accounted
from fedprivacy.accounting.epsilon import noise_multiplier as least_noise
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


class ReleasesQuestion(Question):
    """Rounds of one and the same release of pure epsilon-DP, each with noise of its own."""

    epsilon: float | None
    rounds: int
    delta: float
    adjacency: str

    def allowed(self) -> Range:
        """Returns the range of the epsilon of one release."""
        return Range(LEAST_EPSILON, MOST_EPSILON, "0.1 to 10 is usual")

    def shared_problems(self) -> list[str | None]:
        """Returns the problems of the options that all these questions share."""
        allowed = self.allowed()
        epsilon = Range(allowed.low, allowed.high * max(self.rounds, 1), allowed.usual)
        return [
            self.out_of_range("epsilon", epsilon),
            self.out_of_range("rounds", ROUNDS),
            self.out_of_range("delta", DELTA_OR_ZERO),
            self.not_among("adjacency", ADJACENCIES),
        ]

    def largest(self, at: Callable[[float], M], event: Callable[[M], dp.DpEvent]) -> M:
        """Returns the mechanism of largest epsilon per release whose rounds together cost at most `epsilon`.

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

            def together(noise: float) -> dp.DpEvent:
                return self.repeated(event(at(min(max(1 / noise, allowed.low), allowed.high))))

            # A budget above what rounds of the largest epsilon cost is not used up.
            if accounted(together(1 / allowed.high), self.delta, self.adjacency).epsilon <= self.epsilon:
                return at(allowed.high)
            once = 1 / least_noise(together, self.epsilon, self.delta, self.adjacency)
        if once not in allowed:
            raise InputError(
                f"{flag('epsilon')} {self.epsilon:g}: makes epsilon = {once:.3g} for each of "
                f"{plural(self.rounds, 'round')}, which must be {allowed.words}."
            )
        return at(once)

    def repeated(self, event: dp.DpEvent) -> dp.DpEvent:
        """Returns the event of all rounds."""
        return dp.SelfComposedDpEvent(event, self.rounds)

    def cost(self, event: dp.DpEvent, once: float, noise: str) -> dict[str, Any]:
        """Returns the guarantee of all rounds as fields of the document, `words` among them.

        Args:
            event: Of one release.
            once: Its epsilon.
            noise: The release, in words.
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


class MechanismQuestion(ReleasesQuestion, Generic[M]):
    """Rounds of a release by a mechanism whose only free parameter is epsilon."""

    @abstractmethod
    def at(self, epsilon: float) -> M:
        """Returns the mechanism that spends epsilon on each release."""

    @abstractmethod
    def event(self, mechanism: M) -> dp.DpEvent:
        """Returns the event of one release."""

    def calibrated(self) -> M:
        """Returns the mechanism whose rounds together cost at most `epsilon`."""
        return self.largest(self.at, self.event)
