"""Shared by budgets of noise with a scale: epsilon to scale and back."""

from __future__ import annotations

from abc import abstractmethod
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


class ScaledQuestion(MechanismQuestion[S]):
    """Rounds of one release with noise of one scale."""

    scale: float | None

    @abstractmethod
    def mechanism_problems(self) -> list[str | None]:
        """Returns the problems of the options of this mechanism."""

    def problems(self) -> list[str | None]:
        """Returns the problem of each option."""
        others = [*self.shared_problems(), *self.mechanism_problems()]
        # The range of the scale follows from the other options.
        scale = None if any(others) else self.out_of_range("scale", self.allowed_scale())
        return [self.not_exactly_one("epsilon", "scale"), *others, scale]

    def allowed_scale(self) -> Range:
        """Returns the range of scales whose epsilon of one release is allowed."""
        allowed, unit = self.allowed(), self.at(1.0).scale
        usual = f"it makes an epsilon {allowed.words} in each release"
        return Range(unit / allowed.high, unit / allowed.low, usual)

    def solved(self) -> S:
        """Returns the mechanism of the given scale, or the one calibrated to the given epsilon."""
        if self.scale is None:
            return self.calibrated()
        allowed, epsilon = self.allowed(), self.at(1.0).scale / self.scale
        return self.at(min(max(epsilon, allowed.low), allowed.high))  # at either end it is rounded
