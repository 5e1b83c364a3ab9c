"""`budget compose`: several releases about the same people, by every theorem."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fedprivacy.accounting import composition
from fedprivacy.accounting.composed import Bound, compositions, gaussian_compositions
from fedprivacy.errors import InputError
from fedprivacy.mechanisms.gaussian import Gaussian
from scenarios.budgets.command_options import ComposeOptions
from scenarios.budgets.question import (
    ADJACENCIES,
    DELTA,
    ROUNDS,
    Question,
    Range,
    plural,
    promise,
)

EPSILON = Range(
    composition.MIN_EPSILON, composition.MAX_EPSILON, "0.01 to 1 is usual for one of many releases"
)
NOISE = Range(0.01, 1e7, "0.5 to 20 is usual")


class ComposeQuestion(ComposeOptions, Question):
    """Answers `budget compose`."""

    def problems(self) -> list[str | None]:
        """Returns the problem of each option."""
        known_noise = self.noise_multiplier is not None
        checks = [
            (
                known_noise and (self.gaussian or self.release_delta != 0),
                "--noise-multiplier: says all about each release: leave out --gaussian and --release-delta.",
            ),
            (
                self.gaussian and not known_noise and self.release_delta == 0,
                "--gaussian: Gaussian noise has no epsilon at delta 0: give --release-delta too, as 1e-7.",
            ),
        ]
        return [
            self.not_exactly_one("epsilon", "noise_multiplier", remedy="it says what each release is"),
            self.out_of_range("rounds", ROUNDS),
            self.out_of_range("epsilon", EPSILON),
            self.out_of_range("release_delta", Range(0, 1, "0 for pure epsilon", below=True)),
            self.out_of_range("noise_multiplier", NOISE),
            *(text for wrong, text in checks if wrong),
            self.out_of_range("delta", DELTA),
            self.not_among("adjacency", ADJACENCIES),
        ]

    def answer(self) -> dict[str, Any]:
        """Returns the epsilon of every theorem for the releases, and the least."""
        noise = self._noise()
        if noise is None:
            assert self.epsilon is not None
            rows = compositions(self.epsilon, self.release_delta, self.rounds, self.delta)
            each = f"each ({self.epsilon:g}, {self.release_delta:g})-DP and nothing else known of it"
        else:
            mu = Gaussian(1.0, noise).mu(self.adjacency)
            rows = gaussian_compositions(mu, self.rounds, self.delta)
            each = f"each Gaussian noise of standard deviation {noise:.6g} x C on data clipped to norm C"
        proved = [row for row in rows if row.epsilon is not None]
        if not proved:
            raise InputError(
                f"--delta {self.delta}: no theorem applies: {rows[0].note}. "
                "Use a larger --delta, or a smaller --release-delta."
            )
        best = min(proved, key=lambda row: row.epsilon or 0.0)
        assert best.epsilon is not None
        return {
            "epsilon": best.epsilon,
            "delta": best.delta,
            "noise_multiplier": noise,
            "rounds": self.rounds,
            "unit": "client",
            "adjacency": self.adjacency,
            "accountant": best.name,
            "table": [asdict(row) for row in rows],
            "words": self._words(each, best),
        }

    def _noise(self) -> float | None:
        if self.gaussian:
            assert self.epsilon is not None
            return Gaussian.calibrated(self.epsilon, self.release_delta, self.adjacency).noise_multiplier
        return self.noise_multiplier

    def _words(self, each: str, best: Bound) -> str:
        assert best.epsilon is not None
        return (
            f"{plural(self.rounds, 'release')}, {each}, cost together "
            f"{promise(best.epsilon, best.delta, self.adjacency, f'{best.name} composition')}. "
            "It holds against those who see the releases, not against whoever makes them. "
            "All theorems hold, also where each release is chosen after the earlier ones were seen, so that "
            f"the least answer may be claimed. {composition.POST_PROCESSING}"
        )
