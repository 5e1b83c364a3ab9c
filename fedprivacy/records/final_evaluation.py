"""Measures the final model on held-out records: beyond accuracy, by group, and by user."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from fedprivacy.data.groups import Grouping
from fedprivacy.data.tasks import CLASSIFICATION
from fedprivacy.documents.quality import (
    FEW,
    ColumnGroups,
    GroupAccuracy,
    Quantile,
    UserAccuracies,
)
from fedprivacy.models.metrics.classes import BalancedAccuracy
from fedprivacy.models.metrics.registry import Measurement, metrics_of
from fedprivacy.models.prediction import Predictions
from fedprivacy.population.clients import Population
from fedprivacy.population.groups import held_out_budget_groups, held_out_groups, held_out_users
from fedprivacy.scenario import Scenario

LEAST_USERS = 10  # of fewer there is no tenth
STEPS = 20  # of the quantile curve
_DRAWS = 400  # of the worst tenth by chance


def final_evaluation(
    scenario: Scenario,
    people: Population,
    y: NDArray[Any],
    predictions: Iterable[Predictions],
) -> dict[str, Any]:
    """The fields of `Final` beside accuracy and loss, from held-out records alone.

    Groups and users are those of the test records. Users are left out where any may be a client.

    Args:
        scenario: The scenario of the run.
        people: Its data; no record that a client trains on is read.
        y: The classes of the records that it is evaluated on, shape (records,), or their targets.
        predictions: Of the final model on them, in chunks.
    """
    data, classes, start = people.dataset, [], 0
    measurement = Measurement(metrics_of(data.task))
    for chunk in predictions:
        targets = y[start : start + len(chunk.named)]
        if (bounds := data.target_bounds) is None:
            measurement.update(chunk, targets)
        else:  # in the units of the targets
            measurement.update(Predictions(bounds.restored(chunk.named)), bounds.restored(targets))
        if data.task == CLASSIFICATION:
            classes.append(chunk.named)
        start += len(chunk.named)
    fields: dict[str, Any] = {"measures": measurement.values()}
    if scenario.evaluation.on != "test" or data.task != CLASSIFICATION:
        return fields
    named = np.concatenate(classes)
    groups = list(held_out_groups(scenario.data, scenario.evaluation))
    of_clients = held_out_budget_groups(scenario.data, people, scenario.privacy.groups)
    groups += [] if of_clients is None else [of_clients]
    if groups:
        fields["groups"] = [by_group(grouping, y, named) for grouping in groups]
    users = None if people.test_owned else held_out_users(scenario.data)
    accuracies = None if users is None else by_user(users, named == y)
    if accuracies is not None:
        fields["users"] = accuracies
    return fields


def by_group(grouping: Grouping, y: NDArray[np.int64], named: NDArray[np.int64]) -> dict[str, Any]:
    """`ColumnGroups` of predictions, as JSON.

    Args:
        grouping: The groups of the records by one column.
        y: Their classes, shape (records,).
        named: The predicted ones, same shape.
    """
    right = named == y
    inside = [grouping.codes == code for code in range(len(grouping.labels))]
    known = [right[each].mean() for each in inside if each.sum() >= FEW]
    best = float(max(known)) if known else None
    groups = []
    for label, each in zip(grouping.labels, inside, strict=True):
        records, hits = int(each.sum()), int(right[each].sum())
        if records == 0:
            groups.append(GroupAccuracy.new(group=label, records=0, few=True).to_json())
            continue
        ends = scipy.stats.binomtest(hits, records).proportion_ci(0.95, method="wilson")
        accuracy, few = hits / records, records < FEW
        groups.append(
            GroupAccuracy.new(
                group=label,
                records=records,
                accuracy=accuracy,
                low=float(ends.low),
                high=float(ends.high),
                balanced_accuracy=_balanced_accuracy(y[each], named[each]),
                gap=None if best is None or few else best - accuracy,
                few=few,
            ).to_json()
        )
    return ColumnGroups.new(column=grouping.column, edges=list(grouping.edges), groups=groups).to_json()


def _balanced_accuracy(y: NDArray[np.int64], named: NDArray[np.int64]) -> float:
    metric = BalancedAccuracy()
    metric.update(Predictions(named), y)
    return metric.value()


def by_user(users: NDArray[np.str_], right: NDArray[np.bool_]) -> dict[str, Any] | None:
    """`UserAccuracies`, as JSON; None with fewer than `LEAST_USERS` users.

    Args:
        users: The user of each record, shape (records,).
        right: Whether the model names the class of each, same shape.
    """
    names, user_of = np.unique(users, return_inverse=True)
    if len(names) < LEAST_USERS:
        return None
    records = np.bincount(user_of)
    accuracies = np.sort(np.bincount(user_of, weights=right) / records)
    tenth = math.ceil(len(names) / 10)
    shares = [step / STEPS for step in range(STEPS + 1)]
    quantiles = np.quantile(accuracies, shares, method="inverted_cdf")
    return UserAccuracies.new(
        users=len(names),
        mean=float(accuracies.mean()),
        worst=float(accuracies[:tenth].mean()),
        worst_users=tenth,
        worst_by_chance=_by_chance(records, float(right.mean()), tenth),
        quantiles=[
            Quantile.new(share=share, accuracy=float(value)).to_json()
            for share, value in zip(shares, quantiles, strict=True)
        ],
    ).to_json()


def _by_chance(records: NDArray[np.int64], accuracy: float, tenth: int) -> float:
    """The mean accuracy of the worst tenth of users whose records are all named rightly as often.

    By simulation with a fixed seed: it depends on the sizes and on the accuracy alone.
    """
    random = np.random.default_rng(0)
    draws: Sequence[float] = [
        float(np.sort(random.binomial(records, accuracy) / records)[:tenth].mean()) for _ in range(_DRAWS)
    ]
    return float(np.mean(draws))
