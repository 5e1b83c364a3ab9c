"""Groups of clients: their members, which everybody can compute, and the limits of what differs."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from fedprivacy.errors import InputError
from fedprivacy.sampling.cohorts import PoissonSampling
from fedprivacy.sampling.group_limits import OTHERS, least_weight
from fedprivacy.sampling.groups import Group, Groups, members

CAUTIOUS, RARE = Group("cautious", share=0.25, weight=0.5), Group("rare", clients=(3, 7), rate=0.1)
GROUPS = Groups((CAUTIOUS, RARE))
FIRST = [2, 13, 15, 28, 31, 33, 35, 36, 37, 39]  # of the first group, by the public draw
LIMITS = {"noise_multiplier": None, "weight": (1e-3, 1.0), "rate": (1e-9, 0.5)}


def test_members_follow_from_ids_and_a_public_draw_alone() -> None:
    places = members(GROUPS, 40)
    assert GROUPS.names == ("cautious", "rare", OTHERS)
    assert GROUPS.sizes(40) == {"cautious": 10, "rare": 2, OTHERS: 28}
    assert np.flatnonzero(places == 1).tolist() == [3, 7]
    # The same on each machine and with each version: nodes compute their own.
    assert np.flatnonzero(places == 0).tolist() == FIRST
    # Nothing but the members matters.
    other = Groups((replace(CAUTIOUS, weight=0.1), replace(RARE, rate=0.4)))
    assert np.array_equal(members(other, 40), places)


def test_a_value_of_each_client() -> None:
    weights = GROUPS.values("weight", 1.0, 40)
    assert weights[3] == 1.0
    assert sorted(weights.tolist()) == [0.5] * 10 + [1.0] * 30
    assert GROUPS.values("rate", 0.5, 40)[[3, 7]].tolist() == [0.1, 0.1]


def test_groups_survive_json() -> None:
    assert Groups.from_json(json.loads(json.dumps(GROUPS.to_json()))) == GROUPS


@pytest.mark.parametrize(
    "change", [{"name": 3}, {"share": "0.2"}, {"share": True}, {"clients": [1.5]}, {"clients": [True]}]
)
def test_json_of_other_types_is_no_group(change: dict) -> None:
    with pytest.raises(TypeError):
        Groups.from_json([{**GROUPS.to_json()[0], **change}])


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ((replace(CAUTIOUS, weight=1.5),), "must be from 0.001 to 1"),
        ((replace(RARE, rate=0.6),), "must be from 1e-09 to 0.5"),
        ((replace(RARE, noise_multiplier=3.0),), "has no effect in this plan"),
        ((CAUTIOUS, replace(RARE, name="cautious")), "a name of its own"),
        ((replace(CAUTIOUS, name=OTHERS),), "a name of its own"),
        ((replace(CAUTIOUS, clients=(1,)),), "a share or clients"),
        ((replace(CAUTIOUS, share=None),), "a share or clients"),
        ((replace(RARE, clients=(3, 3)),), "at most"),
        ((replace(RARE, clients=(3, 40)),), "from 0 to 39"),
        ((replace(CAUTIOUS, share=0.01),), "each group needs a client"),
        ((replace(CAUTIOUS, share=0.95), RARE), "so do the others"),
        ((replace(CAUTIOUS, share=-0.5), RARE), "above 0 and below 1"),
        ((replace(CAUTIOUS, share=1e308),), "above 0 and below 1"),
        ((replace(CAUTIOUS, share=float("nan")),), "above 0 and below 1"),
        ((replace(RARE, clients=()),), "each group needs a client"),
        ((replace(CAUTIOUS, name=""),), "is no name of a group"),
        (
            (replace(CAUTIOUS, name="[bold]x\x1b[31m"),),
            r"groups: '\[bold\]x\\x1b\[31m' is no name of a group",
        ),
        ((replace(CAUTIOUS, name="cautious\n"),), "is no name of a group"),
        ((), "groups: 0 of them"),
        (tuple(Group(f"g{client}", clients=(client,)) for client in range(21)), "groups: 21 of them"),
    ],
)
def test_groups_out_of_limits_are_refused(groups: tuple[Group, ...], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Groups(groups).check(40, LIMITS)


@pytest.mark.parametrize("population", [40, 41, 999])
def test_sizes_are_those_of_the_members(population: int) -> None:
    counts = np.bincount(members(GROUPS, population), minlength=3).tolist()
    assert list(GROUPS.sizes(population).values()) == counts


def test_no_client_is_drawn_to_check_a_plan_of_any_population(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request of 300 bytes could stop a node otherwise, before it compares the plan with its own."""
    monkeypatch.delattr("fedprivacy.sampling.groups.members")
    GROUPS.check(10**9, LIMITS)
    assert GROUPS.sizes(10**9) == {"cautious": 250_000_000, "rare": 2, OTHERS: 749_999_998}


def test_groups_within_limits_are_accepted() -> None:
    GROUPS.check(40, LIMITS)


def test_a_group_joins_at_its_own_rate_and_moves_nobody_elses_coin() -> None:
    """Each client's rate within 5 standard deviations (false alarms below 1e-4); others as without groups."""
    population, rounds, base = 40, 4000, PoissonSampling(0.5)
    rates = GROUPS.values("rate", 0.5, population)
    counts, plain = np.zeros(population), np.zeros(population)
    for round in range(rounds):
        drawn = base.draw(population, np.random.default_rng(round), rates=rates)
        alone = base.draw(population, np.random.default_rng(round))
        assert set(np.setdiff1d(alone, drawn).tolist()) <= {3, 7}
        assert not len(np.setdiff1d(drawn, alone))
        counts[drawn] += 1
        plain[alone] += 1
    assert (abs(counts / rounds - rates) < 5 * np.sqrt(rates * (1 - rates) / rounds)).all()


def test_the_least_weight_leaves_room_for_rounding() -> None:
    from fedprivacy.mechanisms.clipping import bounds_of_a_sum

    for clients in (1, 1000, 10**5, 10**6, 10**8, 2**31):
        norm, _ = bounds_of_a_sum(1.0, clients, least_weight(clients))
        assert norm is not None
        assert 0.7 < norm < 1
    with pytest.raises(ValueError, match="no smaller than a part"):
        bounds_of_a_sum(1.0, 10**6, 1e-4)
