"""The groups and the users of a scenario's test records, in the order of its evaluation."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fedprivacy.data import npz
from fedprivacy.data.groups import Grouping, grouping, regrouped
from fedprivacy.data.record_columns import feature, held_out_column, origin_of
from fedprivacy.errors import InputError
from fedprivacy.population.partition import Partition
from fedprivacy.sampling.groups import Groups, members
from fedprivacy.scenario.data import FileData
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


def held_out_budget_groups(data: Data, partition: Partition, groups: Groups | None) -> Grouping | None:
    """The group of clients, with its budget, that each test record is of; None where that is not known.

    A test record is of a client where the data name the users of both parts and users are the clients; of
    others it is of no group (-1).

    Args:
        data: The data.
        partition: The clients.
        groups: Those of the plan; None: all clients have one budget.
    """
    users = held_out_users(data)
    if groups is None or users is None or not isinstance(data, FileData) or data.partition != "by-user":
        return None
    trained = npz.array(data.file, "user_train").astype(str)
    clients = trained[partition.order[partition.offsets[:-1]]]  # by the first record of each
    order = np.argsort(clients)
    place = order[np.searchsorted(clients, users, sorter=order).clip(max=len(clients) - 1)]
    codes = np.where(clients[place] == users, members(groups, len(clients))[place], -1)
    return Grouping("privacy.groups", groups.names, codes) if (codes >= 0).any() else None


def _groups(data: Data, evaluation: Evaluation) -> Iterator[Grouping]:
    if evaluation.groups is None or not isinstance(data, FileData):
        return
    for name in evaluation.groups:
        column = held_out_column(data.file, origin_of(data.name, dict(data)), name)
        if column is None:
            raise InputError(f"evaluation.groups: {name}: no such column. Correct it.")
        yield grouping(name, column, (evaluation.edges or {}).get(name, ()))
