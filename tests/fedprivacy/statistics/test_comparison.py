"""Repeats into a summary, cells into slopes, and all of it into a few sentences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from fedprivacy.statistics.comparison import brief, finding, slope_by_trust, slopes, summary

PRIVACY = {"unit": "client", "adjacency": "replace-one"}
SIZES = (100, 1000, 10_000, 100_000)


def one(error: float | None, kind: str = "count", **keys) -> dict:
    base = {
        "name": "q",
        "kind": kind,
        "mechanism": "laplace",
        "noise": "n",
        "measure": "absolute error",
        "bound": None,
    }
    given = {"labels": None, "estimate": 1.0, "low": 0.0, "high": 2.0, "true": 1.0, "error": error}
    return brief({**base, **given, **keys})


def cell(
    trust: str, clients: int, rmse: float, *, epsilon: float | None = 1.0, asked=None, repeats=20, **query
):
    error = {"mean": rmse, "low": None, "high": None}
    told = {
        "name": "q",
        "kind": "count",
        "measure": "absolute error",
        "rmse": rmse,
        "told": 1.0,
        "error": error,
        "right": None,
    }
    return {
        "trust": trust,
        "asked": asked,
        "epsilon": epsilon,
        "clients": clients,
        "repeats": repeats,
        "queries": [{**told, **query}],
    }


def test_a_summary_of_repeats() -> None:
    found = summary([one(3.0), one(4.0), one(0.0, low=1.5)])
    assert found["error"]["mean"] == pytest.approx(7 / 3)
    assert found["rmse"] == pytest.approx(np.sqrt(25 / 3))
    assert found["covered"] == pytest.approx(2 / 3)
    assert (found["within_bound"], found["right"]) == (None, None)


def test_the_interval_of_an_error_is_not_cut_at_1() -> None:
    """Errors of counts are not shares: 40 clients off on average is not "at most 1"."""
    error = summary([one(30.0), one(40.0), one(50.0)])["error"]
    assert error["low"] == pytest.approx(40 - 4.3027 * 10 / 3**0.5, rel=1e-4)
    assert error["high"] == pytest.approx(40 + 4.3027 * 10 / 3**0.5, rel=1e-4)
    assert summary([one(0.0), one(1.0)])["error"]["low"] == 0


def test_what_was_not_told_has_no_error() -> None:
    untold = one(None, estimate=None, low=None, high=None)
    assert summary([untold])["error"] is None
    half = summary([untold, one(2.0)])
    assert (half["error"]["mean"], half["rmse"], half["covered"]) == (2.0, 2.0, 1.0)


def test_how_many_answers_were_told_stands_beside_their_errors() -> None:
    """A group without a true value is no answer that could be given."""
    ends = {"low": [0.0, 0.0, 0.0], "high": [1.0, 1.0, 1.0], "true": [0.5, 0.5, None]}
    some = one(0.1, "share-by-group", estimate=[0.5, None, None], **ends)
    every = one(0.1, "share-by-group", estimate=[0.5, 0.5, 0.1], **ends)
    found = summary([some, every])
    assert (found["told"], found["covered"]) == (0.75, 1.0)
    assert summary([one(None, estimate=None), one(2.0)])["told"] == 0.5
    assert summary([one(0.0, "most-common", low=None, high=None, estimate="a", true="b")])["told"] == 1
    assert summary([one(None, estimate=[None], true=[None])])["told"] is None


def test_lists_count_each_answer() -> None:
    told = one(
        1.0, low=[0.0, None, 2.0], true=[1.0, 1.0, 1.0], high=[2.0, None, 3.0], estimate=[1.0, None, 2.5]
    )
    assert summary([told])["covered"] == 0.5
    choice = one(0.0, "most-common", low=None, high=None, estimate="a", true="a")
    assert summary([choice, one(0.1, "most-common", low=None, high=None)])["right"] == 0.5
    assert summary([choice])["covered"] is None


def test_a_bound_is_judged_by_its_own_run() -> None:
    bounds = [{"what": "w", "at_most": most, "probability": 0.95} for most in (1.0, 3.0)]
    repeats = [one(2.0, "histogram", bound=bound) for bound in bounds]
    assert summary(repeats)["within_bound"] == 0.5


def test_long_answers_are_cut_in_a_comparison() -> None:
    long = list(range(1000))
    answer = summary([one(1.0, low=long, high=long, true=long, estimate=long, labels=long)])["answer"]
    assert {len(values) for values in answer.values()} == {200}


@pytest.mark.parametrize("slope", [-1.0, -0.5, 0.0, 0.5])
def test_a_known_slope_is_found(slope: float) -> None:
    cells = [cell("central", n, 3 * n**slope) for n in SIZES]
    [found] = slopes(cells)
    assert found["slope"] == pytest.approx(slope, abs=1e-9)
    assert found["low"] < slope < found["high"]
    assert slope_by_trust([found]) == {"central": found["slope"]}


@pytest.mark.parametrize(("trust", "law"), [("local", "normal"), ("central", "laplace")])
@pytest.mark.parametrize("repeats", [5, 40])
def test_intervals_of_slopes_cover_them(trust: str, law: str, repeats: int) -> None:
    """Errors of each trust model's own law; binomial, false-alarm rate 1e-4 each. Five repeats: 92 % at least."""
    rng, held, trials = np.random.default_rng(3), 0, 800
    for _ in range(trials):
        cells = []
        for n in SIZES:
            errors = getattr(rng, law)(0, n**-0.5, repeats)
            cells.append(cell(trust, n, float(np.sqrt((errors**2).mean())), repeats=repeats))
        [found] = slopes(cells)
        held += found["low"] <= -0.5 <= found["high"]
    assert binom.cdf(held, trials, 0.95 if repeats > 5 else 0.92) > 1e-4


def test_one_slope_for_each_trust_mechanism_epsilon_and_query() -> None:
    cells = [
        cell(trust, n, 1 / n, epsilon=epsilon, asked=asked)
        for trust, asked in (("local", "sue"), ("local", "oue"), ("central", None))
        for epsilon in (1.0, 2.0)
        for n in SIZES
    ]
    found = slopes([*cells, *(cell("none", n, 0.0, epsilon=None) for n in SIZES)])
    assert [(each["trust"], each["mechanism"], each["epsilon"]) for each in found] == [
        ("local", "sue", 1.0), ("local", "sue", 2.0), ("local", "oue", 1.0), ("local", "oue", 2.0),
        ("central", None, 1.0), ("central", None, 2.0),
    ]  # fmt: skip
    assert slopes([cell("local", 100, 1.0), cell("local", 100, 2.0, epsilon=2.0)]) == []
    assert slope_by_trust([]) is None


def test_a_line_with_an_error_of_zero_has_no_slope() -> None:
    """Without its lucky point the line would be biased."""
    lucky = [cell("central", n, rmse) for n, rmse in ((10, 1.0), (100, 0.1), (1000, 0.0))]
    assert slopes(lucky) == []
    [found] = slopes([*lucky, *(cell("local", n, 1 / n) for n in SIZES)])
    assert found["trust"] == "local"


def test_largest_errors_and_errors_of_some_answers_alone_have_slopes_without_an_interval() -> None:
    for query in ({"kind": "histogram"}, {"kind": "share-by-group"}, {"kind": "mean", "told": 0.9}):
        [found] = slopes([cell("central", n, 3 / n, **query) for n in SIZES])
        assert found["slope"] == pytest.approx(-1)
        assert (found["low"], found["high"]) == (None, None)


def mixed() -> list[dict]:
    """A share and a count, whose errors fall and grow."""
    found = []
    for trust, power in (("local", -0.5), ("central", -1.0)):
        for n in SIZES:
            one = cell(trust, n, n**power, kind="mean-of-bits", name="share")
            one["queries"] += cell(trust, n, n ** (power + 1), name="number")["queries"]
            found.append(one)
    return found


def test_slopes_of_different_quantities_are_not_averaged() -> None:
    cells = mixed()
    found = slopes(cells)
    assert slope_by_trust(found) is None
    assert [round(one["slope"], 9) for one in found] == [-0.5, 0.5, -1, 0]
    assert slope_by_trust([one for one in found if one["query"] == "share"]) == pytest.approx(
        {"local": -0.5, "central": -1.0}
    )
    assert (
        "With the number n of clients the error of share goes as n^-0.50 under local trust and n^-1.00 under "
        "central trust; the error of number goes as n^0.50 under local trust and n^0.00 under central trust."
    ) in finding(cells, found, PRIVACY).replace("n^-0.00", "n^0.00")


def test_the_finding_names_errors_at_the_largest_epsilon_and_its_most_clients() -> None:
    cells = [
        cell(trust, n, n**power, epsilon=e)
        for trust, power in (("local", -0.5), ("central", -1.0))
        for e in (0.5, 2.0)
        for n in SIZES
    ]
    text = finding([cell("none", 10, 0.0, epsilon=None), *cells], slopes(cells), PRIVACY)
    assert text == (
        "At epsilon 2 and 100,000 clients, on average over the repeats: q, absolute error: 0.00316 under local "
        "trust, 1e-5 under central trust. With the number n of clients the error goes as n^-0.50 under local "
        "trust and n^-1.00 under central trust. Each epsilon, of all queries together: delta 0, unit client, "
        "adjacency replace-one, under local trust also against the server; under central trust only against "
        "those who see what is published."
    )
    assert "nothing to compare" in finding([cell("none", 10, 0.0, epsilon=None)], [], PRIVACY)


def test_a_finding_of_what_was_broken_off() -> None:
    """The largest epsilon got no further than 100 clients: that is what there is to say."""
    cells = [cell("local", 100, 0.3), cell("local", 1000, 0.2), cell("local", 100, 0.1, epsilon=2.0)]
    assert finding(cells, [], PRIVACY).startswith(
        "At epsilon 2 and 100 clients, on average over the repeats: q"
    )


def test_a_choice_says_how_often_it_was_right() -> None:
    text = finding([cell("central", 10, 0.1, right=0.25, asked="noisy-max")], [], PRIVACY)
    assert "q, how often the best was chosen: 25 % (10 % lost) under central trust with noisy-max." in text
    assert "q, " not in finding([cell("central", 10, 0.1, error=None)], [], PRIVACY).split(":", 1)[1]


def test_a_finding_says_what_its_epsilon_stands_at_once() -> None:
    privacy = {"delta": 1e-5, "unit": "client", "adjacency": "add-remove"}
    text = finding([cell("central", 10, 0.1), cell("central", 100, 0.1)], [], privacy)
    terms = "Each epsilon, of all queries together: delta 1e-05, unit client, adjacency add-remove, "
    assert text.endswith(terms + "under central trust only against those who see what is published.")
    assert "local" not in text


def test_errors_of_shares_are_in_points() -> None:
    text = finding([cell("local", 10, 0.00371, kind="mean-of-bits")], [], PRIVACY)
    assert "q, absolute error: 0.371 points under local trust." in text


def test_a_finding_says_where_errors_are_of_some_answers_alone() -> None:
    assert "absolute error: 0.1 (62.5 % released) under" in finding(
        [cell("central", 10, 0.1, told=0.625)], [], PRIVACY
    )
    assert " told" not in finding([cell("central", 10, 0.1)], [], PRIVACY)
