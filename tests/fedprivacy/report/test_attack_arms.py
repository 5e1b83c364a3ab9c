"""The report of a game in several arms: which attack is the strongest, what decides, and what is only said."""

from __future__ import annotations

import copy
import doctest
import re
from pathlib import Path
from typing import Any

import pytest
from attack_documents import best_of, in_arms, measure
from pages import HOSTILE, Page, check_charts, check_epsilons, check_whole, poisoned, safe, saved, worded
from shown import check_shown

from fedprivacy import report
from fedprivacy.documents.kinds import read
from fedprivacy.errors import InputError
from fedprivacy.report.attacks import arms, strongest
from fedprivacy.report.attacks.arms import WEAK
from scenarios.cli.display_attacks import show_replay

STRENGTHS = {"listening": 0.75, "raising": 0.97, "listening-aside": 0.7}


@pytest.fixture(scope="module")
def armed(documents: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return in_arms(documents["bare"], STRENGTHS)


@pytest.fixture(scope="module")
def page(armed: dict[str, Any]) -> Page:
    return Page(report.render(armed))


def changed(
    document: dict[str, Any], arm: str, epsilon: float | None, seat: str, **more: Any
) -> dict[str, Any]:
    """The document whose strongest attack of one seat in one arm is otherwise."""
    other = copy.deepcopy(document)
    [found] = [a for a in other["arms"] if (a["arm"], a["epsilon"]) == (arm, epsilon)]
    found["strongest"][seat].update(more)
    return other


def every_best(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for arm in document["arms"] for one in arm["strongest"].values()]


def best(document: dict[str, Any], seat: str, arm: str, epsilon: float | None) -> Any:
    found = strongest.reached(read(document))[seat]
    return next(one for one in found if (one.arm.arm, one.arm.epsilon) == (arm, epsilon))


def test_the_strongest_is_the_one_that_was_chosen_for_each_fold_on_the_others(armed) -> None:
    assert best(armed, "server", "local", 8.0).name == "raising"
    # An attack that looks stronger where it is measured is no stronger for that.
    lucky = copy.deepcopy(armed)
    for one in lucky["attacks"]:
        if one["name"] == "listening":
            one["auc"] = measure(0.99, 0.005)
    assert best(lucky, "server", "local", 8.0) == best(armed, "server", "local", 8.0)


def test_the_attacks_of_all_folds_are_named(armed) -> None:
    attacks = [
        {"name": "raising", "seat": "server", "supervised": True, "folds": 3},
        {"name": "listening-aside", "seat": "participant", "supervised": False, "folds": 2},
    ]
    other = changed(armed, "local", 8.0, "server", attacks=attacks, auc=measure(0.55))
    found = best(other, "server", "local", 8.0)
    assert (
        found.name == "raising, supervised in 3 of 5 folds; listening-aside (as participant) in 2 of 5 folds"
    )
    rows = worded(other).rows()
    assert any(row[0] == "local, epsilon 8" and row[2] == found.name for row in rows)


def test_the_table_of_arms_tells_the_figure_that_attacks_are_chosen_by_and_the_other_as_such(armed) -> None:
    """An attack of less AUC may be right more often: its figure would look like a contradiction."""
    odd = changed(armed, "local", 8.0, "server", balanced_accuracy=measure(0.52), auc=measure(0.64))
    table = arms.summary(read(odd))
    assert "The server: AUC" in table.head
    row = next(row for row in table.rows if getattr(row[0], "text", "") == "local, epsilon 8")
    cell = row[table.head.index("The server: AUC")]
    note = cell.note.replace("\N{NO-BREAK SPACE}", " ")
    assert (cell.text, note) == ("0.640", "0.590 to 0.690; right 52.0 % (47.0 to 57.0 %)")
    assert "chosen by AUC" in table.caption
    assert "noise is made for the rounds of the attacks too" in table.caption


def mixed(document: dict[str, Any], unit: str, adjacency: str) -> dict[str, Any]:
    """The arm `local` protects a unit from a change of its own."""
    other = copy.deepcopy(document)
    for one in other["arms"]:
        if one["arm"] == "local":
            one.update(unit=unit, adjacency=adjacency)
            for held in one["guarantees"]:
                held.update(unit=unit, adjacency=adjacency)
    return other


def test_what_is_proven_is_compared_among_equal_promises_alone(armed) -> None:
    said = arms.sentences(read(mixed(armed, "example", "add-remove")))
    for seat in ("a participant", "an outsider"):
        mine = [one for one in said if one.startswith(f"Against {seat}: with an epsilon of 20 or less")]
        assert len(mine) == 2
        for one, promise, arm in (
            (mine[0], "unit example, adjacency add-remove", "local"),
            (mine[1], "unit client, adjacency replace-one", "central"),
        ):
            assert f"guaranteed for {promise}, the most accurate is {arm}, epsilon 8" in one
    assert sum("Against the server: with an epsilon" in one for one in said) == 1


def test_equal_epsilon_is_said_to_be_no_equal_promise_for_other_units_and_other_adjacencies(
    armed, capsys: pytest.CaptureFixture[str]
) -> None:
    assert arms.cautions(read(armed)) == [WEAK]
    for unit, adjacency in (("example", "add-remove"), ("client", "add-remove"), ("client", "zero-out")):
        other = mixed(armed, unit, adjacency)
        [_, caution] = arms.cautions(read(other))
        assert "of central about replacing one client" in caution
        assert "of local about" in caution
        assert caution in worded(other).text("main").replace("\N{NO-BREAK SPACE}", " ")
        show_replay(other, verbose=True)
        told = " ".join(capsys.readouterr().out.split())
        assert caution in told
        assert WEAK in told


def test_an_attack_of_another_seat_is_named_with_it(armed) -> None:
    [aside] = [a for a in armed["attacks"] if (a["arm"], a["name"]) == ("bare", "listening-aside")]
    other = changed(armed, "bare", None, "server", **best_of(aside))
    server, participant = (best(other, seat, "bare", None) for seat in ("server", "participant"))
    assert server.name == "listening-aside (as participant)"
    assert participant.name == "listening-aside"
    assert best(armed, "outsider", "bare", None).best is None
    assert best(armed, "outsider", "bare", None).name == "none was run"


def test_each_seat_is_held_against_its_own_bound(armed) -> None:
    assert best(armed, "server", "central", 1.0).bound.auc is None
    assert best(armed, "participant", "central", 1.0).bound.auc is not None
    assert best(armed, "server", "local", 1.0).bound.auc == best(armed, "outsider", "local", 1.0).bound.auc


def test_the_finding_tells_for_each_seat_what_is_worth_most_by_proof_and_by_measurement(armed) -> None:
    """Of the server `raising` reaches .64 at epsilon 8, and .52 at 1, whose interval begins below .5."""
    said = worded(armed).text("sentence").replace("\N{NO-BREAK SPACE}", " ")
    assert "In the arm bare, no privacy, the model is right on 95.0 % (91.0 to 99.0 %)" in said
    assert "the server reaches AUC 0.970" in said
    assert (
        "Against the server: with an epsilon of 20 or less guaranteed for unit client, adjacency replace-one, "
        "the most accurate is local, epsilon 8 (accuracy 72.0 % (68.0 to 76.0 %); the strongest attack "
        "reaches AUC 0.641 (0.591 to 0.691), and AUC "
    ) in said
    assert re.search(
        r"by measurement alone, the most accurate where the strongest attack is indistinguishable from guessing is "
        r"(local|central), epsilon 1 \(accuracy 31.0 % \(27.0 to 35.0 %\); AUC 0.52\d \(0.47\d to 0.57\d\), "
        r"(nothing is proven|proven is at most)",
        said,
    )
    assert re.search(r"Against an outsider: .* \(accuracy 72.0 .* no attack was run", said)


def test_what_is_both_is_told_once(armed) -> None:
    quiet = changed(armed, "local", 8.0, "server", auc=measure(0.5))
    said = worded(quiet).text("sentence")
    assert "which is also the most accurate where it is indistinguishable from guessing." in said


def test_an_arm_with_too_few_targets_is_not_said_to_hide_anybody(armed) -> None:
    unknown = copy.deepcopy(armed)
    for one in every_best(unknown):
        one["auc"] = {**measure(0.5), "low": 0.1, "high": 0.9}
    said = worded(unknown).text("sentence")
    assert said.count("no arm is left in which the strongest attack is indistinguishable from guessing") == 2


def test_a_seat_that_finds_something_everywhere_is_not_said_to_be_kept_out(armed) -> None:
    loud = copy.deepcopy(armed)
    for one in every_best(loud):
        one["auc"] = measure(0.9)
    said = worded(loud).text("sentence")  # from an outsider's seat none was run
    assert said.count("no arm is left in which the strongest attack is indistinguishable from guessing") == 2


def test_an_epsilon_that_nobody_would_call_protection_counts_as_none(armed) -> None:
    """Only 64 is left against the server, at which its bound says nothing."""
    loose = copy.deepcopy(armed)
    loose["arms"] = [one for one in loose["arms"] if one["trust"] != "local" or one["epsilon"] == 64.0]
    said = worded(loose).text("sentence")
    assert "Against the server: no completed arm guarantees an epsilon of 20 or less" in said


def test_the_table_of_the_picture_has_every_arm_from_every_seat(page) -> None:
    rows = page.rows()
    assert len([row for row in rows if len(row) > 2 and row[0] != "Arm"]) == 3 * 7
    [found] = [row for row in rows if row[0].startswith("central, epsilon 8") and "listening-aside" in row[2]]
    assert found[1] == "8"
    assert found[7].replace("\N{NO-BREAK SPACE}", " ") == "72.0 % (68.0 to 76.0 %)"
    server = next(row for row in rows if row[0].startswith("central, epsilon 8"))
    assert (server[1], server[4]) == ("none", "no guarantee")


def test_what_could_not_be_had_is_told_with_the_reason(page) -> None:
    assert "listening-aside in central: an attacker cannot take its own share out." in page.text("main")


def test_a_seat_without_a_bound_is_said_to_have_none_in_the_picture(page) -> None:
    told = page.text("svg")
    assert "no guarantee: bare, central" in told
    assert "no guarantee: bare" in told


def test_accuracy_in_training_is_for_the_operator_alone(armed) -> None:
    private = Page(report.render({**armed, "operator_only": ["arms[].accuracy.train"]}, operator=True))
    told = private.text("main", without="operator").replace("\N{NO-BREAK SPACE}", " ")
    assert "99.0 %" in private.text("operator").replace("\N{NO-BREAK SPACE}", " ")  # 95 and 4
    assert "Accuracy in training" in private.text("operator")
    assert not re.search(
        r"99\.0 %(?! \))", told.replace("(91.0 to 99.0 %)", "").replace("91.0 to 99.0 %", "")
    )


def test_no_epsilon_is_bare(page) -> None:
    check_epsilons(page)


def test_the_page_is_whole_offline_and_accessible(page) -> None:
    check_whole(page)


def test_nothing_in_a_document_becomes_markup(armed) -> None:
    assert HOSTILE in safe(report.render(poisoned(armed))).text("h1")


@pytest.mark.exhaustive
def test_a_document_renders_with_whatever_it_lacks(armed) -> None:
    for lacking in (
        {**armed, "attacks": []},
        {**armed, "arms": armed["arms"][:1]},
        {**armed, "arms": [], "status": "interrupted"},
        {**armed, "arms": [{**one, "accuracy": {}, "bounds": {}, "guarantees": []} for one in armed["arms"]]},
    ):
        assert Page(report.render(lacking)).text("h1")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": -1.0}, "arms[0].epsilon"),
        ({"arm": 3}, "arms[0].arm is not text"),
        ({"bounds": {"server": {"auc": 2.0}}}, "arms[0].bounds.server.auc"),
    ],
)
def test_a_damaged_arm_is_refused_in_words(armed, change: dict[str, Any], message: str) -> None:
    document = copy.deepcopy(armed)
    document["arms"][0].update(change)
    with pytest.raises(InputError, match=re.escape(message)):
        report.render(document)


def test_the_terminal_shows_each_arm_and_the_finding(armed, capsys: pytest.CaptureFixture[str]) -> None:
    show_replay(armed, verbose=True)
    told = " ".join(capsys.readouterr().out.split())
    assert "Against the server: with an epsilon of 20 or less guaranteed for unit client" in told
    assert WEAK in told
    assert "no equal promise" not in told
    assert "left out: listening-aside in central" in told
    assert "0.970" in told
    assert "delta 1e-5, unit client, adjacency replace-one" in told


def test_the_terminal_is_brief_about_arms(armed, capsys: pytest.CaptureFixture[str]) -> None:
    show_replay(armed)
    result, *lines = capsys.readouterr().out.splitlines()
    assert result.startswith(f"{armed['name']}: ")
    assert [line.partition(":")[0] for line in lines] == [
        "server", "participant", "outsider", "Each epsilon", "report"
    ]  # fmt: skip
    assert "by each client's own noise" in lines[0]
    assert "by the server's noise" not in lines[0]
    assert "or no guarantee (" in lines[0]
    assert "by the server's noise" in lines[2]


def test_examples_in_docstrings_are_true() -> None:
    assert doctest.testmod(strongest).failed == 0


@pytest.mark.slow
def test_the_page_shows_in_a_real_browser(page, browser: Any, tmp_path: Path) -> None:
    check_shown(browser, saved(page, tmp_path))


def test_charts_keep_their_texts_apart_and_their_lines_differ(armed) -> None:
    check_charts(armed)
