"""`budget group`: one release about several people who belong together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from fedprivacy.accounting import composition
from fedprivacy.guarantees.statement import printed
from fedprivacy.mechanisms.gaussian import Gaussian
from scenarios.budgets.compose import EPSILON, NOISE
from scenarios.budgets.question import ADJACENCIES, DELTA, DELTA_OR_ZERO, Question, Range

CHANGED = {
    "replace-one": "all records of {} replaced by any others",
    "add-remove": "{} with all their records added or removed",
    "zero-out": "the updates of {} replaced by zero",
}


@dataclass(frozen=True)
class GroupQuestion(Question):
    """What is asked of `budget group`.

    Args:
        size: How many people.
        epsilon: Of the release for one person,
        delta: and its delta; 0 for pure epsilon.
        noise_multiplier: Instead of epsilon: Gaussian noise (standard deviation / clipping norm).
        adjacency: "replace-one", "add-remove" or "zero-out".
    """

    size: int
    epsilon: float | None = None
    delta: float = 0.0
    noise_multiplier: float | None = None
    adjacency: str = "replace-one"
    mechanism: ClassVar[str] = "group"

    def problems(self) -> list[str | None]:
        """What is wrong with each option."""
        return [
            self.not_one_of("epsilon", "noise_multiplier", remedy="it says what the release is"),
            self.outside("size", Range(1, composition.MAX_RELEASES)),
            self.outside("epsilon", EPSILON),
            self.outside("noise_multiplier", NOISE),
            self.outside("delta", DELTA_OR_ZERO if self.noise_multiplier is None else DELTA),
            self.none_of("adjacency", ADJACENCIES),
        ]

    def answer(self) -> dict[str, Any]:
        """What the release promises all of the group together."""
        if self.noise_multiplier is None:
            assert self.epsilon is not None
            once = self.epsilon
            epsilon, delta = composition.group(once, self.delta, self.size)
            accountant = "group privacy"
        else:
            mu = Gaussian(1.0, self.noise_multiplier).mu(self.adjacency)
            once, delta = composition.gaussian_group(mu, self.delta, 1), self.delta
            epsilon, accountant = composition.gaussian_group(mu, delta, self.size), "analytic Gaussian"
        people = "1 client" if self.size == 1 else f"{self.size:,} clients together"
        words = (
            f"A release that costs epsilon = {printed(once)} at delta = {self.delta:g} for one client costs "
            f"epsilon = {printed(epsilon)} at delta = {printed(delta)} for "
            f"{CHANGED[self.adjacency].format(people)} ({self.adjacency}; accountant {accountant}). "
            "It holds against those who see the release, not against whoever makes it."
        )
        if delta == 1:
            words += (
                " A delta of 1 promises nothing: take a smaller --delta, or give --noise-multiplier if the "
                "noise is Gaussian."
            )
        return {
            "epsilon": epsilon,
            "delta": delta,
            "size": self.size,
            "epsilon_of_one_client": once,
            "delta_of_one_client": self.delta,
            "noise_multiplier": self.noise_multiplier,
            "unit": "client",
            "adjacency": self.adjacency,
            "accountant": accountant,
            "words": words,
        }
