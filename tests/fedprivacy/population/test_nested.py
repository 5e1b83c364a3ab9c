from __future__ import annotations

import numpy as np
import pytest

from fedprivacy.data.datasets import synthetic
from fedprivacy.errors import InputError
from fedprivacy.population.clients import Population
from fedprivacy.population.nested import DevelopmentSplit
from fedprivacy.population.partition import Partition, iid, one_per_example

DATA = synthetic(records=600, test_records=50, features=3, signal=2.0, seed=1)


def rows_of(people: Population) -> set[int]:
    return set(people.partition.order.tolist())


def test_fewer_clients_are_among_more_with_the_same_records() -> None:
    split = DevelopmentSplit.of(Population(DATA, iid(600, 100, public_fraction=0.0, seed=1)), seed=1)
    few, many = split.first(10, seed=4), split.first(60, seed=4)
    assert (few.partition.clients, many.partition.clients) == (10, 60)
    for client in range(10):
        assert np.array_equal(few.partition.records(client), many.partition.records(client))
    assert rows_of(split.first(10, seed=5)) != rows_of(few)
    assert rows_of(split.first(80, seed=5)) == rows_of(split.first(80, seed=4)) == rows_of(split.people)


def test_a_fifth_of_many_clients_measures() -> None:
    people = Population(DATA, one_per_example(600, public_fraction=0.0, seed=1))
    split = DevelopmentSplit.of(people, seed=1)
    assert (split.source, split.people.partition.clients, len(split.rows)) == ("clients", 480, 120)
    assert not rows_of(split.people) & set(split.rows.tolist())
    assert np.array_equal(split.rows, DevelopmentSplit.of(people, seed=1).rows)
    assert split.x.shape == (120, 3)
    assert np.array_equal(split.y, DATA.y[split.rows])


def test_each_of_few_clients_keeps_a_fifth_of_its_records() -> None:
    people = Population(DATA, iid(600, 4, public_fraction=0.0, seed=1))
    split = DevelopmentSplit.of(people, seed=1)
    assert (split.source, split.people.partition.clients, len(split.rows)) == ("records", 4, 120)
    for client in range(4):
        left = set(split.people.partition.records(client).tolist())
        assert left < set(people.partition.records(client).tolist())
        assert len(left) == 120
    assert not rows_of(split.people) & set(split.rows.tolist())


def test_public_records_measure_where_there_are_enough() -> None:
    people = Population(DATA, one_per_example(600, public_fraction=0.5, seed=1))
    split = DevelopmentSplit.of(people, seed=1)
    assert (split.source, split.people.partition.clients) == ("public", 300)
    assert np.array_equal(split.rows, people.partition.public)


def test_a_client_with_one_record_cannot_keep_any() -> None:
    lonely = Partition(np.arange(5), np.array([0, 4, 5]), np.arange(0))
    with pytest.raises(InputError, match="client 1 has fewer than 2 records"):
        DevelopmentSplit.of(Population(DATA, lonely), seed=1)
