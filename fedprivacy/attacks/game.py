"""The membership game: which records the victim trains on is decided by fair coins, and to be guessed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fedprivacy.attacks.targets import check_folds, draw_folds
from fedprivacy.errors import InputError
from fedprivacy.population.clients import Population
from fedprivacy.population.partition import Partition
from fedprivacy.randomness.streams import Streams

Ids = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Game:
    """One draw of the game.

    Args:
        people: The training data: the victim owns its members, no client owns a non-member, and no defence
            uses a target.
        victim: The client that is attacked.
        targets: The records to be judged, shape (targets,).
        members: Which of them the victim trains on, shape (targets,).
        folds: The fold of each target: it is measured by what was fitted on the others, shape (targets,).
        fair: The targets drawn blind to membership, whose coins are therefore fair and independent, as an
            empirical epsilon requires; the others were added to reach the requested numbers, shape
            (targets,).
        duplicates: The number of records of the pool that are no targets because a duplicate exists.
    """

    people: Population
    victim: int
    targets: Ids
    members: Flags
    folds: Ids
    fair: Flags
    duplicates: int


def draw_game(people: Population, victim: int, members: int, nonmembers: int, seed: int) -> Game:
    """Draws the memberships and the targets of a game.

    The pool are the victim's records and the public ones, which no client owns: both were dealt at random
    from the same data. Where clients are users there are no public ones, and the pool are the victim's alone.
    Each of the pool is a member by a fair coin of its own. Of the targets as many as the rarer kind counts
    are drawn blind to these coins, the others from either kind, until there are as many as were requested.
    All are dealt to folds. A record that occurs twice in the data, in the pool or with another client, is
    never a target: its membership is no longer decided by its own coin alone, and a known duplicate would
    reveal something about membership without any model.

    Args:
        people: The data as the scenario deals them; dealt at random with a public part, or by user without.
        victim: A client.
        members: The number of member targets.
        nonmembers: The number of non-member targets.
        seed: The seed of the run.

    Raises:
        InputError: the client does not exist, the pool is too small for the targets, or folds lack members or
            non-members to fit on or to measure.
    """
    partition = people.partition
    if not 0 <= victim < partition.clients:
        raise InputError(
            f"game.victim = {victim}: there is no such client. Clients are 0 to {partition.clients - 1}."
        )
    stream = Streams(seed).stream("game")
    victim_rows = partition.records(victim)
    others = np.setdiff1d(partition.order, victim_rows)
    pool = np.sort(np.concatenate([victim_rows, partition.public]))
    inside = stream.random(len(pool)) < 0.5
    joined, left = pool[inside], pool[~inside]
    single = _single(people, pool, others)
    clear, alone = pool[~inside & single], pool[inside & single]
    for noun, available, wanted in (("members", len(alone), members), ("nonmembers", len(clear), nonmembers)):
        if available < wanted:
            public = f" and the {len(partition.public)} public ones" if len(partition.public) else ""
            raise InputError(
                f"game.{noun} = {wanted}: by fair coins over the victim's {len(victim_rows)} records{public} "
                f"there are {available}, each without a duplicate. "
                + (
                    "Ask for fewer, or make data.public_fraction larger."
                    if len(partition.public)
                    else "Ask for fewer, or attack a client with more records."
                )
            )
    # One draw over both kinds. Choosing fixed numbers of members and non-members would make the coins
    # dependent, and the one-run bound (Steinke, Nasr and Jagielski 2023) needs independent ones.
    blind = stream.choice(pool[single], min(members, nonmembers), replace=False)
    added = []
    for kind, wanted in ((alone, members), (clear, nonmembers)):
        more = wanted - int(np.isin(blind, kind).sum())
        added.append(stream.choice(np.setdiff1d(kind, blind), more, replace=False))
    # Shuffled, since the order of the parts would reveal memberships.
    targets = stream.permutation(np.concatenate([blind, *added]))
    folds = draw_folds(len(targets), stream)
    truth = np.isin(targets, joined)
    # Never drawn anew: folds that depend on memberships are not blind to them.
    check_folds(truth, folds, len(targets))
    duplicates = int((~single).sum())
    dealt = _dealt(partition, victim, joined, left)
    return Game(
        replace(people, partition=dealt, judged=np.sort(targets)),
        victim,
        targets,
        truth,
        folds,
        np.isin(targets, blind),
        duplicates,
    )


def game_without_targets(people: Population, victim: int) -> Game:
    """The game of attacks in trials, which judge no targets: the victim owns all its records.

    Args:
        people: The data as the scenario deals them.
        victim: A client.
    """
    ids, flags = np.zeros(0, np.int64), np.zeros(0, np.bool_)
    return Game(people, victim, ids, flags, ids, flags, 0)


def _dealt(partition: Partition, victim: int, joined: Ids, left: Ids) -> Partition:
    owned = [joined if client == victim else partition.records(client) for client in range(partition.clients)]
    offsets = np.concatenate([[0], np.cumsum([len(records) for records in owned])]).astype(np.int64)
    return Partition(np.concatenate(owned), offsets, left)


def _single(people: Population, pool: Ids, others: Ids) -> Flags:
    """Which records of the pool have no exact duplicate, label included, in it or among others."""
    data = people.dataset
    copies = Counter((data.x[at].tobytes(), int(data.y[at])) for at in np.concatenate([pool, others]))
    return np.array([copies[data.x[at].tobytes(), int(data.y[at])] == 1 for at in pool], dtype=np.bool_)
