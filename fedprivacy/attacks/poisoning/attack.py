"""Poisoning in trials: the same rounds with and without malicious clients, and the certificate.

A trial runs the attacked rounds twice from the same trained model, once with all clients honest and once
with k of them malicious, with noise and batches of its own. It counts as a success if the model gives at
least half of the probes the label that the attackers want. Rates and accuracies are means over trials.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedprivacy.attacks.intervals import CONFIDENCE, Figure, mean_high, mean_low
from fedprivacy.attacks.poisoned_records import (
    Backdoor,
    Goal,
    LabelFlip,
    Poison,
    Trigger,
    check_pixels,
)
from fedprivacy.attacks.poisoning.certificate import certificate
from fedprivacy.attacks.poisoning.rules import POISONING_RULES, SHARE
from fedprivacy.attacks.trials import Ceiling, Outcome, TrialAttack, Victim, Without
from fedprivacy.errors import InputError
from fedprivacy.io.rule_table import Entry
from fedprivacy.records.seed_statistics import interval
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.attack.derived_values import AttackValues

RATE, ACCURACY = "target rate", "main accuracy"
HALF = 0.5
ERROR = (1 - CONFIDENCE) / 2  # of each end of what the honest runs gave, as `success_rate` has it
NOTE = (
    "A trial of poisoning runs the attacked rounds twice from the same trained model, with noise and batches "
    "of its own: with all clients honest, and with the malicious ones. The certificate bounds what the "
    "malicious clients change, by the upper end of the interval of the honest runs. Only one trial would "
    "really happen, and the certificate covers that one."
)


Pixel = Annotated[tuple[int, int], Field(strict=False)]  # row, column


class Poisoning(TrialAttack):
    """Malicious clients make the model take some records for others; the same run without them beside it."""

    label: ClassVar[str] = "poisoning"
    note: ClassVar[str] = NOTE
    draws_records: ClassVar[bool] = False
    success: ClassVar[str] = "the model takes most probes for the target"
    comparison: ClassVar[str] = "with these clients honest it does"
    compares: ClassVar[bool] = True
    bound_noun: ClassVar[str] = "certificate"
    rules: ClassVar[tuple[Entry[AttackValues], ...]] = (*TrialAttack.rules, *POISONING_RULES)

    kind: Literal["poisoning"]
    seat: Literal["participant"] = Field(
        "participant", description="From where: a client uploads what it likes."
    )
    trials: int = Field(
        20, ge=20, le=10**5, description="How often the rounds are run with and without them, such as 20."
    )
    rounds: int = Field(1, ge=1, le=10**4, description="How many rounds they attack, such as 1.")
    goal: Literal["backdoor", "label-flip"] = Field(
        "backdoor",
        description="What the model should take for the target: pictures with a trigger, or the records of "
        "one label.",
    )
    clients: int = Field(
        1,
        ge=1,
        le=10**6,
        description="The number of malicious clients, those of the lowest ids, such as 1.",
    )
    target: int = Field(
        ge=0, description="The label that the model should give, counted from 0.", examples=[0]
    )
    source: int | None = Field(
        None,
        ge=0,
        description="The label of the records that the model should get wrong; of a backdoor any without it.",
        examples=[7],
    )
    pixels: tuple[Pixel, ...] | None = Field(
        None,
        strict=False,
        min_length=1,
        max_length=1000,
        description="The pixels of a trigger as [row, column] from the top left, such as [[26, 26]].",
    )
    value: float | None = Field(
        None,
        ge=-1e6,
        le=1e6,
        description="The value of these pixels, after scaling, such as 1.0; without it the largest there is.",
    )
    share: float = Field(
        SHARE, gt=0, le=1, description="The share of the malicious clients' pictures that have the trigger."
    )
    boost: float | None = Field(
        None,
        gt=0,
        le=10**6,
        description="By what a malicious client multiplies its update; else what replaces the global model.",
        examples=[20.0],
    )
    passes: int = Field(
        1, ge=1, le=1000, description="How often a malicious client goes through its training in a round."
    )

    def chance(self, without: Without | None) -> float:
        """The share of trials in which the honest model does it by itself."""
        return 0.0 if without is None else without.success.value

    def ceiling(self, ledger: Mapping[str, Any], run: AttackScenario, without: Without | None) -> Ceiling:
        """The certificate, from the ends of what the honest runs gave.

        These ends assume nothing about the runs: Student's t would take twenty equal rates for certain.
        See `TrialAttack.ceiling`.
        """
        most = certificate(ledger, clips=run.server.clips, clients=self.clients, rounds=self.rounds)
        if most.curve is None or without is None:
            return Ceiling(None, most.assumptions)
        rate, accuracy = (without.figures.get(name) for name in (RATE, ACCURACY))
        return Ceiling(
            most.most(without.success.high),
            most.assumptions,
            most.basis,
            {} if rate is None else {RATE: most.most(mean_high(rate.value, without.trials, ERROR))},
            {}
            if accuracy is None
            else {ACCURACY: most.least(mean_low(accuracy.value, without.trials, ERROR))},
        )

    def check(self, victim: Victim) -> None:
        """Refuses labels that no record has, and pixels outside of the pictures.

        Raises:
            InputError: with the key and the reason.
        """
        x, y = victim.held_out
        for key in ("target", "source"):
            label = getattr(self, key)
            if label is not None and label not in y:
                raise InputError(f"{key} = {label}: no held-out record has this label. Choose another one.")
        if self.pixels is not None:
            check_pixels(self.pixels, x.shape[1:])

    def run(self, victim: Victim) -> Outcome:
        """Runs all trials, each with and without the malicious clients."""
        goal = goal_of(self, victim.brightest)
        poison = Poison(goal, self.clients, self.boost, self.passes)
        honest = [_measure(goal, self, victim, None, trial) for trial in range(self.trials)]
        poisoned = [_measure(goal, self, victim, poison, trial) for trial in range(self.trials)]
        return _outcome(poisoned, _outcome(honest))


def goal_of(attack: Poisoning, brightest: float) -> Goal:
    """What the malicious clients are after.

    Args:
        attack: The settings; valid by the rules of scenarios.
        brightest: The value of a trigger's pixels, where the settings have none.
    """
    if attack.goal == "label-flip":
        assert attack.source is not None
        return LabelFlip(attack.source, attack.target)
    assert attack.pixels is not None
    value = brightest if attack.value is None else attack.value
    return Backdoor(Trigger(attack.pixels, value), attack.target, attack.share, attack.source)


def _measure(
    goal: Goal, attack: Poisoning, victim: Victim, poison: Poison | None, trial: int
) -> tuple[float, float]:
    """The share of probes with the wanted label after the attacked rounds, and the accuracy."""
    weights, (x, y) = victim.after_rounds(poison, trial), victim.held_out
    taken: NDArray[np.bool_] = victim.labels(weights, goal.probes(x, y)) == attack.target
    return float(taken.mean()), float((victim.labels(weights, x) == y).mean())


def _outcome(measured: Sequence[tuple[float, float]], without: Outcome | None = None) -> Outcome:
    rates, accuracies = zip(*measured, strict=True)
    figures = {RATE: _figure(rates), ACCURACY: _figure(accuracies)}
    return Outcome(sum(rate >= HALF for rate in rates), len(measured), figures, without=without)


def _figure(values: Sequence[float]) -> Figure:
    """The mean over trials with its interval."""
    mean = interval(values)
    value, low, high = (float(mean[key] or 0.0) for key in ("mean", "low", "high"))
    return Figure(value, low, high)
