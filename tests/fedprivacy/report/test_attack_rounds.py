"""The report of passive attacks by the rounds that they observed."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from attack_documents import at_levels, over_time
from pages import HOSTILE, Page, check_charts, check_epsilons, check_whole, poisoned, safe, worded
from shown import check_shown

from fedprivacy import report

# The lectures' table: first and last round observed, how many, attack accuracy (CIFAR100-Alexnet).
LECTURES = {(5, 25, 5): 0.574, (10, 50, 5): 0.765, (50, 250, 5): 0.795, (100, 300, 5): 0.851}


def said(document: dict[str, Any]) -> str:
    return worded(document).text("observed").replace("\N{NO-BREAK SPACE}", " ")


def test_every_observation_stands_in_the_table_with_its_intervals(documents) -> None:
    document = over_time(documents["bare"], LECTURES)
    rows = [
        [cell.replace("\N{NO-BREAK SPACE}", " ") for cell in row] for row in worded(document).rows("observed")
    ]
    for one, (first, last, count) in zip(document["attacks"], LECTURES, strict=True):
        right, auc = one["balanced_accuracy"], one["auc"]
        assert [
            f"{first} to {last}, {count} of them {one['name']}",
            f"{100 * right['value']:.1f} % {100 * right['low']:.1f} to {100 * right['high']:.1f} %",
            f"{auc['value']:.3f} {auc['low']:.3f} to {auc['high']:.3f}",
            "6.0 % 1.0 to 11.0 %",
            f"{100 * one['model_accuracy']['after']:.1f} %",
        ] in rows


def test_later_rounds_tell_more_only_where_the_intervals_are_apart(documents) -> None:
    apart = said(over_time(documents["bare"], LECTURES))
    assert (
        "who looks at 5 of the rounds 5 to 25 is right about 57.4 % (52.4 to 62.4 %) of the targets, who looks "
        "at 5 of the rounds 100 to 300 about 85.1 % (80.1 to 90.1 %): later rounds tell more."
    ) in apart
    near = said(over_time(documents["bare"], {(1, 5, 5): 0.52, (6, 10, 5): 0.54}))
    assert "no difference can be told: the intervals overlap" in near
    assert "the last is indistinguishable from guessing" in near
    fallen = said(over_time(documents["bare"], {(1, 5, 5): 0.9, (6, 10, 5): 0.7}))
    assert "later rounds tell less" in fallen


def test_that_more_rounds_were_seen_too_is_told(documents) -> None:
    mixed = "time and number cannot be told apart"
    assert mixed in said(over_time(documents["bare"], {(1, 5, 5): 0.52, (1, 50, 50): 0.8}))
    assert mixed not in said(over_time(documents["bare"], LECTURES))


def test_only_passive_attacks_of_one_seat_and_one_run_are_compared(documents) -> None:
    document = over_time(documents["bare"], LECTURES)
    for key, value in (("seat", "participant"), ("isolating", True), ("attack", "active-gradient-ascent")):
        other = copy.deepcopy(document)
        other["attacks"] = other["attacks"][:2]
        other["attacks"][1][key] = value
        assert 'id="observed"' not in worded(other).html
    same = over_time(documents["bare"], {(5, 25, 5): 0.6})
    assert 'id="observed"' not in worded({**same, "attacks": same["attacks"] * 2}).html
    assert 'id="observed"' not in worded(documents["bare"]).html


def test_each_epsilon_has_a_picture_of_its_own(documents) -> None:
    over = over_time(documents["bare"], dict(list(LECTURES.items())[:2]))
    document = at_levels(over, {one["name"]: 0.8 for one in over["attacks"]})
    for one in document["attacks"]:
        first, last = one["name"].split("-")[1:]
        one["observed"] = {"first": int(first), "last": int(last), "count": 5}
    page = Page(report.render(document))
    check_epsilons(page)
    check_whole(page)
    observed = page.text("observed").replace("\N{NO-BREAK SPACE}", " ")
    for level in ("at epsilon 1", "at epsilon 8", "at epsilon 64", "without privacy"):
        assert f"From the seat of the server, {level}: who looks at" in observed


@pytest.mark.parametrize("name", ["bare", "private"])
def test_the_page_is_whole_and_takes_no_markup(documents, name: str) -> None:
    document = over_time(documents[name], {(1, 5, 5): 0.52, (6, 400, 20): 0.8})
    page = Page(report.render(document))
    check_whole(page)
    check_epsilons(page)
    hostile = poisoned(document)
    for one in hostile["attacks"]:
        one["attack"] = "passive"
    assert HOSTILE in safe(report.render(hostile)).text("observed")


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.parametrize("name", ["bare", "private"])
def test_the_page_shows_in_a_real_browser(documents, browser: Any, name: str, tmp_path: Path) -> None:
    check_shown(browser, report.write(over_time(documents[name], LECTURES), tmp_path))


@pytest.mark.parametrize("name", ["bare", "private"])
def test_charts_keep_their_texts_apart_and_their_lines_differ(documents, name: str) -> None:
    check_charts(over_time(documents[name], LECTURES))
