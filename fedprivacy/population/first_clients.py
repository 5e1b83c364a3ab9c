"""The clients that take part, by their ids among all clients that the records are dealt to."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from fedprivacy.errors import InputError
from fedprivacy.randomness.streams import Streams
from fedprivacy.scenario.data import FileData
from fedprivacy.scenario.on_nodes import OnNodes
from fedprivacy.scenario.privacy import BudgetGroup
from fedprivacy.scenario.sections import Data

Budgets = Mapping[str, BudgetGroup]


def first_clients(dealt: int, count: int, seed: int) -> NDArray[np.int64]:
    """The first clients of a drawn order, by their ids among all, sorted, shape (count,)."""
    order = Streams(seed).stream("partition/first-clients").permutation(dealt)
    return np.sort(order[:count])


def renumbered(data: Data, budgets: Budgets | None) -> Budgets | None:
    """The groups of a scenario, with those of their clients that take part, by the ids that these have.

    A scenario names clients by their ids among all, so that a group is the same persons however many take
    part.

    Args:
        data: The scenario's data.
        budgets: Its groups.

    Raises:
        InputError: no client of a group takes part.
    """
    if budgets is None or isinstance(data, OnNodes) or data.first_clients is None:
        return budgets
    if all(budget.clients is None for budget in budgets.values()):
        return budgets
    everyone = data.model_copy(update={"first_clients": None})
    dealt = everyone.clients if isinstance(everyone, FileData) else everyone.population
    if dealt is None:
        raise InputError("privacy.groups: the number of all clients is not in the scenario. Use a share.")
    present = first_clients(dealt, data.first_clients, data.seed)
    groups = {}
    for name, budget in budgets.items():
        clients = (
            None
            if budget.clients is None
            else tuple(np.flatnonzero(np.isin(present, budget.clients)).tolist())
        )
        if clients == ():
            raise InputError(
                f"privacy.groups.{name}.clients: none of them is among the {data.first_clients:,} clients "
                "that take part (data.first_clients, which compare.vary.data.clients sets). Let more take "
                "part, or give the group a share."
            )
        groups[name] = budget.model_copy(update={"clients": clients})
    return groups
