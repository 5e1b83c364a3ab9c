"""`budget group`: one release about several people who belong together."""

from __future__ import annotations

from typing import Any

from fedprivacy.accounting import composition
from fedprivacy.guarantees.statement import printed
from fedprivacy.mechanisms.gaussian import Gaussian
from scenarios.budgets.command_options import GroupOptions
from scenarios.budgets.compose import EPSILON, NOISE
from scenarios.budgets.question import ADJACENCIES, DELTA, DELTA_OR_ZERO, Question, Range

CHANGED = {
    "replace-one": "all records of {} replaced by any others",
    "add-remove": "{} with all their records added or removed",
    "zero-out": "the updates of {} replaced by zero",
}


class GroupQuestion(GroupOptions, Question):
    """Answers `budget group`."""

    def problems(self) -> list[str | None]:
        """Returns the problem of each option."""
        return [
            self.not_exactly_one("epsilon", "noise_multiplier", remedy="it says what the release is"),
            self.out_of_range("size", Range(1, composition.MAX_RELEASES)),
            self.out_of_range("epsilon", EPSILON),
            self.out_of_range("noise_multiplier", NOISE),
            self.out_of_range("delta", DELTA_OR_ZERO if self.noise_multiplier is None else DELTA),
            self.not_among("adjacency", ADJACENCIES),
        ]

    def answer(self) -> dict[str, Any]:
        """Returns the guarantee of the release for the whole group."""
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
