"""`budget laplace`, `geometric` and `norm`: noise on numbers and vectors."""

from __future__ import annotations

import math
from typing import Any, TypeVar

from dp_accounting import dp_event as dp

from fedprivacy.mechanisms.laplace import DiscreteLaplace, Laplace
from fedprivacy.mechanisms.norm import ORDERS, NormMechanism
from fedprivacy.mechanisms.sensitivity import count_sensitivity, histogram_sensitivity
from scenarios.budgets.command_options import GeometricOptions, LaplaceOptions, NormOptions
from scenarios.budgets.question import CONFIDENCE, Range, plural
from scenarios.budgets.scaled import ScaledQuestion

M = TypeVar("M", bound=Laplace | DiscreteLaplace)
SIZE = Range(1, 10**9)
SENSITIVITY = Range(1e-9, 1e9, "the most that one client can change the answer")


class AdditiveQuestion(LaplaceOptions, ScaledQuestion[M]):
    """Laplace or geometric noise on an answer of known L1 sensitivity."""

    def mechanism_problems(self) -> list[str | None]:
        """Returns the problems of the options of this mechanism."""
        options = [self.sensitivity is not None, self.count, self.histogram]
        which = "--sensitivity, --count, --histogram: give exactly one. It states what one client can change."
        return [
            which if sum(options) != 1 else None,
            self.sensitivity_problem(),
            self.out_of_range("cells", SIZE),
            self.out_of_range("confidence", CONFIDENCE),
        ]

    def sensitivity_problem(self) -> str | None:
        """Returns the problem of the sensitivity."""
        return self.out_of_range("sensitivity", SENSITIVITY)

    @property
    def changed(self) -> float:
        """The L1 sensitivity of the answer."""
        if self.sensitivity is not None:
            return self.sensitivity
        return (count_sensitivity if self.count else histogram_sensitivity)(self.adjacency)

    def event(self, mechanism: M) -> dp.DpEvent:
        """Returns the event of one release."""
        return mechanism.event(self.adjacency)

    def answer(self) -> dict[str, Any]:
        """Returns scale, errors and cost."""
        mechanism = self.solved()
        width = mechanism.half_width(self.confidence)
        largest = mechanism.largest_error(self.cells, 1 - self.confidence)
        what = "a count" if self.count else "a histogram" if self.histogram else "an answer"
        noise = (
            f"{mechanism.title[:1].upper()}{mechanism.title[1:]} noise of scale {mechanism.scale:.6g} on "
            f"{what} of L1 "
            f"sensitivity {self.changed:g}"
        )
        document = self.cost(self.event(mechanism), mechanism.epsilon, noise)
        words = (
            f"{document['words']} It holds against those who see the noisy answer, not against whoever adds "
            f"the noise. It has a standard deviation of {math.sqrt(mechanism.variance):.4g} in each number; "
            f"with probability {self.confidence:g} one is off by at most {width:.4g}"
        )
        words += "." if self.cells == 1 else f", and the worst of {self.cells:,} by at most {largest:.4g}."
        return document | {
            "scale": mechanism.scale,
            "sensitivity": self.changed,
            "standard_deviation": math.sqrt(mechanism.variance),
            "confidence": self.confidence,
            "half_width": width,
            "cells": self.cells,
            "largest_error": largest,
            "words": words,
        }


class LaplaceQuestion(AdditiveQuestion[Laplace]):
    """Answers `budget laplace`."""

    def at(self, epsilon: float) -> Laplace:
        """Returns Laplace noise at this epsilon per release."""
        return Laplace(epsilon, self.changed)


class GeometricQuestion(GeometricOptions, AdditiveQuestion[DiscreteLaplace]):
    """Answers `budget geometric`: the same, on integers."""

    def sensitivity_problem(self) -> str | None:
        """Returns the problem of the sensitivity, which is a whole number here."""
        problem = self.out_of_range("sensitivity", SIZE)
        if problem is None and self.sensitivity is not None and self.sensitivity % 1 != 0:
            return f"--sensitivity {self.sensitivity}: must be a whole number; for others: budget laplace."
        return problem

    def at(self, epsilon: float) -> DiscreteLaplace:
        """Returns geometric noise at this epsilon per release."""
        return DiscreteLaplace(epsilon, int(self.changed))


class NormQuestion(NormOptions, ScaledQuestion[NormMechanism]):
    """Answers `budget norm`."""

    def mechanism_problems(self) -> list[str | None]:
        """Returns the problems of the options of this mechanism."""
        return [
            self.out_of_range("sensitivity", SENSITIVITY),
            self.out_of_range("dimension", SIZE),
            self.not_among("order", [f"{order:g}" for order in ORDERS]),
        ]

    def at(self, epsilon: float) -> NormMechanism:
        """Returns the norm mechanism at this epsilon per release."""
        return NormMechanism(epsilon, self.sensitivity, self.dimension, float(self.order))

    def event(self, mechanism: NormMechanism) -> dp.DpEvent:
        """Returns the event of one release."""
        return mechanism.event(self.adjacency)

    def answer(self) -> dict[str, Any]:
        """Returns scale, errors and cost."""
        mechanism = self.solved()
        name = "L-infinity" if self.order == "inf" else f"L{self.order}"
        noise = (
            f"Noise of density exp(-||z|| / {mechanism.scale:.6g}) in the {name} norm, on a vector of "
            f"{plural(self.dimension, 'number')} and {name} sensitivity {self.sensitivity:g}"
        )
        document = self.cost(self.event(mechanism), mechanism.epsilon, noise)
        return document | {
            "scale": mechanism.scale,
            "sensitivity": self.sensitivity,
            "dimension": self.dimension,
            "order": self.order,
            "expected_norm": mechanism.expected_norm,
            "standard_deviation": math.sqrt(mechanism.variance),
            "words": (
                f"{document['words']} It holds against those who see the noisy vector, not against whoever "
                f"adds the noise. It has a mean {name} norm of {mechanism.expected_norm:.4g}, and a standard "
                f"deviation of {math.sqrt(mechanism.variance):.4g} in each number."
            ),
        }
