"""Neighbouring data sets in numbers: distances by hand, and which of them refute."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedprivacy.attacks.canaries import at_most
from fedprivacy.attacks.measured_sensitivity import (
    SLACK,
    Neighbours,
    World,
    compared,
    counts_of,
    with_records,
)
from fedprivacy.population.partition import Partition

PARTITION = Partition(np.arange(10, 16), np.array([0, 1, 4, 6]), np.array([3]))


STILL = (np.zeros(1), np.zeros(1))


def world(records: int, own: list[float], *others: list[float], summed: bool = True) -> World:
    rows = np.array([own, *others])
    return World(records, rows[0], rows[1:], rows.sum(axis=0) if summed else rows.ravel())


def test_distances_are_those_of_sums_or_of_all_updates() -> None:
    updates = (1, [2.0, 0.0], [0.0, 0.0], [0.0, 1.0]), (9, [-2.0, 0.0], [0.0, 3.0], [0.0, -3.0])
    worlds = [world(*one) for one in updates]
    summed = compared(worlds, 2.0, "replace-one", summed=True, planted=STILL)
    assert summed.distance == pytest.approx(np.hypot(4, 1) / 2)
    assert summed.others == pytest.approx(0.5)
    worlds = [world(*one, summed=False) for one in updates]
    each = compared(worlds, 2.0, "replace-one", summed=False, planted=STILL)
    assert each.distance == pytest.approx(np.sqrt(16 + 9 + 16) / 2)
    assert each.others == pytest.approx(5 / 2)
    assert summed.changed == each.changed == 2
    assert (summed.records, summed.allowed, summed.clients) == ((1, 9), 2.0, 3)


def test_a_sum_that_is_not_that_of_the_updates_moves_beside_them() -> None:
    worlds = [world(1, [1.0], [0.0]), world(9, [0.5], [0.0])]
    worlds = [replace(one, released=3 * one.released) for one in worlds]
    found = compared(worlds, 1.0, "replace-one", summed=True, planted=STILL)
    assert (found.distance, found.others, found.changed) == (1.5, 1.0, 0)
    assert found.refutes
    assert "no bit of the others' updates; beside its own update what is released moves by 1 C" in found.words


def test_planted_updates_count_towards_the_distance() -> None:
    worlds = [world(1, [0.1], [0.0]), world(9, [0.2], [0.0])]
    planted = (np.array([3.0]), np.array([-3.0]))
    found = compared(worlds, 2.0, "replace-one", summed=True, planted=planted)
    assert (found.distance, found.others) == (3.0, 0.0)
    assert found.too_far
    assert "moves by 3 C at most, where 2 C are accounted for" in found.words


def test_a_client_that_comes_is_compared_with_none_and_not_with_another_one() -> None:
    worlds = [world(0, [0.0], [1.0]), world(1, [1.0], [1.0]), world(9, [-1.0], [1.0])]
    assert compared(worlds, 1.0, "zero-out", summed=True, planted=STILL).distance == 1.0
    assert compared(worlds, 1.0, "replace-one", summed=True, planted=STILL).distance == 2.0
    assert compared(worlds, 1.0, "zero-out", summed=True, planted=STILL).changed == 0


def test_one_bit_counts_as_a_change_and_refutes_nothing_yet() -> None:
    worlds = [world(1, [1.0], [0.0]), world(2, [-1.0], [np.nextafter(0.0, 1.0)])]
    found = compared(worlds, 1.0, "replace-one", summed=True, planted=STILL)
    assert found.changed == 1
    assert not found.refutes
    assert "changes the updates of 1 others" in found.words


def test_what_is_not_accounted_for_refutes() -> None:
    fine = Neighbours(5, (1, 2), 2.0, 2.0, 0.0, 0)
    assert not fine.refutes
    assert Neighbours(5, (1, 2), 2.0, 2.0 + 1e-6, 0.0, 0).refutes
    assert Neighbours(5, (1, 2), 2.0, 1.0, 2 * SLACK, 3).refutes
    assert Neighbours.of_json(fine.to_json()) == fine
    assert fine.worst(Neighbours(5, (1, 2), 2.0, 1.0, 0.5, 3)) == Neighbours(5, (1, 2), 2.0, 2.0, 0.5, 3)


@pytest.mark.parametrize(
    ("sizes", "counts"),
    [([1, 1, 1], (1, 10)), ([20, 20], (1, 20, 200)), ([5000, 5000], (1, 5000)), ([300], (1, 300, 2000))],
)
def test_a_client_gets_few_records_and_many(sizes: list[int], counts: tuple[int, ...]) -> None:
    assert counts_of(np.array(sizes)) == counts


def test_one_client_gets_other_records_and_all_others_keep_theirs() -> None:
    given = with_records(PARTITION, 1, np.array([7, 8]))
    assert [given.records(client).tolist() for client in range(3)] == [[10], [7, 8], [14, 15]]
    assert (given.public == PARTITION.public).all()


def test_clients_keep_so_many_of_their_first_records() -> None:
    kept = at_most(PARTITION, np.array([5, 2, 1]))
    assert [kept.records(client).tolist() for client in range(3)] == [[10], [11, 12], [14]]
