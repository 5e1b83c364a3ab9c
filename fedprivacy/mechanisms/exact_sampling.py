"""An exact sampler of log-concave distributions on the integers, from random bits alone.

A candidate comes from a two-sided staircase: a side by one bit, a step g of w integers with probability
2^-(g+1), a place within the step by log2 w bits. It is accepted with probability

    r(k) = 2^g p(k) / (p(mode) e^c),

where e^c bounds 2^g p(k)/p(mode). On each side p falls and its logarithm is concave, so that the maximum over
a step is at its inner end and, once these values fall from step to step, they fall for ever. About half of
the candidates are accepted. This is the rejection of Canonne, Kamath and Steinke 2020 (from discrete Laplace
candidates, whose steps are single integers) with probabilities that are whole powers of 1/2.

*Why it is exact.* A uniform number of 64 bits, of which more can be drawn, is compared with r(k). Floating
point computes r(k) to within some 1e-12 (a test compares it with 60 digits). Where the two are farther than
`SLACK` apart the comparison is certain; otherwise r(k) is computed with as many digits, and the number with
as many bits, as the decision needs. So no rounding error enters the distribution, and the draws do
not depend on the processor's exponential function. Parameters are floats and mean their exact values.

How many candidates a draw needs depends on random bits alone, not on data.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from decimal import Decimal, localcontext
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Numbers = NDArray[np.float64]

SLACK = 2.0**-36  # beyond it a comparison in floating point is certain
_BLOCK = 1 << 15  # candidates at a time: their numbers stay in the cache
_STEPS = 64  # of the staircase, in which its largest height is
_TABLED, _WIDEST = 16, 1 << 12  # steps on either side that have a table, and the widest ones: a megabyte


class LogConcave(ABC):
    """A distribution on integers with a log-concave mass function.

    Args:
        mode: The likeliest integer.
        variance: About that of the distribution.
    """

    def __init__(self, mode: int, variance: float) -> None:
        self.mode, self.variance = mode, variance

    @abstractmethod
    def log_ratio(self, values: Integers) -> Numbers:
        """Returns log(p(k)/p(mode)) in floating point; shape (values,)."""

    @abstractmethod
    def exact_log_ratio(self, value: int) -> Decimal:
        """Returns the same of a possible value, right to the digits of the current decimal context."""

    def possible(self, value: int) -> bool:
        """Whether the distribution has this value."""
        return True

    @cached_property
    def width(self) -> int:
        """w, the integers in a step of the staircase: a power of two, 0.6 to 1.2 deviations if above 1."""
        return 1 << max(0, math.ceil(math.log2(0.6 * math.sqrt(self.variance))))

    @cached_property
    def bound(self) -> float:
        """c, the logarithm of a bound on 2^g p(k)/p(mode)."""
        steps = np.arange(_STEPS)
        heights = [
            self.log_ratio(ends) + steps * math.log(2)
            for ends in (self.mode + steps * self.width, self.mode - 1 - steps * self.width)
        ]
        return float(np.max(heights)) + 1e-9

    def draw(self, size: int, stream: np.random.Generator) -> Integers:
        """Independent draws, int64, shape (size,).

        Args:
            size: The number of draws.
            stream: The random stream of these draws, and of no others.
        """
        draws = np.empty(size, dtype=np.int64)
        filled = 0
        while filled < size:
            accepted = self._accepted(min(_BLOCK, 2 * (size - filled) + 8), stream)[: size - filled]
            draws[filled : filled + len(accepted)] = accepted
            filled += len(accepted)
        return draws

    def _accepted(self, count: int, stream: np.random.Generator) -> Integers:
        """Returns the accepted ones among `count` candidates."""
        words = _words(count, stream)
        steps = _steps(words >> np.uint64(33), stream)
        places = (words & np.uint64(self.width - 1)).astype(np.int64) + steps * self.width
        # A bit chooses the side: ~x = -1 - x mirrors a place to the left of the mode.
        offsets = places ^ -((words >> np.uint64(32)) & np.uint64(1)).astype(np.int64)
        chances = self._chances(offsets, steps)
        uniform = _words(count, stream)
        margins = chances - uniform * 2.0**-64
        accepted = margins > 0
        for place in np.flatnonzero(np.abs(margins) <= SLACK):
            accepted[place] = self.accepts(int(offsets[place]), int(uniform[place]), stream)
        return self.mode + offsets[accepted]

    def _chances(self, offsets: Integers, steps: Integers) -> Numbers:
        """r in floating point, from a table where that is small."""
        if self.width > _WIDEST:
            return self._computed_chances(offsets, steps)
        reach = _TABLED * self.width
        chances = self._table[np.clip(offsets + reach, 0, 2 * reach - 1)]
        beyond = np.flatnonzero(steps >= _TABLED)
        chances[beyond] = self._computed_chances(offsets[beyond], steps[beyond])
        return chances

    @cached_property
    def _table(self) -> Numbers:
        offsets = np.arange(-_TABLED * self.width, _TABLED * self.width)
        return self._computed_chances(offsets, (offsets ^ (offsets >> 63)) // self.width)

    def _computed_chances(self, offsets: Integers, steps: Integers) -> Numbers:
        logs = self.log_ratio(self.mode + offsets) + (steps * math.log(2) - self.bound)
        with np.errstate(under="ignore"):
            return np.exp(logs)

    def accepts(self, offset: int, word: int, stream: np.random.Generator) -> bool:
        """Decides, with as many digits as it takes, whether a uniform number is below r of a candidate.

        Args:
            offset: The candidate less the mode.
            word: The first 64 bits of the uniform number.
            stream: Where its further bits come from.
        """
        value, step = self.mode + offset, (offset ^ (offset >> 63)) // self.width
        if not self.possible(value):
            return False
        bits, digits = 64, 40
        while True:
            with localcontext() as context:
                context.prec = digits + 25
                logarithm = self.exact_log_ratio(value) + step * Decimal(2).ln() - Decimal(self.bound)
                chance, error = logarithm.exp(), Decimal(10) ** -digits
                low, high = Decimal(word) / 2**bits, Decimal(word + 1) / 2**bits
                if high <= chance - error:
                    return True
                if low >= chance + error:
                    return False
            word, bits, digits = (word << 64) + int(_words(1, stream)[0]), bits + 64, digits + 20


def _words(count: int, stream: np.random.Generator) -> NDArray[np.uint64]:
    """Random words of 64 bits, shape (count,)."""
    return stream.integers(0, 1 << 64, count, dtype=np.uint64)


def _steps(bits: NDArray[np.uint64], stream: np.random.Generator) -> Integers:
    """The number of zeros before the first one of endless random bits, of which the first 31 are here."""
    steps = np.zeros(len(bits), dtype=np.int64)
    unfinished, length = np.arange(len(bits)), 31
    while len(unfinished):
        lowest = bits & (~bits + np.uint64(1))
        ended = lowest > 0
        # A power of two is a float, whose exponent counts the zeros.
        steps[unfinished] += np.where(ended, np.frexp(lowest.astype(np.float64))[1] - 1, length)
        unfinished = unfinished[~ended]
        bits, length = _words(len(unfinished), stream), 64
    return steps
