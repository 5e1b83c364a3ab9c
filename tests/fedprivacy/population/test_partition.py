from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from fedprivacy.population.partition import (
    Partition,
    RecordNumbers,
    by_label,
    by_user,
    dirichlet,
    fixed_records,
    iid,
    one_per_example,
)

LABELS = np.arange(103) % 4
USERS = np.array([f"user {number}" for number in np.arange(103) ** 2 % 17])
WAYS: dict[str, Callable[[float, int], Partition]] = {
    "iid": lambda part, seed: iid(103, 10, public_fraction=part, seed=seed),
    "one-per-example": lambda part, seed: one_per_example(103, public_fraction=part, seed=seed),
    "by-user": lambda part, seed: by_user(USERS, public_fraction=part, seed=seed),
    "dirichlet": lambda part, seed: dirichlet(LABELS, 10, 0.3, public_fraction=part, seed=seed),
    "by-label": lambda part, seed: by_label(LABELS, 10, public_fraction=part, seed=seed),
    "fixed-records": lambda part, seed: fixed_records(103, 4, public_fraction=part, seed=seed),
}


@pytest.mark.parametrize("fraction", [0.0, 0.25])
@pytest.mark.parametrize("way", WAYS)
def test_a_record_has_one_owner_or_is_public_and_no_client_is_empty(way: str, fraction: float) -> None:
    dealt = WAYS[way](fraction, 1)
    owned = np.concatenate([dealt.records(client) for client in range(dealt.clients)])
    everything = np.concatenate([owned, dealt.public])
    assert len(np.unique(everything)) == len(everything)
    left_out = 103 - len(everything)
    assert left_out == ((103 - round(103 * fraction)) % 4 if way == "fixed-records" else 0)
    assert np.diff(dealt.offsets).min() > 0
    assert (len(dealt.public) > 0) == (fraction > 0)
    if way != "by-user":
        assert len(dealt.public) == round(103 * fraction)


@pytest.mark.parametrize("way", ["iid", "dirichlet", "fixed-records", "by-label"])
def test_dealing_is_a_matter_of_the_seed_alone_and_random(way: str) -> None:
    dealt = WAYS[way](0.0, 1)
    assert np.array_equal(dealt.order, WAYS[way](0.0, 1).order)
    assert not np.array_equal(dealt.order, WAYS[way](0.0, 2).order)
    assert not np.array_equal(dealt.order, np.sort(dealt.order))


@pytest.mark.parametrize("way", WAYS)
def test_the_public_part_is_drawn_by_the_seed(way: str) -> None:
    assert not np.array_equal(WAYS[way](0.25, 1).public, WAYS[way](0.25, 2).public)


@pytest.mark.parametrize("way", ["iid", "by-label"])
def test_sizes_differ_by_at_most_one(way: str) -> None:
    assert set(np.diff(WAYS[way](0.0, 1).offsets)) == {10, 11}


def test_by_label_gives_the_first_clients_the_first_label() -> None:
    dealt = WAYS["by-label"](0.0, 1)
    labels = LABELS[dealt.order]
    assert (np.diff(labels) >= 0).all()
    assert set(LABELS[dealt.records(0)]) == {0}
    assert set(LABELS[dealt.records(9)]) == {3}


def test_by_user_each_client_has_all_records_of_one_user_and_whole_users_are_public() -> None:
    users = len(set(USERS))
    dealt = WAYS["by-user"](0.25, 1)
    assert dealt.clients == users - round(users * 0.25)
    public = set(USERS[dealt.public])
    assert len(public) == round(users * 0.25)
    for client in range(dealt.clients):
        [user] = set(USERS[dealt.records(client)])
        assert user not in public
        assert len(dealt.records(client)) == np.sum(user == USERS)


def test_fixed_records_gives_each_client_as_many_and_leaves_the_rest_out() -> None:
    dealt = fixed_records(103, 4, public_fraction=0.0, seed=1)
    assert dealt.clients == 25
    assert set(np.diff(dealt.offsets)) == {4}
    assert len(dealt.order) == 100


def test_fixed_records_of_few_clients_are_a_part_of_those_of_many() -> None:
    many = fixed_records(103, 4, public_fraction=0.25, seed=1)
    few = fixed_records(103, 4, 3, public_fraction=0.25, seed=1)
    assert few.clients == 3
    assert np.array_equal(few.order, many.order[:12])
    assert np.array_equal(few.public, many.public)


def shares(alpha: float, seed: int = 1) -> np.ndarray:
    """The shares of the labels of each client, shape (clients, labels), of 40 clients of 500 records."""
    labels = np.random.default_rng(0).choice(4, size=20_000, p=[0.4, 0.3, 0.2, 0.1])
    dealt = dirichlet(labels, 40, alpha, public_fraction=0.0, seed=seed)
    assert set(np.diff(dealt.offsets)) == {500}
    assert np.array_equal(np.sort(dealt.order), np.arange(20_000))
    return np.stack([np.bincount(labels[dealt.records(client)], minlength=4) / 500 for client in range(40)])


def test_dirichlet_gives_clients_one_label_near_zero_and_all_alike_far_from_it() -> None:
    # The last clients get what is left.
    assert np.mean(shares(0.001).max(axis=1) > 0.99) > 0.8
    assert np.abs(shares(1e6)[:-5] - [0.4, 0.3, 0.2, 0.1]).max() < 5 * np.sqrt(0.25 / 500)


def test_dirichlet_shares_vary_as_the_distribution_says() -> None:
    """Of the first 20 clients, before labels run out: Var q_k = p_k (1 - p_k) / (1 + alpha), and the draw's own.

    Over 30 seeds, 600 clients; the standard error of the variance is below 8 %, tested at 5 of them.
    """
    alpha, p = 5.0, np.array([0.4, 0.3, 0.2, 0.1])
    found = np.concatenate([shares(alpha, seed)[:20] for seed in range(30)])
    variance = p * (1 - p) / (1 + alpha)
    variance = variance + (p * (1 - p) - variance) / 500
    assert found.mean(axis=0) == pytest.approx(p, abs=0.04)
    assert found.var(axis=0) == pytest.approx(variance, rel=0.4)


@pytest.mark.parametrize("alpha", [1e-3, 1e6])
def test_dirichlet_with_as_many_clients_as_records_gives_each_one(alpha: float) -> None:
    dealt = dirichlet(LABELS, 103, alpha, public_fraction=0.0, seed=1)
    assert np.array_equal(np.sort(dealt.order), np.arange(103))
    assert set(np.diff(dealt.offsets)) == {1}


def test_records_of_several_clients_are_parts_of_one_array() -> None:
    dealt = by_user(USERS, public_fraction=0.25, seed=1)
    clients = np.array([4, 0, 4, dealt.clients - 1])
    many, lists = dealt.records_of(clients), [dealt.records(client) for client in clients.tolist()]
    assert many.order is dealt.order
    for numbers in (many, RecordNumbers.of(lists), RecordNumbers.of(many)):
        assert all(np.array_equal(a, b) for a, b in zip(numbers, lists, strict=True))
        assert numbers.counts.tolist() == [len(a) for a in lists]
        assert [a.tolist() for a in numbers.at(np.array([2, 1]))] == [lists[2].tolist(), lists[1].tolist()]
        assert [a.tolist() for a in numbers[1:3]] == [a.tolist() for a in lists[1:3]]
        padded = numbers.padded(50)
        for row, own in zip(padded, lists, strict=True):  # padded with its own first, never with another's
            assert row.tolist() == own.tolist() + [own[0]] * (50 - len(own))


@pytest.mark.parametrize("empty", [0, 1, 2])
def test_a_client_without_records_is_not_padded_with_anothers(empty: int) -> None:
    lists = [np.array([3, 4]), np.array([5]), np.array([6, 7])]
    lists[empty] = np.zeros(0, np.int64)
    numbers = RecordNumbers.of(lists)
    with pytest.raises(ValueError, match="without records"):
        numbers.padded(2)
    assert numbers.at(np.array([client for client in range(3) if client != empty])).padded(2).shape == (2, 2)
