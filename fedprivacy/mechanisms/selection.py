"""Private selection: which of k candidates has the best score, and nothing else about the scores.

Both mechanisms add noise to every score and name the largest. Simulation grade: noise is made from floats,
and what has a probability below 1e-16 never happens.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
import scipy
from dp_accounting import dp_event as dp
from numpy.typing import ArrayLike, NDArray

from fedprivacy.accounting.optimal_composition import PureDpEvent
from fedprivacy.errors import InputError
from fedprivacy.mechanisms import argmax
from fedprivacy.mechanisms.ranges import (
    check_adjacency,
    check_chance,
    check_epsilon,
    check_sensitivity,
    check_size,
)

Vector = NDArray[np.float64]
Noise = Literal["laplace", "gumbel", "permute-and-flip"]
NOISES: tuple[Noise, ...] = ("laplace", "gumbel", "permute-and-flip")


@dataclass(frozen=True)
class Selection:
    """The common part of both mechanisms: their scale, and scores that are safe to exponentiate.

    Args:
        epsilon: The budget of one choice, from 1e-6 to 1e4.
        sensitivity: The most that one record can change any one score, under the adjacency that is meant.
        monotone: That one record moves all scores the same way, none up while another goes down. So do counts
            under add-remove and zero-out, not under replace-one. It saves half the noise; claimed falsely,
            the choice costs up to twice epsilon.

    Raises:
        InputError: epsilon or sensitivity is out of range.
    """

    epsilon: float
    sensitivity: float
    monotone: bool = False
    name: ClassVar[str]
    title: ClassVar[str]

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_sensitivity(self.sensitivity)

    @property
    def scale(self) -> float:
        """Of the noise, in the units of a score: sensitivity/epsilon if monotone, else twice that."""
        # One record may raise a score and lower its rival's, so their gap moves by twice the sensitivity.
        # Monotone scores all move the same way: the gap moves by the sensitivity at most.
        return (1 if self.monotone else 2) * self.sensitivity / self.epsilon

    def event(self) -> dp.DpEvent:
        """The event of one choice, as the accountant reads it."""
        return PureDpEvent(self.epsilon)

    def _below(self, scores: ArrayLike) -> Vector:
        """The distance of each score from the best of its set, in scales of the noise, at most 0."""
        given = np.asarray(scores)
        if given.ndim == 0 or given.shape[-1] == 0:
            raise InputError("scores: must hold at least one candidate along their last axis.")
        if given.dtype.kind in "iu":
            # Wraps around to the exact difference: as floats, large integers lose more than the sensitivity.
            whole = given.astype(np.uint64)
            gaps = (given.max(axis=-1, keepdims=True).astype(np.uint64) - whole).astype(np.float64)
        else:
            numbers = given.astype(np.float64)
            if not np.isfinite(numbers).all():
                raise InputError(
                    "scores: must all be finite. What the data alone rule out would give them away: "
                    "leave out only candidates that are impossible whatever the data."
                )
            with np.errstate(over="ignore"):  # beyond the largest float the chance is 0
                gaps = numbers.max(axis=-1, keepdims=True) - numbers
        with np.errstate(over="ignore"):
            return np.asarray(-(gaps / self.scale))


@dataclass(frozen=True)
class ExponentialMechanism(Selection):
    """Chooses candidate i with weight exp(epsilon u_i / (2 Du)) (McSherry and Talwar 2007).

    With monotone scores exp(epsilon u_i / Du) is epsilon-DP too. One lecture writes that weight for any
    scores: there it is 2 epsilon-DP.

    >>> mechanism = ExponentialMechanism(epsilon=0.1, sensitivity=1)
    >>> mechanism.probabilities([500, 399]).round(4).tolist()
    [0.9936, 0.0064]
    """

    name: ClassVar[str] = "exponential-mechanism"
    title: ClassVar[str] = "exponential mechanism"

    def probabilities(self, scores: ArrayLike) -> Vector:
        """The chance of each candidate, shape (..., k), adding up to 1 along the last axis.

        Args:
            scores: Finite numbers of any size, shape (..., k).

        Raises:
            InputError: There is no candidate, or a score is not finite.
        """
        return argmax.gumbel(self._below(scores))

    def draw(self, scores: ArrayLike, stream: np.random.Generator) -> NDArray[np.int64]:
        """The index of the chosen candidate in each set of scores, shape (...).

        Args:
            scores: As of `probabilities`; each set of k is a release of its own.
            stream: The random stream of this release, and of no other.
        """
        return _largest(self._below(scores), "gumbel", stream)

    def utility_bound(self, candidates: int, beta: float) -> float:
        """Bounds the gap between the chosen and the best score, with probability 1 - beta.

        (2 Du/epsilon) ln((k - 1)(1 - beta)/beta), which k - 1 candidates at just that distance attain: a
        little below the theorem's (2 Du/epsilon) ln(k/beta).

        Raises:
            InputError: There is no candidate, or beta is not in (0, 1).
        """
        return self.scale * _gap("gumbel", candidates, beta)

    @property
    def words(self) -> str:
        """The amount of noise, in words."""
        return f"e times as likely for every {self.scale:.4g} of score"


@dataclass(frozen=True)
class NoisyMax(Selection):
    """Report noisy max: adds noise to every score and releases the index of the largest, not its value.

    Lap(2 Du/epsilon), or Lap(Du/epsilon) with monotone scores (Dwork and Roth 2014, Claim 3.9). The lectures'
    Lap(1/epsilon) on counts is the monotone case, right under add-remove; replace-one needs Lap(2/epsilon).
    Gumbel noise is the exponential mechanism. Permute-and-flip (McKenna and Sheldon 2020) is exponential
    noise (Ding et al. 2021), and never worse than Gumbel.

    Args:
        noise: "laplace", "gumbel" or "permute-and-flip".

    >>> NoisyMax.for_counts(0.1, "add-remove").scale, NoisyMax.for_counts(0.1, "replace-one").scale
    (10.0, 20.0)
    """

    noise: Noise = "laplace"
    name: ClassVar[str] = "noisy-max"
    title: ClassVar[str] = "report noisy max"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.noise not in NOISES:
            raise InputError(f"noise = {self.noise!r}: must be one of {', '.join(NOISES)}.")

    @classmethod
    def for_counts(cls, epsilon: float, adjacency: str, noise: Noise = "laplace") -> Self:
        """For counts of records, of which one record may be in many: monotone unless it is replaced.

        Raises:
            InputError: A value is out of range.
        """
        check_adjacency(adjacency)
        return cls(epsilon, 1.0, monotone=adjacency != "replace-one", noise=noise)

    def probabilities(self, scores: ArrayLike) -> Vector:
        """The chance of each candidate, shape (..., k); for "laplace" by numerical integration.

        Args:
            scores: Finite numbers of any size, shape (..., k).

        Raises:
            InputError: There is no candidate, or a score is not finite.
        """
        below = self._below(scores)
        if self.noise == "gumbel":
            return argmax.gumbel(below)
        tail = argmax.laplace if self.noise == "laplace" else argmax.exponential
        return np.apply_along_axis(tail, -1, below)

    def draw(self, scores: ArrayLike, stream: np.random.Generator) -> NDArray[np.int64]:
        """The index of the chosen candidate in each set of scores, shape (...).

        Args:
            scores: As of `probabilities`; each set of k is a release of its own.
            stream: The random stream of this release, and of no other.
        """
        return _largest(self._below(scores), self.noise, stream)

    def utility_bound(self, candidates: int, beta: float) -> float:
        """Bounds the gap between the chosen and the best score, with probability 1 - beta.

        Attained by k - 1 candidates at just that distance, but for "laplace", where it is the union bound
        over them: (k - 1) e^-t (2 + t)/4 = beta at t scales, exact for two candidates.

        Raises:
            InputError: There is no candidate, or beta is not in (0, 1).
        """
        return self.scale * _gap(self.noise, candidates, beta)

    @property
    def words(self) -> str:
        """The amount of noise, in words."""
        kind = {"laplace": "Laplace", "gumbel": "Gumbel", "permute-and-flip": "exponential"}[self.noise]
        return f"{kind} noise of scale {self.scale:.4g} on every score"


def _largest(below: Vector, noise: Noise, stream: np.random.Generator) -> NDArray[np.int64]:
    """The index of the largest noisy score along the last axis."""
    match noise:
        case "gumbel":
            noisy = below + stream.gumbel(size=below.shape)
        case "permute-and-flip":
            noisy = below + stream.standard_exponential(below.shape)
        case "laplace":
            noisy = below + stream.standard_exponential(below.shape)
            noisy -= stream.standard_exponential(below.shape)
    return np.asarray(noisy.argmax(axis=-1), dtype=np.int64)


def _gap(noise: Noise, candidates: int, beta: float) -> float:
    """The least t >= 0, in scales, such that a choice t or more below the best has chance beta at most."""
    check_size("candidates", candidates)
    check_chance("beta", beta)
    if _chance_of_worse(noise, 0.0, candidates) <= beta:
        return 0.0
    # Each is at most 2 (k - 1) e^(-t/2).
    most = 2 * math.log(2 * candidates / beta)
    return float(
        scipy.optimize.brentq(lambda t: _chance_of_worse(noise, t, candidates) - beta, 0.0, most, xtol=1e-12)
    )


def _chance_of_worse(noise: Noise, t: float, candidates: int) -> float:
    """The probability that one of k - 1 candidates at distance t beats the best: the worst case at t."""
    others, chance = candidates - 1, math.exp(-t)
    match noise:
        case "gumbel":
            return others * chance / (1 + others * chance)
        case "permute-and-flip":
            union = others * chance / 2
            if union < 1e-6:  # where the difference below is all rounding
                return union
            # 1 - int_0^1 (1 - v e^-t)^(k - 1) dv
            best = -math.expm1(candidates * math.log1p(-chance)) if t > 0 else 1.0
            return 1 - best / (candidates * chance)
        case "laplace":
            return others * chance * (2 + t) / 4
