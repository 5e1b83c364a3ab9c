"""The bound from scores: coverage by simulation with fixed seeds, and a figure computed in another way."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from fedprivacy.accounting.gaussian import gaussian_delta, gaussian_epsilon
from fedprivacy.attacks.gaussian_score_bound import Moments, ScoreMoments, gaussian_lower_bound

FALSE_ALARM = 1e-6  # of each test of a rate, with fixed seeds
DELTA, CANARIES = 1e-5, 200
Noise = Callable[[np.random.Generator], NDArray[np.float64]]


def bound(scores: NDArray[np.float64], coins: NDArray[np.bool_], mu: float = 1.0) -> dict[str, float]:
    found = gaussian_lower_bound(ScoreMoments.of(scores, coins), mu, DELTA)
    assert found is not None
    return found


def independent(stream: np.random.Generator) -> NDArray[np.float64]:
    return stream.standard_normal(CANARIES)


def shared(stream: np.random.Generator) -> NDArray[np.float64]:
    """A part of the noise is the same for all: whoever knows the others' coins can take it out."""
    return stream.standard_normal(CANARIES) + 3 * stream.standard_normal()


def chained(stream: np.random.Generator) -> NDArray[np.float64]:
    """Each score's noise has 0.9 of its neighbour's in it; what remains, given all others, has variance 1."""
    rho, steps = 0.9, stream.standard_normal(CANARIES)
    noise = np.empty(CANARIES)
    noise[0] = steps[0] / np.sqrt(1 - rho**2)
    for at in range(1, CANARIES):
        noise[at] = rho * noise[at - 1] + steps[at]
    return noise * np.sqrt(1 + rho**2)


def uneven(stream: np.random.Generator) -> NDArray[np.float64]:
    """Half of the canaries are hidden by five times the noise."""
    return stream.standard_normal(CANARIES) * np.where(np.arange(CANARIES) < CANARIES // 2, 1.0, 5.0)


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize(
    ("noise", "mu"),
    [(independent, 0.05), (independent, 0.612), (shared, 0.612), (chained, 0.05), (uneven, 0.612)],
)
def test_the_bound_is_above_the_truth_in_at_most_five_per_cent(noise: Noise, mu: float) -> None:
    """False-alarm rate 1e-6. mu = .612 is epsilon = 2.5; each noise leaves mu to who knows all other coins."""
    stream, runs, wrong = np.random.default_rng(1), 300, 0
    for _ in range(runs):
        coins = stream.random(CANARIES) < 0.5
        wrong += bound(np.where(coins, 0.5, -0.5) * mu + noise(stream), coins)["distance"] > mu
    assert wrong <= stats.binom.isf(FALSE_ALARM, runs, 0.05)
    if noise is independent:  # there the level is exact
        assert wrong >= stats.binom.ppf(FALSE_ALARM, runs, 0.05)


@pytest.mark.exhaustive
@pytest.mark.parametrize("directions", [100, 10])
def test_the_bound_holds_where_a_model_has_too_few_directions(directions: int) -> None:
    """False-alarm rate 1e-6: what canaries do to each other's scores hangs on their coins, too."""
    stream, runs, wrong, mu = np.random.default_rng(2), 200, 0, 0.612
    for _ in range(runs):
        vectors = stream.standard_normal((CANARIES, directions))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        coins = stream.random(CANARIES) < 0.5
        total = vectors.T @ (np.where(coins, 0.5, -0.5) * mu) + stream.standard_normal(directions)
        wrong += bound(vectors @ total, coins)["distance"] > mu
    assert wrong <= stats.binom.isf(FALSE_ALARM, runs, 0.05)


def test_a_thousand_canaries_prove_seven_tenths_of_a_claim() -> None:
    """Seeds 1 to 20, fixed before; score and method were chosen on seeds 100 to 119.

    Each bound is above the claim with probability .05: more than 3 of 20 with probability .016.
    """
    mu, proved = 0.6119941696, []
    claim = gaussian_epsilon(DELTA, mu)
    assert claim == pytest.approx(2.5, rel=1e-6)
    for seed in range(1, 21):
        stream = np.random.default_rng(seed)
        coins = stream.random(1000) < 0.5
        found = bound(np.where(coins, 0.5, -0.5) * mu + stream.standard_normal(1000), coins, mu)
        proved.append(found["epsilon"])
        assert 0.75 * claim < found["expected"] < 0.85 * claim
    assert np.median(proved) >= 0.7 * claim
    assert (np.array(proved) > claim).sum() <= 3


def test_the_bound_is_where_a_larger_distance_has_probability_one_twentieth() -> None:
    """Against draws of the t statistic's own definition, not of its noncentral distribution.

    500,000 draws leave .0003 of the probability; false-alarm rate 1e-6 at five such errors.
    """
    moments = ScoreMoments(Moments(520, 0.31, 1.0), Moments(480, -0.29, 1.1))
    found = gaussian_lower_bound(moments, 0.612, DELTA)
    assert found is not None
    stream, draws = np.random.default_rng(3), 500_000
    deviations = np.sqrt(stream.chisquare(998, draws) / 998)
    apart = (found["distance"] + stream.standard_normal(draws) * np.sqrt(1 / 520 + 1 / 480)) / deviations
    observed = 0.6 / np.sqrt((519 * 1.0 + 479 * 1.1) / 998)
    assert (apart >= observed).mean() == pytest.approx(0.05, abs=0.0016)
    assert gaussian_delta(found["epsilon"], found["distance"]) == pytest.approx(DELTA, rel=1e-6)


@pytest.mark.exhaustive
def test_the_p_value_is_uniform_under_the_claim_and_small_with_half_the_noise() -> None:
    """Kolmogorov and Smirnov at 1e-6, seed fixed."""
    stream, found, half = np.random.default_rng(4), [], []
    for _ in range(300):
        coins = stream.random(CANARIES) < 0.5
        noise, answers = stream.standard_normal(CANARIES), np.where(coins, 0.5, -0.5) * 0.612
        found.append(bound(answers + noise, coins, 0.612)["p_value"])
        half.append(bound(answers + noise / 2, coins, 0.612)["p_value"])
    assert stats.kstest(found, "uniform").pvalue > FALSE_ALARM
    assert np.median(half) < 1e-4


def test_scores_on_the_wrong_side_prove_nothing() -> None:
    coins = np.arange(100) < 50
    found = bound(np.random.default_rng(5).standard_normal(100) - 2 * coins, coins)
    assert found["epsilon"] == found["distance"] == 0.0
    assert found["p_value"] == pytest.approx(1.0)


def test_too_few_canaries_or_scores_that_do_not_scatter_have_no_bound() -> None:
    for scores, coins in ((np.arange(9.0), np.arange(9) < 1), (np.arange(8.0) < 4, np.arange(8) < 4)):
        assert gaussian_lower_bound(ScoreMoments.of(1.0 * scores, coins), 1.0, DELTA) is None


def test_stored_moments_are_the_same_again() -> None:
    moments = ScoreMoments.of(np.random.default_rng(6).standard_normal(30), np.arange(30) < 13)
    assert ScoreMoments.of_json(moments.to_json()) == moments
