"""`budget dp-sgd`: noise and epsilon of one record, for each way to draw batches, by a run's own objects."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import dp_accounting

from fedprivacy.accounting.calibration import lectures_dp_sgd_noise, noise_multiplier
from fedprivacy.accounting.epsilon import Spent, epsilon
from fedprivacy.errors import InputError
from fedprivacy.guarantees.statement import printed
from fedprivacy.sampling.batches import BATCHES, Batches, PoissonBatches, ReplacementBatches, ShuffledBatches
from fedprivacy.scenario.delta import LEAST_DELTA
from scenarios.budgets.question import ADJACENCIES, Question, Range, plural, promise

MOST = Range(1, 10**9)
ALL_RECORDS = "all records"  # full-batch DP-GD, beside the samplers
FIXED = (
    "Under add-remove it holds where the rate and the divisor of the mean are fixed without looking at how "
    "many records there are: zero-out says the same of a number that is public."
)


@dataclass(frozen=True)
class DpSgdQuestion(Question):
    """What is asked of `budget dp-sgd`; the unit is one record ("example").

    Args:
        records: n, how many records there are.
        steps: T, how many batches are drawn.
        batch_size: Records in a batch, the mean for Poisson batches.
        rate: Instead: their share of all records.
        sampling: "poisson", "shuffled" or "with-replacement".
        epsilon: Find the noise for this epsilon.
        noise_multiplier: Find the epsilon of this noise (standard deviation / clipping norm).
        delta: The delta of the guarantee.
        adjacency: "replace-one", "add-remove" or "zero-out".
    """

    records: int
    steps: int
    batch_size: int | None = None
    rate: float | None = None
    sampling: str = "poisson"
    epsilon: float | None = None
    noise_multiplier: float | None = None
    delta: float = 1e-5
    adjacency: str = "replace-one"
    mechanism: ClassVar[str] = "dp-sgd"

    def problems(self) -> list[str | None]:
        """What is wrong with each option."""
        most = max(1, self.records)
        return [
            self.not_one_of("epsilon", "noise_multiplier"),
            self.outside("epsilon", Range(0, 1e6, "1 to 8 is usual", above=True)),
            self.outside("noise_multiplier", Range(0.01, 1e7, "0.5 to 20 is usual")),
            self.outside("delta", Range(LEAST_DELTA, 1 / most, "1/records is too much", below=True)),
            self.outside("records", MOST),
            self.outside("steps", MOST),
            self.not_one_of("batch_size", "rate", remedy="it says how large a batch is"),
            self.outside("batch_size", Range(1, most, "the records are the most")),
            self.outside("rate", Range(1e-12, 1)),
            self.none_of("sampling", tuple(BATCHES)),
            self.none_of("adjacency", ADJACENCIES),
        ]

    def answer(self) -> dict[str, Any]:
        """The noise or the epsilon of the asked sampler, beside the others at the same work."""
        samplers = self._samplers()
        asked = self._row(self.sampling, samplers[self.sampling])
        rows, problems = [], []
        for name, batches in samplers.items():
            try:
                rows.append(asked if name == self.sampling else self._row(name, batches))
            except InputError as error:
                rows.append(_row(name, batches, None, None, None))
                problems.append(f"{name}: {str(error).rstrip('.')}")
        lectures, sentence = self._lectures(samplers[self.sampling], asked["epsilon"])
        words = [self._words(samplers[self.sampling], asked), sentence]
        if self.adjacency == "add-remove":
            words.append(FIXED)
        words += [f"No answer for {'; '.join(problems)}."] if problems else []
        return {
            "epsilon": asked["epsilon"],
            "delta": self.delta,
            "noise_multiplier": asked["noise_multiplier"],
            "records": self.records,
            "steps": self.steps,
            "batch_size": self._size(),
            "rate": self.rate,
            "sampling": self.sampling,
            "unit": "example",
            "adjacency": self.adjacency,
            "accountant": asked["accountant"],
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
        """Each way to draw batches, at as many gradients of records as are asked for, or hardly more."""
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

    def _event(self, batches: Batches, noise: float) -> dp_accounting.DpEvent:
        return batches.event(dp_accounting.GaussianDpEvent(noise), self.records)

    def _row(self, name: str, batches: Batches) -> dict[str, Any]:
        noise = self.noise_multiplier
        if noise is None:
            assert self.epsilon is not None
            noise = noise_multiplier(
                lambda z: self._event(batches, z), self.epsilon, self.delta, self.adjacency
            )
        spent = epsilon(self._event(batches, noise), self.delta, self.adjacency)
        return _row(name, batches, noise, noise / batches.mean_size(self.records), spent)

    def _words(self, batches: Batches, asked: dict[str, Any]) -> str:
        secret = asked["accountant"] in ("PLD", "RDP") and self.sampling != ShuffledBatches.name
        against = (
            "those who see each noisy step but not which records were in a batch"
            if secret
            else "those who see each noisy step, and also where they know the batches"
        )
        guarantee = promise(asked["epsilon"], self.delta, self.adjacency, asked["accountant"], "example")
        return (
            f"Gaussian noise of standard deviation {asked['noise_multiplier']:.6g} x C on each sum of "
            f"gradients clipped to L2 norm C, in {_said(batches)} out of {plural(self.records, 'record')}, "
            f"costs {guarantee}. It holds against {against}, not against whoever holds the records. It "
            "protects one record; a person with m of them has by group privacy only what `fedprivacy budget "
            "group --size m` says. The table has the other ways to draw batches, and full-batch DP-GD, at "
            "the same work: as many gradients of records, in whole passes rounded up; noise of mean is the "
            "standard deviation / C in a mean gradient."
        )

    def _lectures(self, batches: Batches, found: float) -> tuple[dict[str, float | None], str]:
        """The lectures' noise for the same epsilon, what it really costs, and both in words."""
        fields: dict[str, float | None] = {"lectures_noise_multiplier": None, "lectures_epsilon": None}
        target = found if self.epsilon is None else self.epsilon
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
    name: str, batches: Batches, noise: float | None, mean: float | None, spent: Spent | None
) -> dict[str, Any]:
    return {
        "sampling": name,
        "batches": _said(batches),
        "noise_multiplier": noise,
        "noise_of_mean": mean,
        "epsilon": spent and spent.epsilon,
        "accountant": spent and spent.accountant,
    }


def _said(batches: Batches) -> str:
    return batches.words.removesuffix(" in a round").replace(" of a client", "")
