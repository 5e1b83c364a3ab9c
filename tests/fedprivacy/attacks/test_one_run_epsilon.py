"""The one-run audit: published figures, brute force, and randomised response of known epsilon."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from fedprivacy.attacks.one_run_epsilon import Guesses, check_coins, guess, guesses_of, lower_bound, p_value
from fedprivacy.attacks.targets import KNOWN_FOLDS, Targets, draw_folds
from fedprivacy.errors import InputError

FALSE_ALARM = 1e-6  # of each test of a rate, with fixed seeds


def responses(stream: np.random.Generator, count: int, epsilon: float, given_away: float = 0.0) -> Targets:
    """Fair coins told by randomised response; (epsilon, delta)-DP if some are given away with probability delta.

    The scores are the answers, made distinct by a number that knows nothing; what is given away ranks highest.
    """
    coins = stream.random(count) < 0.5
    told = np.where(stream.random(count) < 1 / (1 + math.exp(-epsilon)), coins, ~coins)
    sure = stream.random(count) < given_away
    scores = np.where(told, 1.0, -1.0) + stream.random(count) / 2
    scores = np.where(sure, np.where(coins, 3.0, -3.0) + stream.random(count), scores)
    return Targets(scores, coins, draw_folds(count, stream))


@pytest.mark.parametrize(
    ("guesses", "delta", "published"),
    [(Guesses(1000, 100, 75), 1e-4, 0.673), (Guesses(100_000, 1510, 1439), 1e-5, 2.675)],
)
def test_the_bounds_that_the_paper_prints(guesses: Guesses, delta: float, published: float) -> None:
    """Steinke, Nasr and Jagielski 2023, Appendix D and Section 7; the second one is cut, not rounded."""
    assert lower_bound(guesses, delta).epsilon == pytest.approx(published, abs=1e-3)


@pytest.mark.parametrize(("m", "r", "v"), [(40, 20, 14), (12, 12, 12), (30, 7, 0), (9, 4, 1)])
@pytest.mark.parametrize(("odds", "delta"), [(1, 0.0), (3, 1e-3), (10, 0.01)])
def test_the_p_value_is_the_sum_of_the_theorem(m: int, r: int, v: int, odds: int, delta: float) -> None:
    q = Fraction(odds, odds + 1)
    mass = [math.comb(r, k) * q**k * (1 - q) ** (r - k) for k in range(r + 1)]
    alpha = max((sum(mass[v - i : v]) / i for i in range(1, v + 1)), default=Fraction(0))
    exact = min(1.0, float(sum(mass[v:])) + 2 * m * delta * float(alpha))
    assert p_value(Guesses(m, r, v), math.log(odds), delta) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("delta", [0.0, 1e-5, 1e-3])
def test_every_smaller_epsilon_is_refuted_too(delta: float) -> None:
    guesses = Guesses(500, 200, 170)
    proved = lower_bound(guesses, delta).epsilon
    assert max(p_value(guesses, share * proved, delta) for share in np.linspace(0, 1, 101)) <= 0.05
    assert p_value(guesses, proved * (1 + 1e-6), delta) > 0.05


def test_the_ceiling_is_what_perfect_guesses_prove() -> None:
    few = lower_bound(Guesses(20, 10, 6), 0.0)
    # q^10 = .05
    assert few.ceiling == pytest.approx(math.log(0.05**0.1 / (1 - 0.05**0.1)))
    assert few.epsilon == 0.0
    perfect = lower_bound(Guesses(600, 300, 300), 1e-5)
    assert perfect.epsilon == perfect.ceiling > 4
    assert lower_bound(Guesses(10, 0, 0), 0.0).ceiling == 0.0


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_the_bound_exceeds_the_truth_in_at_most_five_per_cent(epsilon: float) -> None:
    """False-alarm rate 1e-6."""
    stream, runs = np.random.default_rng(1), 300
    wrong = 0
    for _ in range(runs):
        wrong += lower_bound(guesses_of(responses(stream, 300, epsilon), 0.0), 0.0).epsilon > epsilon
    assert wrong <= binom.isf(FALSE_ALARM, runs, 0.05)


@pytest.mark.parametrize("delta", [1e-3, 1e-2])
def test_the_bound_holds_where_some_records_are_given_away(delta: float) -> None:
    """The worst that delta allows: a record's coin in clear. False-alarm rate 1e-6."""
    stream, runs = np.random.default_rng(2), 300
    wrong = {True: 0, False: 0}
    for _ in range(runs):
        targets = responses(stream, 2000, 1.0, delta)
        found = guess(targets.scores, targets.members, 15)
        for counted in wrong:
            wrong[counted] += lower_bound(found, delta if counted else 0.0).epsilon > 1.0
    assert wrong[True] <= binom.isf(FALSE_ALARM, runs, 0.05)
    if delta == 1e-2:  # and delta is needed for that
        assert wrong[False] > binom.isf(FALSE_ALARM, runs, 0.05)


@pytest.mark.parametrize("epsilon", [1.0, 2.0, 4.0])
def test_many_records_prove_nearly_the_truth(epsilon: float) -> None:
    targets = responses(np.random.default_rng(3), 20_000, epsilon)
    proved = lower_bound(guesses_of(targets, 0.0), 0.0)
    assert 0.88 * epsilon < proved.epsilon <= epsilon
    assert proved.ceiling > proved.epsilon


def test_runs_add_up() -> None:
    stream = np.random.default_rng(4)
    each = [guesses_of(responses(stream, 400, 2.0), 0.0) for _ in range(8)]
    together = sum(each[1:], each[0])
    assert together.trials == 8 * 240
    assert lower_bound(together, 0.0).epsilon > np.median([lower_bound(one, 0.0).epsilon for one in each])


def test_equal_scores_are_not_guessed_in_the_order_of_the_list() -> None:
    """Members first, all scores equal: whoever took the first ones would be right every time."""
    coins = np.repeat([True, False], 100)
    assert guess(np.zeros(200), coins, 20) == Guesses(200, 40, 0)
    assert lower_bound(guess(np.zeros(200), coins, 20), 0.0).epsilon == 0.0
    tied = np.concatenate([np.full(30, 2.0), np.zeros(140), np.full(30, -2.0)])
    assert guess(tied, coins, 20).right == 0
    assert guess(tied, coins, 30).right == 60


def test_guesses_have_a_single_direction() -> None:
    """The first folds decide how many there are, the last are guessed: none of its coins serves another."""
    targets = responses(np.random.default_rng(5), 400, 3.0)
    known = targets.folds < KNOWN_FOLDS
    poisoned = replace(targets, members=np.where(known, targets.members, ~targets.members))
    one, other = guesses_of(targets, 0.0), guesses_of(poisoned, 0.0)
    assert (one.made, one.trials) == (other.made, other.trials) == (one.made, 240)
    assert one.right == other.made - other.right > 0.8 * one.made
    moved = replace(targets, scores=np.where(known, 9.0, targets.scores))
    assert guesses_of(moved, 0.0).trials == 240


def test_a_score_that_was_learned_is_the_one_of_the_single_direction() -> None:
    targets = responses(np.random.default_rng(6), 400, 3.0)
    rows = np.zeros((6, 400))
    rows[-1] = targets.scores
    assert guesses_of(replace(targets, scores=rows), 0.0) == guesses_of(targets, 0.0)


def test_members_picked_on_purpose_are_refused() -> None:
    with pytest.raises(InputError, match="100 of 600 targets are members: no fair coin"):
        check_coins(np.arange(600) < 100)
    check_coins(np.random.default_rng(6).random(600) < 0.5)


@pytest.mark.parametrize(
    ("guesses", "delta", "confidence", "message"),
    [
        (Guesses(10, 11, 1), 0.0, 0.95, "right <= made <= trials"),
        (Guesses(10, 5, 6), 0.0, 0.95, "right <= made <= trials"),
        (Guesses(10, 5, 5), 1.0, 0.95, "delta"),
        (Guesses(10, 5, 5), 0.0, 1.0, "confidence"),
    ],
)
def test_wrong_numbers_are_refused(guesses, delta, confidence, message) -> None:
    with pytest.raises(InputError, match=message):
        lower_bound(guesses, delta, confidence)
    with pytest.raises(InputError, match="between 1 and 5"):
        guess(np.arange(10.0), np.arange(10) < 5, 6)
