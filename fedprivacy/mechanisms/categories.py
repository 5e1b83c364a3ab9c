"""The mechanisms for categories, and the choice of the most accurate one.

At a share near 0, with E = e^epsilon, the variance of a count per client is

    k-ary randomized response (k - 2 + E)/(E - 1)^2          4 bytes a report
    SUE                       sqrt(E)/(sqrt(E) - 1)^2        k bits
    OUE                       4 E/(E - 1)^2                  k bits
    Hadamard response         ((E + 1)/(E - 1))^2            4 bytes

so that k-ary randomised response is best for k < 3 E + 2, and OUE from there on (Wang et al. 2017).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from fedprivacy.mechanisms.frequency import FrequencyOracle
from fedprivacy.mechanisms.hadamard import HadamardResponse
from fedprivacy.mechanisms.kary import KaryRandomizedResponse
from fedprivacy.mechanisms.registry import family, mechanism_class
from fedprivacy.mechanisms.unary import OptimizedUnary, SymmetricUnary

__all__ = [
    "ORACLES",
    "FrequencyOracle",
    "HadamardResponse",
    "KaryRandomizedResponse",
    "OptimizedUnary",
    "SymmetricUnary",
    "best_oracle",
    "least_variance",
]

# Of equals the first is taken: the one of shorter reports.
ORACLES: tuple[type[FrequencyOracle], ...] = tuple(
    cast(type[FrequencyOracle], mechanism_class(name)) for name in family("category")
)


def best_oracle(categories: int, epsilon: float) -> FrequencyOracle:
    """The mechanism whose count of a rare category has the least variance.

    Args:
        categories: k, at least 2.
        epsilon: The budget of one report.

    Raises:
        InputError: An argument is out of range.

    >>> best_oracle(4, 1.0).name, best_oracle(1000, 1.0).name
    ('k-ary-randomized-response', 'oue')
    """
    return least_variance(kind(categories, epsilon) for kind in ORACLES)


def least_variance(oracles: Iterable[FrequencyOracle]) -> FrequencyOracle:
    """The one whose count of a rare category has the least variance; of equals the first."""
    return min(oracles, key=lambda oracle: oracle.variance(1))
