"""Attribute inference: an unknown answer of a record, from the update of the client that trains on it.

The attacker knows the record's other answers and its label, and tries each value of the unknown one. If it
knows the victim's other records, it compares the update with that of each candidate, else with each
candidate's gradient. Imputation, which sees no update, is the baseline: only what is above it was
learned from the victim (Yeom et al. 2018; Jayaraman and Evans 2022).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedprivacy.attacks.bounds import curves_of_ledger
from fedprivacy.attacks.imputation import Imputer, UnknownColumn, fitted
from fedprivacy.attacks.intervals import Figure
from fedprivacy.attacks.trials import Ceiling, Outcome, TrialAttack, Victim, Without, observations
from fedprivacy.errors import Finding, InputError
from fedprivacy.io.rule_table import Check, Entry, Rule
from fedprivacy.io.toml_text import literal
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.attack.columns import column_labels
from fedprivacy.scenario.attack.derived_values import AttackValues
from fedprivacy.scenario.attack.seats import PLAIN_STEPS, SINGLE_SUM_RULES

Ids = NDArray[np.int64]
GAIN = "gain over imputation"
STEP = (
    "another answer of one record is one step from the data without that record, or without its client, in "
    "which only imputation is left"
)
BEST = (
    "no imputation from a record's other answers is right more often than the upper end of the interval of "
    "the one measured here"
)
PROVIDED = "if nobody imputes better"
_TINY = 1e-12
_Z = 1.959964  # of a two-sided interval at 95 %


def _answers_differ(v: AttackValues) -> Iterator[Finding]:
    labels = column_labels(v, "Use other data.")
    if isinstance(labels, Finding):
        yield labels
    elif labels is not None and len(labels) < 2:
        yield Finding(("column",), "all records have the same value", "", literal(v["column"]))


class Attribute(TrialAttack):
    """Infers one answer of a record of the victim whose other answers are known."""

    label: ClassVar[str] = "attribute inference"
    scoring: ClassVar[frozenset[str]] = frozenset({"shadows"})
    success: ClassVar[str] = "the attacker guesses the unknown answer right"
    comparison: ClassVar[str] = "imputation from the other answers alone is right"
    compares: ClassVar[bool] = True
    rules: ClassVar[tuple[Entry[AttackValues], ...]] = (
        *TrialAttack.rules,
        PLAIN_STEPS,
        *SINGLE_SUM_RULES,
        Rule(
            "column",
            lambda v: v.around["data.scaling"] in ("per-record", "per-image"),
            "each value changes the scale of its whole record, and the attack changes one column",
            'Set data.scaling to another way, such as "bounds".',
        ),
        Rule(
            "knows",
            lambda v: v["knows"] == "others" and v.around["privacy.unit"] == "example",
            "compares the update with that of each candidate, and batches drawn at random have no such "
            "update",
            'Set knows = "record", or privacy.unit = "client".',
        ),
        Check(_answers_differ),
    )

    kind: Literal["attribute"]
    seat: Literal["server", "participant"] = Field(
        "server",
        description="From where: the server sees the victim's update, a participant the noisy sum of all.",
    )
    column: str = Field(description='The column of the unknown answer, such as "race".', examples=["race"])
    knows: Literal["others", "record"] = Field(
        "others",
        description="What the attacker knows beside the record's other answers: all other records of the "
        'victim, as in the definition of differential privacy, or "record", nothing more.',
    )
    batch: int | None = Field(
        None,
        ge=1,
        le=10**6,
        description="How many records the victim trains on in a trial; else as many as it has.",
        examples=[8],
    )
    shadows: int = Field(
        400, ge=20, le=10**5, description="How many victims the attacker imitates to learn from, such as 400."
    )

    def without_data(self) -> Self:
        """The attack without its column, which only the data have."""
        return self.model_copy(update={"column": ""})

    def chance(self, without: Without | None) -> float:
        """The share of trials in which imputation is right."""
        return 0.0 if without is None else without.success.value

    def ceiling(self, ledger: Mapping[str, Any], run: AttackScenario, without: Without | None) -> Ceiling:
        """The trade-off curve at the accuracy of imputation; see `TrialAttack.ceiling`.

        Let the guess be right with probability p where the record is absent. Where it is present, the curve
        allows at most TPR(p). It is concave, so that the mean over records is at most TPR of the mean.
        """
        curves = curves_of_ledger(ledger, self.seat)
        bounded = [(curve, assumptions) for curve, assumptions in curves if curve is not None]
        if not bounded or without is None:
            return Ceiling(None, curves[0][1])
        right = without.success.high
        curve, assumptions = min(bounded, key=lambda pair: float(pair[0].tpr(right)))
        most = float(curve.tpr(right))
        return Ceiling(most, (STEP, BEST, *assumptions), curve.basis, provided=PROVIDED)

    def check(self, victim: Victim) -> None:
        """Refuses a batch larger than the victim's, an attacker without enough records, and unknown noise.

        Raises:
            InputError: with the key and the reason.
        """
        batch = self.batch or victim.size
        if batch > victim.size:
            raise InputError(f"batch = {batch}: the victim has {victim.size} records. At most as many.")
        if self.knows == "others" and victim.is_noisy:
            raise InputError(
                'knows = "others": the noise is no Gaussian noise on whole updates, whose likelihood the '
                'attack takes. Set knows = "record", or privacy.mechanism = "gaussian".'
            )
        free = len(victim.pools()[1])
        if free < 2 * batch:
            raise InputError(
                f"the attacker has {free} public records, and needs twice a batch of {batch}: one half to "
                "impute, one to imitate victims. Make data.public_fraction larger, or batch smaller."
            )

    def run(self, victim: Victim) -> Outcome:
        """Guesses in each trial by imputation and by the update together."""
        column = UnknownColumn.of(victim, self.column)
        of_worlds, of_attacker = victim.pools()
        half = len(of_attacker) // 2  # imputation that has seen a record would be too sure of it
        imputer = Imputer.of(column, of_attacker[:half])
        targets, worlds = _worlds(self, column, of_worlds, "trial", self.trials)
        imputed = imputer.log_probabilities(targets)
        if self.knows == "others":
            scores = imputed + _log_likelihoods(victim, column, targets, worlds)
        else:
            shadows, imitated = _worlds(self, column, of_attacker[half:], "shadow", self.shadows)
            examples = _alignment(victim, column, shadows, imitated, "shadow")
            evidence = np.stack([examples, imputer.log_probabilities(shadows)], axis=2)
            weights = fitted(evidence, column.codes[shadows])
            scores = (
                np.stack([_alignment(victim, column, targets, worlds, "trial"), imputed], axis=2) @ weights
            )
        right = scores.argmax(axis=1) == column.codes[targets]
        without = imputed.argmax(axis=1) == column.codes[targets]
        return Outcome(
            int(right.sum()),
            len(right),
            {GAIN: _mean(right.astype(np.float64) - without)},
            without=Outcome(int(without.sum()), len(right)),
        )


def _mean(differences: NDArray[np.float64]) -> Figure:
    """The mean of differences in [-1, 1] with its 95 % interval, by the normal approximation."""
    mean, error = float(differences.mean()), float(differences.std(ddof=1)) / math.sqrt(len(differences))
    return Figure(mean, max(-1.0, mean - _Z * error), min(1.0, mean + _Z * error))


def _worlds(
    attack: Attribute, column: UnknownColumn, pool: Ids, key: str, count: int
) -> tuple[Ids, list[Ids]]:
    """The record with the unknown answer in each trial, shape (count,), and all records of the victim."""
    stream, size = column.victim.stream(f"attribute/{key}"), attack.batch or column.victim.size
    answered = pool[column.codes[pool] >= 0]  # of others the value is missing
    targets = stream.choice(answered, count)
    others = [stream.choice(np.setdiff1d(pool, target), size - 1, replace=False) for target in targets]
    return targets, [np.append(rest, target) for rest, target in zip(others, targets, strict=True)]


def _log_likelihoods(
    victim: Victim, column: UnknownColumn, targets: Ids, worlds: Sequence[Ids]
) -> NDArray[np.float64]:
    """The log-likelihood of each candidate for who knows all other records, shape (trials, values).

    Each candidate's update is trained without noise. Without noise in the observation either, the nearest one
    is certain.
    """
    candidates, values = column.candidates(targets), len(column.donors)
    labels = np.repeat(victim.records(targets)[1], values)
    larger = victim.with_records(candidates.reshape(-1, candidates.shape[-1]), labels)
    squares = np.zeros((len(worlds), values))
    for trials, observed in observations(victim, worlds, "trial", rows=1 + 2 * values):
        imagined = [
            np.append(worlds[trial][:-1], victim.count + trial * values + value)
            for trial in trials
            for value in range(values)
        ]
        rows = larger.answers(imagined, "imagined", first=trials.start * values, noisy=False)
        gaps = observed[:, None] - rows.reshape(len(trials), values, -1)
        squares[trials] = (gaps**2).sum(axis=2)
    # Trials and candidates shuffle their records differently, which counts as a little noise.
    variance = max(victim.deviation**2, float(squares.min(axis=1).mean()) / len(victim.weights[0]), _TINY)
    return np.asarray(-squares / (2 * variance))


def _alignment(
    victim: Victim, column: UnknownColumn, targets: Ids, worlds: Sequence[Ids], key: str
) -> NDArray[np.float64]:
    """The inner product of each update with minus each candidate's gradient, shape (trials, values).

    Over the models of all observed rounds, less its mean over the candidates, and in units of its deviation.
    """
    candidates, labels = column.candidates(targets), victim.records(targets)[1]
    import torch  # a scenario is read without it

    from fedprivacy.attacks.signals import Probe

    models = [torch.from_numpy(model) for model in victim.weights]
    total = np.zeros(candidates.shape[:2])
    for trials, observed in observations(victim, worlds, key):
        for trial, row in zip(trials, observed, strict=True):
            y = torch.full((len(column.donors),), int(labels[trial]), dtype=torch.int64)
            probe = Probe(victim.module, torch.from_numpy(candidates[trial]), y)
            for model in models:
                cosines, norms = probe.alignment(model, torch.from_numpy(row[None].astype(np.float32)))
                total[trial] += cosines[:, 0] * norms * np.linalg.norm(row)
    total -= total.mean(axis=1, keepdims=True)
    return np.asarray(total / (total.std() or 1.0))
