"""Clients that count in several categories, and how far one client moves what is chosen by."""

from __future__ import annotations

import numpy as np
import pytest

from fedprivacy.scenario.statistics import Statistics
from fedprivacy.statistics.node_answers import totals
from fedprivacy.statistics.plan import people_of, plan_of
from fedprivacy.statistics.population import People
from fedprivacy.statistics.releases import release, scores_of

TEXT = """
name = "diseases"
[data]
name = "categories"
clients = {clients}
shares = [4.0, 3.0, 2.0, 1.0]
each = 3
[queries.disease]
kind = "most-common"
per_client = {votes}
central = "{central}"
[privacy]
trust = "{trust}"
adjacency = "{adjacency}"
epsilon = 1.0
"""


def scenario(
    votes: int = 2, clients: int = 100, trust: str = "central", adjacency: str = "replace-one",
    central: str = "all-counts",
) -> Statistics:  # fmt: skip
    return Statistics.from_text(
        TEXT.format(votes=votes, clients=clients, trust=trust, adjacency=adjacency, central=central)
    )


def of(*records: list[int]) -> People:
    column = np.array([one for client in records for one in client], dtype=float)
    return People({"answer": column}, np.cumsum([0, *map(len, records)]))


@pytest.mark.parametrize(
    ("votes", "counts"),
    [(1, [0.5, 0.75, 0.25, 0.5]), (2, [1, 2, 0, 1]), (3, [1, 2, 1, 1]), (9, [1, 2, 1, 1])],
)
def test_a_client_counts_once_in_each_of_its_first_categories(votes: int, counts: list[float]) -> None:
    """With one vote its records share it."""
    [ask] = plan_of(scenario(votes)).asks
    who = of([1, 0, 0, 2], [1, 1, 3, 3])
    assert ask.question.exact(who, np.arange(2)).tolist() == counts


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("votes", [1, 2, 3])
def test_the_noise_of_all_counts_is_made_for_the_most_that_one_client_can_change(
    adjacency: str, votes: int
) -> None:
    [ask] = plan_of(scenario(votes, adjacency=adjacency)).asks
    sets = [[0, 1, 2], [3, 2, 1], [0, 0, 0], [1, 3, 3], [2, 2, 3], [3, 3, 0]]
    counts = [ask.question.exact(of(one), np.arange(1)) for one in sets]
    others = [np.zeros(4)] if adjacency == "add-remove" else counts
    changes = [np.abs(a - b) for a in counts for b in others]
    assert max(one.sum() for one in changes) <= ask.mechanism.sensitivity + 1e-12
    assert max(one.max() for one in changes) <= 1  # which is what a choice is made for
    assert ask.mechanism.sensitivity == min(votes * (2 if adjacency == "replace-one" else 1), 4)


def test_local_votes_are_counted_without_bias() -> None:
    """300 repeats of 400 people. False alarms: 4 means beyond 4.5 deviations: 1e-4."""
    asked = scenario(2, clients=400, trust="local")
    plan = plan_of(asked)
    [ask] = plan.asks
    who, everybody = people_of(asked, plan), np.arange(400)
    exact = ask.question.exact(who, everybody)
    released = []
    for seed in range(300):
        stream = np.random.default_rng(seed)
        told = totals(plan, ask, who, everybody, stream)
        assert told.shape == (plan.totals_of(ask),) == (5,)  # and for none of the four
        released.append(release(ask, "local", told, 400, stream))
    estimates = np.array([one.totals for one in released])
    error = estimates.std(axis=0, ddof=1) / np.sqrt(300)
    assert (np.abs(estimates.mean(axis=0) - exact) < 4.5 * error).all()


def test_a_vote_that_a_client_does_not_use_is_for_none() -> None:
    [ask] = plan_of(scenario(3, trust="local")).asks
    who = of(*[[2, 2, 2]] * 3000)
    told = ask.question.answers(who, np.arange(3000), np.random.default_rng(1))
    assert set(told.tolist()) == {2, 4}
    # False alarms: 1e-5, beyond 4.4 deviations.
    assert (told == 2).mean() == pytest.approx(1 / 3, abs=4.4 * np.sqrt(2 / 9 / 3000))


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_one_client_moves_the_score_of_a_quantile_by_no_more_than_1(share: float) -> None:
    grid = "low=0.0\nhigh=3.0\nsteps=3"
    text = TEXT.replace("most-common", "quantile").replace("per_client = {votes}", grid)
    text = text.format(clients=9, central="auto", trust="central", adjacency="add-remove")
    asked = Statistics.from_text(text, overrides=[f"queries.disease.quantiles=[{share}]"])
    [ask] = plan_of(asked).asks
    [scores] = scores_of(ask.question)
    stream = np.random.default_rng(5)
    for _ in range(200):
        one = stream.integers(0, 6, 4).astype(float)
        more = one + np.eye(4)[stream.integers(4)]
        moved = one + np.eye(4)[stream.integers(4)]
        for other in (one, moved):
            assert np.abs(scores(other) - scores(more)).max() <= 1 + 1e-12
        # Nobody stands between the quantile and itself.
        if one.sum():
            place = int(np.searchsorted(np.cumsum(one), share * one.sum()))
            assert scores(one)[place] == 0 == scores(one).max()
