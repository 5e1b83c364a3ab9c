"""Streams that are shuffled side by side give the orders that numpy's generators give one by one."""

from __future__ import annotations

import numpy as np
import pytest

from fedprivacy.randomness import shuffles
from fedprivacy.randomness.shuffles import shuffled_orders, side_by_side
from fedprivacy.randomness.streams import Streams
from fedprivacy.randomness.system import SystemStreams

MEMBERS = [3, 2**40, 0, *range(7, 400, 3)]


def one_by_one(streams: Streams, members: list[int], count: int, passes: int, round: int) -> np.ndarray:
    drawn = []
    for member in members:
        stream = streams.stream("batches", round=round, member=member)
        drawn.append([stream.permutation(count) for _ in range(passes)])
    return np.array(drawn)


@pytest.mark.parametrize(("count", "passes"), [(2, 1), (3, 7), (8, 1), (9, 2), (16, 1), (17, 3), (33, 2)])
def test_orders_are_those_of_numpys_generators(count: int, passes: int) -> None:
    """Of every length of a mask, and over several passes, whose draws may begin in the middle of a word."""
    streams = Streams(5)
    many = streams.streams("batches", MEMBERS, round=7)
    orders, incomplete = shuffled_orders(many.key, np.array(MEMBERS), 7, count, passes)
    expected = one_by_one(streams, MEMBERS, count, passes, 7)
    assert incomplete.mean() < 0.05
    assert np.array_equal(orders[~incomplete], expected[~incomplete])
    assert np.array_equal(many.orders(count, passes), expected)


def test_streams_that_reject_too_often_are_shuffled_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shuffles, "_MARGIN", -3.0)
    streams, count = Streams(5), 12
    assert side_by_side(len(MEMBERS), count)
    many = streams.streams("batches", MEMBERS)
    _, incomplete = shuffled_orders(many.key, np.array(MEMBERS), 0, count, 2)
    assert 0.2 < incomplete.mean() < 1
    assert np.array_equal(many.orders(count, 2), one_by_one(streams, MEMBERS, count, 2, 0))


def test_few_streams_and_long_orders_come_one_by_one_with_the_same_result() -> None:
    streams = Streams(1)
    for members, count in (([4, 9], 20), (MEMBERS, 100), (MEMBERS, 1), ([], 5)):
        assert not side_by_side(len(members), count)
        orders = streams.streams("batches", members).orders(count, 2)
        assert np.array_equal(orders, one_by_one(streams, members, count, 2, 0).reshape(-1, 2, count))


def test_some_members_have_the_orders_that_they_have_among_all() -> None:
    many = Streams(1).streams("batches", MEMBERS)
    places = np.arange(len(MEMBERS))[::-2]
    assert np.array_equal(many.at(places).orders(9, 1), many.orders(9, 1)[places])


def test_secret_orders_of_a_deployment_never_repeat() -> None:
    many = SystemStreams(1).noises("batches", MEMBERS)
    first, second = many.orders(20, 2), many.at(np.arange(len(MEMBERS))).orders(20, 2)
    assert first.shape == second.shape == (len(MEMBERS), 2, 20)
    assert np.array_equal(np.sort(first), np.broadcast_to(np.arange(20), first.shape))
    assert not (first == second).all(axis=2).any()
    assert len(np.unique(first.reshape(-1, 20), axis=0)) == 2 * len(MEMBERS)
