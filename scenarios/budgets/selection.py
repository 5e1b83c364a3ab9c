"""`budget exponential` and `budget noisy-max`: private selection of the best candidate."""

from __future__ import annotations

from typing import Any, TypeVar

from dp_accounting import dp_event as dp

from fedprivacy.mechanisms.selection import NOISES, ExponentialMechanism, NoisyMax
from scenarios.budgets.command_options import ExponentialOptions, NoisyMaxOptions
from scenarios.budgets.noise import SENSITIVITY, SIZE
from scenarios.budgets.question import CONFIDENCE, plural
from scenarios.budgets.scaled import ScaledQuestion

S = TypeVar("S", bound=ExponentialMechanism | NoisyMax)


class SelectionQuestion(ScaledQuestion[S]):
    """A private choice among candidates by their scores."""

    sensitivity: float
    candidates: int
    confidence: float

    def mechanism_problems(self) -> list[str | None]:
        """Returns the problems of the options of this mechanism."""
        return [
            self.out_of_range("sensitivity", SENSITIVITY),
            self.out_of_range("candidates", SIZE),
            self.out_of_range("confidence", CONFIDENCE),
        ]

    def event(self, mechanism: S) -> dp.DpEvent:
        """Returns the event of one choice."""
        return mechanism.event()

    def selection(self, mechanism: S, noise: str) -> dict[str, Any]:
        """Returns the document of a choice.

        Args:
            mechanism: The mechanism.
            noise: The mechanism, in words.
        """
        loss = mechanism.utility_bound(self.candidates, 1 - self.confidence)
        document = self.cost(self.event(mechanism), mechanism.epsilon, noise)
        return document | {
            "scale": mechanism.scale,
            "sensitivity": self.sensitivity,
            "monotone": mechanism.monotone,
            "candidates": self.candidates,
            "confidence": self.confidence,
            "loss": loss,
            "words": (
                f"{document['words']} It holds against those who see the choice, not against whoever makes "
                f"it. Among {plural(self.candidates, 'candidate')} the score of the chosen one is at most "
                f"{loss:.4g} below the best with probability {self.confidence:g}."
            ),
        }


class ExponentialQuestion(ExponentialOptions, SelectionQuestion[ExponentialMechanism]):
    """Answers `budget exponential`."""

    def mechanism_problems(self) -> list[str | None]:
        """Returns the problems of the options of this mechanism."""
        wrong = self.monotone and self.adjacency == "replace-one"
        words = (
            "--monotone: under replace-one a client may move one score up and another one down: leave it "
            "out, or take --adjacency add-remove."
        )
        return [*super().mechanism_problems(), words if wrong else None]

    def at(self, epsilon: float) -> ExponentialMechanism:
        """Returns the exponential mechanism at this epsilon per choice."""
        return ExponentialMechanism(epsilon, self.sensitivity, self.monotone)

    def answer(self) -> dict[str, Any]:
        """Returns weights, loss and cost."""
        mechanism = self.solved()
        kind = " monotone" if self.monotone else ""
        return self.selection(
            mechanism,
            f"A choice by the exponential mechanism, e times as likely for every {mechanism.scale:.6g} of"
            f"{kind} score, which one client changes by {self.sensitivity:g} at most,",
        )


class NoisyMaxQuestion(NoisyMaxOptions, SelectionQuestion[NoisyMax]):
    """Answers `budget noisy-max`: the largest of several counts of clients."""

    def mechanism_problems(self) -> list[str | None]:
        """Returns the problems of the options of this mechanism."""
        return [*super().mechanism_problems(), self.not_among("noise", NOISES)]

    def at(self, epsilon: float) -> NoisyMax:
        """Returns noisy max at this epsilon per choice; counts are monotone unless a client is replaced."""
        noise = next(noise for noise in NOISES if noise == self.noise)
        return NoisyMax(epsilon, self.sensitivity, self.adjacency != "replace-one", noise)

    def answer(self) -> dict[str, Any]:
        """Returns noise, loss and cost."""
        mechanism = self.solved()
        return self.selection(
            mechanism,
            f"The largest of several counts, each of which one client changes by {self.sensitivity:g} at "
            f"most, after {mechanism.words}",
        ) | {"noise": self.noise}
