"""Answers against the truth: unbiased estimates, intervals that cover it, bounds that hold.

Each case is played many times with fresh noise. An interval of 95 % may fail its test by chance with
probability 1e-4 (binomial, one-sided: covering more often than said is no fault), and so may a bound; a mean
of estimates may with 1e-5 (normal, 4.4 standard errors). Seeds are fixed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from fedprivacy.scenario.statistics import Statistics
from fedprivacy.statistics.node_answers import totals
from fedprivacy.statistics.plan import people_of, plan_of
from fedprivacy.statistics.releases import Released, release
from fedprivacy.statistics.results import result, truth

REPEATS = 150
FALSE_ALARM = 1e-4


@dataclass(frozen=True)
class Case:
    """A query to a table of its own.

    Args:
        query: The keys of the query; its column is `value`, its groups are in `group`.
        value: One number a record.
        trust: The trust model.
        epsilon: The budget.
        adjacency: The adjacency.
        users: The owner of each record; None: each record is a client.
        group: The group of each record.
    """

    query: str
    value: Any
    trust: str = "central"
    epsilon: float = 1.0
    adjacency: str = "replace-one"
    users: Any = None
    group: Any = None


def bits(yes: int, no: int) -> list[float]:
    return [1.0] * yes + [0.0] * no


def several(clients: int) -> list[int]:
    """Three records a client."""
    return list(np.repeat(np.arange(clients), 3))


RNG = np.random.default_rng(7)
AMOUNTS = RNG.lognormal(np.log(20), 0.6, 400).tolist()
GROUPS = RNG.integers(0, 3, 600).astype(float).tolist()
SAYS = (RNG.random(600) < 0.3).astype(float).tolist()
SMALL_GROUPS = ([0.0] * 4 + [1.0] * 12 + [2.0] * 34 + [3.0] * 150) * 5  # 2 %, 6 %, 17 % and 75 % of all
SMALL_SAYS = (([1.0] * 3 + [0.0]) * 4 + [1.0] * 17 + [0.0] * 17 + [1.0, 0.0, 0.0] * 50) * 5
WIDE = "low = 0.0\nhigh = 200.0\nsteps = 40\nquantiles = [0.1, 0.5, 0.9]"
LATE = "low = -1000.0\nhigh = 40.0\nsteps = 52\nquantiles = [0.1, 0.5, 0.9]"
NUMBERED = {
    "share, a coin each": Case('kind = "mean-of-bits"', bits(60, 140), "local"),
    "share, hardly any coin lies": Case('kind = "mean-of-bits"', bits(400, 100), "local", 8.0),
    "share, local Laplace": Case('kind = "mean-of-bits"\nlocal = "laplace"', bits(60, 140), "local"),
    "share, geometric": Case('kind = "mean-of-bits"', bits(6, 14)),
    "share, geometric and little of it": Case('kind = "mean-of-bits"', bits(6, 14), epsilon=3.0),
    "share, Laplace": Case('kind = "mean-of-bits"\ncentral = "laplace"', bits(6, 14)),
    "share of unknown many": Case('kind = "mean-of-bits"', bits(60, 140), adjacency="add-remove"),
    "share of unknown many, little noise": Case(
        'kind = "mean-of-bits"', bits(6, 14), epsilon=3.7, adjacency="add-remove"
    ),
    "share of few, unknown many": Case('kind = "mean-of-bits"', bits(3, 1), adjacency="add-remove"),
    "share, zeroed": Case('kind = "mean-of-bits"', bits(3, 47), adjacency="zero-out"),
    "count, a coin each": Case('kind = "count"', bits(200, 300), "local", 0.5),
    "count, geometric": Case('kind = "count"', bits(2, 3)),
    "count of unknown many": Case('kind = "count"', bits(2, 3), adjacency="add-remove"),
    "mean, a coin each": Case('kind = "mean"\nlow = 0.0\nhigh = 100.0', AMOUNTS, "local"),
    "mean, local Laplace": Case('kind = "mean"\nlow = 0.0\nhigh = 100.0', AMOUNTS, "local", 6.0),
    "mean, Laplace": Case('kind = "mean"\nlow = 0.0\nhigh = 100.0', AMOUNTS),
    "mean of unknown many": Case('kind = "mean"\nlow = -50.0\nhigh = 50.0', AMOUNTS, adjacency="add-remove"),
    # A client of several records tells a share of them: rounding it to a bit is noise too.
    "share, several records": Case(
        'kind = "mean-of-bits"', bits(1, 1) * 300, "local", 4.0, users=several(200)
    ),
    "count, several records, central": Case('kind = "count"', bits(1, 1) * 30, users=several(20)),
}
LISTED = {
    "histogram, k-ary": Case(
        'kind = "histogram"\nfirst = 0\nlast = 3', [0.0] * 150 + [1.0] * 40 + [2.0] * 10, "local", 2.0
    ),
    "histogram, k-ary, hardly any lie": Case(
        'kind = "histogram"\nfirst = 0\nlast = 3', [0.0] * 450 + [1.0] * 40 + [2.0] * 10, "local", 9.0
    ),
    "histogram, sue": Case('kind = "histogram"\nfirst = 0\nlast = 3\nlocal = "sue"', [0.0, 1.0] * 100, "local"),
    "histogram, oue": Case('kind = "histogram"\nfirst = 0\nlast = 19', [0.0, 7.0] * 100, "local"),
    "histogram, Hadamard": Case(
        'kind = "histogram"\nfirst = 0\nlast = 5\nlocal = "hadamard-response"', [0.0, 5.0] * 100, "local"
    ),
    "histogram, geometric": Case('kind = "histogram"\nfirst = 0\nlast = 3', [0.0, 2.0] * 10),
    "histogram, Laplace": Case(
        'kind = "histogram"\nfirst = 0\nlast = 3\ncentral = "laplace"', [0.0, 2.0] * 10, adjacency="add-remove"
    ),
    "histogram, several records": Case(
        'kind = "histogram"\nfirst = 0\nlast = 3', [0.0, 1.0, 2.0] * 200, "local", 4.0, users=several(200)
    ),
    "histogram, several records, oue": Case(
        'kind = "histogram"\nfirst = 0\nlast = 3\nlocal = "oue"', [0.0, 1.0, 1.0] * 200, "local", 6.0,
        users=several(200),
    ),
    "shares by group, geometric": Case(
        'kind = "share-by-group"\nby = "group"\nfirst = 0\nlast = 2', SAYS, group=GROUPS
    ),
    "shares by group, little noise": Case(
        'kind = "share-by-group"\nby = "group"\nfirst = 0\nlast = 2', SAYS[:60], group=GROUPS[:60], epsilon=7.5
    ),
    "shares by group, Laplace": Case(
        'kind = "share-by-group"\nby = "group"\nfirst = 0\nlast = 2\ncentral = "laplace"', SAYS, group=GROUPS,
        adjacency="add-remove",
    ),
    "shares by group, k-ary": Case(
        'kind = "share-by-group"\nby = "group"\nfirst = 0\nlast = 2', SAYS * 4, "local", 3.0, group=GROUPS * 4
    ),
    "shares of two groups, k-ary, half say yes": Case(
        'kind = "share-by-group"\nby = "group"\nfirst = 0\nlast = 1', bits(1, 1) * 500, "local", 1.0,
        group=[0.0, 0.0, 1.0, 1.0] * 250,
    ),
    "shares of one group of two, k-ary, little noise": Case(
        'kind = "share-by-group"\nby = "group"\nfirst = 0\nlast = 1', bits(1, 1) * 500, "local", 4.0,
        group=[0.0] * 1000,
    ),
    "shares by group, oue": Case(
        'kind = "share-by-group"\nby = "group"\nfirst = 0\nlast = 2\nlocal = "oue"', SAYS * 4, "local", 3.0,
        group=GROUPS * 4,
    ),
    # Groups of which the noise alone says whether they look large enough for an estimate.
    "shares of small groups, k-ary": Case(
        'kind = "share-by-group"\nby = "group"\nfirst = 0\nlast = 3', SMALL_SAYS, "local", group=SMALL_GROUPS
    ),
    "shares of small groups, Hadamard, several records": Case(
        'kind = "share-by-group"\nby = "group"\nfirst = 0\nlast = 3\nlocal = "hadamard-response"', SMALL_SAYS * 2,
        "local", 3.0, users=list(np.repeat(np.arange(400), 5)), group=SMALL_GROUPS * 2,
    ),
    "shares of small groups, geometric": Case(
        'kind = "share-by-group"\nby = "group"\nfirst = 0\nlast = 3', SMALL_SAYS[:200], group=SMALL_GROUPS[:200]
    ),
    "shares of small groups, Laplace": Case(
        'kind = "share-by-group"\nby = "group"\nfirst = 0\nlast = 3\ncentral = "laplace"', SMALL_SAYS[:200],
        group=SMALL_GROUPS[:200], adjacency="add-remove",
    ),
    "quantiles, all counts": Case(f'kind = "quantile"\n{WIDE}\ncentral = "all-counts"', AMOUNTS),
    "quantiles, all counts of unknown many": Case(
        f'kind = "quantile"\n{WIDE}\ncentral = "all-counts"', AMOUNTS, adjacency="add-remove"
    ),
    "quantiles, all counts, little noise": Case(
        f'kind = "quantile"\n{WIDE}\ncentral = "all-counts"', AMOUNTS, epsilon=7.0
    ),
    "quantiles, oue": Case(f'kind = "quantile"\n{WIDE}\nlocal = "oue"', AMOUNTS * 4, "local", 2.0),
    "quantiles of high numbers, oue": Case(f'kind = "quantile"\n{LATE}\nlocal = "oue"', AMOUNTS * 4, "local", 2.0),
    "quantiles, k-ary": Case(f'kind = "quantile"\n{WIDE}', AMOUNTS, "local", 7.0),
    "quantiles of few candidates, k-ary": Case(
        'kind = "quantile"\nlow = 0.0\nhigh = 2.0\nsteps = 2\nquantiles = [0.55]', [0.0] * 200 + [1.0] * 160 + [2.0] * 40,
        "local", 1.0,
    ),
    "quantiles, several records": Case(
        f'kind = "quantile"\n{WIDE}', AMOUNTS[:399], "local", 5.0, users=several(133)
    ),
}  # fmt: skip


@pytest.fixture
def asked(make_table) -> Callable[[Case], Statistics]:
    def make(case: Case) -> Statistics:
        group = case.group or [0.0] * len(case.value)
        path = make_table(users=case.users, value=list(case.value), group=list(group))
        owner = "record" if case.users is None else "user"
        return Statistics.from_text(
            f'name = "case"\n[data]\nname = "npz"\npath = "{path}"\nowner = "{owner}"\n'
            f'[queries.asked]\ncolumn = "value"\n{case.query}\n[privacy]\ntrust = "{case.trust}"\n'
            f'adjacency = "{case.adjacency}"\n'
            + (f"epsilon = {case.epsilon}" if case.trust != "none" else "")
        )

    return make


def play(scenario: Statistics, repeats: int = REPEATS) -> list[dict[str, Any]]:
    """The results of many runs, as a run records them, without messages."""
    plan = plan_of(scenario)
    who, everybody = people_of(scenario, plan), np.arange(plan.population)
    [ask] = plan.asks
    exact = ask.question.exact(who, everybody)
    played = []
    for seed in range(repeats):
        stream = np.random.default_rng([11, seed])
        told = totals(plan, ask, who, everybody, stream)
        answer = result(ask, release(ask, plan.trust, told, len(everybody), stream), len(everybody))
        played.append({**answer, **truth(ask.question, answer, exact, len(everybody))})
    return played


def matrix(played: list[dict[str, Any]], key: str) -> np.ndarray:
    """One row a run and one column an answer; NaN where nothing was said."""
    return np.array([np.atleast_1d(np.asarray(one[key], dtype=float)) for one in played])


def covers(played: list[dict[str, Any]]) -> None:
    """No answer's interval fails to hold the true value more often than it may; one that is missing fails."""
    low, true, high = (matrix(played, key) for key in ("low", "true", "high"))
    said = ~np.isnan(low)
    held = ((low <= true) & (true <= high)).astype(int)
    for at in range(true.shape[1]):
        if np.isnan(true[0, at]) or not said[:, at].any():
            continue
        times, caught = len(played), int(held[:, at].sum())
        assert binom.cdf(caught, times, 0.95) > FALSE_ALARM, (
            f"answer {at}: {caught} of {times} intervals cover"
        )


@pytest.fixture(scope="module")
def known() -> dict[str, list[dict[str, Any]]]:
    """What has been played, by the name of its case."""
    return {}


@pytest.fixture
def played_of(asked, known) -> Callable[[str], list[dict[str, Any]]]:
    def played(name: str) -> list[dict[str, Any]]:
        if name not in known:
            known[name] = play(asked({**NUMBERED, **LISTED}[name]))
        return known[name]

    return played


@pytest.mark.exhaustive(every=5)
@pytest.mark.parametrize("name", [*NUMBERED, *LISTED])
def test_intervals_cover_the_truth(played_of, name: str) -> None:
    covers(played_of(name))


@pytest.mark.parametrize("name", [*NUMBERED, *(name for name in LISTED if name.startswith("histogram"))])
def test_estimates_are_unbiased(played_of, name: str) -> None:
    case = {**NUMBERED, **LISTED}[name]
    if case.adjacency != "replace-one" and "count" not in case.query and "histogram" not in case.query:
        pytest.skip("a ratio of two noisy totals is unbiased for many clients alone")
    played = played_of(name)
    estimate, true = matrix(played, "estimate"), matrix(played, "true")[0]
    error = estimate.std(axis=0, ddof=1) / np.sqrt(len(played))
    assert (np.abs(estimate.mean(axis=0) - true) <= 4.4 * error + 1e-12).all()


@pytest.mark.parametrize(("yes", "no", "variance"), [(30.0, 50.0, 9.0), (3.0, 1.0, 0.2), (60.0, 1.0, 9.0)])
def test_the_interval_of_a_share_is_what_fieller_solves(yes: float, no: float, variance: float) -> None:
    """The roots of (yes - share size)^2 = z^2 variance ((1 - share)^2 + share^2), cut at 0 and 1."""
    z2, size = 1.959963984540054**2 * variance, yes + no
    roots = np.sort(np.roots([size**2 - 2 * z2, 2 * z2 - 2 * yes * size, yes**2 - z2]).real)
    released = Released(np.array([no, yes]), np.full(2, variance))
    [low], [high] = released.share_interval(0.95, lambda each: (each[1:], each[:1]))
    assert (low, high) == pytest.approx(tuple(np.clip(roots, 0, 1)), abs=1e-9)


def test_the_interval_of_a_share_is_everything_where_there_may_be_nobody() -> None:
    for few in ([1.0, 2.0], [-3.0, -1.0], [0.0, 0.0]):
        released = Released(np.array(few), np.full(2, 9.0))
        low, high = released.share_interval(0.95, lambda each: (each[1:], each[:1]))
        assert (low, high) == ([0.0], [1.0])


EXACT = ["share, Laplace", "mean, Laplace", "mean, local Laplace", "histogram, Laplace"]


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("name", EXACT)
def test_intervals_of_continuous_noise_are_no_wider_than_need_be(asked, name: str) -> None:
    """Two-sided, false-alarm rate 1e-4 in all: they miss the truth in 5 % of the runs."""
    played = play(asked({**NUMBERED, **LISTED}[name]), 1000)
    low, true, high = (matrix(played, key)[:, 0] for key in ("low", "true", "high"))
    held = int(((low <= true) & (true <= high)).sum())
    assert binom.ppf(5e-5, 1000, 0.95) <= held <= binom.isf(5e-5, 1000, 0.95)


def test_an_interval_of_half_the_noise_would_be_found_out(asked, monkeypatch) -> None:
    """A test of the tests: variances and half-widths that forget half of the noise do not cover."""
    honest = Released.half_width
    monkeypatch.setattr(Released, "half_width", lambda *given: honest(*given) / 2)
    for name in ("share, a coin each", "count, geometric", "histogram, oue"):
        with pytest.raises(AssertionError, match="intervals cover"):
            covers(play(asked({**NUMBERED, **LISTED}[name])))


# ------------------------------------------------------------------ bounds

BOUNDED = {
    **{name: case for name, case in LISTED.items() if name.startswith("histogram")},
    "histogram of many": Case('kind = "histogram"\nfirst = 0\nlast = 299', list(range(300)) * 2, "local", 3.0),
    "histogram of many, hardly any lie": Case(
        'kind = "histogram"\nfirst = 0\nlast = 299', [0.0] * 600, "local", 9.0
    ),
    "histogram of many, central": Case('kind = "histogram"\nfirst = 0\nlast = 299', [0.0] * 50),
    "most common": Case('kind = "most-common"\nfirst = 0\nlast = 9', [3.0] * 25 + [4.0] * 20),
    "most common, noisy max": Case(
        'kind = "most-common"\nfirst = 0\nlast = 9\ncentral = "noisy-max"', [3.0] * 25 + [4.0] * 20,
        adjacency="add-remove",
    ),
    "most common, exponential": Case(
        'kind = "most-common"\nfirst = 0\nlast = 9\ncentral = "exponential-mechanism"', [3.0] * 15 + [4.0] * 5
    ),
    "quantiles": Case(f'kind = "quantile"\n{WIDE}', AMOUNTS, epsilon=0.5),
    "best price": Case('kind = "best-price"\nprices = [5.0, 10.0, 20.0, 40.0, 80.0]', AMOUNTS, epsilon=0.1),
}  # fmt: skip


@pytest.mark.exhaustive(every=4)
@pytest.mark.parametrize("name", BOUNDED)
def test_bounds_hold_with_their_probability(asked, played_of, name: str) -> None:
    scenario = asked(BOUNDED[name])
    played = played_of(name) if name in LISTED else play(scenario)
    who = people_of(scenario, plan_of(scenario))
    question = plan_of(scenario).asks[0].question
    exact = question.exact(who, np.arange(who.population))
    assert {one["bound"]["probability"] for one in played} == {0.95}
    held = sum(_error(question, one, exact) <= one["bound"]["at_most"] for one in played)
    assert binom.cdf(held, len(played), 0.95) > FALSE_ALARM


def _error(question: Any, one: dict[str, Any], exact: np.ndarray) -> float:
    """How far off an answer is, in the units of its bound."""
    if question.kind == "histogram":
        return float(np.abs(np.array(one["estimate"]) - exact).max())
    if question.kind == "most-common":
        return float(exact.max() - exact[int(one["estimate"]) - question.first])
    if question.kind == "best-price":
        return float(
            one["error"] * max(price * exact[at + 1 :].sum() for at, price in enumerate(question.edges))
        )
    ranks, worst = np.cumsum(exact), 0.0
    for share, value in zip(question.query.quantiles, one["estimate"], strict=True):
        off = np.abs(ranks - share * exact.sum())
        worst = max(worst, off[list(question.edges).index(value)] - off.min())
    return float(worst)


# ------------------------------------------------------------------ answers without noise

SIMPLE = {
    'kind = "mean-of-bits"\nabove = 2.5': (0.5, 0.5),
    'kind = "count"\nequals = 3.0': (1.0, 1.0),
    'kind = "mean"\nlow = 0.0\nhigh = 3.0': (2.25, 2.25),
    'kind = "histogram"\nfirst = 1\nlast = 3': ([1.0, 1.0, 2.0], [1.0, 1.0, 2.0]),
    'kind = "quantile"\nlow = 0.0\nhigh = 5.0\nsteps = 5\nquantiles = [0.25, 0.5, 0.75]': ([1, 2, 3], [1, 2, 3]),
    'kind = "most-common"\nfirst = 1\nlast = 3\nnames = ["a", "b", "c"]': ("c", None),
    'kind = "best-price"\nprices = [1.0, 2.0, 3.0]': (2.0, None),
    'kind = "share-by-group"\nby = "group"\nfirst = 0\nlast = 2\nabove = 1.5': (
        [0.5, 1.0, None], [0.5, 1.0, None],
    ),
}  # fmt: skip


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("query", SIMPLE)
def test_the_exact_answer(asked, query: str, adjacency: str) -> None:
    case = Case(query, [1.0, 2.0, 3.0, 4.0], "none", adjacency=adjacency, group=[0.0, 0.0, 1.0, 1.0])
    [one] = play(asked(case), 1)
    estimate, end = SIMPLE[query]
    assert one["estimate"] == one["true"] == estimate
    assert one["low"] == one["high"] == end
    assert one["error"] == pytest.approx(0.0, abs=1e-12)
    assert (one["mechanism"], one["bound"]) == (None, None)


def test_7_percent_of_100_are_7(asked) -> None:
    """0.07 * 100 is 7.000000000000001 in floats: the seventh of 100 clients is still the 7 % quantile."""
    query = 'kind = "quantile"\nlow = 0.0\nhigh = 100.0\nsteps = 100\nquantiles = [0.07, 0.55]'
    [one] = play(asked(Case(query, np.arange(1.0, 101.0), "none")), 1)
    assert one["estimate"] == [7.0, 55.0]


def test_a_share_of_too_few_has_no_estimate_but_an_interval(asked) -> None:
    case = Case('kind = "mean"\nlow = -2.0\nhigh = 2.0', bits(1, 1), adjacency="add-remove", epsilon=0.01)
    played = play(asked(case), 50)
    untold = [one for one in played if one["estimate"] is None]
    assert untold
    assert all(one["error"] is None for one in untold)
    assert np.mean([(one["low"], one["high"]) == (-2.0, 2.0) for one in untold]) > 0.8
    groups = Case('kind = "share-by-group"\nby = "group"\nfirst = 0\nlast = 1', bits(1, 1), epsilon=0.01)
    played = play(asked(groups), 20)
    assert any(None in one["estimate"] for one in played)
    assert not any(None in one["low"] + one["high"] for one in played)


def test_categories_of_one_rounded_name_are_told_apart(asked) -> None:
    case = Case('kind = "most-common"\nedges = [1000000.0, 1000001.0]', [1000000.5] * 3 + [1000002.0], "none")
    [one] = play(asked(case), 1)
    assert (one["estimate"], one["error"]) == ("1e+06 to 1000001.0", 0.0)
