"""The lectures on private selection, statement by statement."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedprivacy.mechanisms.selection import ExponentialMechanism, NoisyMax
from fedprivacy.randomness.streams import Streams

# --- hair colour ----------------------------------------------------------------------------------


@pytest.mark.parametrize("others", [1, 3, 4])
def test_the_commonest_hair_colour_500_against_399_is_found_with_probability_0_973(others: int) -> None:
    """epsilon = 0.1: each other colour has at most e^(-0.1 * 100/2) of its weight, so 1 - 4 e^-5 = 0.973."""
    counts = [500] + [399] * others
    mechanism = ExponentialMechanism(epsilon=0.1, sensitivity=1)
    right = float(mechanism.probabilities(counts)[0])
    assert right >= 1 - 4 * math.exp(-5) >= 0.973
    assert right == pytest.approx(1 / (1 + others * math.exp(-0.05 * 101)))
    # So says the utility theorem too: the chosen count is above 400, and only one is.
    assert 500 - mechanism.utility_bound(5, beta=0.027) > 400
    for noise in ("laplace", "gumbel", "permute-and-flip"):
        noisy = NoisyMax.for_counts(0.1, "replace-one", noise)  # type: ignore[arg-type]
        assert noisy.probabilities(counts)[0] >= (0.93 if noise == "laplace" else 0.973)


def test_weights_without_the_two_cost_up_to_twice_epsilon() -> None:
    """One lecture's exp(epsilon u/Du), for scores of which one rises and another falls."""
    lectures = ExponentialMechanism(epsilon=1.0, sensitivity=1, monotone=True)
    one, other = lectures.probabilities([500, 480]), lectures.probabilities([499, 481])
    assert 1.9 < math.log(other[1] / one[1]) <= 2.0
    right = ExponentialMechanism(epsilon=1.0, sensitivity=1)
    one, other = right.probabilities([500, 480]), right.probabilities([499, 481])
    assert 0.9 < math.log(other[1] / one[1]) <= 1.0


# --- digital-goods auction ------------------------------------------------------------------------

BIDS = np.array([1.0, 1.0, 1.0, 3.01])
GRID = np.arange(1, 501) / 100  # public: every cent up to 5


def revenue(bids: np.ndarray, prices: np.ndarray) -> np.ndarray:
    """Price times the number of bids at or above it."""
    return prices * (bids[:, None] >= prices - 1e-9).sum(axis=0)


def test_the_revenue_of_an_auction_drops_at_a_cent_more() -> None:
    at = dict(zip(GRID.round(2), revenue(BIDS, GRID), strict=True))
    assert [at[price] for price in (1.0, 1.01, 3.01, 3.02)] == pytest.approx([4.0, 1.01, 3.01, 0.0])


def test_one_bid_changes_the_revenue_by_the_largest_price_at_most_and_a_new_bid_lowers_none() -> None:
    before = revenue(BIDS, GRID)
    changes = [revenue(np.append(BIDS[1:], bid), GRID) - before for bid in np.arange(0, 6, 0.25)]
    assert np.abs(changes).max() == GRID.max()
    added = [revenue(np.append(BIDS, bid), GRID) - before for bid in np.arange(0, 6, 0.25)]
    assert np.min(added) == 0.0
    assert np.max(added) == GRID.max()


def test_an_auction_on_a_public_price_grid_earns_the_optimum_but_for_the_utility_bound() -> None:
    mechanism = ExponentialMechanism(epsilon=1.0, sensitivity=float(GRID.max()))
    earned = revenue(np.repeat(BIDS, 1000), GRID)
    chances = mechanism.probabilities(earned)
    bound = mechanism.utility_bound(len(GRID), beta=0.01)
    assert bound == pytest.approx(108, abs=1)
    assert chances[earned < earned.max() - bound].sum() <= 0.01
    assert float(chances @ earned) > 0.99 * earned.max()
    chosen = GRID[mechanism.draw(np.tile(earned, (2000, 1)), Streams(1).stream("auction"))]
    assert (chosen <= 1.0).mean() > 0.99  # the price of the many, not the 3.01 of one in four


def test_candidate_prices_taken_from_the_bids_are_not_private() -> None:
    """One lecture's candidates are the bids themselves. Without the bid of 3.01 that price is impossible."""
    mechanism = ExponentialMechanism(epsilon=1.0, sensitivity=3.01)

    def chance_of_the_highest(bids: np.ndarray) -> float:
        candidates = np.unique(bids)
        chances = mechanism.probabilities(revenue(bids, candidates))
        return float(chances[candidates == 3.01].sum())

    with_it, without_it = chance_of_the_highest(BIDS), chance_of_the_highest(np.ones(4))
    assert with_it > 0.4
    assert without_it == 0.0  # a ratio of infinity: whoever pays 3.01 knows that somebody bid it
    # On the public grid the two chances differ by e^epsilon at most, for every price.
    public = ExponentialMechanism(epsilon=1.0, sensitivity=float(GRID.max()))
    one, other = (np.log(public.probabilities(revenue(bids, GRID))) for bids in (BIDS, np.ones(4)))
    assert np.abs(one - other).max() <= 1.0


# --- the most common disease ----------------------------------------------------------------------


def test_the_most_common_disease_is_found_by_noisy_max_where_releasing_all_counts_hides_it() -> None:
    """A person may have any of k = 100 diseases, so that all counts together have L1 sensitivity k.

    Noisy max needs Lap(1/epsilon) on each count (Lap(2/epsilon) if people are replaced), all counts Lap(k/epsilon).
    """
    counts, epsilon = np.array([10_500] + [10_000] * 99), 0.1
    scales = {a: NoisyMax.for_counts(epsilon, a).scale for a in ("add-remove", "replace-one")}
    assert scales == pytest.approx({"add-remove": 10, "replace-one": 20})
    for adjacency in scales:
        assert NoisyMax.for_counts(epsilon, adjacency).probabilities(counts)[0] > 0.999
    # The largest of all counts, released with Lap(k/epsilon) each, is what noisy max is at epsilon/k.
    all_counts = NoisyMax.for_counts(epsilon / 100, "add-remove")
    assert all_counts.scale == pytest.approx(1000)
    assert all_counts.probabilities(counts)[0] < 0.02
