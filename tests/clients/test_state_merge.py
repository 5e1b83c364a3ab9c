"""Messages of one node that are answered at once: their changes are those of one after the other."""

from __future__ import annotations

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from clients.fleet import Budgets
from clients.personal_state import PersonalStates
from clients.state_merge import changes, merged
from fedprivacy.errors import InputError, Refusal
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


def personal(clients: list[int], value: float) -> PersonalStates:
    return PersonalStates(np.array(clients), np.full((len(clients), 2), value, np.float32))


def test_personal_models_of_two_messages_at_once_are_as_one_after_the_other() -> None:
    """Each message returns its own clients alone, and no other client's row goes back in time."""
    before = RecordDict({"personal": personal([1, 4, 6], 0.5).record()})
    one, two = (PersonalStates.load(before, 2) for _ in range(2))
    one.update(np.array([4, 2]), np.array([[1, 2], [3, 4]], np.float32))
    two.update(np.array([1]), np.array([[5, 6]], np.float32))
    parts = [changes(before, RecordDict({"personal": states.record()})) for states in (one, two)]
    assert [PersonalStates.load(part, 2).clients.tolist() for part in parts] == [[2, 4], [1]]
    both = PersonalStates.load(merged(merged(before, parts[0]), parts[1]), 2)
    assert both.clients.tolist() == [1, 2, 4, 6]
    assert both.rows.tolist() == [[5, 6], [3, 4], [1, 2], [0.5, 0.5]]
    assert PersonalStates.load(before, 2).rows[0].tolist() == [0.5, 0.5]


def test_personal_models_begin_where_nobody_has_one() -> None:
    states = PersonalStates.empty(2)
    states.update(np.array([3]), np.array([[7, 8]], np.float32))
    there = PersonalStates.load(
        merged(RecordDict(), changes(RecordDict(), RecordDict({"personal": states.record()}))), 2
    )
    initial = np.array([1, 2], np.float32)
    assert there.of(np.array([0, 3, 5]), initial).tolist() == [[1, 2], [7, 8], [1, 2]]
    assert there.only(np.array([0, 3])).clients.tolist() == [3]


@pytest.mark.parametrize(
    ("clients", "rows"),
    [
        ([3, 1], np.zeros((2, 2), np.float32)),
        ([1, 1], np.zeros((2, 2), np.float32)),
        ([-1, 1], np.zeros((2, 2), np.float32)),
        ([1, 3], np.zeros((2, 2))),
        ([1, 3], np.zeros((2, 3), np.float32)),
        ([1, 3], None),
    ],
)
def test_rows_that_are_not_of_one_client_each_are_refused(clients: list[int], rows) -> None:
    """A search by ids that do not rise would hand one client the row of another."""
    arrays = {"clients": Array(np.array(clients))} | ({} if rows is None else {"rows": Array(rows)})
    with pytest.raises(InputError, match="another run"):
        PersonalStates.load(RecordDict({"personal": ArrayRecord(arrays)}), 2)


def test_the_rows_of_known_clients_are_replaced_without_a_copy_of_all() -> None:
    states = personal([1, 4, 6], 0.5)
    before = states.rows
    states.update(np.array([6, 1]), np.array([[1, 2], [3, 4]], np.float32))
    assert states.rows is before
    assert before.tolist() == [[3, 4], [0.5, 0.5], [1, 2]]
