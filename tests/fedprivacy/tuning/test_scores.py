"""Scores on clients' records: one client moves them by what is charged. False-alarm rate of each draw: 1e-6."""

from __future__ import annotations

import numpy as np
import pytest
from claims import checks

from fedprivacy.accounting.epsilon import epsilon
from fedprivacy.accounting.gaussian import gaussian_epsilon
from fedprivacy.attacks.repeated_run_epsilon import threshold_bound
from fedprivacy.tuning.scores import NoisyScore, by_clients, shares

DELTA = 1e-5


def test_shares_count_each_client_once_however_many_records_it_has() -> None:
    right = np.array([True, True, False, True, False, False])
    assert shares(right, np.array([0, 1, 4, 6])).tolist() == [1.0, 2 / 3, 0.0]


@pytest.mark.parametrize(
    ("adjacency", "moves"), [("replace-one", 1.0), ("add-remove", 0.5), ("zero-out", 0.5)]
)
def test_the_noise_covers_the_most_that_a_client_moves_the_score(adjacency: str, moves: float) -> None:
    score = NoisyScore(3.0)
    parts = np.array([0.2, 0.9, 1.0])
    neighbours = {
        "replace-one": np.array([0.2, 0.9, 0.0]),
        "add-remove": parts[:2],
        "zero-out": np.array([0.2, 0.9, 0.5]),  # nothing is added for it
    }
    silent = NoisyScore(0.0)
    stream = checks.stream("score")
    distance = abs(silent.draw(parts, stream) - silent.draw(neighbours[adjacency], stream))
    assert distance == pytest.approx(moves)
    claimed = epsilon(score.event(), DELTA, adjacency).epsilon
    assert claimed == pytest.approx(gaussian_epsilon(DELTA, distance / (3.0 * 0.5)))


def test_a_score_is_audited() -> None:
    score, count = NoisyScore(2.0), 20_000
    stream = checks.stream("audit")
    one, other = (
        np.array([score.draw(np.array([part, 0.3]), stream) for _ in range(count)]) for part in (1.0, 0.0)
    )
    claimed = epsilon(score.event(), DELTA, "replace-one").epsilon
    proved = threshold_bound(one, other, DELTA, 0.999).epsilon
    assert 0.3 * claimed < proved <= claimed
    checks.moments(one, 0.5 - 0.2, 1.0)


def test_out_of_range_parts_are_clipped() -> None:
    assert NoisyScore(0.0).draw(np.array([7.0, -3.0]), checks.stream("clipped")) == 0.0


def test_the_choice_of_the_clients_is_monotone_but_for_replaced_ones() -> None:
    assert by_clients(1.0, "add-remove").scale == 1.0
    assert by_clients(1.0, "replace-one").scale == 2.0


def neighbours(scale: float, adjacency: str) -> tuple[np.ndarray, np.ndarray]:
    """Sums of shares of three candidates, of which a client names all of its records by the worst alone.

    It goes, or is replaced by one that does by the others alone.
    """
    others = scale * np.array([3.0, 0.0, 3.0])
    there = np.array([1.0, 0.0, 1.0]) if adjacency == "replace-one" else np.zeros(3)
    return others + np.array([0.0, 1.0, 0.0]), others + there


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove", "zero-out"])
def test_the_choice_of_the_clients_is_audited_on_the_worst_of_them(adjacency: str) -> None:
    """And would not pass at half of its noise. False-alarm rate 1e-3."""
    claimed = 1.0
    for epsilon_drawn in (claimed, 2 * claimed):
        mechanism = by_clients(epsilon_drawn, adjacency)
        found = [
            mechanism.draw(np.tile(sums, (60_000, 1)), checks.stream(f"choice {number}"))
            for number, sums in enumerate(neighbours(mechanism.scale, adjacency))
        ]
        present, absent = ((chosen == 1).astype(float) for chosen in found)
        if epsilon_drawn == claimed:
            checks.audit(present, absent, claimed, 0.0, teeth=0.6)
        else:
            with pytest.raises(AssertionError, match="is proved"):
                checks.audit(present, absent, claimed, 0.0, teeth=0.6)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove", "zero-out"])
def test_no_client_moves_the_chances_of_the_choice_by_more_than_epsilon(adjacency: str) -> None:
    stream, mechanism, most = checks.stream("clients"), by_clients(1.5, adjacency), 0.0
    for _ in range(300):
        sums = stream.uniform(0, 8, 4)
        gone, come = stream.choice([0.0, 0.3, 1.0], size=(2, 4))
        if adjacency != "replace-one":
            come = np.zeros(4)
        chances = [mechanism.probabilities(sums + part) for part in (gone, come)]
        most = max(most, np.abs(np.log(chances[0] / chances[1])).max())
    assert 0.8 * 1.5 < most <= 1.5 + 1e-9
