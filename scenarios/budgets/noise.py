"""`budget laplace`, `geometric` and `norm`: noise on numbers and vectors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import dp_accounting

from fedprivacy.mechanisms.laplace import DiscreteLaplace, Laplace
from fedprivacy.mechanisms.norm import ORDERS, NormMechanism
from fedprivacy.mechanisms.sensitivity import count_sensitivity, histogram_sensitivity
from scenarios.budgets.question import CONFIDENCE, Range, plural
from scenarios.budgets.scaled import ScaledQuestion

M = TypeVar("M", bound=Laplace | DiscreteLaplace)
SIZE = Range(1, 10**9)
SENSITIVITY = Range(1e-9, 1e9, "the most that one client can change the answer")


@dataclass(frozen=True)
class AdditiveQuestion(ScaledQuestion[M]):
    """Laplace or geometric noise on what one client can change by at most the sensitivity, in L1.

    Args:
        sensitivity: Of the answer, under the adjacency.
        count: Instead: one count of clients.
        histogram: Instead: a histogram, each client in one cell.
        cells: Find a bound on the largest error of this many numbers,
        confidence: that holds with this probability.
    """

    sensitivity: float | None = None
    count: bool = False
    histogram: bool = False
    cells: int = 1
    confidence: float = 0.95

    def own_problems(self) -> list[str | None]:
        """What is wrong with the options of the mechanism itself."""
        asked = [self.sensitivity is not None, self.count, self.histogram]
        which = "--sensitivity, --count, --histogram: give exactly one; it says what one client can change."
        return [
            which if sum(asked) != 1 else None,
            self.sensitivity_problem(),
            self.outside("cells", SIZE),
            self.outside("confidence", CONFIDENCE),
        ]

    def sensitivity_problem(self) -> str | None:
        """What is wrong with the sensitivity."""
        return self.outside("sensitivity", SENSITIVITY)

    @property
    def changed(self) -> float:
        """The L1 sensitivity that is asked for."""
        if self.sensitivity is not None:
            return self.sensitivity
        return (count_sensitivity if self.count else histogram_sensitivity)(self.adjacency)

    def event(self, mechanism: M) -> dp_accounting.DpEvent:
        """What one release costs."""
        return mechanism.event(self.adjacency)

    def answer(self) -> dict[str, Any]:
        """Scale, errors and cost."""
        found = self.found()
        width = found.half_width(self.confidence)
        largest = found.largest_error(self.cells, 1 - self.confidence)
        what = "a count" if self.count else "a histogram" if self.histogram else "an answer"
        noise = (
            f"{found.title[:1].upper()}{found.title[1:]} noise of scale {found.scale:.6g} on {what} of L1 "
            f"sensitivity {self.changed:g}"
        )
        document = self.cost(self.event(found), found.epsilon, noise)
        words = (
            f"{document['words']} It holds against those who see the noisy answer, not against whoever adds "
            f"the noise. It has a standard deviation of {math.sqrt(found.variance):.4g} in each number; "
            f"with probability {self.confidence:g} one is off by at most {width:.4g}"
        )
        words += "." if self.cells == 1 else f", and the worst of {self.cells:,} by at most {largest:.4g}."
        return document | {
            "scale": found.scale,
            "sensitivity": self.changed,
            "standard_deviation": math.sqrt(found.variance),
            "confidence": self.confidence,
            "half_width": width,
            "cells": self.cells,
            "largest_error": largest,
            "words": words,
        }


@dataclass(frozen=True)
class LaplaceQuestion(AdditiveQuestion[Laplace]):
    """What is asked of `budget laplace`."""

    mechanism: ClassVar[str] = "laplace"

    def at(self, epsilon: float) -> Laplace:
        """Laplace noise at this epsilon a release."""
        return Laplace(epsilon, self.changed)


@dataclass(frozen=True)
class GeometricQuestion(AdditiveQuestion[DiscreteLaplace]):
    """What is asked of `budget geometric`: the same, on integers."""

    mechanism: ClassVar[str] = "geometric"

    def sensitivity_problem(self) -> str | None:
        """What is wrong with the sensitivity, which is a whole number here."""
        problem = self.outside("sensitivity", SIZE)
        if problem is None and self.sensitivity is not None and self.sensitivity % 1 != 0:
            return f"--sensitivity {self.sensitivity}: must be a whole number; for others: budget laplace."
        return problem

    def at(self, epsilon: float) -> DiscreteLaplace:
        """Geometric noise at this epsilon a release."""
        return DiscreteLaplace(epsilon, int(self.changed))


@dataclass(frozen=True)
class NormQuestion(ScaledQuestion[NormMechanism]):
    """What is asked of `budget norm`.

    Args:
        sensitivity: The most that one client can change the vector, in the same norm.
        dimension: How many numbers the vector has.
        order: Of the norm: "1", "2" or "inf".
    """

    sensitivity: float = 1.0
    dimension: int = 1
    order: str = "2"
    mechanism: ClassVar[str] = "norm"

    def own_problems(self) -> list[str | None]:
        """What is wrong with the options of the mechanism itself."""
        return [
            self.outside("sensitivity", SENSITIVITY),
            self.outside("dimension", SIZE),
            self.none_of("order", [f"{order:g}" for order in ORDERS]),
        ]

    def at(self, epsilon: float) -> NormMechanism:
        """The norm mechanism at this epsilon a release."""
        return NormMechanism(epsilon, self.sensitivity, self.dimension, float(self.order))

    def event(self, mechanism: NormMechanism) -> dp_accounting.DpEvent:
        """What one release costs."""
        return mechanism.event(self.adjacency)

    def answer(self) -> dict[str, Any]:
        """Scale, errors and cost."""
        found = self.found()
        name = "L-infinity" if self.order == "inf" else f"L{self.order}"
        noise = (
            f"Noise of density exp(-||z|| / {found.scale:.6g}) in the {name} norm, on a vector of "
            f"{plural(self.dimension, 'number')} and {name} sensitivity {self.sensitivity:g}"
        )
        document = self.cost(self.event(found), found.epsilon, noise)
        return document | {
            "scale": found.scale,
            "sensitivity": self.sensitivity,
            "dimension": self.dimension,
            "order": self.order,
            "expected_norm": found.expected_norm,
            "standard_deviation": math.sqrt(found.variance),
            "words": (
                f"{document['words']} It holds against those who see the noisy vector, not against whoever "
                f"adds the noise. It has a mean {name} norm of {found.expected_norm:.4g}, and a standard "
                f"deviation of {math.sqrt(found.variance):.4g} in each number."
            ),
        }
