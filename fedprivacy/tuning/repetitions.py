"""The random number of runs of private candidates, of which only the best is released."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np
import scipy
from dp_accounting import dp_event as dp
from numpy.typing import NDArray

from fedprivacy.errors import InputError

MOST_MEAN = 1000.0
MOST_SHAPE = 100.0
LEAST_SHAPE = 1e-3  # of shapes above 0: for smaller ones the tail cannot be computed
_NEVER = 1e-15  # values of smaller probability are never drawn


@dataclass(frozen=True)
class Repetitions:
    """The distribution of the number of repetitions, with the cost of the best of them.

    A truncated negative binomial number of shape eta >= 0 is at least 1 (Papernot and Steinke 2022,
    Definition 1; eta = 1 is the geometric one of Liu and Talwar 2019, eta = 0 the logarithmic one). A Poisson
    number may be 0: then nothing is run, and the output must not depend on the data.

    Simulation grade: a tail of probability 1e-15 in all is never drawn.

    Args:
        mean: Of the number, from 1 to 1000; of a Poisson number its parameter.
        shape: eta, from 0 to 100, or infinity for a Poisson number.

    Raises:
        InputError: The mean or the shape is out of range.

    >>> Repetitions.geometric(10).gamma, Repetitions.poisson(10).least
    (0.1, 0)
    """

    mean: float
    shape: float

    def __post_init__(self) -> None:
        if not 1 <= self.mean <= MOST_MEAN:
            raise InputError(f"mean = {self.mean}: must be from 1 to {MOST_MEAN:g} repetitions.")
        if not (self.shape in (0, math.inf) or LEAST_SHAPE <= self.shape <= MOST_SHAPE):
            raise InputError(
                f"shape = {self.shape}: must be 0 (logarithmic), from {LEAST_SHAPE:g} over 1 (geometric) to "
                f"{MOST_SHAPE:g}, or infinity (Poisson)."
            )

    @classmethod
    def poisson(cls, mean: float) -> Self:
        """A Poisson number."""
        return cls(mean, math.inf)

    @classmethod
    def geometric(cls, mean: float) -> Self:
        """Random stopping: after each repetition a coin decides whether it was the last."""
        return cls(mean, 1.0)

    @property
    def least(self) -> int:
        """The least number that can be drawn."""
        return 0 if self.shape == math.inf else 1

    @property
    def gamma(self) -> float:
        """The parameter gamma of the truncated negative binomial law, in (0, 1]; the mean decides it.

        Raises:
            InputError: It is a Poisson law, which has none.
        """
        if self.shape == math.inf:
            raise InputError("A Poisson number of repetitions has no gamma.")
        if self.shape == 1:
            return 1 / self.mean
        # The mean falls in gamma: from infinity at 0 to 1 at 1.
        if _mean(1 - 1e-9, self.shape) >= self.mean:
            return 1.0
        return float(
            scipy.optimize.brentq(lambda g: _mean(g, self.shape) - self.mean, 1e-12, 1 - 1e-9, xtol=1e-15)
        )

    def probabilities(self) -> NDArray[np.float64]:
        """The chance of 0, 1, 2, ... repetitions, up to the last that is ever drawn; they add up to 1."""
        return _probabilities(self).copy()

    def draw(self, stream: np.random.Generator, size: int | None = None) -> NDArray[np.int64]:
        """Draws the number of repetitions, shape () or (size,).

        Who learns the number learns more than is accounted for: it is the operator's alone.

        Args:
            stream: The random stream of this choice, and of no other.
            size: How many numbers, each of a choice of its own.
        """
        return np.asarray(np.searchsorted(_ends(self), stream.random(size), side="right"))

    def chance_of_the_best(self, candidates: int) -> float:
        """The probability that a given one of `candidates` runs, if each repetition draws one at random."""
        if candidates < 1:
            raise InputError(f"candidates = {candidates}: must be at least 1.")
        missed = (1 - 1 / candidates) ** np.arange(len(_probabilities(self)))
        return float(1 - _probabilities(self) @ missed)

    def event(self, once: dp.DpEvent) -> dp.DpEvent:
        """The event of the best repetition, if only it is released.

        Args:
            once: The event of one repetition: a candidate *and* the score that it is chosen by.
        """
        return dp.RepeatAndSelectDpEvent(once, float(self.mean), float(self.shape))

    @property
    def words(self) -> str:
        """The law, in words."""
        kinds = {0.0: "logarithmic", 1.0: "geometric", math.inf: "Poisson"}
        kind = kinds.get(self.shape, f"truncated negative binomial (shape {self.shape:g})")
        return f"a {kind} number of repetitions, {self.mean:g} on average"


def _mean(gamma: float, shape: float) -> float:
    """Of the truncated negative binomial law: eta (1 - gamma) / (gamma (1 - gamma^eta))."""
    if shape == 0:
        return (1 / gamma - 1) / -math.log(gamma)
    return shape * (1 - gamma) / (gamma * -math.expm1(shape * math.log(gamma)))


@lru_cache(maxsize=32)
def _probabilities(law: Repetitions) -> NDArray[np.float64]:
    if law.shape == math.inf:
        probabilities = scipy.stats.poisson.pmf(np.arange(_last(scipy.stats.poisson(law.mean))), law.mean)
        return np.asarray(probabilities / probabilities.sum())
    gamma = law.gamma
    if gamma == 1:
        return np.array([0.0, 1.0])
    of = scipy.stats.logser(1 - gamma) if law.shape == 0 else scipy.stats.nbinom(law.shape, gamma)
    probabilities = of.pmf(np.arange(_last(of)))
    probabilities[0] = 0.0
    return np.asarray(probabilities / probabilities.sum())


@lru_cache(maxsize=32)
def _ends(law: Repetitions) -> NDArray[np.float64]:
    """Up to where in [0, 1] each number is drawn, but for the last, which is drawn up to 1."""
    return np.asarray(np.cumsum(_probabilities(law))[:-1])


def _last(of: scipy.stats.rv_discrete) -> int:
    """Below how many repetitions all but a chance of 1e-15 lies."""
    most = 16
    while of.sf(most) > _NEVER:
        most *= 2
    return most + 2
