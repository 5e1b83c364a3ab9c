"""From records to answers, each kind beside a few lines of plain Python; and what one client can change.

The second half is the base of every central epsilon: over neighbouring tables, made by brute force and by
hypothesis, totals change by no more than the mechanism of the plan is told, and scores by no more than its
sensitivity.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedprivacy.mechanisms.laplace import DiscreteLaplace, Laplace
from fedprivacy.mechanisms.selection import ExponentialMechanism, NoisyMax
from fedprivacy.scenario.statistics import Statistics
from fedprivacy.scenario.statistics.queries import QUERIES
from fedprivacy.statistics.node_answers import totals
from fedprivacy.statistics.plan import StatisticsPlan, plan_of
from fedprivacy.statistics.population import People
from fedprivacy.statistics.query_values import Question, labels, questions_of
from fedprivacy.statistics.releases import scores_of

NAN, INF = math.nan, math.inf
AWKWARD = [NAN, INF, -INF, -1e300, 1e300, -1.0, -0.0, 0.0, 0.4, 0.5, 0.6, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 9.0]
QUERY: dict[str, dict[str, Any]] = {
    "mean-of-bits": {},
    "mean-of-bits/above": {"above": 2.0},
    "count": {"equals": 2.0},
    "mean": {"low": -1.0, "high": 3.0},
    "mean/narrow": {"low": 0.4, "high": 0.4 + 1e-9},
    "histogram": {"first": 0, "last": 3},
    "histogram/edges": {"edges": (0.5, 2.0, 4.0)},
    "most-common": {"first": 1, "last": 3},
    "share-by-group": {"by": "group", "first": 0, "last": 2, "above": 1.0},
    "share-by-group/edges": {"by": "group", "edges": (0.5,), "equals": 2.0},
    "quantile": {"low": 0.0, "high": 4.0, "steps": 4, "quantiles": (0.25, 0.5)},
    "best-price": {"prices": (0.5, 1.5, 4.0)},
}

SEVERAL = {"most-common/two votes": {"first": 1, "last": 3, "per_client": 2}}


def query_of(name: str, **keys: Any) -> Any:
    kind = name.partition("/")[0]
    return QUERIES[kind](kind=kind, column="value", **{**QUERY, **SEVERAL}[name], **keys)


def question_of(name: str) -> Question:
    query = query_of(name)
    scenario = Statistics.model_construct(queries={"asked": query}, data=TABLE)
    return questions_of(scenario)[0]


TABLE = SimpleNamespace(name="npz", owner="user")


def coded_in_plain_python(name: str, value: float, group: float) -> float:
    """What one record says, as the documentation has it."""
    query, kind = query_of(name), name.partition("/")[0]

    def yes() -> bool:
        if query.equals is not None:
            return value == query.equals
        return value > (0.5 if query.above is None else query.above)

    def whole(number: float, first: int, last: int) -> int:
        if math.isnan(number):
            return last - first
        return int(min(max(np.rint(number) if math.isfinite(number) else number, first), last) - first)

    if kind in ("mean-of-bits", "count"):
        return float(yes())
    if kind == "mean":
        cut = query.low if math.isnan(value) else min(max(value, query.low), query.high)
        return (cut - query.low) / (query.high - query.low)
    if kind == "quantile":
        grid = [0.0, 1.0, 2.0, 3.0, 4.0]
        return len(grid) - 1 if math.isnan(value) else min(bisect_left(grid, value), len(grid) - 1)
    if kind == "best-price":
        return len(query.prices) if math.isnan(value) else bisect_right(query.prices, value)
    of = group if kind == "share-by-group" else value
    if query.edges is not None:
        place = len(query.edges) if math.isnan(of) else bisect_right(query.edges, of)
    else:
        place = whole(of, query.first, query.last)
    return 2 * place + yes() if kind == "share-by-group" else place


@pytest.mark.parametrize("name", QUERY)
def test_each_record_is_coded_as_documented(name: str) -> None:
    value, group = (column.ravel() for column in np.meshgrid(AWKWARD, AWKWARD))
    who = People({"value": value, "group": group}, np.arange(len(value) + 1))
    question = question_of(name)
    coded = question.coded(who, slice(None))
    expected = [coded_in_plain_python(name, v, g) for v, g in zip(value, group, strict=True)]
    np.testing.assert_allclose(coded, expected, rtol=1e-15)
    if question.cells:
        assert coded.dtype == np.int64
        assert set(coded) <= set(range(question.cells))


@st.composite
def tables(draw: st.DrawFn, one_each: bool = False) -> People:
    """A few clients of one to three records each, with awkward values."""
    sizes = draw(st.lists(st.just(1) if one_each else st.integers(1, 3), min_size=1, max_size=6))
    records = sum(sizes)
    column = st.lists(st.sampled_from(AWKWARD), min_size=records, max_size=records).map(np.array)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return People({"value": draw(column), "group": draw(column)}, offsets)


@pytest.mark.parametrize("name", QUERY)
@settings(max_examples=20, deadline=None)
@given(who=tables())
def test_exact_totals_are_sums_of_each_clients_shares(name: str, who: People) -> None:
    question, everybody = question_of(name), np.arange(who.population)
    expected = np.zeros(question.cells or 1)
    for client in everybody:
        records = range(who.offsets[client], who.offsets[client + 1])
        for record in records:
            code = coded_in_plain_python(name, who.columns["value"][record], who.columns["group"][record])
            place, amount = (int(code), 1.0) if question.cells else (0, code)
            expected[place] += amount / len(records)
    found = question.exact(who, everybody)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    for size in (1, 2, 4):
        parts = [question.exact(who, everybody[at : at + size]) for at in range(0, who.population, size)]
        np.testing.assert_allclose(sum(parts), found, atol=1e-12)
    np.testing.assert_array_equal(question.exact(who, everybody[:0]), np.zeros(question.cells or 1))


@pytest.mark.parametrize("name", QUERY)
@settings(max_examples=10, deadline=None)
@given(who=tables())
def test_a_client_answers_with_its_mean_or_with_one_of_its_records(name: str, who: People) -> None:
    question, everybody = question_of(name), np.arange(who.population)
    answers = question.answers(who, everybody, np.random.default_rng(1))
    assert len(answers) == who.population
    for client in everybody:
        own = question.coded(who, slice(who.offsets[client], who.offsets[client + 1]))
        if question.cells:
            assert answers[client] in own
        else:
            assert answers[client] == pytest.approx(own.mean())
            assert 0 <= answers[client] <= 1
    assert len(question.answers(who, everybody[:0], np.random.default_rng(1))) == 0


def test_each_record_of_a_client_is_told_equally_often() -> None:
    """Chi-square, false-alarm rate 1e-3: 3,000 clients with the records 0, 1 and 3 each."""
    from scipy.stats import chisquare

    who = People({"value": np.tile([0.0, 1.0, 3.0], 3000)}, np.arange(3001) * 3)
    told = question_of("histogram").answers(who, np.arange(3000), np.random.default_rng(2))
    counts = np.bincount(told, minlength=4)
    assert counts[2] == 0
    assert chisquare(counts[[0, 1, 3]]).pvalue > 1e-3


def test_a_candidate_of_a_quantile_counts_those_at_or_below_and_a_price_those_who_bid_as_much() -> None:
    who = People({"value": np.array([1.0, 1.0, 1.5, 4.0])}, np.arange(5))
    everybody = np.arange(4)
    assert np.cumsum(question_of("quantile").exact(who, everybody)).tolist() == [0, 2, 3, 3, 4]
    [revenue] = scores_of(question_of("best-price"))
    bids = question_of("best-price").exact(who, everybody)
    assert revenue(bids).tolist() == [0.5 * 4, 1.5 * 2, 4.0 * 1]


def test_labels() -> None:
    def of(**keys: Any) -> list[str]:
        query = QUERIES["histogram"](kind="histogram", **keys)
        return labels(questions_of(Statistics.model_construct(queries={"q": query}, data=TABLE))[0])

    assert of(first=-1, last=1) == ["-1", "0", "1"]
    assert of(first=0, last=1, names=("a", "b")) == ["a", "b"]
    assert of(edges=(1.0, 2.5)) == ["below 1", "1 to 2.5", "2.5 or more"]
    assert labels(question_of("share-by-group")) == ["0", "1", "2"]
    near = of(edges=(1_000_000.0, 1_000_001.0, 1_000_002.0))
    assert len(set(near)) == len(near)


# ------------------------------------------------------------------ what one client can change

MECHANISMS = {
    "mean-of-bits": ["auto", "laplace", "discrete-laplace"],
    "count": ["auto", "laplace", "discrete-laplace"],
    "mean": ["auto"],
    "histogram": ["auto", "laplace", "discrete-laplace"],
    "share-by-group": ["auto", "laplace", "discrete-laplace"],
    "most-common": ["auto", "noisy-max", "exponential-mechanism", "permute-and-flip", "all-counts"],
    "quantile": ["auto", "exponential-mechanism", "all-counts"],
    "best-price": ["auto", "exponential-mechanism", "all-counts"],
}


def central_plan(name: str, mechanism: str, adjacency: str, owner: str) -> StatisticsPlan:
    privacy = SimpleNamespace(trust="central", unit="client", epsilon=2.0, delta=0.0, adjacency=adjacency)
    data = SimpleNamespace(name="npz", owner=owner)
    queries = {"asked": query_of(name, central=mechanism)}
    return plan_of(SimpleNamespace(queries=queries, data=data, privacy=privacy, population=3))


def without(who: People, client: int) -> People:
    keep = np.ones(who.offsets[-1], dtype=bool)
    keep[who.offsets[client] : who.offsets[client + 1]] = False
    sizes = np.delete(np.diff(who.offsets), client)
    columns = {name: values[keep] for name, values in who.columns.items()}
    return People(columns, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))


def joined(who: People, other: People) -> People:
    """The clients of both."""
    columns = {name: np.concatenate([who.columns[name], other.columns[name]]) for name in who.columns}
    return People(columns, np.concatenate([who.offsets, who.offsets[-1] + other.offsets[1:]]))


@st.composite
def neighbours(draw: st.DrawFn, one_each: bool, adjacency: str) -> tuple[People, People]:
    """Two tables that differ in one client: another in its place, or none."""
    who = draw(tables(one_each))
    one = draw(st.integers(0, who.population - 1))
    rest = without(who, one)
    if adjacency != "replace-one":
        return who, rest
    other = draw(tables(one_each))
    only = People(
        {name: values[: other.offsets[1]] for name, values in other.columns.items()}, other.offsets[:2]
    )
    return who, joined(rest, only)


@pytest.mark.exhaustive(every=5)
@pytest.mark.parametrize("owner", ["record", "user"])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove", "zero-out"])
@pytest.mark.parametrize("name", [*QUERY, *SEVERAL])
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_one_client_changes_no_more_than_the_mechanism_is_told(
    name: str, adjacency: str, owner: str, data: st.DataObject
) -> None:
    pair = data.draw(neighbours(owner == "record", adjacency))
    for mechanism in MECHANISMS[name.partition("/")[0]]:
        if (mechanism, owner) != ("discrete-laplace", "user"):
            holds(central_plan(name, mechanism, adjacency, owner), pair)


def holds(plan: StatisticsPlan, pair: tuple[People, People]) -> None:
    """An answer of zero (zero-out) and no client at all contribute the same: nothing."""
    [ask] = plan.asks
    before, after = (
        totals(plan, ask, who, np.arange(who.population), np.random.default_rng(0)) for who in pair
    )
    told, slack = ask.mechanism, 1e-9
    if isinstance(told, Laplace | DiscreteLaplace):
        assert np.abs(before - after).sum() <= told.sensitivity + slack
        if isinstance(told, DiscreteLaplace):
            assert (before == np.rint(before)).all()
        return
    assert isinstance(told, ExponentialMechanism | NoisyMax)
    for scores in scores_of(ask.question):
        change = scores(after) - scores(before)
        assert np.abs(change).max() <= told.sensitivity + slack
        if told.monotone:
            assert (change <= slack).all() or (change >= -slack).all()


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("name", QUERY)
def test_the_sensitivity_is_attained(name: str, adjacency: str) -> None:
    """Over all pairs of single records: what a mechanism is told is not more than there is, either."""
    [ask] = central_plan(name, "all-counts" if name in ("most-common", "quantile", "best-price") else "auto",
                         adjacency, "record").asks  # fmt: skip
    plan = central_plan(name, "auto", adjacency, "record")
    each = [
        People({"value": np.array([value]), "group": np.array([group])}, np.arange(2))
        for value in (-1.0, 1.0, 2.0, 9.0)
        for group in (0.0, 1.0)
    ]
    told = [totals(plan, ask, one, np.arange(1), np.random.default_rng(0)) for one in each]
    others = told if adjacency == "replace-one" else [np.zeros_like(told[0])]
    worst = max(np.abs(one - other).sum() for one in told for other in others)
    assert worst == pytest.approx(ask.mechanism.sensitivity)
