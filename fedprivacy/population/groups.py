"""The groups and the users of a scenario's test records, in the order of its evaluation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from fedprivacy.data import npz
from fedprivacy.data.groups import Grouping, grouping, regrouped
from fedprivacy.data.record_columns import feature, held_out_column, origin_of
from fedprivacy.errors import InputError
from fedprivacy.population.clients import Population
from fedprivacy.population.first_clients import renumbered
from fedprivacy.population.partition import Partition
from fedprivacy.randomness.streams import Streams
from fedprivacy.sampling.group_limits import COLUMN
from fedprivacy.sampling.groups import Group, Groups, members
from fedprivacy.scenario.data import DEALT_BY_LABEL, FileData
from fedprivacy.scenario.privacy import BudgetGroup
from fedprivacy.scenario.sections import Data, Evaluation


def held_out_groups(data: Data, evaluation: Evaluation) -> tuple[Grouping, ...]:
    """The groups of the test records by each column of `evaluation.groups`.

    Raises:
        InputError: if the data have no such column, or it makes no groups.
    """
    return tuple(_groups(data, evaluation))


def training_groups(data: Data, evaluation: Evaluation) -> tuple[Grouping, ...]:
    """The same groups of all training records, which are the clients', by the columns that are features.

    A value that no test record has is in no group (-1).
    """
    groups = []
    for like in _groups(data, evaluation):
        assert isinstance(data, FileData)
        if (column := feature(data.file, like.column, "train")) is not None:
            groups.append(regrouped(like.column, column, like))
    return tuple(groups)


def held_out_users(data: Data) -> NDArray[np.str_] | None:
    """The user of each test record, shape (test records,); None where the data do not name them."""
    if not isinstance(data, FileData) or not data.facts.test_users:
        return None
    return npz.array(data.file, "user_test").astype(str)


def held_out_budget_groups(
    data: Data, people: Population, budgets: Mapping[str, BudgetGroup] | None
) -> Grouping | None:
    """The group of clients, with its budget, that each test record is of; None where that is not known.

    Where users are the clients and the data name those of test records, a record is its user's. Where records
    are dealt, test records are dealt to the groups in the same way: each group has its share of them, by
    label where clients' records are dealt by label. A record of nobody is of no group (-1).

    Args:
        data: The data.
        people: Their clients.
        budgets: The groups of the scenario; None: all clients have one budget.
    """
    if budgets is None:
        return None
    present = renumbered(data, budgets) or {}
    groups = Groups(tuple(Group(name, each.share, each.clients) for name, each in present.items()))
    places = members(groups, people.partition.clients)
    codes = dealt_test_records(data, people, places)
    known = codes is not None and (codes >= 0).any()
    return Grouping(COLUMN, groups.names, codes) if codes is not None and known else None


def dealt_test_records(data: Data, people: Population, places: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Deals test records to places as the clients' records are dealt; None where that is not known.

    Args:
        data: The data.
        people: Their clients.
        places: The place of each client, shape (clients,).

    Returns:
        The place of each test record, shape (test records,), -1 for a record of nobody.
    """
    if getattr(data, "partition", None) == "by-user":
        return _by_user(data, people.partition, places)
    if hasattr(data, "partition"):
        return _dealt(people, places, by_label=data.partition in DEALT_BY_LABEL)
    return None  # nobody knows here whose records are on nodes


def _by_user(data: Data, partition: Partition, places: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """The place of the user of each test record; None without names of users."""
    users = held_out_users(data)
    if users is None or not isinstance(data, FileData):
        return None
    trained = npz.array(data.file, "user_train").astype(str)
    clients = trained[partition.order[partition.offsets[:-1]]]  # by the first record of each
    order = np.argsort(clients)
    place = order[np.searchsorted(clients, users, sorter=order).clip(max=len(clients) - 1)]
    return np.where(clients[place] == users, places[place], -1)


def _dealt(people: Population, places: NDArray[np.int64], *, by_label: bool) -> NDArray[np.int64]:
    """Deals test records to places, in the shares of their clients' records, without a secret draw."""
    data, partition = people.dataset, people.partition
    owners = np.repeat(places, partition.sizes)
    owned, tested = (
        (data.y[partition.order], data.y_test)
        if by_label
        else (np.zeros(len(owners)), np.zeros(len(data.y_test)))
    )
    order = np.argsort(Streams(0).stream("budget-groups/held-out").random(len(tested)), kind="stable")
    codes = np.full(len(tested), -1, dtype=np.int64)
    for label in np.unique(owned):
        rows = order[tested[order] == label]
        ends = np.cumsum(np.bincount(owners[owned == label], minlength=int(places.max()) + 1))
        parts = np.diff(np.round(ends / ends[-1] * len(rows)).astype(np.int64), prepend=0)
        codes[rows] = np.repeat(np.arange(len(parts)), parts)
    return codes


def _groups(data: Data, evaluation: Evaluation) -> Iterator[Grouping]:
    if evaluation.groups is None or not isinstance(data, FileData):
        return
    for name in evaluation.groups:
        column = held_out_column(data.file, origin_of(data.name, dict(data)), name)
        if column is None:
            raise InputError(f"evaluation.groups: {name}: no such column. Correct it.")
        yield grouping(name, column, (evaluation.edges or {}).get(name, ()))
