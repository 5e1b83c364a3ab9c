"""`budget randomized-response` and `budget categories`: clients who randomise their own answers."""

from __future__ import annotations

import math
from typing import Any

from dp_accounting import dp_event as dp

from fedprivacy.mechanisms.bits import RandomizedResponse
from fedprivacy.mechanisms.categories import ORACLES, FrequencyOracle, least_variance
from fedprivacy.mechanisms.coins import MIN_EPSILON
from fedprivacy.mechanisms.frequency import MAX_CATEGORIES
from fedprivacy.mechanisms.pure import MAX_EPSILON
from scenarios.budgets.command_options import CategoriesOptions, RandomizedResponseOptions
from scenarios.budgets.question import CLIENTS, CONFIDENCE, Range, plural
from scenarios.budgets.releases import MechanismQuestion, ReleasesQuestion

LOCAL = Range(MIN_EPSILON, MAX_EPSILON, "0.5 to 4 is usual")
AGAINST = "It holds against whoever sees the answers, the server included: each client randomises its own."


class RandomizedResponseQuestion(RandomizedResponseOptions, MechanismQuestion[RandomizedResponse]):
    """Answers `budget randomized-response`."""

    def allowed(self) -> Range:
        """Returns the range of the epsilon of one answer."""
        return LOCAL

    def problems(self) -> list[str | None]:
        """Returns the problem of each option."""
        return [
            self.not_exactly_one("epsilon", "gamma"),
            self.out_of_range("gamma", Range(0, 0.5, "0.05 to 0.4 is usual", above=True, below=True)),
            *self.shared_problems(),
            self.out_of_range("clients", CLIENTS),
            self.out_of_range("error", Range(1e-6, 1)),
            self.out_of_range("confidence", CONFIDENCE),
        ]

    def at(self, epsilon: float) -> RandomizedResponse:
        """Returns randomised response at this epsilon per answer."""
        return RandomizedResponse(epsilon)

    def event(self, mechanism: RandomizedResponse) -> dp.DpEvent:
        """Returns the event of one answer."""
        return mechanism.event()

    def answer(self) -> dict[str, Any]:
        """Returns the probability of a true answer, and the errors that follow."""
        mechanism = self.calibrated() if self.gamma is None else RandomizedResponse.from_gamma(self.gamma)
        truth, variance = 0.5 + mechanism.gamma, mechanism.variance(1)
        noise = f"Randomised response that tells the truth with probability {truth:.6g}"
        document = self.cost(mechanism.event(), mechanism.epsilon, noise)
        sentences = [
            document["words"],
            AGAINST,
            f"The estimated share of ones has a variance of at most {variance:.4g} divided by the number of "
            "clients.",
        ]
        deviation = math.sqrt(mechanism.variance(self.clients or 1))
        if self.clients is not None:
            sentences.append(
                f"With {plural(self.clients, 'client')} its standard deviation is {deviation:.3g} at most."
            )
        needed = None if self.error is None else mechanism.clients_needed(self.error, self.confidence)
        if needed is not None:
            sentences.append(
                f"{needed:,} clients are enough for an error of at most {self.error:g} with probability "
                f"{self.confidence:g} (Hoeffding)."
            )
        return document | {
            "gamma": mechanism.gamma,
            "truth": truth,
            "variance_of_one_client": variance,
            "clients": self.clients,
            "standard_deviation": deviation,  # of one client where their number is not given
            "error": self.error,
            "confidence": self.confidence,
            "clients_needed": needed,
            "words": " ".join(sentences),
        }


class CategoriesQuestion(CategoriesOptions, ReleasesQuestion):
    """Answers `budget categories`."""

    def allowed(self) -> Range:
        """Returns the range of the epsilon of one report."""
        return LOCAL

    def problems(self) -> list[str | None]:
        """Returns the problem of each option."""
        return [
            self.not_exactly_one("epsilon", remedy="the epsilon of all reports of a client"),
            *self.shared_problems(),
            self.out_of_range("items", Range(2, MAX_CATEGORIES)),
            self.out_of_range("clients", CLIENTS),
        ]

    def answer(self) -> dict[str, Any]:
        """Returns every mechanism at the same total, and the one of least variance."""

        def oracle(kind: type[FrequencyOracle]) -> FrequencyOracle:
            return self.largest(
                lambda epsilon: kind(self.items, epsilon), lambda candidate: candidate.event()
            )

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
                    "mechanism": candidate.name,
                    "epsilon_of_one_report": candidate.epsilon,
                    "variance_of_one_client": candidate.variance(1),
                    "deviation_of_a_share": math.sqrt(candidate.variance(self.clients)) / self.clients,
                    "chosen": "yes" if candidate is best else "",
                }
                for candidate in each
            ],
            "words": (
                f"{document['words']} {AGAINST} "
                f"{auto}f the four it has the least variance for the count of a rare category, "
                f"{best.variance(1):.4g} for each client. The share of such a category among "
                f"{plural(self.clients, 'client')} has a standard deviation of {deviation:.3g}."
            ),
        }
