"""The strategy matrix of noise that is correlated over rounds: banded, and as good as its bands allow.

A run that adds C^-1 Z to its sums x (Z independent normal rows) releases as much as C x + Z does, so privacy
is that of C x, and accuracy that of A C^-1, where A maps released sums to models: under SGD they add up. C is

    C[t, s] = c[t - s] / n[s],   0 <= t - s < bands,   n[s] = |c[0], ..., c[min(bands, rounds - s) - 1]|

lower triangular, with columns of norm 1, of which any two that lie `bands` or more apart share no row.

Source: Choquette-Choo et al. 2023, "(Amplified) banded matrix factorization" (bands and participation);
McKenna 2024, "Scaling up the banded matrix factorization mechanism" (Toeplitz matrices and their gradient);
Kalinin and Lampert 2024, "Banded square root matrix factorization" (the start of the search). The end columns
are normalised like the others, which neither of them has.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray

from fedprivacy.errors import InputError
from fedprivacy.mechanisms.combinations import BANDS_CAN_BE_SEARCHED, Terms, refuse_broken

Vector = NDArray[np.float64]

_DIGITS = 4  # to which coefficients are rounded, so that machines whose last bits differ find the same


@dataclass(frozen=True, eq=False)
class Strategy:
    """A strategy matrix C with columns of norm 1 for any coefficients: these affect accuracy alone.

    Args:
        coefficients: c, one for each band, the first above 0; only their ratios matter. Shape (bands,).
        rounds: The rows and columns of C.

    Raises:
        InputError: there are none, more than rounds, one is not finite, or C cannot be inverted.

    >>> Strategy(np.array([1.0, 1.0]), 3).matrix().round(3)
    array([[0.707, 0.   , 0.   ],
           [0.707, 0.707, 0.   ],
           [0.   , 0.707, 1.   ]])
    """

    coefficients: Vector
    rounds: int

    def __post_init__(self) -> None:
        given = np.array(self.coefficients, dtype=np.float64)
        if given.ndim != 1 or not 1 <= len(given) <= self.rounds or not np.isfinite(given).all():
            raise InputError(
                f"a strategy of {self.rounds} rounds has from 1 to {self.rounds} finite coefficients."
            )
        largest = np.abs(given).max()
        if not given[0] >= 1e-6 * largest > 0:
            raise InputError(f"a strategy whose first coefficient is {given[0]:g} cannot be inverted.")
        object.__setattr__(self, "coefficients", given / largest)

    @property
    def bands(self) -> int:
        """The number of non-zero diagonals of C."""
        return len(self.coefficients)

    def scale(self, round: int) -> float:
        """n of a round (from 0): by what column `round` of the Toeplitz matrix of c is divided."""
        left = min(self.bands, self.rounds - round)
        return math.sqrt(math.fsum(value**2 for value in self.coefficients[:left].tolist()))

    def squared_error(self, momentum: float = 0.0) -> float:
        """|A C^-1|^2 (Frobenius): the squared error of the models of all rounds, for noise of deviation 1.

        Without dense matrices: C^-1 is diag(n) T^-1, with the Toeplitz matrix T of c, and n differs in the
        last bands - 1 rounds alone. So the rows of A C^-1 above them have equal entries along diagonals, and
        the others a correction.

        Args:
            momentum: Of the server's optimizer, in [0, 1).
        """
        applied, left = workload(self.rounds, momentum), self.rounds
        impulse = np.zeros(left)
        impulse[0] = 1.0
        inverse = scipy.signal.lfilter([1.0], self.coefficients, impulse)  # first column of T^-1
        column = self.scale(0) * scipy.signal.lfilter([1.0], self.coefficients, applied)
        tail = min(self.bands - 1, left)
        weights = np.maximum(left - tail - np.arange(left), 0.0)
        squared = float(weights @ column**2)
        if tail:
            rows = np.arange(left - tail, left)
            lags = np.subtract.outer(rows, np.arange(left))
            within = lags >= 0
            scales = np.array([self.scale(row) for row in rows.tolist()]) - self.scale(0)
            moved = scales[:, None] * np.where(within, inverse[lags], 0.0)
            moved = np.tril(scipy.linalg.toeplitz(applied[:tail])) @ moved
            squared += float(np.sum((np.where(within, column[lags], 0.0) + moved) ** 2))
        return squared

    def matrix(self) -> Vector:
        """C as a dense matrix, shape (rounds, rounds), for tests and inspection."""
        dense = np.zeros((self.rounds, self.rounds))
        for round in range(self.rounds):
            column = self.coefficients[: self.rounds - round] / self.scale(round)
            dense[round : round + len(column), round] = column
        return dense


def workload(rounds: int, momentum: float = 0.0) -> Vector:
    """Returns a round's weight in later models at learning rate 1, shape (rounds,).

    1, 1 + momentum, 1 + momentum + momentum^2, ...: the first column of A.
    """
    return np.cumsum(momentum ** np.arange(rounds))


def square_root(rounds: int, bands: int, momentum: float = 0.0) -> Strategy:
    """The banded square root: the first coefficients of the square root of A.

    Source: Kalinin and Lampert 2024, with momentum too.
    """
    size = min(bands, rounds)
    steps = np.arange(1, size)
    plain = np.cumprod(np.concatenate([[1.0], (steps - 0.5) / steps]))  # of (1 - x)^(-1/2)
    decaying = plain * momentum ** np.arange(size)  # of (1 - momentum x)^(-1/2)
    return Strategy(np.convolve(plain, decaying)[:size], rounds)


@lru_cache(maxsize=64)
def best_strategy(rounds: int, bands: int, momentum: float = 0.0) -> Strategy:
    """The strategy whose models have the least mean squared error, over all rounds.

    It minimises |c|^2 |A C^-1|^2 (Frobenius, C the Toeplitz matrix of c) from the banded square root on, by
    L-BFGS. Should that end early, the error is larger and privacy the same: `Strategy` sees to that.

    Args:
        rounds: Of the run, at least 1.
        bands: At most so many, at least 1.
        momentum: Of the server's optimizer, in [0, 1).

    Raises:
        InputError: the search would take too long (`BANDS_CAN_BE_SEARCHED`), or a number is out of range.
    """
    if rounds < 1 or bands < 1 or not 0 <= momentum < 1:
        raise InputError(f"{rounds} rounds, {bands} bands, momentum {momentum}: out of range.")
    refuse_broken(Terms(rounds=rounds, bands=bands), [BANDS_CAN_BE_SEARCHED])
    start = square_root(rounds, bands, momentum).coefficients
    start = start / start[0]
    if len(start) == 1:
        return Strategy(start, rounds)
    applied, weights = workload(rounds, momentum), np.arange(rounds, 0, -1.0)

    def error(tail: Vector) -> tuple[float, Vector]:
        """The logarithm of the objective, and its gradient (McKenna 2024)."""
        c = np.concatenate([[1.0], tail])
        with np.errstate(over="ignore", invalid="ignore"):
            g = scipy.signal.lfilter([1.0], c, applied)  # first column of A C^-1
            squared = float(weights @ g**2)
            if not math.isfinite(squared) or squared > 1e200:
                return 1e3, np.zeros(len(tail))  # out of bounds: the line search steps back
            # d g[t] / d c[j] = -(g / c)[t - j], and the sum over t is a filter of what runs backward in time.
            back = scipy.signal.lfilter([1.0], c, (weights * g)[::-1])
        moved = np.array([back[: rounds - j][::-1] @ g[: rounds - j] for j in range(1, len(c))])
        norm = float(c @ c)
        return math.log(norm) + math.log(squared), 2 * tail / norm - 2 * moved / squared

    optimum = scipy.optimize.minimize(error, start[1:], jac=True, method="L-BFGS-B", options=_OPTIONS)
    better = optimum.x if np.isfinite(optimum.x).all() and optimum.fun <= error(start[1:])[0] else start[1:]
    return Strategy(np.concatenate([[1.0], np.round(better, _DIGITS)]), rounds)


_OPTIONS = {"maxiter": 2000, "maxfun": 4000, "ftol": 1e-15, "gtol": 1e-9, "maxcor": 20}
