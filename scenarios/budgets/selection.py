"""`budget exponential` and `budget noisy-max`: which candidate is best, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import dp_accounting

from fedprivacy.mechanisms.selection import NOISES, ExponentialMechanism, NoisyMax
from scenarios.budgets.noise import SENSITIVITY, SIZE
from scenarios.budgets.question import CONFIDENCE, plural
from scenarios.budgets.scaled import ScaledQuestion

S = TypeVar("S", bound=ExponentialMechanism | NoisyMax)


@dataclass(frozen=True)
class SelectionQuestion(ScaledQuestion[S]):
    """A private choice among candidates by their scores.

    Args:
        sensitivity: The most that one client can change any one score.
        candidates: Among how many the choice is.
        confidence: How sure the bound on its loss is.
    """

    sensitivity: float = 1.0
    candidates: int = 2
    confidence: float = 0.95

    def own_problems(self) -> list[str | None]:
        """What is wrong with the options of the mechanism itself."""
        return [
            self.outside("sensitivity", SENSITIVITY),
            self.outside("candidates", SIZE),
            self.outside("confidence", CONFIDENCE),
        ]

    def event(self, mechanism: S) -> dp_accounting.DpEvent:
        """What one choice costs."""
        return mechanism.event()

    def chosen(self, found: S, noise: str) -> dict[str, Any]:
        """The document of a choice.

        Args:
            found: The mechanism.
            noise: What is done, in words.
        """
        loss = found.utility_bound(self.candidates, 1 - self.confidence)
        document = self.cost(self.event(found), found.epsilon, noise)
        return document | {
            "scale": found.scale,
            "sensitivity": self.sensitivity,
            "monotone": found.monotone,
            "candidates": self.candidates,
            "confidence": self.confidence,
            "loss": loss,
            "words": (
                f"{document['words']} It holds against those who see the choice, not against whoever makes "
                f"it. Among {plural(self.candidates, 'candidate')} the score of the chosen one is at most "
                f"{loss:.4g} below the best with probability {self.confidence:g}."
            ),
        }


@dataclass(frozen=True)
class ExponentialQuestion(SelectionQuestion[ExponentialMechanism]):
    """What is asked of `budget exponential`.

    Args:
        monotone: That one client moves all scores the same way.
    """

    monotone: bool = False
    mechanism: ClassVar[str] = "exponential"

    def own_problems(self) -> list[str | None]:
        """What is wrong with the options of the mechanism itself."""
        wrong = self.monotone and self.adjacency == "replace-one"
        words = (
            "--monotone: under replace-one a client may move one score up and another one down: leave it "
            "out, or take --adjacency add-remove."
        )
        return [*super().own_problems(), words if wrong else None]

    def at(self, epsilon: float) -> ExponentialMechanism:
        """The exponential mechanism at this epsilon a choice."""
        return ExponentialMechanism(epsilon, self.sensitivity, self.monotone)

    def answer(self) -> dict[str, Any]:
        """Weights, loss and cost."""
        found = self.found()
        kind = " monotone" if self.monotone else ""
        return self.chosen(
            found,
            f"A choice by the exponential mechanism, e times as likely for every {found.scale:.6g} of"
            f"{kind} score, which one client changes by {self.sensitivity:g} at most,",
        )


@dataclass(frozen=True)
class NoisyMaxQuestion(SelectionQuestion[NoisyMax]):
    """What is asked of `budget noisy-max`: the largest of several counts of clients.

    Args:
        noise: "laplace", "gumbel" or "permute-and-flip".
    """

    noise: str = "laplace"
    mechanism: ClassVar[str] = "noisy-max"

    def own_problems(self) -> list[str | None]:
        """What is wrong with the options of the mechanism itself."""
        return [*super().own_problems(), self.none_of("noise", NOISES)]

    def at(self, epsilon: float) -> NoisyMax:
        """Noisy max at this epsilon a choice; counts are monotone unless a client is replaced."""
        noise = next(noise for noise in NOISES if noise == self.noise)
        return NoisyMax(epsilon, self.sensitivity, self.adjacency != "replace-one", noise)

    def answer(self) -> dict[str, Any]:
        """Noise, loss and cost."""
        found = self.found()
        return self.chosen(
            found,
            f"The largest of several counts, each of which one client changes by {self.sensitivity:g} at "
            f"most, after {found.words}",
        ) | {"noise": self.noise}
