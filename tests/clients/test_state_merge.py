"""Messages of one node that are answered at once: their changes are those of one after the other."""

from __future__ import annotations

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from clients.fleet import Budgets
from clients.state_merge import changes, merged
from fedprivacy.errors import Refusal
from fedprivacy.messages.faults import Faults


def state(budgets: Budgets | None = None, round: int = 0, faults: Faults | None = None) -> RecordDict:
    """As `clients.app` keeps it."""
    made = RecordDict()
    if budgets is not None:
        made["budgets"] = ArrayRecord({"counts": Array(budgets.counts), "last": Array(budgets.last)})
    if faults is not None:
        made["faults"] = ConfigRecord({"round": round, **faults.values()})
    return made


def budgets(*spent: tuple[list[int], int]) -> Budgets:
    """Of eight clients; groups of them have answered rounds."""
    made = Budgets.fresh(8, 5)
    for clients, round in spent:
        made.spend(np.array(clients), round)
    return made


def told(made: RecordDict) -> list[object]:
    arrays = made.array_records.get("budgets", ArrayRecord())
    return [
        dict(made.config_records.get("faults", {})),
        *(array.numpy().tolist() for array in arrays.values()),
    ]


@pytest.mark.parametrize("began", [None, budgets(([1, 2, 3], 0))])
def test_two_messages_at_once_are_as_one_after_the_other(began: Budgets | None) -> None:
    before = state(began)
    earlier = [] if began is None else [([1, 2, 3], 0)]
    one, two = (state(budgets(*earlier, (clients, 1))) for clients in ([1, 4], [2, 5, 7]))
    both = merged(merged(before, changes(before, one)), changes(before, two))
    assert told(both) == told(state(budgets(*earlier, ([1, 4], 1), ([2, 5, 7], 1))))
    assert told(before) == told(state(began))


def test_a_client_in_two_messages_at_once_answers_one() -> None:
    """On one budget it would answer both, with the same noise."""
    before = state(budgets())
    one, two = (changes(before, state(budgets((clients, 0)))) for clients in ([1, 4], [4, 5]))
    now = merged(before, one)
    with pytest.raises(Refusal, match="client 4 is in two simultaneous requests"):
        merged(now, two)
    assert told(now) == told(state(budgets(([1, 4], 0))))


def test_faults_of_a_round_add_up_and_those_of_the_last_are_gone() -> None:
    before = state(round=3, faults=Faults({"raised": 1, "not_finite": 1}, "the first"))
    same = changes(before, state(round=3, faults=Faults({"raised": 3, "not_finite": 1}, "the first")))
    other = changes(before, state(round=3, faults=Faults({"raised": 1, "not_finite": 2}, "the first")))
    both = merged(merged(before, same), other)
    assert told(both) == told(state(round=3, faults=Faults({"raised": 3, "not_finite": 2}, "the first")))
    later = changes(before, state(round=4, faults=Faults({"not_finite": 1}, "another")))
    now = merged(both, later)
    assert told(now) == told(state(round=4, faults=Faults({"not_finite": 1}, "another")))
    assert told(merged(now, later)) == told(state(round=4, faults=Faults({"not_finite": 2}, "another")))


def test_a_message_that_changed_nothing_says_nothing_of_it() -> None:
    before = state(budgets(([1], 0)), 0, Faults({"raised": 1}))
    said = changes(before, before)
    assert told(merged(before, said)) == told(before)
    assert "faults" not in said
    assert changes(RecordDict(), RecordDict()) == RecordDict()


def test_what_is_told_is_as_large_as_the_message_not_as_the_population() -> None:
    many = Budgets.fresh(10**6, 5)
    before = state(many)
    many.spend(np.arange(100), 0)
    said = changes(before, state(many))
    assert sum(len(array.data) for array in said["budgets"].values()) < 10_000
