"""The mechanisms for categories, besides what `test_claims.py` holds every mechanism to."""

from __future__ import annotations

import math
from dataclasses import replace

import dp_accounting
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedprivacy.accounting.epsilon import epsilon
from fedprivacy.accounting.events import from_json, to_json
from fedprivacy.errors import InputError
from fedprivacy.mechanisms.categories import (
    ORACLES,
    FrequencyOracle,
    HadamardResponse,
    KaryRandomizedResponse,
    OptimizedUnary,
    SymmetricUnary,
    best_oracle,
)
from fedprivacy.mechanisms.unary import _CELLS
from fedprivacy.randomness.streams import Streams

EACH = pytest.mark.parametrize("kind", ORACLES, ids=lambda kind: kind.name)


def stream() -> np.random.Generator:
    return Streams(3).stream("categories")


@settings(max_examples=200, deadline=None)
@given(categories=st.integers(2, 3000), budget=st.floats(0.01, 10))
def test_auto_is_k_ary_up_to_three_e_and_two_and_then_oue(categories: int, budget: float) -> None:
    limit = 3 * math.exp(budget) + 2
    if abs(categories - limit) > 1e-6 * limit:
        expected = KaryRandomizedResponse if categories < limit else OptimizedUnary
        assert type(best_oracle(categories, budget)) is expected


@EACH
@pytest.mark.parametrize("categories", [2, 3, 8, 9, 100])
def test_supports_of_parts_add_up(kind: type[FrequencyOracle], categories: int) -> None:
    oracle = kind(categories, 1.0)
    reports = oracle.draw(stream().integers(0, categories, 1000), stream())
    whole = oracle.support(reports)
    assert len(reports) == 1000
    assert whole.shape == (categories,)
    assert whole.dtype == np.int64
    assert (oracle.support(reports[:300]) + oracle.support(reports[300:]) == whole).all()
    assert (oracle.support(reports[:0]) == 0).all()
    assert len(oracle.draw(np.zeros(0, dtype=int), stream())) == 0


@EACH
def test_estimates_are_near_the_truth_in_many_categories(kind: type[FrequencyOracle]) -> None:
    """1000 categories within 6 standard deviations each: a false alarm in one of 10^5 seeds."""
    oracle, clients = kind(1000, 4.0), 50_000
    values = np.minimum(stream().geometric(0.05, clients) - 1, 999)
    true = np.bincount(values, minlength=1000)
    support = oracle.support(oracle.draw(values, stream()))
    deviations = np.sqrt([oracle.variance(clients, count / clients) for count in true])
    assert np.abs((oracle.estimate(support, clients) - true) / deviations).max() < 6
    ratio = oracle.estimated_variance(support, clients) / deviations**2
    assert 0.5 < ratio.min() <= ratio.max() < 2


def test_a_unary_report_larger_than_a_chunk_is_told_and_counted() -> None:
    oracle = OptimizedUnary(_CELLS + 5, 20.0)
    support = oracle.support(oracle.draw([_CELLS + 4] * 40, stream()))
    assert 5 <= support[-1] <= 35
    assert support[:-1].sum() < 20


@pytest.mark.parametrize("kind", [SymmetricUnary, OptimizedUnary])
def test_unary_reports_are_the_packed_bits(kind: type[FrequencyOracle]) -> None:
    oracle = kind(11, 12.0)
    reports = oracle.draw(np.full(500, 9), stream())
    assert reports.shape == (500, 2)
    assert reports.dtype == np.uint8
    bits = np.unpackbits(reports, axis=1)
    assert not bits[:, 11:].any()
    assert (bits[:, :11].sum(axis=0) == oracle.support(reports)).all()
    assert bits.sum(axis=0).argmax() == 9


def test_k_ary_reports_are_four_bytes_and_may_be_any_category() -> None:
    reports = KaryRandomizedResponse(10_000, 0.1).draw(np.zeros(100_000, dtype=int), stream())
    assert reports.dtype == np.int32
    assert reports.min() == 0
    assert reports.max() > 9900


@EACH
@pytest.mark.parametrize("values", [[0, 5], [-1], [0.0, 1.0], [[0, 1]]])
def test_values_that_are_no_categories_are_refused(kind: type[FrequencyOracle], values: list) -> None:
    with pytest.raises(InputError, match="from 0 to 4, one for each client"):
        kind(5, 1.0).draw(values, stream())


@EACH
def test_reports_of_another_mechanism_are_refused(kind: type[FrequencyOracle]) -> None:
    oracle = kind(5, 1.0)
    reports = oracle.draw([0, 1, 2], stream())
    for wrong in (reports.astype(float), reports[None], np.full_like(reports, -1, dtype=np.int64)):
        with pytest.raises(InputError, match="reports must be"):
            oracle.support(wrong)


@EACH
@pytest.mark.parametrize(("categories", "budget"), [(1, 1.0), (2**31, 1.0), (4, 0.0), (4, 26.0)])
def test_parameters_out_of_range_are_refused(
    kind: type[FrequencyOracle], categories: int, budget: float
) -> None:
    with pytest.raises(InputError, match=r"must be (a whole number )?from"):
        kind(categories, budget)


@EACH
def test_arguments_out_of_range_are_refused(kind: type[FrequencyOracle]) -> None:
    oracle = kind(4, 1.0)
    for call in (
        lambda: oracle.variance(0),
        lambda: oracle.variance(5, 1.1),
        lambda: oracle.estimate(np.zeros(4, dtype=int), 0),
        lambda: oracle.estimated_variance(np.zeros(4, dtype=int), 0),
    ):
        with pytest.raises(InputError):
            call()


# --- what a report costs ---------------------------------------------------------------------------


def losses(oracle: FrequencyOracle) -> tuple[np.ndarray, np.ndarray]:
    """The probabilities of what tells two categories apart, for either: the bits (or answers) of the two."""
    p, q = oracle.p, oracle.q
    if isinstance(oracle, KaryRandomizedResponse):
        rest = 1 - p - q
        return np.array([p, q, rest]), np.array([q, p, rest])
    if isinstance(oracle, HadamardResponse):  # rows where the columns are equal, and where not
        return np.array([p / 2, (1 - p) / 2, 0.5]), np.array([(1 - p) / 2, p / 2, 0.5])
    one, other = np.array([p, 1 - p]), np.array([q, 1 - q])
    return np.outer(one, other).reshape(-1), np.outer(other, one).reshape(-1)


@pytest.mark.exhaustive(every=7)
@EACH
@pytest.mark.parametrize(("categories", "budget"), [(3, 0.5), (10, 1.0), (40, 3.0)])
@pytest.mark.parametrize("reports", [1, 2, 4])
@pytest.mark.parametrize("delta", [1e-6, 1e-2, 0.2])
def test_the_accountant_claims_no_less_than_reports_cost(
    kind: type[FrequencyOracle], categories: int, budget: float, reports: int, delta: float
) -> None:
    """Against the hockey-stick divergence of all reports together, output by output."""
    oracle = kind(categories, budget)
    one, other = losses(oracle)
    joint, joint_other = np.ones(1), np.ones(1)
    for _ in range(reports):
        joint, joint_other = np.outer(joint, one).reshape(-1), np.outer(joint_other, other).reshape(-1)
    event = dp_accounting.SelfComposedDpEvent(oracle.event(), reports)
    claimed = epsilon(event, delta, "replace-one").epsilon
    for a, b in ((joint, joint_other), (joint_other, joint)):
        assert np.maximum(a - math.exp(claimed) * b, 0).sum() <= delta * (1 + 1e-9)
    if claimed > 0 and delta < 0.1:
        # and little more than that: the grid of privacy loss distributions, and whole numbers of categories
        slack = 0.15 * claimed
        assert np.maximum(joint - math.exp(claimed - slack) * joint_other, 0).sum() > delta
    assert claimed <= reports * budget * (1 + 1e-9)


@EACH
@pytest.mark.parametrize("budget", [1e-6, 1e-3, 1.0, 25.0])
def test_one_report_costs_its_epsilon_and_can_be_stored(kind: type[FrequencyOracle], budget: float) -> None:
    oracle = kind(7, budget)
    assert epsilon(oracle.event(), 0.0, "replace-one").epsilon == pytest.approx(budget, rel=1e-6)
    assert from_json(to_json(oracle.event())) == oracle.event()
    # What is drawn has at least that much noise, rounding included.
    one, other = losses(oracle)
    assert np.abs(np.log(one / other)).max() <= budget + 1e-5 * (budget == 25.0) + 1e-9


@EACH
def test_many_reports_over_many_categories_cost_far_less_than_their_sum(kind: type[FrequencyOracle]) -> None:
    """100 reports at epsilon 1 and delta = 1e-5, over 100 categories; randomised response on a bit: 79.8."""
    event = dp_accounting.SelfComposedDpEvent(kind(100, 1.0).event(), 100)
    known = {"k-ary-randomized-response": 10.84, "oue": 53.65, "hadamard-response": 53.65, "sue": 51.97}
    assert epsilon(event, 1e-5, "replace-one").epsilon == pytest.approx(known[kind.name], rel=1e-3)


@EACH
def test_more_epsilon_is_less_variance(kind: type[FrequencyOracle]) -> None:
    oracle = kind(20, 1.0)
    assert replace(oracle, epsilon=2.0).variance(10, 0.1) < oracle.variance(10, 0.1)
    assert oracle.variance(20, 0.1) == pytest.approx(2 * oracle.variance(10, 0.1))
