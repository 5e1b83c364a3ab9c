"""The report of statistics: documents of scenarios that are played here, and what their pages say and hide."""

from __future__ import annotations

import copy
import doctest
import json
import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
from pages import HOSTILE, Page, charts_of, check_charts, check_whole, poisoned, safe, worded
from shown import LOOKS, OPPOSITE, PRINT, check_shown

from fedprivacy import report
from fedprivacy.errors import InputError
from fedprivacy.report import page_of
from fedprivacy.report.statistics import answer_charts, errors, figures
from fedprivacy.scenario.statistics import Statistics
from fedprivacy.statistics.comparison import SHOWN
from fedprivacy.verification.verify import checked_document
from scenarios.experiments.statistics_comparison import compare
from scenarios.experiments.statistics_run import ask

SURVEY = """
name = "survey"
description = "Who has seen it?"
seed = 7
[data]
name = "bits"
clients = 2000
share = 0.6
[queries.seen-it]
kind = "mean-of-bits"
central = "laplace"
[privacy]
trust = "local"
epsilon = 1.0
[compare]
trusts = ["none", "central", "local"]
epsilons = [0.5, 2.0]
clients = [100, 10_000]
repeats = 8
"""
INCOMES = """
name = "incomes"
seed = 7
[data]
name = "numbers"
clients = 4000
median = 20.0
spread = 0.5
[queries.rich]
kind = "count"
above = 30.0
[queries.mean]
kind = "mean"
low = 0.0
high = 100.0
[queries.brackets]
kind = "histogram"
edges = [10.0, 20.0, 40.0]
[queries.rich-by-bracket]
kind = "share-by-group"
by = "answer"
above = 30.0
edges = [10.0, 20.0, 40.0]
[queries.quartiles]
kind = "quantile"
low = 0.0
high = 100.0
quantiles = [0.25, 0.5, 0.75]
[queries.usual]
kind = "most-common"
edges = [10.0, 20.0, 40.0]
names = ["poor", "modest", "well off", "rich"]
[queries.price]
kind = "best-price"
prices = [10.0, 15.0, 20.0, 30.0]
[privacy]
trust = "central"
epsilon = 7.0
[compare]
trusts = ["none", "central", "local"]
epsilons = [1.0, 8.0]
repeats = 3
"""


def played(text: str, folder: Path, *changes: str, cells: bool = False) -> dict[str, Any]:
    scenario = Statistics.from_text(text, overrides=changes)
    return compare(scenario, folder, workers=1) if cells else ask(scenario, folder)


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Each kind of document; their folders hold the pages that were written when they were played."""
    folder = tmp_path_factory.mktemp("played")
    return {
        "survey": played(SURVEY, folder),
        "incomes": played(INCOMES, folder),
        "exact": played(INCOMES, folder, 'privacy = { trust = "none" }'),
        "falling": played(SURVEY, folder, cells=True),
        "beside": played(INCOMES, folder, cells=True),
    }


NAMES = ("survey", "incomes", "exact", "falling", "beside")


@pytest.fixture(scope="module", params=NAMES)
def page(request: pytest.FixtureRequest, documents: dict[str, dict[str, Any]]) -> Page:
    return Page((Path(documents[request.param]["path"]) / "report.html").read_text())


def section(page: Page, name: str) -> str:
    return page.text(name)


# --- one run


def test_an_answer_stands_with_its_interval_what_that_covers_and_the_true_value_marked(documents) -> None:
    document = documents["survey"]
    page = worded(document)
    [query] = document["queries"]
    ends = figures.interval("mean-of-bits", (query["low"], query["high"]))
    assert ["seen-it", figures.value("mean-of-bits", query["estimate"]), ends, "60 %"] in page.rows()
    assert page.rows()[0][3] == "True value (simulation only)"
    caption = page.text("figcaption")
    assert query["covers"] in caption
    assert "no guarantee covers those who see it" in caption
    interval = (query["low"], query["high"])
    decimals = figures.fitting("mean-of-bits", interval)
    assert figures.interval("mean-of-bits", interval, decimals) in page.text("answer")


def test_every_query_says_how_it_was_asked_and_what_it_promises(documents) -> None:
    page = worded(documents["incomes"])
    rows = {row[0]: row[1:] for row in page.rows("queries")[1:]}
    assert set(rows) == set(documents["incomes"]["scenario"]["queries"])
    assert rows["mean"][2].startswith("Laplace noise of scale 1. The server adds noise")
    assert rows["brackets"][3].startswith("Largest error of any category: at most")
    assert rows["price"][2].startswith("Exponential mechanism, e times as likely")
    assert (
        rows["usual"][1]
        == "column answer; edges 10, 20, 40; names poor, modest, well off, rich; per client 1"
    )


def test_a_choice_stands_beside_the_best_one(documents) -> None:
    document = documents["incomes"]
    price = next(query for query in document["queries"] if query["kind"] == "best-price")
    html = worded(document).html
    assert figures.worth(price["score"], "revenue") in html
    assert figures.worth(price["best"], "revenue") in html
    assert "Truly best (simulation only)" in html


def test_the_guarantees_are_said_in_the_words_of_statistics(page: Page) -> None:
    said = page.text("main", without="operator-only")
    assert not re.search(r"\bmodels? (that|made)|global model|\bupdates?\b", said)
    assert "published statistics" in page.text("guarantees")


def test_under_central_trust_the_page_says_that_the_server_sees_exact_totals(documents) -> None:
    page = worded(documents["incomes"])
    assert "sees exact totals" in page.text("guarantees")
    assert page.rows("guarantees")[1][1].startswith("No guarantee")
    assert "the server is honest: it sees exact totals" in page.text("guarantees")


def test_of_many_categories_the_largest_are_drawn_and_the_page_says_so(documents) -> None:
    document = copy.deepcopy(documents["incomes"])
    query = next(one for one in document["queries"] if one["kind"] == "histogram")
    query["labels"] = [f"name {place}" for place in range(1000)]
    for key in ("estimate", "low", "high", "true"):
        query[key] = [float(place) for place in range(1000)]
    document["queries"] = [query]
    page = Page(report.render(document))
    assert "The largest 40 of 1,000 are drawn." in page.text("figcaption")
    assert "The largest 400 of 1,000 are listed; the stored record has all." in page.text("caption")
    drawn = [text for marks, text in page.texts if {"answers-1-wide", "text"} <= set(marks)]
    assert sum(text.strip().startswith("name ") for text in drawn) == answer_charts.DRAWN
    assert any(text.strip() == "name 999" for text in drawn)
    assert not any(text.strip() == "name 959" for text in drawn)


def test_too_much_noise_to_tell_is_said(documents) -> None:
    document = copy.deepcopy(documents["survey"])
    document["queries"][0].update(estimate=None, low=None, high=None)
    assert "cannot be told" in worded(document).text("main")


def test_a_shufflers_bound_stands_apart_from_the_guarantees(tmp_path: Path) -> None:
    changes = ("privacy.delta=1e-6", "privacy.shuffled=true")
    document = played(SURVEY, tmp_path, *changes)
    page = worded(document)
    assert "This run has no shuffler" in page.text("shuffled")
    assert "delta 1e-6, unit client, adjacency replace-one" in page.text("shuffled")
    document["privacy"]["shuffled"]["epsilon"] /= 2
    (Path(document["path"]) / "run.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"privacy\.shuffled\.epsilon: says"):
        checked_document(Path(document["path"]))


# --- a comparison


def test_the_answer_stands_before_the_picture_the_finding_and_the_guarantees(documents) -> None:
    html = worded(documents["falling"]).html
    places = ('id="answer"', 'class="picture"', 'class="finding"', '<section id="guarantees"')
    assert sorted(places, key=html.index) == list(places)


def test_the_headline_is_the_scenarios_trust_model_in_points_by_the_measure_of_the_chart(documents) -> None:
    document = copy.deepcopy(documents["falling"])
    document["scenario"]["privacy"]["trust"] = "local"
    most = max(cell["clients"] for cell in document["cells"])
    for cell in document["cells"]:
        mean = {"local": 0.121, "central": 0.00371}.get(cell["trust"], 0.0)
        ends = {"low": 0.9 * mean, "high": 1.1 * mean}
        cell["queries"][0].update(kind="mean-of-bits", measure="absolute error", error={"mean": mean, **ends})
    page = page_of(document)
    assert page.answer.value == "12.1 points"
    assert "12.1 points under Local and 0.371 points under Central" in page.answer.sentence
    assert "mean absolute error" in page.answer.cards[0].note.lower()
    assert "mean absolute error, points" in charts_of(document)[0].panels[0].heading
    for cell in document["cells"]:
        if (cell["trust"], cell["clients"]) == ("local", most):
            cell["queries"][0]["error"].update(low=0.0, high=0.3)
    answer = page_of(document).answer
    assert answer.value == "Too few repeats"
    assert answer.cards[0].lines[1].note == "Too few repeats to tell"


def test_the_slopes_stand_at_the_lines_and_in_a_table_beside_the_lectures_laws(documents) -> None:
    document = documents["falling"]
    page = Page((Path(document["path"]) / "report.html").read_text(encoding="utf-8"))
    rows = page.rows("slopes")[1:]
    for row, slope in zip(rows, document["slopes"], strict=True):
        said = f"{slope['slope']:.2f}"
        assert row[3:] == [said, f"{slope['low']:.2f} to {slope['high']:.2f}"]
        label = f"{slope['trust'].capitalize()}, epsilon {slope['epsilon']:g}: n^{said}"
        assert label in re.sub(r"\s+", " ", page.text("errors-0-wide"))
    assert len(rows) == 4
    assert "n >= c/(epsilon² alpha²)" in page.text("slopes")


def test_a_slope_without_an_interval_stands_with_the_reason(documents) -> None:
    document = copy.deepcopy(documents["falling"])
    assert "no interval" not in worded(document).text("slopes")
    for slope in document["slopes"]:
        slope["low"] = slope["high"] = None
    page = worded(document)
    assert {row[4] for row in page.rows("slopes")[1:]} == {"—"}
    assert "The largest error of several, and errors of some answers alone" in page.text("slopes")


def test_errors_stand_with_how_many_answers_were_told(documents) -> None:
    document = copy.deepcopy(documents["falling"])
    assert "released)" not in worded(document).text("main")
    document["cells"][-1]["queries"][0]["told"] = 0.625
    text = worded(document).text("main")
    assert "(62.5 % released)" in text
    assert "errors are of those alone" in text


def test_what_epsilon_stands_at_is_said_once_at_the_finding(documents) -> None:
    found = worded(documents["falling"]).text("finding")
    assert found.count("delta 0, unit client, adjacency replace-one") == 1
    assert "under local trust also against the server" in found
    broken = {**documents["falling"], "finding": None, "status": "failed"}
    assert worded(broken).text("finding").count("adjacency replace-one") == 1


def test_exact_central_and_local_answers_stand_side_by_side(documents) -> None:
    document = documents["beside"]
    page = worded(document)
    head, *rows = page.rows("answers")
    assert head == ["", "Exact (simulation only)", "Central", "Local"]
    first = {cell["trust"]: cell["queries"][0]["answer"] for cell in document["cells"]}
    exact, *noisy = (first[trust] for trust in ("none", "central", "local"))
    shown = [
        f"{figures.value('count', one['estimate'])} {figures.interval('count', (one['low'], one['high']))}"
        for one in noisy
    ]
    assert ["rich", figures.value("count", exact["estimate"]), *shown] in rows
    assert "delta 0, unit client, adjacency replace-one" in page.text("answers")


def test_the_largest_error_stands_beside_its_bound_and_the_share_within(documents) -> None:
    document = documents["beside"]
    rows = worded(document).rows("promises")
    cell = next(cell for cell in document["cells"] if (cell["trust"], cell["epsilon"]) == ("central", 8.0))
    query = next(query for query in cell["queries"] if query["kind"] == "histogram")
    bound = f"{figures.words.number(query['bound']['at_most'])} (95 %)"
    within = figures.percent(query["within_bound"])
    assert [figures.error(query["error"]["mean"]), bound, within] in [
        [row[2], *row[4:]] for row in rows[1:] if len(row) > 5
    ]


def test_categories_that_a_comparison_leaves_out_are_not_passed_over_in_silence(documents) -> None:
    document = copy.deepcopy(documents["beside"])
    for cell in document["cells"]:
        [query] = [one for one in cell["queries"] if one["kind"] == "histogram"]
        cell["queries"] = [query]
        query["answer"] = {
            "labels": [f"name {place}" for place in range(SHOWN)],
            **{key: [float(place) for place in range(SHOWN)] for key in ("estimate", "low", "high", "true")},
        }
    caption = worded(document).text("answers")
    assert f"The largest 40 of the first {SHOWN} are drawn. A comparison keeps the first {SHOWN}" in caption


def test_a_line_that_is_missing_since_nothing_is_off_is_named(documents) -> None:
    document = copy.deepcopy(documents["beside"])
    for cell in (cell for cell in document["cells"] if cell["trust"] == "central"):
        cell["queries"][0].update(rmse=0.0, error={"mean": 0.0, "low": 0.0, "high": 0.0})
    caption = worded(document).text("figcaption")
    assert "No error above 0, hence no line: rich, Central." in caption


def test_choices_say_how_often_they_are_right_and_what_they_lose(documents) -> None:
    document = documents["beside"]
    rows = worded(document).rows("choices")
    for cell in (cell for cell in document["cells"] if cell["epsilon"]):
        for query in (query for query in cell["queries"] if query["score"]):
            said = [figures.percent(query["right"]), figures.words.number(query["score"]["mean"])]
            assert [*said, figures.words.number(query["best"])] in [row[2:5] for row in rows]


def test_a_score_is_never_above_the_best_and_the_loss_is_their_difference(documents) -> None:
    [price] = [one for one in documents["incomes"]["queries"] if one["kind"] == "best-price"]
    assert price["best"] >= price["score"] > 0
    assert price["error"] == pytest.approx((price["best"] - price["score"]) / price["best"])


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("name", ["falling", "beside"])
def test_a_comparison_renders_with_whatever_it_lacks(documents, name: str) -> None:
    document = documents[name]
    for change in (
        {"cells": [], "slopes": [], "finding": None, "status": "failed"},
        {"cells": document["cells"][:1], "slopes": [], "status": "interrupted"},
        {"cells": [{"trust": "local", "epsilon": 1.0, "queries": [{"name": "a", "kind": "count"}]}]},
        {"scenario": {}, "notes": [], "performance": None},
    ):
        Page(report.render({**document, **change}))


@pytest.mark.parametrize("status", ["running", "failed", "interrupted"])
def test_a_run_that_broke_off_says_how_far_it_came(documents, status: str) -> None:
    document = {**documents["incomes"], "status": status, "queries": documents["incomes"]["queries"][:2]}
    assert "2 of 7 queries" in worded(document).text("main")
    worded({**document, "queries": []})


def test_a_query_that_is_charged_without_an_answer_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def on_query(result: dict[str, Any]) -> None:
        if result["name"] == "rich":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ask(Statistics.from_text(INCOMES), tmp_path, on_query=on_query)
    assert "The 2 queries charged by then (mean has no answer) cost" in capsys.readouterr().err
    text = Page(next(tmp_path.glob("*/report.html")).read_text()).text("main")
    assert "after 1 of 7 queries. mean was under way: it is charged, and has no answer." in text
    assert "what the 2 queries charged before it stopped (mean has no answer) cost alone" in text
    assert "released before" not in text


def test_no_category_of_many_stands_for_all(documents, tmp_path: Path) -> None:
    changes = ("data = {name = 'categories', clients = 3000, categories = 50, exponent = 1.0}",)
    many = SURVEY.replace('"mean-of-bits"', '"histogram"').replace("seen-it", "names")
    document = played(many, tmp_path, *changes)
    answer = page_of(document).answer
    assert answer is not None
    assert answer.sentence.startswith("All 50 counts of names are within ±")
    assert answer.value.startswith("±")
    assert "50 counts of names, all of them with probability 95 %" in answer.label
    [query] = document["queries"]
    unbounded = {**document, "queries": [{**query, "bound": None}]}
    largest = page_of(unbounded).answer
    assert largest is not None
    assert "the largest of 50 (" in largest.sentence
    brackets = {**documents["incomes"], "queries": documents["incomes"]["queries"][2:3]}
    assert "counts of" not in page_of(brackets).answer.sentence


# --- what every page of statistics holds


def test_no_epsilon_is_bare(page: Page) -> None:
    block = r"<figure>?.*?</figcaption>|<div class=.finding.>.*?</aside>|<p>.*?</p>|<table.*?</table>"
    found = re.findall(block, page.html, re.DOTALL)
    plain = [re.sub(r"<[^>]*>|\s+", " ", re.sub(r"<(title|desc).*?</\1>", "", text)) for text in found]
    for text in (text for text in plain if re.search(r"[Ee]psilon (\d|Mean|Clients)", text)):
        assert all(term in text for term in ("delta 0", "unit client", "adjacency replace-one")), text
        assert re.search(r"server|participants|outsiders|observer", text), text


def test_operator_only_fields_stand_in_their_section_alone(page: Page) -> None:
    assert "Clients that answered" not in page.html
    assert not re.search(r"seed = |--seed|noise_key", page.html)


def test_a_private_number_of_clients_is_not_on_the_page_of_a_run(tmp_path: Path) -> None:
    changes = (
        'privacy.trust="central"',
        'privacy.adjacency="add-remove"',
        "data.clients=1907",
        'compare = {trusts = ["central"]}',
    )
    document = played(SURVEY, tmp_path, *changes)
    assert "1,907" in worded(document).text("operator-only")
    assert not re.search(r"1,?907", report.render(document))


def test_a_comparison_under_add_remove_says_that_its_sizes_are_private(tmp_path: Path) -> None:
    changes = ('privacy.trust="central"', 'privacy.adjacency="add-remove"', 'compare.trusts=["central"]')
    page = worded(played(SURVEY, tmp_path, *changes, cells=True))
    assert "the number of clients is itself private" in page.text("notes")


@pytest.mark.parametrize("name", NAMES)
def test_nothing_in_a_document_becomes_markup(documents, name: str) -> None:
    document = documents[name]
    hostile = {**poisoned(document), "operator_only": document["operator_only"]}
    hostile["scenario"]["queries"][HOSTILE] = {HOSTILE: HOSTILE}
    assert HOSTILE in safe(report.render(hostile)).text("h1")


def test_the_page_is_whole_offline_and_accessible(page: Page) -> None:
    check_whole(page)


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("name", NAMES)
def test_the_same_document_gives_the_same_page(documents, name: str) -> None:
    document = copy.deepcopy(documents[name])
    first = (Path(document["path"]) / "report.html").read_text(encoding="utf-8")
    with mpl.rc_context({"font.size": 30, "axes.grid": False}):
        assert report.render(document) == first
    assert document == documents[name]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"estimate": [1.0]}, "are not equally many"),
        ({"low": [1.0, 2.0]}, "are not equally many"),
        ({"estimate": {}}, "queries[0].estimate"),
        (
            {"bound": {"what": "x", "at_most": float("inf")}},
            "queries[0].bound.at_most is not a finite number",
        ),
    ],
)
def test_a_damaged_answer_is_refused_in_words(documents, change: dict[str, Any], message: str) -> None:
    document = copy.deepcopy(documents["survey"])
    document["queries"][0].update(change)
    with pytest.raises(InputError, match=re.escape(message)):
        report.render(document)


def test_numbers_that_are_not_finite_are_not_drawn(documents) -> None:
    document = copy.deepcopy(documents["falling"])
    for cell in document["cells"]:
        cell["queries"][0].update(rmse=float("nan"), right=float("inf"))
        cell["queries"][0]["answer"].update(estimate=float("nan"), low=float("-inf"))
    Page(report.render(document))
    for value in (float("nan"), float("inf"), -1.0, 1e308, 0, 10**400):
        document = copy.deepcopy(documents["beside"])
        for query in (query for cell in document["cells"] for query in cell["queries"]):
            query["error"] = {
                "mean": float(min(value, 1e308)),
                "low": value if value < 1e300 else None,
                "high": None,
            }
            if not isinstance(query["answer"]["estimate"], list | str):
                query["answer"].update(estimate=value, high=value)
        Page(report.render(document))


def test_examples_in_docstrings_are_true() -> None:
    for module in (figures, answer_charts, errors):
        assert doctest.testmod(module).failed == 0


# --- accounted for again


@pytest.mark.parametrize("name", NAMES)
def test_a_stored_document_is_accounted_for_again(documents, name: str) -> None:
    assert checked_document(Path(documents[name]["path"])) == documents[name]


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("guarantees", 0.001, "its scenario implies"),
        ("trust", "central", "cells"),
        ("epsilon", 0.001, "no such cell"),
        ("clients", 5, "no such cell|its scenario implies"),
    ],
)
def test_a_changed_cell_is_refused(documents, key: str, value: Any, said: str, tmp_path: Path) -> None:
    document = copy.deepcopy(documents["falling"])
    cell = next(cell for cell in document["cells"] if cell["trust"] == "local")
    if key == "guarantees":
        cell["guarantees"][0]["epsilon"] = value
    else:
        cell[key] = value
    (tmp_path / "run.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=said):
        checked_document(tmp_path)


# --- in a real browser


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_page_shows_in_a_real_browser(documents, browser: Any, name: str) -> None:
    path = Path(documents[name]["path"]) / "report.html"
    check_shown(browser, path, LOOKS if name in ("survey", "falling") else OPPOSITE)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["incomes", "falling", "beside"])
def test_a_print_is_dark_on_white_without_what_is_for_the_operator(
    documents, browser: Any, name: str
) -> None:
    check_shown(browser, Path(documents[name]["path"]) / "report.html", [PRINT])
    printed = browser.evaluate("document.querySelector('main').innerText")
    assert "Who is protected from whom" in printed
    assert "For the operator" not in printed


@pytest.mark.parametrize("name", NAMES)
def test_charts_keep_their_texts_apart_and_their_lines_differ(documents, name: str) -> None:
    check_charts(documents[name])


def test_a_share_ends_at_100_percent_has_the_digits_of_its_interval_too_few_people_lead(
    documents,
) -> None:
    document = copy.deepcopy(documents["survey"])
    document["privacy"]["population"] = 30
    query = next(query for query in document["queries"] if query["kind"] == "mean-of-bits")
    document["queries"] = [query]
    query.update(estimate=0.71639, low=0.33698, high=1.09581)
    answer = report.page_of(document).answer
    assert answer.value == "Too few people"
    assert answer.label == (
        "to tell seen-it: 72 %, 95 % interval 34 % to 100 %; 30 took part, about 440 would do"
    )
    assert answer.sentence.startswith(
        "Too few people to tell seen-it: 30 took part, about 440 would do; epsilon"
    )
    assert "109." not in worded(document).text()
    document["privacy"]["population"] = None
    assert "about 15 times as many would do" in report.page_of(document).answer.label
    query.update(estimate=0.593, low=0.57414, high=0.61204)
    answer = report.page_of(document).answer
    assert (answer.value, answer.label) == ("59.3 %", "seen-it, 95 % interval 57.4 % to 61.2 %")
