"""`budget dp-sgd`: noise and epsilon of one record for each batch sampler, from a run's own objects."""

from __future__ import annotations

import math
from typing import Any

from dp_accounting import dp_event as dp

from fedprivacy.accounting.epsilon import Accounted, epsilon, noise_multiplier
from fedprivacy.accounting.lectures_noise import lectures_dp_sgd_noise
from fedprivacy.errors import InputError
from fedprivacy.guarantees.statement import printed
from fedprivacy.sampling.batches import BATCHES, Batches, PoissonBatches, ReplacementBatches, ShuffledBatches
from fedprivacy.scenario.delta import LEAST_DELTA
from scenarios.budgets.command_options import DpSgdOptions
from scenarios.budgets.question import ADJACENCIES, Question, Range, plural, promise

MOST = Range(1, 10**9)
ALL_RECORDS = "all records"  # full-batch DP-GD, beside the samplers
FIXED = (
    "Under add-remove it holds where the rate and the divisor of the mean are fixed without looking at how "
    "many records there are: zero-out says the same of a number that is public."
)


class DpSgdQuestion(DpSgdOptions, Question):
    """Answers `budget dp-sgd`; the unit is one record ("example")."""

    def problems(self) -> list[str | None]:
        """Returns the problem of each option."""
        most = max(1, self.records)
        return [
            self.not_exactly_one("epsilon", "noise_multiplier"),
            self.out_of_range("epsilon", Range(0, 1e6, "1 to 8 is usual", above=True)),
            self.out_of_range("noise_multiplier", Range(0.01, 1e7, "0.5 to 20 is usual")),
            self.out_of_range("delta", Range(LEAST_DELTA, 1 / most, "1/records is too much", below=True)),
            self.out_of_range("records", MOST),
            self.out_of_range("steps", MOST),
            self.not_exactly_one("batch_size", "rate", remedy="it says how large a batch is"),
            self.out_of_range("batch_size", Range(1, most, "the records are the most")),
            self.out_of_range("rate", Range(1e-12, 1)),
            self.not_among("sampling", tuple(BATCHES)),
            self.not_among("adjacency", ADJACENCIES),
        ]

    def answer(self) -> dict[str, Any]:
        """Returns the noise or the epsilon of the chosen sampler, beside the others at the same work."""
        samplers = self._samplers()
        row = self._row(self.sampling, samplers[self.sampling])
        rows, problems = [], []
        for name, batches in samplers.items():
            try:
                rows.append(row if name == self.sampling else self._row(name, batches))
            except InputError as error:
                rows.append(_row(name, batches, None, None, None))
                problems.append(f"{name}: {str(error).rstrip('.')}")
        lectures, sentence = self._lectures(samplers[self.sampling], row["epsilon"])
        words = [self._words(samplers[self.sampling], row), sentence]
        if self.adjacency == "add-remove":
            words.append(FIXED)
        words += [f"No answer for {'; '.join(problems)}."] if problems else []
        return {
            "epsilon": row["epsilon"],
            "delta": self.delta,
            "noise_multiplier": row["noise_multiplier"],
            "records": self.records,
            "steps": self.steps,
            "batch_size": self._size(),
            "rate": self.rate,
            "sampling": self.sampling,
            "unit": "example",
            "adjacency": self.adjacency,
            "accountant": row["accountant"],
            **lectures,
            "table": rows,
            "words": " ".join(part for part in words if part),
        }

    def _size(self) -> int:
        if self.batch_size is not None:
            return self.batch_size
        assert self.rate is not None
        return max(1, round(self.rate * self.records))

    def _samplers(self) -> dict[str, Batches]:
        """Returns every batch sampler, each at the same number of record gradients, rounded up to passes."""
        size = self._size()
        if self.rate is None:
            poisson = PoissonBatches(self.steps, batch_size=size)
            passes = -(-self.steps * size // self.records)
        else:
            poisson = PoissonBatches(self.steps, rate=self.rate)
            passes = math.ceil(self.steps * self.rate * (1 - 1e-12))  # 0.01 of 100 steps is one pass
        return {
            poisson.name: poisson,
            ShuffledBatches.name: ShuffledBatches(passes, size),
            ReplacementBatches.name: ReplacementBatches(self.steps, size),
            ALL_RECORDS: ShuffledBatches(passes),
        }

    def _event(self, batches: Batches, noise: float) -> dp.DpEvent:
        return batches.event(dp.GaussianDpEvent(noise), self.records)

    def _row(self, name: str, batches: Batches) -> dict[str, Any]:
        noise = self.noise_multiplier
        if noise is None:
            assert self.epsilon is not None
            noise = noise_multiplier(
                lambda z: self._event(batches, z), self.epsilon, self.delta, self.adjacency
            )
        spent = epsilon(self._event(batches, noise), self.delta, self.adjacency)
        return _row(name, batches, noise, noise / batches.mean_size(self.records), spent)

    def _words(self, batches: Batches, row: dict[str, Any]) -> str:
        secret = row["accountant"] in ("PLD", "RDP") and self.sampling != ShuffledBatches.name
        against = (
            "those who see each noisy step but not which records were in a batch"
            if secret
            else "those who see each noisy step, and also where they know the batches"
        )
        guarantee = promise(row["epsilon"], self.delta, self.adjacency, row["accountant"], "example")
        return (
            f"Gaussian noise of standard deviation {row['noise_multiplier']:.6g} x C on each sum of "
            f"gradients clipped to L2 norm C, in {_stated(batches)} out of {plural(self.records, 'record')}, "
            f"costs {guarantee}. It holds against {against}, not against whoever holds the records. It "
            "protects one record; a person with m of them has by group privacy only what `fedprivacy budget "
            "group --size m` says. The table has the other ways to draw batches, and full-batch DP-GD, at "
            "the same work: as many gradients of records, in whole passes rounded up; noise of mean is the "
            "standard deviation / C in a mean gradient."
        )

    def _lectures(self, batches: Batches, computed: float) -> tuple[dict[str, float | None], str]:
        """Returns the lectures' noise for the same epsilon, its actual cost, and both in words."""
        fields: dict[str, float | None] = {"lectures_noise_multiplier": None, "lectures_epsilon": None}
        target = computed if self.epsilon is None else self.epsilon
        single = isinstance(batches, ReplacementBatches) and batches.batch_size == 1
        if not single or self.adjacency == "add-remove":
            return fields, ""
        try:
            noise = lectures_dp_sgd_noise(target, self.delta, self.records, self.steps)
        except InputError as error:
            return fields, f"The lectures' noise for one example a step says nothing here: {error}"
        spent = epsilon(self._event(batches, noise), self.delta, self.adjacency).epsilon
        words = (
            "The lectures' noise for the same (Bassily, Smith and Thakurta 2014, one example a step) is "
            f"{noise:.6g} x C, which costs epsilon = {printed(spent)} at delta = {self.delta:g}."
        )
        return {"lectures_noise_multiplier": noise, "lectures_epsilon": spent}, words


def _row(
    name: str, batches: Batches, noise: float | None, mean: float | None, spent: Accounted | None
) -> dict[str, Any]:
    return {
        "sampling": name,
        "batches": _stated(batches),
        "noise_multiplier": noise,
        "noise_of_mean": mean,
        "epsilon": spent and spent.epsilon,
        "accountant": spent and spent.accountant,
    }


def _stated(batches: Batches) -> str:
    return batches.words.removesuffix(" in a round").replace(" of a client", "")
