"""Private selection: scores of any size, both adjacencies, utility bounds, and what is refused.

Distribution, privacy and oracles are among the claims. False-alarm rate of each test of draws: 1e-6.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from claims import checks

from fedprivacy.accounting.epsilon import epsilon
from fedprivacy.accounting.optimal_composition import PureDpEvent
from fedprivacy.errors import InputError
from fedprivacy.mechanisms.selection import NOISES, ExponentialMechanism, NoisyMax

ALL = [ExponentialMechanism(1.0, 1.0), *(NoisyMax(1.0, 1.0, noise=noise) for noise in NOISES)]
either = pytest.mark.parametrize("mechanism", ALL, ids=repr)


@either
def test_scores_of_any_size_are_safe(mechanism: ExponentialMechanism | NoisyMax) -> None:
    stream = checks.stream("any size")
    equal = np.full(4, 1e300)
    assert mechanism.probabilities(equal) == pytest.approx(np.full(4, 0.25))
    counts = np.bincount(mechanism.draw(np.tile(equal, (20_000, 1)), stream), minlength=4)
    checks.fits(counts, np.full(4, 0.25))
    apart = np.array([-1.7e308, 1.7e308, 0.0])  # whose differences overflow
    assert mechanism.probabilities(apart)[[0, 2]].max() < 1e-280
    assert mechanism.draw(apart, stream) == 1
    assert mechanism.draw([5.0], stream) == 0
    # 1e18 and 1e18 + 1 are one float, but not one integer.
    large = np.array([10**18, 10**18 + 1, -(10**18)], dtype=np.int64)
    assert mechanism.probabilities(large) == pytest.approx(
        mechanism.probabilities([0.0, 1.0, -1e3]), abs=1e-12
    )
    tiny = type(mechanism)(1.0, 1e-90)
    assert tiny.probabilities([0.0, 1e-90]) == pytest.approx(
        type(mechanism)(1.0, 1.0).probabilities([0.0, 1.0])
    )


@either
def test_a_stack_of_scores_gives_a_choice_each(mechanism: ExponentialMechanism | NoisyMax) -> None:
    scores = checks.stream("stack").normal(0, 3, (2, 3, 5))
    chances = mechanism.probabilities(scores)
    assert chances.shape == scores.shape
    assert chances[1, 2] == pytest.approx(mechanism.probabilities(scores[1, 2]))
    chosen = mechanism.draw(scores, checks.stream("stack"))
    assert chosen.shape == (2, 3)
    assert chosen.dtype == np.int64
    assert mechanism.draw(np.zeros(1_000_000), checks.stream("huge")) < 1_000_000


def test_choices_of_a_stack_are_independent() -> None:
    for mechanism in ALL:
        chosen = mechanism.draw(np.zeros((20_000, 2, 2)), checks.stream("independent"))
        table = np.bincount(2 * chosen[:, 0] + chosen[:, 1], minlength=4)
        checks.fits(table, np.full(4, 0.25))


def test_the_gumbel_trick_is_the_exponential_mechanism_and_permute_and_flip_is_never_worse() -> None:
    scores = checks.stream("scores").normal(0, 4, (20, 6))
    exponential = ExponentialMechanism(0.8, 1.5).probabilities(scores)
    assert NoisyMax(0.8, 1.5, noise="gumbel").probabilities(scores) == pytest.approx(exponential)
    flipped = NoisyMax(0.8, 1.5, noise="permute-and-flip").probabilities(scores)
    # McKenna and Sheldon 2020, Theorem 2: the expected score is at least as large, for any scores.
    assert ((flipped * scores).sum(axis=1) >= (exponential * scores).sum(axis=1)).all()


@pytest.mark.exhaustive(every=7)
@either
@pytest.mark.parametrize("beta", [0.3, 0.01, 1e-9, 1e-200])
@pytest.mark.parametrize("candidates", [2, 5, 10_000])
def test_the_utility_bound_holds_where_it_is_hardest(
    mechanism: ExponentialMechanism | NoisyMax, candidates: int, beta: float
) -> None:
    """All others at the bound: one of them is chosen with probability beta, or less where it is a union bound."""
    bound = mechanism.utility_bound(candidates, beta)
    worst = np.full(candidates, -bound)
    worst[0] = 0.0
    if beta < 1e-12:  # too rare for a sum of chances
        assert bound > mechanism.scale * math.log(candidates / beta) - 2 * mechanism.scale
        return
    worse = mechanism.probabilities(worst)[1:].sum()
    laplace = getattr(mechanism, "noise", "") == "laplace"
    assert worse <= beta * (1 + 1e-6)
    assert worse >= (0.25 if laplace and candidates > 2 else 1 - 1e-6) * beta
    if not laplace:
        assert bound <= mechanism.scale * math.log(candidates / beta)  # the theorem's


@either
def test_the_utility_bound_of_one_candidate_or_no_certainty_is_zero(
    mechanism: ExponentialMechanism | NoisyMax,
) -> None:
    assert mechanism.utility_bound(1, 0.01) == 0.0
    assert mechanism.utility_bound(2, 0.6) == 0.0


def test_counts_are_monotone_unless_a_record_is_replaced() -> None:
    for noise in NOISES:
        scales = [NoisyMax.for_counts(0.1, a, noise).scale for a in ("add-remove", "zero-out", "replace-one")]
        assert scales == pytest.approx([10, 10, 20])
    assert ExponentialMechanism(0.1, 1.0, monotone=True).scale == pytest.approx(10)


@pytest.mark.parametrize("noise", NOISES)
def test_the_noise_of_add_remove_is_too_little_for_a_replaced_record(noise: str) -> None:
    """Lap(1/epsilon) on counts, the lectures' noise: a replaced record costs nearly 2 epsilon."""
    monotone = NoisyMax.for_counts(1.0, "add-remove", noise)  # type: ignore[arg-type]
    before, added, replaced = np.array([40, 20]), np.array([40, 21]), np.array([39, 21])

    def loss(mechanism: NoisyMax, scores: np.ndarray) -> float:
        chances = np.log(mechanism.probabilities(scores)) - np.log(mechanism.probabilities(before))
        return float(np.abs(chances).max())

    assert loss(monotone, added) <= 1.0 + 1e-9
    assert loss(monotone, replaced) > 1.8
    right = NoisyMax.for_counts(1.0, "replace-one", noise)  # type: ignore[arg-type]
    assert loss(right, replaced) <= 1.0 + 1e-9


@either
def test_events_state_the_epsilon_under_every_adjacency(mechanism: ExponentialMechanism | NoisyMax) -> None:
    assert mechanism.event() == PureDpEvent(1.0)
    for adjacency in ("replace-one", "add-remove", "zero-out"):
        assert epsilon(mechanism.event(), 0.0, adjacency).epsilon == 1.0
    assert "2" in mechanism.words


@either
def test_mistakes_are_refused(mechanism: ExponentialMechanism | NoisyMax) -> None:
    stream = checks.stream("refused")
    for scores in ([1.0, math.nan], [math.inf, 0.0], [0.0, -math.inf]):
        with pytest.raises(InputError, match="impossible whatever the data"):
            mechanism.draw(scores, stream)
    for scores in (5.0, [], np.zeros((3, 0))):
        with pytest.raises(InputError, match="at least one candidate"):
            mechanism.probabilities(scores)
    with pytest.raises(InputError, match="beta"):
        mechanism.utility_bound(3, 1.0)
    with pytest.raises(InputError, match="candidates"):
        mechanism.utility_bound(0, 0.1)
    with pytest.raises(InputError, match="epsilon"):
        type(mechanism)(math.inf, 1.0)
    with pytest.raises(InputError, match="sensitivity"):
        type(mechanism)(1.0, 0.0)


def test_an_unknown_noise_or_adjacency_is_refused() -> None:
    with pytest.raises(InputError, match=r"'gauss'.*laplace, gumbel, permute-and-flip"):
        NoisyMax(1.0, 1.0, noise="gauss")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="adjacency"):
        NoisyMax.for_counts(1.0, "swap")
