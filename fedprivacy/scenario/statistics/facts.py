"""Facts of a statistics scenario's data, without reading records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedprivacy.errors import Problem, ScenarioError
from fedprivacy.scenario.statistics.data import Data, NpzTable

if TYPE_CHECKING:
    from fedprivacy.data.npz import Facts

ANSWER = "answer"


def columns_of(data: Data) -> tuple[str, ...]:
    """The names of the columns.

    Raises:
        ScenarioError: the file cannot be used.
    """
    if not isinstance(data, NpzTable):
        return (ANSWER,)
    facts = _facts(data)
    names = facts.feature_names or tuple(f"column {place}" for place in range(facts.features[0]))
    return (*names, data.label)


def number_of_clients(data: Data) -> int | None:
    """The number of clients; None if users are the clients and the data name none.

    Raises:
        ScenarioError: the file cannot be used.
    """
    if not isinstance(data, NpzTable):
        return data.clients
    facts = _facts(data)
    return facts.records if data.owner == "record" else facts.users


def _facts(data: NpzTable) -> Facts:
    from fedprivacy.data import npz

    try:
        facts = npz.facts(data.path)
    except npz.NpzError as error:
        raise ScenarioError([Problem("data.path", what, remedy) for what, remedy in error.wrongs]) from None
    if len(facts.features) != 1:
        shape = "x".join(map(str, facts.features))
        raise ScenarioError([Problem("data.path", f"its records are of shape {shape}", "Rows are needed.")])
    if data.owner == "user" and facts.users is None:
        remedy = 'Set data.owner = "record", or add the array.'
        raise ScenarioError([Problem("data.owner", "the file has no user_train", remedy)])
    return facts
