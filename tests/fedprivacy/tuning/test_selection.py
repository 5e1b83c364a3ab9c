"""What private selection costs: the closed forms of the papers, and an exact count on a small mechanism."""

from __future__ import annotations

import doctest
import math

import numpy as np
import pytest
from claims import checks
from dp_accounting import NeighboringRelation
from dp_accounting import dp_event as dp
from dp_accounting.rdp import RdpAccountant
from dp_accounting.rdp.rdp_privacy_accountant import compute_delta, compute_epsilon

from fedprivacy.accounting.epsilon import epsilon
from fedprivacy.accounting.events import releases
from fedprivacy.accounting.optimal_composition import PureDpEvent
from fedprivacy.accounting.renyi import _renyi_curve, renyi_epsilon
from fedprivacy.errors import InputError, UnsupportedEvent
from fedprivacy.mechanisms import generalised_exponential
from fedprivacy.mechanisms.generalised_exponential import GeneralisedExponential
from fedprivacy.tuning import repetitions, selection
from fedprivacy.tuning.repetitions import Repetitions
from fedprivacy.tuning.selection import PrivateSelection, best, cost, naive

DELTA = 1e-5
ORDERS = np.concatenate([1 + np.arange(1, 100) / 10, np.arange(12, 64), [128, 256, 512, 1024]])


@pytest.mark.parametrize("module", [repetitions, selection, generalised_exponential])
def test_examples_in_the_text_are_right(module) -> None:
    assert doctest.testmod(module).failed == 0


def by_theorem_2(noise: float, law: Repetitions) -> float:
    """Papernot and Steinke 2022, Theorem 2, for one Gaussian release: epsilon(a) = a / (2 noise^2)."""
    rdp = ORDERS / (2 * noise**2)
    hat = np.min((1 - 1 / ORDERS) * rdp + math.log(1 / law.gamma) / ORDERS)
    curve = rdp + (1 + law.shape) * hat + math.log(law.mean) / (ORDERS - 1)
    return float(compute_epsilon(ORDERS, curve, DELTA)[0])


def by_theorem_6(noise: float, law: Repetitions) -> float:
    """Their Theorem 6, for the Poisson law."""
    rdp = ORDERS / (2 * noise**2)
    hats = [compute_delta(ORDERS, rdp, math.log1p(1 / (a - 1)))[0] for a in ORDERS]
    curve = rdp + law.mean * np.array(hats) + math.log(law.mean) / (ORDERS - 1)
    return float(compute_epsilon(ORDERS, curve, DELTA)[0])


@pytest.mark.parametrize("shape", [0.0, 0.5, 1.0, 3.0, math.inf])
@pytest.mark.parametrize("mean", [2.0, 30.0])
def test_renyi_costs_are_those_of_the_theorems(mean: float, shape: float) -> None:
    law = Repetitions(mean, shape)
    found = epsilon(law.event(dp.GaussianDpEvent(4.0)), DELTA, "add-remove")
    wanted = by_theorem_6(4.0, law) if shape == math.inf else by_theorem_2(4.0, law)
    assert found.accountant == "RDP"
    assert found.epsilon == pytest.approx(wanted, rel=0.01)
    # Replacing a record moves the answer twice as far.
    doubled = epsilon(law.event(dp.GaussianDpEvent(8.0)), DELTA, "replace-one")
    assert doubled.epsilon == pytest.approx(found.epsilon)


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("shape", [0.0, 1.0, math.inf])
def test_a_try_in_cohorts_of_fixed_size_costs_what_a_run_of_them_does(shape: float) -> None:
    """Cohorts of half of all hardly hide anybody, and cost no more than if everybody were in them."""
    rounds = dp.SampledWithoutReplacementDpEvent(1000, 500, dp.GaussianDpEvent(20.0))
    once, law = dp.SelfComposedDpEvent(rounds, 100), Repetitions(10.0, shape)
    found = renyi_epsilon(releases(law.event(once), "replace-one"), DELTA, "replace-one")
    orders, own = _renyi_curve(releases(once, "replace-one"), "replace-one")
    if shape < math.inf:  # Theorem 2
        hat = np.min((1 - 1 / orders) * own - math.log(law.gamma) / orders)
        curve = own + (1 + shape) * hat + math.log(law.mean) / (orders - 1)
        assert found == pytest.approx(compute_epsilon(orders, curve, DELTA)[0], rel=1e-6)
    everybody = law.event(dp.SelfComposedDpEvent(dp.GaussianDpEvent(20.0), 100))
    assert found <= renyi_epsilon(releases(everybody, "replace-one"), DELTA, "replace-one") * (1 + 1e-9)
    theirs = RdpAccountant(neighboring_relation=NeighboringRelation.REPLACE_ONE)
    half = dp.SampledWithoutReplacementDpEvent(1000, 500, dp.GaussianDpEvent(10.0))  # it does not double
    theirs.compose(law.event(dp.SelfComposedDpEvent(half, 100)))
    assert found < 0.99 * theirs.get_epsilon(DELTA)


def test_each_release_of_a_try_has_its_allowance_for_rounding() -> None:
    """Of so little each that nothing but rounding is left of one, a million are something."""
    tiny, count = dp.PoissonSampledDpEvent(1e-9, dp.GaussianDpEvent(5.0)), 10**6
    event = Repetitions.geometric(2).event(dp.SelfComposedDpEvent(tiny, count))
    orders, curve = _renyi_curve(releases(event, "add-remove"), "add-remove")
    (found,) = curve[orders == 1024] - (2 * math.log(2) / 1024 + math.log(2) / 1023)  # what the law costs
    # log(1 + C(a, 2) q^2 (e^(1/z^2) - 1) + ...)/(a - 1) of each, in a try and twice in what is added to it.
    assert 3 * count * 512 * 1e-18 * math.expm1(1 / 25) < found < 1e-6


@pytest.mark.parametrize("delta", [0.0, DELTA])
@pytest.mark.parametrize(("shape", "times"), [(0.0, 2.0), (1.0, 3.0), (2.5, 4.5)])
def test_pure_candidates_cost_three_epsilon_by_random_stopping(
    shape: float, times: float, delta: float
) -> None:
    event = Repetitions(50.0, shape).event(dp.ComposedDpEvent([PureDpEvent(0.1), PureDpEvent(0.2)]))
    found = epsilon(event, delta, "replace-one")
    assert (found.epsilon, found.accountant) == (pytest.approx(times * 0.3), "basic composition")


def test_what_is_not_pure_has_no_epsilon_at_delta_zero() -> None:
    with pytest.raises(UnsupportedEvent, match="delta"):
        epsilon(Repetitions.geometric(5).event(dp.GaussianDpEvent(3.0)), 0.0, "add-remove")


def told(law: Repetitions, below: np.ndarray) -> np.ndarray:
    """The chance of each outcome to be the best: f(Q(<= y)) - f(Q(< y)), and of none in the first place."""
    chances = law.probabilities()
    powers = np.concatenate([[0.0], below])[:, None] ** np.arange(len(chances))
    return np.concatenate([[chances[0]], np.diff(powers @ chances)])


@pytest.mark.parametrize("law", [Repetitions(9.0, s) for s in (0.0, 1.0, 2.0, math.inf)], ids=repr)
@pytest.mark.parametrize("pure", [0.1, 1.0])
def test_the_exact_loss_on_every_split_of_three_outcomes_is_within_the_claim(
    law: Repetitions, pure: float
) -> None:
    """Each repetition is `pure`-DP: all pairs of distributions whose likelihoods differ by e^+-pure."""
    limit = epsilon(law.event(PureDpEvent(pure)), 0.0, "replace-one").epsilon
    worst, grow = 0.0, math.exp(pure)
    for p in (1e-4, 1e-3, 0.01, 0.1, 0.3, 0.5, 0.7):
        for r in (1e-4, 1e-3, 0.01, 0.1, 0.3, 0.5):
            # Outcomes rise: below y, y, above y; the neighbour has more of y and less of what is above.
            y = min(p, (1 - r) / 2)
            one = np.array([1 - r - y, y, r])
            for signs in ((1, 1, -1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1), (-1, 1, 1), (1, -1, 1)):
                other = one * np.exp(pure * np.array(signs))
                # What is missing of 1 goes to the outcome where it may: else this pair is none.
                for at in range(3):
                    pair = other.copy()
                    pair[at] = 1 - pair.sum() + pair[at]
                    if one[at] / grow <= pair[at] <= one[at] * grow:
                        a, b = told(law, np.cumsum(one)), told(law, np.cumsum(pair))
                        seen = (a > 1e-12) & (b > 1e-12)
                        worst = max(worst, float(np.abs(np.log(a[seen] / b[seen])).max()))
    assert worst <= limit + 1e-6
    assert worst > 0.4 * limit  # a claim of one repetition's cost would be refuted
    assert worst > pure


def test_the_best_of_laplace_scores_is_audited() -> None:
    """Random stopping over one candidate whose released score has Laplace noise: 3 epsilon, and more than one."""
    law, count, once = Repetitions.geometric(20), 40_000, 1.0
    stream = checks.stream("audited")
    numbers = law.draw(stream, count)

    def highest(value: float) -> np.ndarray:
        return np.array([stream.laplace(value, 1 / once, number).max() for number in numbers])

    present, absent = highest(1.0), highest(0.0)
    limit = epsilon(law.event(PureDpEvent(once)), 0.0, "replace-one").epsilon
    assert limit == pytest.approx(3.0)
    checks.audit(-absent, -present, limit, 0.0, teeth=0.4)  # a low best is told of the lower one


def test_each_repetition_runs_a_candidate_at_random() -> None:
    selected = PrivateSelection(4, Repetitions.geometric(5))
    drawn = [selected.draw(checks.stream("candidates", member)) for member in range(4000)]
    checks.fits(np.bincount(np.concatenate(drawn), minlength=4), np.full(4, 0.25))
    lengths = np.bincount([len(one) for one in drawn], minlength=len(selected.repetitions.probabilities()))
    checks.fits(lengths, selected.repetitions.probabilities())
    same = PrivateSelection(4, Repetitions.geometric(5)).draw(checks.stream("candidates", 3))
    assert same.tolist() == drawn[3].tolist()


def test_the_best_is_the_first_of_the_largest_scores_and_may_be_none() -> None:
    assert best([0.1, 0.7, 0.7]) == 1
    assert best([-math.inf]) == 0
    assert best([]) is None
    with pytest.raises(InputError, match="not a number"):
        best([0.1, math.nan])


def test_the_choice_costs_less_than_all_candidates_where_there_are_many() -> None:
    once = dp.GaussianDpEvent(8.0)
    few = cost(PrivateSelection(2, Repetitions.geometric(2)), [once] * 2, DELTA, "add-remove")
    many = cost(PrivateSelection(100, Repetitions.geometric(100)), [once] * 100, DELTA, "add-remove")
    assert not few.worth_it
    assert many.worth_it
    for one, size in ((few, 2), (many, 100)):
        assert one.once.epsilon < one.chosen.epsilon
        composed = epsilon(dp.GaussianDpEvent(8.0 / math.sqrt(size)), DELTA, "add-remove")
        assert one.naive.epsilon == pytest.approx(composed.epsilon, rel=1e-6)


def test_candidates_that_release_other_things_are_refused() -> None:
    selected = PrivateSelection(2, Repetitions.geometric(2))
    with pytest.raises(InputError, match="candidate 1 releases something else"):
        selected.event([dp.GaussianDpEvent(2.0), dp.GaussianDpEvent(3.0)], "add-remove")
    with pytest.raises(InputError, match="one for each"):
        selected.event([dp.GaussianDpEvent(2.0)], "add-remove")
    with pytest.raises(InputError, match="at least 1"):
        PrivateSelection(0, Repetitions.geometric(2))
    # Written otherwise, the same.
    pair = dp.SelfComposedDpEvent(dp.GaussianDpEvent(2.0), 2)
    one = selected.event([pair, dp.ComposedDpEvent([dp.GaussianDpEvent(2.0)] * 2)], "add-remove")
    assert one == Repetitions.geometric(2).event(pair)
    assert renyi_epsilon(releases(naive([pair]), "add-remove"), DELTA, "add-remove") > 0


def test_the_generalised_mechanism_keeps_its_promise_of_utility() -> None:
    mechanism = GeneralisedExponential(1.0, (1.0, 50.0, 2.0), beta=0.1)
    stream = checks.stream("utility")
    for _ in range(50):
        scores = stream.normal(0, 200, 3)
        bad = scores < mechanism.utility_bound(scores) - 1e-9
        assert mechanism.probabilities(scores)[bad].sum() <= 0.1 + 1e-12


def test_mistakes_of_the_generalised_mechanism_are_refused() -> None:
    with pytest.raises(InputError, match="at least one"):
        GeneralisedExponential(1.0, ())
    with pytest.raises(InputError, match="sensitivity"):
        GeneralisedExponential(1.0, (1.0, 0.0))
    with pytest.raises(InputError, match="beta"):
        GeneralisedExponential(1.0, (1.0,), beta=1.0)
    mechanism = GeneralisedExponential(1.0, (1.0, 2.0))
    with pytest.raises(InputError, match="one for each"):
        mechanism.probabilities([1.0])
    with pytest.raises(InputError, match="finite"):
        mechanism.probabilities([1.0, math.inf])
    assert mechanism.probabilities([-1e308, 1e308]).tolist() == [0.0, 1.0]
    assert mechanism.draw(np.tile([0.0, 500.0], (7, 1)), checks.stream("far")).tolist() == [1] * 7


def test_large_whole_numbers_differ_by_no_more_than_they_do() -> None:
    """Each is beyond what a float holds exactly."""
    mechanism = GeneralisedExponential(1.0, (1.0, 1.0))
    small = mechanism.probabilities(np.array([0, 4]))
    large = mechanism.probabilities(np.array([2**60 + 128, 2**60 + 132]))
    assert np.allclose(small, large, rtol=1e-12)
    one, neighbour = (mechanism.probabilities(np.array([2**60, 2**60 + gap])) for gap in (128, 129))
    assert np.abs(np.log(one / neighbour)).max() <= 1.0


def test_a_shape_that_no_law_can_be_drawn_with_is_refused() -> None:
    with pytest.raises(InputError, match=r"shape = 1e-16: must be 0 \(logarithmic\), from 0.001"):
        Repetitions(100.0, 1e-16)
