"""`budget compose`: several releases about the same people, by every theorem."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from fedprivacy.accounting import composition
from fedprivacy.accounting.composed import Bound, compositions, gaussian_compositions
from fedprivacy.errors import InputError
from fedprivacy.mechanisms.gaussian import Gaussian
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


@dataclass(frozen=True)
class ComposeQuestion(Question):
    """What is asked of `budget compose`.

    Args:
        rounds: k, how many releases.
        epsilon: Of each release, of which nothing else is known,
        release_delta: and its delta, 0 for pure epsilon.
        gaussian: That each release is Gaussian noise with just this epsilon and delta.
        noise_multiplier: Instead of epsilon: Gaussian noise (standard deviation / clipping norm) in each.
        delta: Of all releases together.
        adjacency: "replace-one", "add-remove" or "zero-out".
    """

    rounds: int
    epsilon: float | None = None
    release_delta: float = 0.0
    gaussian: bool = False
    noise_multiplier: float | None = None
    delta: float = 1e-5
    adjacency: str = "replace-one"
    mechanism: ClassVar[str] = "compose"

    def problems(self) -> list[str | None]:
        """What is wrong with each option."""
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
            self.not_one_of("epsilon", "noise_multiplier", remedy="it says what each release is"),
            self.outside("rounds", ROUNDS),
            self.outside("epsilon", EPSILON),
            self.outside("release_delta", Range(0, 1, "0 for pure epsilon", below=True)),
            self.outside("noise_multiplier", NOISE),
            *(text for wrong, text in checks if wrong),
            self.outside("delta", DELTA),
            self.none_of("adjacency", ADJACENCIES),
        ]

    def answer(self) -> dict[str, Any]:
        """Every theorem's epsilon for the releases, and the least."""
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
