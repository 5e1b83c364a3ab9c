"""`budget tuning`: the best of several private candidates, chosen by scores that are private too."""

from __future__ import annotations

import math
from typing import Any

from dp_accounting import dp_event as dp

from fedprivacy.accounting.epsilon import Accounted, epsilon
from fedprivacy.accounting.optimal_composition import PureDpEvent
from fedprivacy.guarantees.statement import printed
from fedprivacy.scenario.tune.sections import SHAPES
from fedprivacy.tuning.repetitions import MOST_MEAN, Repetitions
from fedprivacy.tuning.selection import PrivateSelection, cost
from scenarios.budgets.command_options import TuningOptions
from scenarios.budgets.compose import EPSILON, NOISE
from scenarios.budgets.question import ADJACENCIES, DELTA, DELTA_OR_ZERO, Question, Range, plural, promise

MOST_CANDIDATES = 10_000


class TuningQuestion(TuningOptions, Question):
    """Answers `budget tuning`."""

    def problems(self) -> list[str | None]:
        """Returns the problem of each option."""
        return [
            self.not_exactly_one("epsilon", "noise_multiplier", remedy="it says what one candidate costs"),
            self.out_of_range("candidates", Range(1, MOST_CANDIDATES)),
            self.out_of_range("epsilon", EPSILON),
            self.out_of_range("noise_multiplier", NOISE),
            self.out_of_range("tries", Range(1, MOST_MEAN)),
            self.not_among("law", tuple(SHAPES)),
            self.out_of_range("delta", DELTA_OR_ZERO if self.noise_multiplier is None else DELTA),
            self.not_among("adjacency", ADJACENCIES),
        ]

    def answer(self) -> dict[str, Any]:
        """Returns the cost of the choice, beside the naive cost and that of one candidate."""
        once = PureDpEvent(self.epsilon) if self.epsilon is not None else self._gaussian()
        tries = min(float(self.candidates), MOST_MEAN) if self.tries is None else self.tries
        law = Repetitions(tries, SHAPES[self.law])
        cost_of_choice = cost(
            PrivateSelection(self.candidates, law), [once] * self.candidates, self.delta, self.adjacency
        )
        chance = law.chance_of_the_best(self.candidates)
        rows = [("one candidate, nothing chosen", cost_of_choice.once)]
        rows += [
            (f"{name} number of tries, only the best told", self._chosen(once, tries, shape))
            for name, shape in SHAPES.items()
        ]
        rows.append((f"all {self.candidates:,} told (naive)", cost_of_choice.naive))
        return {
            "epsilon": cost_of_choice.chosen.epsilon,
            "delta": self.delta,
            "candidates": self.candidates,
            "tries": tries,
            "law": self.law,
            "chance_of_the_best": chance,
            "epsilon_of_one_candidate": cost_of_choice.once.epsilon,
            "epsilon_of_all_candidates": cost_of_choice.naive.epsilon,
            "noise_multiplier": self.noise_multiplier,
            "unit": "client",
            "adjacency": self.adjacency,
            "accountant": cost_of_choice.chosen.accountant,
            "table": [
                {
                    "what is done": what,
                    f"epsilon at delta = {self.delta:g}": printed(spent.epsilon),
                    "accountant": spent.accountant,
                }
                for what, spent in rows
            ],
            "words": self._words(
                cost_of_choice.chosen, cost_of_choice.naive, cost_of_choice.worth_it, law, chance
            ),
        }

    def _gaussian(self) -> dp.DpEvent:
        assert self.noise_multiplier is not None
        return dp.GaussianDpEvent(self.noise_multiplier)

    def _chosen(self, once: dp.DpEvent, tries: float, shape: float) -> Accounted:
        return epsilon(Repetitions(tries, shape).event(once), self.delta, self.adjacency)

    def _words(
        self, chosen: Accounted, naive: Accounted, worth_it: bool, law: Repetitions, chance: float
    ) -> str:
        best = promise(chosen.epsilon, self.delta, self.adjacency, chosen.accountant)
        among = plural(self.candidates, "candidate")
        dearer = (
            "" if worth_it else " Here the choice saves nothing: tell all of them, or choose on public data."
        )
        return (
            f"The best of {law.words}, each of one of {among} drawn at random, costs {best}; all of them "
            f"told cost epsilon = {printed(naive.epsilon)} at delta = {self.delta:g}. A given candidate is "
            f"among those run with probability {math.floor(1000 * chance) / 1000:g}.{dearer} It holds "
            "against those who see the best candidate and its score, and neither the others nor how many "
            "were run: whoever runs them sees more, and so does a client that is sent their models. It takes "
            "for granted that each run has noise of its own, that its score is private as its model is, and "
            "that all cost the same."
        )
