"""The exponential mechanism where one record changes some candidates' scores more than others'."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from dp_accounting import dp_event as dp
from numpy.typing import ArrayLike, NDArray

from fedprivacy.accounting.optimal_composition import PureDpEvent
from fedprivacy.errors import InputError
from fedprivacy.mechanisms.ranges import check_chance, check_epsilon, check_sensitivity
from fedprivacy.mechanisms.selection import ExponentialMechanism

Vector = NDArray[np.float64]
_LARGEST = 2**61  # whole numbers beyond it are cut


@dataclass(frozen=True)
class GeneralisedExponential:
    """Chooses from candidates of different sensitivities (Raskhodnikova and Smith 2016, Section 4).

    With t = (2/epsilon) ln(k/beta) each candidate is compared with every other, in units of what one record
    can change of the two together:

        s_i = max_j ((u_j - t D_j) - (u_i - t D_i)) / (D_i + D_j)

    One record changes s_i by at most 1, so that the exponential mechanism on -s_i is epsilon-DP. What it
    chooses lies below u_j - 2 t D_j of no j, with probability 1 - beta: a candidate of small sensitivity
    does not pay for one of large. Where all sensitivities are equal it is the exponential mechanism at half
    the budget: use that.

    Args:
        epsilon: The budget of one choice, from 1e-6 to 1e4.
        sensitivities: The most that one record can change the score of each candidate, under the adjacency
            that is meant; public, and none of them 0.
        beta: The chance of a worse choice than is promised; with it the mechanism is another.

    Raises:
        InputError: There is no candidate, or a value is out of range.

    >>> mechanism = GeneralisedExponential(epsilon=1.0, sensitivities=(1.0, 100.0))
    >>> mechanism.probabilities([500, 520]).round(3).tolist()
    [0.971, 0.029]
    """

    epsilon: float
    sensitivities: tuple[float, ...]
    beta: float = 0.05
    name: ClassVar[str] = "generalised-exponential"
    title: ClassVar[str] = "generalised exponential mechanism"

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        if not self.sensitivities:
            raise InputError("sensitivities: there must be one for each candidate, and at least one.")
        for sensitivity in self.sensitivities:
            check_sensitivity(sensitivity)
        check_chance("beta", self.beta)

    @property
    def penalty(self) -> float:
        """t: how many sensitivities are taken off each score."""
        return 2 / self.epsilon * math.log(len(self.sensitivities) / self.beta)

    def event(self) -> dp.DpEvent:
        """The event of one choice, as the accountant reads it."""
        return PureDpEvent(self.epsilon)

    def normalised(self, scores: ArrayLike) -> Vector:
        """-s_i of each candidate, of sensitivity 1 each: none above 0, shape (..., k).

        Args:
            scores: Finite numbers, the larger the better, shape (..., k).

        Raises:
            InputError: There is not one score for each sensitivity, or one is not finite.
        """
        given = np.asarray(scores)
        if (
            given.dtype.kind in "iu"
        ):  # to cut at a public bound changes no sensitivity, and no difference wraps
            given = np.clip(given, -_LARGEST, _LARGEST).astype(np.int64)
        else:
            given = given.astype(np.float64)
        if given.ndim == 0 or given.shape[-1] != len(self.sensitivities):
            raise InputError(
                f"scores: must be {len(self.sensitivities)} along their last axis, one for each sensitivity."
            )
        if not np.isfinite(given).all():
            raise InputError("scores: must all be finite.")
        widths = np.asarray(self.sensitivities)
        # Scores first: large ones differ by less than rounding leaves of each. Floats halved, since the
        # difference of two finite ones may be infinite.
        part = 1 if given.dtype.kind == "i" else 2
        halves = given if part == 1 else given / 2
        # One at a time, since all pairs of many sets would fill the memory.
        largest = np.full(given.shape, -math.inf)
        with np.errstate(over="ignore"):  # beyond 1e300 the chance is 0 all the same
            for other, width in enumerate(widths):
                apart = (halves[..., other, None] - halves) * (part / 2)
                gaps = (apart - self.penalty * (width - widths) / 2) / (width / 2 + widths / 2)
                np.maximum(largest, gaps, out=largest)
        return np.asarray(-np.minimum(largest, 1e300))

    def probabilities(self, scores: ArrayLike) -> Vector:
        """The chance of each candidate, shape (..., k), adding up to 1 along the last axis.

        Raises:
            InputError: As of `normalised`.
        """
        return self._plain().probabilities(self.normalised(scores))

    def draw(self, scores: ArrayLike, stream: np.random.Generator) -> NDArray[np.int64]:
        """The index of the chosen candidate in each set of scores, shape (...).

        Args:
            scores: As of `normalised`; each set of k is a release of its own.
            stream: The random stream of this release, and of no other.
        """
        return self._plain().draw(self.normalised(scores), stream)

    def utility_bound(self, scores: ArrayLike) -> float:
        """The score that the choice falls below with probability beta at most: max_j u_j - 2 t D_j."""
        given = np.asarray(scores, dtype=np.float64)
        return float((given - 2 * self.penalty * np.asarray(self.sensitivities)).max())

    @property
    def words(self) -> str:
        """The amount of noise, in words."""
        return (
            f"e times as likely for every {2 / self.epsilon:.4g} of score, in units of what one record can "
            f"change, of {len(self.sensitivities)} candidates"
        )

    def _plain(self) -> ExponentialMechanism:
        return ExponentialMechanism(self.epsilon, 1.0)
