"""Deals test records to clients as their training records are dealt, to measure models of their own."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedprivacy.population.clients import Population
from fedprivacy.population.groups import dealt_test_records
from fedprivacy.scenario.sections import Data

Ids = NDArray[np.int64]


def owners_of_test(options: Data, people: Population) -> Ids | None:
    """The client of each test record, shape (test records,), -1 for those of none.

    With clients that are users, the records of each user are its own. Where clients' records are dealt by
    label, the test records of each label are dealt in proportion to the training records that clients have of
    it, and otherwise all test records in proportion to the training records.

    Args:
        options: The scenario's section `data`.
        people: Its data.

    Returns:
        None where no test record is of a client, or the data do not show whose they are.
    """
    owners = dealt_test_records(options, people, np.arange(people.partition.clients))
    return None if owners is None or not (owners >= 0).any() else owners
