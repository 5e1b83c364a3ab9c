"""Deals test records to clients as their training records are dealt, to measure models of their own."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedprivacy.data import npz
from fedprivacy.population.clients import Population
from fedprivacy.population.groups import held_out_users
from fedprivacy.randomness.streams import Streams
from fedprivacy.scenario.data import FileData
from fedprivacy.scenario.on_nodes import OnNodes
from fedprivacy.scenario.sections import Data

Ids = NDArray[np.int64]


def owners_of_test(options: Data, people: Population) -> Ids | None:
    """The client of each test record, shape (test records,), -1 for those of none.

    With clients that are users, the records of each user are its own. With label skew the test records of
    each label are dealt in proportion to the training records that clients have of it, and otherwise all test
    records in proportion to the training records.

    Args:
        options: The scenario's section `data`.
        people: Its data.

    Returns:
        None where no test record is of a client, or the data do not show whose they are.
    """
    if isinstance(options, OnNodes):
        return None
    data, partition = people.dataset, people.partition
    owners = np.full(len(data.y_test), -1, np.int64)
    if options.partition == "by-user":
        users = held_out_users(options)
        if users is None or not isinstance(options, FileData):
            return None
        names = npz.array(options.file, "user_train").astype(str)[partition.order[partition.offsets[:-1]]]
        order = np.argsort(names)
        place = order[np.searchsorted(names, users, sorter=order).clip(max=len(names) - 1)]
        owners = np.where(names[place] == users, place, -1)
        return owners if (owners >= 0).any() else None
    client_of = np.repeat(np.arange(partition.clients), partition.sizes)
    labels, test_labels = data.y[partition.order], data.y_test
    if options.partition != "dirichlet":
        labels, test_labels = np.zeros(len(client_of), np.int64), np.zeros(len(owners), np.int64)
    for label in np.unique(labels).tolist():
        records = np.flatnonzero(test_labels == label)
        stream = Streams(options.seed).stream(f"partition/held-out/{label}")
        # Each training record in turn stands for an equal share of the test records, in random order.
        alike = stream.permutation(client_of[labels == label])
        chosen = (np.arange(len(records)) * len(alike)) // max(1, len(records))
        owners[stream.permutation(records)] = alike[chosen]
    return owners if (owners >= 0).any() else None
