"""What budgets of noise of a scale have in common: epsilon to scale and back."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Protocol, TypeVar

from scenarios.budgets.question import Range
from scenarios.budgets.releases import MechanismQuestion


class Scaled(Protocol):
    """A mechanism whose noise has a scale, inverse to its epsilon."""

    @property
    def epsilon(self) -> float:
        """The budget of one release."""

    @property
    def scale(self) -> float:
        """Of the noise, in units of the answer."""


S = TypeVar("S", bound=Scaled)


@dataclass(frozen=True)
class ScaledQuestion(MechanismQuestion[S]):
    """Rounds of one release with noise of one scale.

    Args:
        scale: Find the epsilon of noise of this scale in each release.
    """

    scale: float | None = None

    @abstractmethod
    def own_problems(self) -> list[str | None]:
        """What is wrong with the options of the mechanism itself."""

    def problems(self) -> list[str | None]:
        """What is wrong with each option."""
        others = [*self.shared_problems(), *self.own_problems()]
        # The range of the scale follows from the other options.
        scale = None if any(others) else self.outside("scale", self.allowed_scale())
        return [self.not_one_of("epsilon", "scale"), *others, scale]

    def allowed_scale(self) -> Range:
        """Which scales make an epsilon of one release that is allowed."""
        allowed, unit = self.allowed(), self.at(1.0).scale
        usual = f"it makes an epsilon {allowed.words} in each release"
        return Range(unit / allowed.high, unit / allowed.low, usual)

    def found(self) -> S:
        """The mechanism in the direction that is asked for."""
        if self.scale is None:
            return self.calibrated()
        allowed, epsilon = self.allowed(), self.at(1.0).scale / self.scale
        return self.at(min(max(epsilon, allowed.low), allowed.high))  # at either end it is rounded
