"""The plan of a statistics run: its mechanisms, and that all of them together cost no more than was asked."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedprivacy.accounting.epsilon import epsilon
from fedprivacy.errors import InputError
from fedprivacy.mechanisms.bits import RandomizedResponse
from fedprivacy.mechanisms.categories import FrequencyOracle
from fedprivacy.mechanisms.laplace import DiscreteLaplace, Laplace
from fedprivacy.mechanisms.pure import MAX_EPSILON
from fedprivacy.mechanisms.selection import ExponentialMechanism, NoisyMax
from fedprivacy.scenario.statistics import Statistics
from fedprivacy.statistics.plan import StatisticsPlan, plan_of

KINDS = {
    "mean-of-bits": "",
    "count": "above = 3.0",
    "mean": "low = 0.0\nhigh = 9.0",
    "histogram": "edges = [2.0, 5.5]",
    "share-by-group": 'by = "answer"\nfirst = 0\nlast = 9',
    "most-common": "first = 0\nlast = 40",
    "quantile": "low = 0.0\nhigh = 9.0\nsteps = 9\nquantiles = [0.25, 0.5, 0.75]",
    "best-price": "prices = [1.0, 2.0, 4.0]",
}
ADJACENCIES = ("replace-one", "add-remove", "zero-out")


def scenario_of(
    *kinds: str, trust: str = "central", budget: float = 1.0, delta: float = 0.0, adjacency: str = "replace-one",
    keys: str = "", weights: tuple[float, ...] = (),
) -> Statistics:  # fmt: skip
    queries = ""
    for number, kind in enumerate(kinds):
        weight = f"weight = {weights[number]!r}\n" if weights else ""
        queries += f'[queries.q{number}]\nkind = "{kind}"\n{KINDS[kind]}\n{weight}{keys}\n'
    private = "" if trust == "none" else f"epsilon = {budget!r}\ndelta = {delta!r}"
    return Statistics.from_text(
        f'name = "plan"\n[data]\nname = "numbers"\nclients = 50\nmedian = 4.0\nspread = 0.5\n{queries}'
        f'[privacy]\ntrust = "{trust}"\nadjacency = "{adjacency}"\n{private}\n'
    )


def planned(*kinds: str, **how) -> StatisticsPlan:
    return plan_of(scenario_of(*kinds, **how))


def cost(plan: StatisticsPlan) -> float:
    return epsilon(plan.event(), plan.delta, plan.adjacency).epsilon


# ------------------------------------------------------------------ what it costs


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("trust", "adjacency"), [("local", "replace-one"), *(("central", a) for a in ADJACENCIES)]
)
def test_a_query_costs_its_budget_and_no_more(kind: str, trust: str, adjacency: str) -> None:
    for budget in (1e-3, 0.5, 1.0, 8.0, 20.0):
        spent = cost(planned(kind, trust=trust, adjacency=adjacency, budget=budget))
        assert spent <= budget + 1e-12
        assert spent == pytest.approx(budget, rel=1e-9)


@pytest.mark.parametrize("trust", ["local", "central"])
@settings(max_examples=30, deadline=None)
@given(
    kinds=st.lists(st.sampled_from(list(KINDS)), min_size=1, max_size=5),
    weights=st.lists(st.floats(1e-2, 1e2), min_size=5, max_size=5),
    budget=st.floats(0.1, 20.0),
)
def test_queries_share_the_budget_by_weight(
    trust: str, kinds: list[str], weights: list[float], budget: float
) -> None:
    plan = planned(*kinds, trust=trust, budget=budget, weights=tuple(weights))
    assert cost(plan) == pytest.approx(budget, rel=1e-9)
    total = math.fsum(weights[: len(kinds)])
    for ask, weight in zip(plan.asks, weights, strict=False):
        own = epsilon(ask.event(plan.adjacency), 0.0, plan.adjacency).epsilon
        assert own == pytest.approx(budget * weight / total, rel=1e-9)


@pytest.mark.parametrize("delta", [1e-8, 1e-3])
@pytest.mark.parametrize(
    ("trust", "adjacency"), [("local", "replace-one"), *(("central", a) for a in ADJACENCIES)]
)
def test_at_a_delta_the_budget_is_stretched_and_kept(trust: str, adjacency: str, delta: float) -> None:
    kinds = ["mean-of-bits", "histogram", "quantile", "most-common"] * 3
    pure = planned(*kinds, trust=trust, adjacency=adjacency)
    plan = planned(*kinds, trust=trust, adjacency=adjacency, delta=delta)
    assert cost(plan) <= 1.0
    assert cost(plan) > 0.99
    for stretched, ask in zip(plan.asks, pure.asks, strict=True):
        assert stretched.mechanism.epsilon >= 0.999 * ask.mechanism.epsilon
    if delta == 1e-3:
        assert plan.asks[0].mechanism.epsilon > 1.2 * pure.asks[0].mechanism.epsilon


@pytest.mark.exhaustive(every=7)
@pytest.mark.parametrize("trust", ["local", "central"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("budget", [1e-4, 1.0, 12.0, 24.9999, 40.0])
def test_one_query_at_a_delta_is_planned_at_any_epsilon(kind: str, trust: str, budget: float) -> None:
    assert cost(planned(kind, trust=trust, budget=budget, delta=1e-3)) <= budget


def test_what_no_accountant_answers_for_is_told_with_what_to_do() -> None:
    with pytest.raises(InputError, match=r"privacy.delta = 0.001: .* With privacy.delta = 0 epsilons add up"):
        planned("histogram", "count", budget=5000.0, delta=1e-3)
    assert cost(planned("histogram", "count", budget=5000.0)) == pytest.approx(5000.0)


def test_local_answers_cost_no_more_than_coins_can_show() -> None:
    for delta in (0.0, 1e-3):
        plan = planned("mean-of-bits", "histogram", trust="local", budget=1000.0, delta=delta)
        assert {ask.mechanism.epsilon for ask in plan.asks} == {MAX_EPSILON}
        assert cost(plan) == pytest.approx(2 * MAX_EPSILON, rel=1e-3)


@pytest.mark.parametrize("trust", ["local", "central"])
def test_a_budget_too_small_for_any_mechanism_is_told_with_its_query(trust: str) -> None:
    with pytest.raises(InputError, match=r"queries.q0: .*epsilon = .*must be from 1e-06"):
        planned("mean-of-bits", "count", trust=trust, weights=(1e-6, 1e6))


def test_several_quantiles_are_charged_each() -> None:
    [ask] = planned("quantile").asks
    assert (ask.times, ask.mechanism.epsilon) == (3, pytest.approx(1 / 3))
    [counts] = planned("quantile", keys='central = "all-counts"').asks
    assert (counts.times, counts.mechanism.epsilon) == (1, 1.0)
    [told] = planned("quantile", trust="local").asks
    assert (told.times, told.mechanism.epsilon) == (1, 1.0)


def test_trust_none_has_no_mechanism_and_no_guarantee() -> None:
    plan = planned(*KINDS, trust="none")
    assert {ask.mechanism for ask in plan.asks} == {None}
    assert cost(plan) == math.inf


# ------------------------------------------------------------------ which mechanism


@pytest.mark.parametrize(
    ("kind", "asked", "adjacency", "mechanism"),
    [
        ("mean-of-bits", "auto", "replace-one", DiscreteLaplace(1.0, 1)),
        ("mean-of-bits", "laplace", "add-remove", Laplace(1.0, 1)),
        ("count", "discrete-laplace", "zero-out", DiscreteLaplace(1.0, 1)),
        ("mean", "auto", "replace-one", Laplace(1.0, 1)),
        ("histogram", "auto", "replace-one", DiscreteLaplace(1.0, 2)),
        ("histogram", "laplace", "add-remove", Laplace(1.0, 1)),
        ("share-by-group", "auto", "zero-out", DiscreteLaplace(1.0, 1)),
        ("most-common", "auto", "replace-one", NoisyMax(1.0, 1.0, False, "permute-and-flip")),
        ("most-common", "noisy-max", "add-remove", NoisyMax(1.0, 1.0, True, "laplace")),
        ("most-common", "exponential-mechanism", "zero-out", ExponentialMechanism(1.0, 1.0, True)),
        ("most-common", "all-counts", "replace-one", DiscreteLaplace(1.0, 2)),
        ("best-price", "auto", "add-remove", ExponentialMechanism(1.0, 4.0, True)),
        ("best-price", "all-counts", "replace-one", DiscreteLaplace(1.0, 2)),
    ],
)
def test_the_server_draws_from(kind: str, asked: str, adjacency: str, mechanism) -> None:
    [ask] = planned(kind, keys=f'central = "{asked}"', adjacency=adjacency).asks
    assert ask.mechanism == mechanism


def test_local_mechanisms() -> None:
    coin, oracle, noise = (
        planned(kind, trust="local").asks[0].mechanism for kind in ("count", "histogram", "mean")
    )
    assert coin == RandomizedResponse(1.0)
    assert isinstance(oracle, FrequencyOracle)
    # A number is told by a coin where epsilon is small, and with noise where rounding it would cost more.
    assert isinstance(noise, RandomizedResponse)
    assert isinstance(planned("mean", trust="local", budget=8.0).asks[0].mechanism, Laplace)
    named = planned("most-common", trust="local", keys='local = "oue"').asks[0].mechanism
    assert (named.name, named.categories) == ("oue", 41)


# ------------------------------------------------------------------ two plans


def test_a_plan_survives_the_wire_and_is_then_agreed_to() -> None:
    for trust in ("none", "local", "central"):
        plan = planned(*KINDS, trust=trust)
        assert plan.refusal(json.loads(json.dumps(plan.to_json()))) is None


@pytest.mark.parametrize(
    "change",
    [
        {"budget": 2.0},
        {"trust": "none"},
        {"trust": "local"},
        {"adjacency": "add-remove"},
        {"delta": 1e-3},
        {"weights": (1.0, 2.0)},
    ],
)
def test_any_other_plan_is_refused(change: dict) -> None:
    own = planned("count", "histogram")
    other = planned("count", "histogram", **change)
    assert "another plan" in (own.refusal(other.to_json()) or "")


def test_a_plan_of_other_bounds_or_people_is_refused() -> None:
    own = planned("mean")
    wider = own.to_json() | {"asks": [{**own.to_json()["asks"][0], "query": {"kind": "mean", "low": 0.0}}]}
    assert "asks: " in own.refusal(wider)
    assert "population: requested 51, agreed 50" in own.refusal(replace(own, population=51).to_json())
    assert own.refusal(None) == own.refusal([]) == "the request has no plan"
