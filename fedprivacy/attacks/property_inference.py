"""Property inference: does a group make up a small or a large share of the victim's records?

Melis, Song, De Cristofaro and Shmatikov 2019 ("Exploiting unintended feature leakage in collaborative
learning"): the attacker imitates victims with and without the property on records of its own, and learns to
tell their updates apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedprivacy.attacks.bounds import STEPS, curves_of_ledger
from fedprivacy.attacks.roc import auc
from fedprivacy.attacks.trials import Ceiling, Outcome, Rows, TrialAttack, Victim, Without, observations
from fedprivacy.errors import Finding, InputError
from fedprivacy.io.rule_table import Check, Entry, Rule
from fedprivacy.io.toml_text import literal, suggestion
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.attack.columns import class_labels, column_labels
from fedprivacy.scenario.attack.derived_values import AttackValues
from fedprivacy.scenario.attack.seats import PLAIN_STEPS, SINGLE_SUM_RULES

Pool = tuple[NDArray[np.int64], NDArray[np.int64]]  # free records in the group, and outside

AUC = "AUC"
WHERE = ("in", "outside")
OF_RECORDS = "the guarantee is for single records, and a property is of all records of the victim"
_WHY = {
    "replace-one": "another share of a group is a change of one client's records: one step",
    "add-remove": "another share of a group is two steps: the client is taken away and put back changed",
    "zero-out": "another share of a group is two steps: the update is zeroed and put back changed",
}
_RIDGE = 1e-3  # of the mean squared norm: regularises the discriminant where parameters outnumber shadows


def _group_exists(v: AttackValues) -> Iterator[Finding]:
    column, value = v["column"], v["value"]
    labels = class_labels(v) if column is None else column_labels(v, "Remove it: groups are labels then.")
    if isinstance(labels, Finding):
        yield labels
    elif labels is not None and value not in labels:
        remedy = suggestion(value, list(labels)[:30], quoted=True)
        yield Finding(("value",), "no record is in this group", remedy, literal(value))


class Property(TrialAttack):
    """Infers which share of the victim's records is in a group (Melis et al. 2019)."""

    label: ClassVar[str] = "property inference"
    scoring: ClassVar[frozenset[str]] = frozenset({"shadows"})
    success: ClassVar[str] = "the attacker guesses right whether the victim has the property"
    rules: ClassVar[tuple[Entry[AttackValues], ...]] = (
        *TrialAttack.rules,
        PLAIN_STEPS,
        Rule(
            "low",
            lambda v: v["low"] >= v["high"],
            lambda v: f"must be below high = {v['high']:g}",
        ),
        *SINGLE_SUM_RULES,
        Check(_group_exists),
    )

    kind: Literal["property"]
    seat: Literal["server", "participant"] = Field(
        "server",
        description="From where: the server sees the victim's update, a participant the noisy sum of all.",
    )
    column: str | None = Field(
        None,
        description='The column of the group, such as "sex"; without it groups are labels.',
        examples=["sex"],
    )
    value: str = Field(description='The group, such as "Female", or a label such as "3".', examples=["3"])
    low: float = Field(
        0.2, ge=0, lt=1, description="The group's share of the victim's records without the property."
    )
    high: float = Field(0.8, gt=0, le=1, description="The group's share with the property.")
    shadows: int = Field(
        200, ge=20, le=10**5, description="How many victims the attacker imitates to learn from, such as 200."
    )

    def without_data(self) -> Self:
        """The attack on the group of the first label."""
        return self.model_copy(update={"column": None, "value": "0"})

    def chance(self, without: Without | None = None) -> float:
        """Half of the trials have the property."""
        return 0.5

    def ceiling(
        self,
        ledger: Mapping[str, Any],
        run: AttackScenario | None = None,
        without: Without | None = None,
    ) -> Ceiling:
        """The balanced accuracy and the AUC of the client's trade-off curve.

        See `TrialAttack.ceiling`.
        """
        curves = curves_of_ledger(ledger, self.seat)
        if ledger["unit"] != "client":
            return Ceiling(None, (OF_RECORDS,))
        bounded = [(curve, assumptions) for curve, assumptions in curves if curve is not None]
        if not bounded:
            return Ceiling(None, curves[0][1])
        curve, assumptions = min(bounded, key=lambda pair: pair[0].auc)
        adjacency = ledger["adjacency"]
        curve = curve.twice() if STEPS["client", adjacency] == 2 else curve
        return Ceiling(
            (1 + curve.advantage) / 2, (_WHY[adjacency], *assumptions), curve.basis, {AUC: curve.auc}
        )

    def check(self, victim: Victim) -> None:
        """Refuses worlds that do not differ, and a group without enough free records for both.

        Raises:
            InputError: the shares are the same number of records, or there are too few.
        """
        if round(self.low * victim.size) == round(self.high * victim.size):
            raise InputError(
                f"low = {self.low:g} and high = {self.high:g} are the same number of records of a victim "
                f"that has {victim.size}. Choose shares further apart, or a victim with more records."
            )
        for pool in _pools(self, victim):
            for share in (self.low, self.high):
                of_group = round(share * victim.size)
                for part, needed, where in zip(pool, (of_group, victim.size - of_group), WHERE, strict=True):
                    if len(part) < needed:
                        raise InputError(
                            f"{len(part)} records {where} the group {self.value!r} are free, and a victim "
                            f"of {victim.size} records needs {needed}. Make data.public_fraction larger, "
                            "deal the records to more clients, or choose low and high less extreme."
                        )

    def run(self, victim: Victim) -> Outcome:
        """Trains a classifier on imitated victims, and lets it guess in each trial."""
        of_worlds, of_attacker = _pools(self, victim)
        imitated, learned = _worlds(self, victim, of_attacker, "shadow", self.shadows)
        examples = victim.answers(imitated, "shadow", noisy=False)  # the discriminant takes them all at once
        score = discriminant(examples, learned, victim.deviation)
        worlds, coins = _worlds(self, victim, of_worlds, "trial", self.trials)
        scores = np.concatenate([score(rows) for _, rows in observations(victim, worlds, "trial")])
        area = auc(scores[coins], scores[~coins])
        return Outcome(int(((scores > 0) == coins).sum()), len(coins), {AUC: area})


def _pools(attack: Property, victim: Victim) -> tuple[Pool, Pool]:
    """The free records in the group and outside, for worlds and for the attacker.

    Raises:
        InputError: no record is in the group.
    """
    codes, labels = victim.groups(attack.column)
    if attack.value not in labels:
        known = ", ".join(labels[:20])
        raise InputError(f"value = {attack.value!r}: no record is in this group. Choose from: {known}.")
    inside = codes == labels.index(attack.value)
    of_worlds, of_attacker = ((pool[inside[pool]], pool[~inside[pool]]) for pool in victim.pools())
    return of_worlds, of_attacker


def _worlds(
    attack: Property, victim: Victim, pool: Pool, key: str, count: int
) -> tuple[list[NDArray[np.int64]], NDArray[np.bool_]]:
    """The records of the victim in so many worlds, half of them with the property, and which have it."""
    stream = victim.stream(f"property/{key}")
    coins = stream.permutation(np.arange(count) % 2 == 0)
    worlds = []
    for coin in coins:
        of_group = round((attack.high if coin else attack.low) * victim.size)
        counts = of_group, victim.size - of_group
        chosen = [stream.choice(part, few, replace=False) for part, few in zip(pool, counts, strict=True)]
        worlds.append(stream.permutation(np.concatenate(chosen)))
    return worlds, coins


class Discriminant:
    """A linear score of observations, positive for those with the property.

    Args:
        direction: Shape (parameters,).
        threshold: The score that counts as zero.
    """

    def __init__(self, direction: NDArray[np.float64], threshold: float) -> None:
        self.direction, self.threshold = direction, threshold

    def __call__(self, rows: Rows) -> NDArray[np.float64]:
        return np.asarray(rows @ self.direction - self.threshold)


def discriminant(rows: Rows, coins: NDArray[np.bool_], deviation: float = 0.0) -> Discriminant:
    """Fisher's linear discriminant (1936) with a ridge, in the span of the examples.

    Args:
        rows: Observations of imitated victims, shape (shadows, parameters).
        coins: Which of them have the property, shape (shadows,).
        deviation: The standard deviation of noise that real observations have in each coordinate, and these
            do not.
    """
    means = rows[coins].mean(axis=0), rows[~coins].mean(axis=0)
    centred = np.concatenate([rows[coins] - means[0], rows[~coins] - means[1]])
    ridge = max(_RIDGE * float((centred**2).sum()), len(rows) * deviation**2) + 1e-300
    gap = means[0] - means[1]
    # (X'X + ridge)^-1 gap by Woodbury's identity: a system of as many equations as there are shadows.
    inner = centred @ centred.T
    inner[np.diag_indices_from(inner)] += ridge
    direction = (gap - centred.T @ np.linalg.solve(inner, centred @ gap)) / ridge
    direction /= np.linalg.norm(direction) or 1.0
    return Discriminant(direction, float((means[0] + means[1]) @ direction / 2))
