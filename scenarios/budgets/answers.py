"""`budget randomized-response` and `budget categories`: clients who randomise their own answers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import dp_accounting

from fedprivacy.mechanisms.bits import RandomizedResponse
from fedprivacy.mechanisms.categories import ORACLES, FrequencyOracle, least_variance
from fedprivacy.mechanisms.coins import MIN_EPSILON
from fedprivacy.mechanisms.frequency import MAX_CATEGORIES
from fedprivacy.mechanisms.pure import MAX_EPSILON
from scenarios.budgets.question import CLIENTS, CONFIDENCE, Range, plural
from scenarios.budgets.releases import MechanismQuestion, ReleasesQuestion

LOCAL = Range(MIN_EPSILON, MAX_EPSILON, "0.5 to 4 is usual")
AGAINST = "It holds against whoever sees the answers, the server included: each client randomises its own."


@dataclass(frozen=True)
class RandomizedResponseQuestion(MechanismQuestion[RandomizedResponse]):
    """What is asked of `budget randomized-response`.

    Args:
        gamma: Find the epsilon of telling the truth with probability 1/2 + gamma.
        clients: Find the error with this many clients.
        error: Find how many clients an error of the mean of this size needs,
        confidence: with this probability.
    """

    gamma: float | None = None
    clients: int | None = None
    error: float | None = None
    confidence: float = 0.95
    mechanism: ClassVar[str] = "randomized-response"

    def allowed(self) -> Range:
        """What the epsilon of one answer may be."""
        return LOCAL

    def problems(self) -> list[str | None]:
        """What is wrong with each option."""
        return [
            self.not_one_of("epsilon", "gamma"),
            self.outside("gamma", Range(0, 0.5, "0.05 to 0.4 is usual", above=True, below=True)),
            *self.shared_problems(),
            self.outside("clients", CLIENTS),
            self.outside("error", Range(1e-6, 1)),
            self.outside("confidence", CONFIDENCE),
        ]

    def at(self, epsilon: float) -> RandomizedResponse:
        """Randomised response at this epsilon an answer."""
        return RandomizedResponse(epsilon)

    def event(self, mechanism: RandomizedResponse) -> dp_accounting.DpEvent:
        """What one answer costs."""
        return mechanism.event()

    def answer(self) -> dict[str, Any]:
        """The probability of the truth, and the errors that follow."""
        found = self.calibrated() if self.gamma is None else RandomizedResponse.from_gamma(self.gamma)
        truth, variance = 0.5 + found.gamma, found.variance(1)
        noise = f"Randomised response that tells the truth with probability {truth:.6g}"
        document = self.cost(found.event(), found.epsilon, noise)
        said = [
            document["words"],
            AGAINST,
            f"The estimated share of ones has a variance of at most {variance:.4g} divided by the number of "
            "clients.",
        ]
        deviation = math.sqrt(found.variance(self.clients or 1))
        if self.clients is not None:
            said.append(
                f"With {plural(self.clients, 'client')} its standard deviation is {deviation:.3g} at most."
            )
        needed = None if self.error is None else found.clients_needed(self.error, self.confidence)
        if needed is not None:
            said.append(
                f"{needed:,} clients are enough for an error of at most {self.error:g} with probability "
                f"{self.confidence:g} (Hoeffding)."
            )
        return document | {
            "gamma": found.gamma,
            "truth": truth,
            "variance_of_one_client": variance,
            "clients": self.clients,
            "standard_deviation": deviation,  # of one client where their number is not given
            "error": self.error,
            "confidence": self.confidence,
            "clients_needed": needed,
            "words": " ".join(said),
        }


@dataclass(frozen=True)
class CategoriesQuestion(ReleasesQuestion):
    """What is asked of `budget categories`.

    Args:
        items: k, how many categories.
        clients: How many clients answer.
    """

    items: int = 2
    clients: int = 1
    mechanism: ClassVar[str] = "categories"

    def allowed(self) -> Range:
        """What the epsilon of one report may be."""
        return LOCAL

    def problems(self) -> list[str | None]:
        """What is wrong with each option."""
        return [
            self.not_one_of("epsilon", remedy="the epsilon of all reports of a client"),
            *self.shared_problems(),
            self.outside("items", Range(2, MAX_CATEGORIES)),
            self.outside("clients", CLIENTS),
        ]

    def answer(self) -> dict[str, Any]:
        """Every mechanism at the same total, and the one of least variance."""

        def oracle(kind: type[FrequencyOracle]) -> FrequencyOracle:
            return self.largest(lambda epsilon: kind(self.items, epsilon), lambda found: found.event())

        each = [oracle(kind) for kind in ORACLES]
        best = least_variance(each)
        noise = f"{best.title[:1].upper()}{best.title[1:]} on {self.items:,} categories"
        document = self.cost(best.event(), best.epsilon, noise)
        deviation = math.sqrt(best.variance(self.clients)) / self.clients
        auto = "It is what auto takes: o" if self.rounds == 1 else "O"
        return document | {
            "items": self.items,
            "clients": self.clients,
            "chosen": best.name,
            "table": [
                {
                    "mechanism": found.name,
                    "epsilon_of_one_report": found.epsilon,
                    "variance_of_one_client": found.variance(1),
                    "deviation_of_a_share": math.sqrt(found.variance(self.clients)) / self.clients,
                    "chosen": "yes" if found is best else "",
                }
                for found in each
            ],
            "words": (
                f"{document['words']} {AGAINST} "
                f"{auto}f the four it has the least variance for the count of a rare category, "
                f"{best.variance(1):.4g} for each client. The share of such a category among "
                f"{plural(self.clients, 'client')} has a standard deviation of {deviation:.3g}."
            ),
        }
