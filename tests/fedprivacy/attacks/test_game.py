"""Members are drawn by fair coins, and nothing but the model can tell them from the others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binomtest

from fedprivacy.attacks.game import Game, draw_game
from fedprivacy.data.datasets import Dataset
from fedprivacy.errors import InputError
from fedprivacy.population.clients import Population
from fedprivacy.population.partition import Partition, by_user, fixed_records, iid

RECORDS, VICTIM = 400, 2


def people_of(x: np.ndarray | None = None, partition: Partition | None = None) -> Population:
    """Four clients of 60 records each, and 160 public ones; every record is its own number."""
    x = np.arange(RECORDS, dtype=np.float32)[:, None] if x is None else x
    dealt = partition or iid(RECORDS, 4, public_fraction=0.4, seed=3)
    return Population(Dataset(x, np.zeros(len(x), dtype=np.int64), x[:1], np.zeros(1, np.int64), 2), dealt)


def draw(seed: int, people: Population | None = None, members: int = 40, nonmembers: int = 60) -> Game:
    return draw_game(people or people_of(), VICTIM, members, nonmembers, seed)


def pool_of(people: Population) -> np.ndarray:
    return np.union1d(people.partition.records(VICTIM), people.partition.public)


def test_the_victim_owns_its_members_and_nobody_owns_a_nonmember() -> None:
    people = people_of()
    game = draw(7, people)
    dealt = game.people.partition
    owned = dealt.records(VICTIM)
    assert np.isin(game.targets[game.members], owned).all()
    assert not np.isin(game.targets[~game.members], dealt.order).any()
    assert np.isin(game.targets[~game.members], dealt.public).all()
    # The pool is split between the victim and the public part; every other client keeps its records.
    assert np.array_equal(np.union1d(owned, dealt.public), pool_of(people))
    assert len(owned) + len(dealt.public) == len(pool_of(people))
    for client in (0, 1, 3):
        assert np.array_equal(dealt.records(client), people.partition.records(client))
    assert (game.members.sum(), (~game.members).sum()) == (40, 60)
    assert len(np.unique(game.targets)) == 100
    assert game.duplicates == 0


def test_every_record_of_the_pool_has_a_fair_coin_of_its_own() -> None:
    """Rates over 600 seeds: each record's, and each pair of neighbours' agreement, within five deviations.

    False-alarm rate below 3e-4.
    """
    people = people_of()
    pool, tried = pool_of(people), 600
    coins = np.array(
        [np.isin(pool, draw(seed, people).people.partition.records(VICTIM)) for seed in range(tried)]
    )
    assert np.abs(coins.mean(axis=0) - 0.5).max() < 5 * 0.5 / np.sqrt(tried)
    assert np.abs((coins[:, 1:] == coins[:, :-1]).mean(axis=0) - 0.5).max() < 5 * 0.5 / np.sqrt(tried)
    # Records that were the victim's before are members no more often than public ones.
    own = np.isin(pool, people.partition.records(VICTIM))
    for kind in (own, ~own):
        assert binomtest(int(coins[:, kind].sum()), int(coins[:, kind].size), 0.5).pvalue > 1e-5


def test_folds_and_places_know_no_membership() -> None:
    """The number of members in a fold is that of blind folds; false-alarm rate 1e-4."""
    games = [draw(seed) for seed in range(600)]
    known = np.array([((game.folds == 1) & game.members).sum() for game in games])
    assert all((np.bincount(game.folds) == 20).all() for game in games)
    fold_spread = np.sqrt(20 * 0.4 * 0.6 * 80 / 99)  # hypergeometric
    assert abs(known.mean() - 8) < 4 * fold_spread / np.sqrt(600)
    assert abs(known.std() / fold_spread - 1) < 4 / np.sqrt(2 * 600)
    spread = np.sqrt(50 * 0.4 * 0.6 * 50 / 99)
    first = np.array([game.members[:50].sum() for game in games])  # targets are in no order either
    assert abs(first.mean() - 20) < 4 * spread / np.sqrt(600)


def test_the_same_seed_draws_the_same_game_and_another_seed_other_coins() -> None:
    first, again, other = draw(1), draw(1), draw(2)
    for name in ("targets", "members", "folds"):
        assert np.array_equal(getattr(first, name), getattr(again, name))
    assert np.array_equal(first.people.partition.order, again.people.partition.order)
    assert first.people.digest == again.people.digest != other.people.digest
    assert not np.array_equal(first.people.partition.records(VICTIM), other.people.partition.records(VICTIM))


def test_a_record_that_stands_twice_is_no_target() -> None:
    """Else who knows that it stands twice would know something of its membership without any model."""
    people = people_of()
    pool = pool_of(people)
    x = people.dataset.x.copy()
    x[pool[1]] = x[pool[0]]  # twice in the pool
    x[pool[2]] = x[people.partition.records(0)[0]]  # and once with another client
    twice = people_of(x)
    for seed in range(30):
        game = draw(seed, twice)
        assert not np.isin(pool[:3], game.targets).any()
        assert game.duplicates == 3


def test_the_same_features_with_another_label_are_another_record() -> None:
    people = people_of()
    pool, x, y = pool_of(people), people.dataset.x.copy(), people.dataset.y.copy()
    x[pool[1]], y[pool[1]] = x[pool[0]], 1
    assert draw(1, replace(people, dataset=replace(people.dataset, x=x, y=y))).duplicates == 0


def test_clients_of_equal_size_leave_no_record_unaccounted_for() -> None:
    people = people_of(partition=fixed_records(RECORDS, 50, public_fraction=0.4, seed=3))
    game = draw(3, people, members=30)
    assert not np.isin(game.targets[~game.members], game.people.partition.order).any()


@pytest.mark.parametrize(
    ("victim", "members", "nonmembers", "message"),
    [
        (4, 10, 10, "game.victim = 4: there is no such client. Clients are 0 to 3"),
        (-1, 10, 10, "game.victim = -1: there is no such client"),
        (0, 200, 10, r"game.members = 200: by fair coins over the victim's 60 records and the 160 public"),
        (0, 10, 200, r"game.nonmembers = 200: by fair coins over the victim's 60 .*Ask for fewer"),
    ],
)
def test_a_game_that_cannot_be_drawn_is_refused(victim, members, nonmembers, message) -> None:
    with pytest.raises(InputError, match=message):
        draw_game(people_of(), victim, members, nonmembers, 1)


def test_where_clients_are_users_all_targets_are_records_of_the_victim() -> None:
    """Another user's records would differ from the victim's by more than their membership."""
    people = people_of(partition=by_user(np.arange(RECORDS) % 3, public_fraction=0.0, seed=1))
    game, of_victim = draw(5, people), people.partition.records(VICTIM)
    dealt = game.people.partition
    assert np.isin(game.targets, of_victim).all()
    assert np.array_equal(np.union1d(dealt.records(VICTIM), dealt.public), of_victim)
    assert np.isin(game.targets[game.members], dealt.records(VICTIM)).all()
    assert np.isin(game.targets[~game.members], dealt.public).all()
    with pytest.raises(
        InputError, match=r"over the victim's 133 records there are .*attack a client with more records"
    ):
        draw(5, people, members=100)


@pytest.mark.parametrize(("members", "nonmembers"), [(1, 60), (60, 1)])
def test_a_game_without_both_kinds_to_fit_on_and_to_measure_is_refused_at_once(members, nonmembers) -> None:
    with pytest.raises(InputError, match=r"members: there are no .* to fit on or to measure.*more targets"):
        draw(3, members=members, nonmembers=nonmembers)


@pytest.mark.exhaustive
def test_the_coins_of_targets_that_were_drawn_blind_are_fair() -> None:
    """Over 600 seeds, however few of all targets are members; false-alarm rate 1e-3."""
    games = [draw(seed, members=20, nonmembers=70) for seed in range(600)]
    for game in games:
        assert game.fair.sum() == 20
        assert (game.members.sum(), (~game.members).sum()) == (20, 70)
    coins = np.concatenate([game.members[game.fair] for game in games])
    assert binomtest(int(coins.sum()), len(coins), 0.5).pvalue > 1e-3
    # How many members there are among them says that they were not chosen to be equally many.
    each = np.array([game.members[game.fair].sum() for game in games])
    assert 20 / 4 * 0.8 < each.var() < 20 / 4 * 1.2
