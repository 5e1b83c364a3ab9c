"""The report of attacks: documents of scenarios that are played here, and what their pages say and hide."""

from __future__ import annotations

import copy
import doctest
import json
import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
from pages import HOSTILE, Page, check_epsilons, check_whole, poisoned, safe, worded
from shown import PRINT, check_shown

from fedprivacy import report
from fedprivacy.documents.kinds import read
from fedprivacy.documents.replay import ReplayDocument
from fedprivacy.documents.roc import Curve
from fedprivacy.errors import InputError
from fedprivacy.io import tolerance
from fedprivacy.report.attacks import figures, finding
from fedprivacy.report.charts.roc import allowed, averaged
from fedprivacy.verification.verify import checked_document
from scenarios.cli.display_attacks import show_replay

NAMES = ("bare", "private")


@pytest.fixture(scope="module", params=NAMES)
def page(request: pytest.FixtureRequest, documents: dict[str, dict[str, Any]]) -> Page:
    return Page(stored(documents[request.param]).read_text(encoding="utf-8"))


def stored(document: dict[str, Any]) -> Path:
    """The page that was written when the document was."""
    return Path(document["path"]) / "report.html"


def changed(document: dict[str, Any], **parts: Any) -> dict[str, Any]:
    """A copy whose first attack has other parts."""
    other = copy.deepcopy(document)
    other["attacks"][0].update(parts)
    return other


def rewritten(document: dict[str, Any], folder: Path) -> Path:
    (folder / "run.json").write_text(json.dumps(document))
    return folder


def _interval(value: float, low: float, high: float) -> dict[str, Any]:
    return {"value": value, "low": low, "high": high, "covers": "targets"}


# --- what the page says


def test_the_sentence_names_the_strongest_attack_of_each_seat_and_what_is_guaranteed(documents) -> None:
    document = documents["bare"]
    said = worded(document).text("sentence").replace("\N{NO-BREAK SPACE}", " ")
    for seat in ("server", "participant"):
        best = max(
            (one for one in document["attacks"] if one["seat"] == seat), key=lambda one: one["auc"]["value"]
        )
        auc = best["auc"]
        ends = f"{auc['low']:.3f} to {auc['high']:.3f}"
        if auc["high"] - auc["low"] > 0.5:  # an interval of nearly everything is no headline
            assert f"{best['name']}, has too few runs to tell whether it distinguishes" in said
            assert f"AUC between {ends.replace('to', 'and')}" in said
            continue
        assert f"{best['name']}, distinguishes members from non-members with AUC {auc['value']:.3f}" in said
        assert f"(95 % interval {ends})" in said
    assert said.count("there is no guarantee against it") == 2
    several = finding.of(read(document)).terms
    assert "the largest of several, which flatters it a little; its interval is for one attack" in several
    assert "too few targets to tell how many members it finds at 1 % FPR" in said


def test_the_sentence_says_what_the_guarantee_allows(documents) -> None:
    [attack] = documents["private"]["attacks"]
    page = worded(documents["private"])
    allowed = figures.at_most(attack["bound"]["auc"])
    assert f"the guarantee allows AUC {allowed} at most" in page.text("sentence")
    assert "epsilon 4 at delta 1e-5, unit client, adjacency replace-one" in page.text("aside")
    assert f"AUC at most {allowed}" in page.text("aside")
    assert float(allowed) >= attack["bound"]["auc"]


def test_an_accuracy_that_stays_is_said_to_stay(documents) -> None:
    kept = changed(documents["private"], model_accuracy={"before": 0.9, "after": 0.9})
    assert "leaves the model's accuracy at 90.0" in worded(kept).text("sentence")
    moved = changed(documents["private"], model_accuracy={"before": 0.9, "after": 0.8})
    assert "accuracy goes from 90.0" in worded(moved).text("sentence")


def test_every_attack_stands_with_its_figures_and_their_intervals(documents) -> None:
    document = documents["bare"]
    rows = worded(document).rows("figures")
    for attack in document["attacks"]:
        auc, gain = attack["auc"], attack["advantage"]
        [row] = [row for row in rows if row[0].startswith(attack["name"] + " ") and len(row) == 7]
        assert row[1] == f"{auc['value']:.3f} {auc['low']:.3f} to {auc['high']:.3f}"
        assert row[-1] == f"{gain['value']:.3f} {gain['low']:.3f} to {gain['high']:.3f}"
        assert row[3].startswith(f"{100 * attack['tpr_at_fpr']['0.1']['value']:.1f} % ")
        assert row[4:6] == ["— too few non-members"] * 2
    assert "how training fell out" in worded(document).text("figures")


def test_a_group_of_rows_says_what_its_guarantee_allows(documents) -> None:
    assert "no guarantee, hence no bound" in worded(documents["bare"]).text("figures")
    [attack] = documents["private"]["attacks"]
    said = worded(documents["private"]).text("figures")
    rate = figures.at_most(attack["bound"]["tpr_at_fpr"]["0.01"], rate=True)
    assert f"at most AUC {figures.at_most(attack['bound']['auc'])}" in said
    assert f"TPR at 1 % FPR {rate}" in said


def test_every_score_stands_beside_the_record_alone(documents) -> None:
    document = documents["bare"]
    page = worded(document)
    blind = [f"{one['blind']['value']:.3f}" for one in _by_seat(document)]
    rows = [row for row in page.rows("figures") if row[0].startswith("The record alone")]
    assert [[cell.split()[0] for cell in row[1:]] for row in rows] == [blind]
    for name in document["attacks"][0]["scores"]:
        assert figures.score(name) in page.text("figures")
    assert "chosen" in page.text("figures")


def _by_seat(document: dict[str, Any]) -> list[dict[str, Any]]:
    return sorted(document["attacks"], key=lambda one: one["seat"] != "server")


def test_the_bound_is_drawn_where_there_is_one_alone(documents) -> None:
    drawn = {
        name: stored(document).read_text(encoding="utf-8").split('<section id="attacks"')[1]
        for name, document in documents.items()
    }
    assert "The most that the guarantee allows" in drawn["private"]
    assert "The most that the guarantee allows" not in drawn["bare"]
    assert "the guarantee allows anything, for there is none" in drawn["bare"]


def test_the_story_of_an_ascent_stands_in_a_picture_and_a_table(documents) -> None:
    document = documents["bare"]
    [[told, *_]] = [one["story"] for one in document["attacks"] if one["story"]]
    rows = worded(document).rows("ascent")
    assert ["Member, run 1 of 2", *map(_short, told["member"])] in rows
    assert ["Non-member, run 1 of 2", *map(_short, told["nonmember"])] in rows
    assert 'id="ascent"' not in worded(documents["private"]).html


def _short(loss: float) -> str:
    return figures.words.number(loss, 3)


def test_a_verdict_stands_beside_the_finding_and_above_it_where_it_refutes_a_guarantee(documents) -> None:
    plain = worded({**documents["private"], "verdict": None})
    agreed = {"words": "All 3 figures agree with their bounds.", "refuted": [], "checks": 3}
    page = worded({**documents["private"], "verdict": agreed})
    assert page.text("finding") == f"{plain.text('finding')} {agreed['words']}"
    assert not page.text("stopped")
    refuted = {
        "words": "The bound of listening does not hold.",
        "refuted": [{"attack": "listening"}],
        "checks": 3,
    }
    page = worded({**documents["private"], "verdict": refuted})
    assert page.text("stopped") == refuted["words"]
    assert page.text("finding") == plain.text("finding")


def test_what_the_guesses_prove_is_told_or_why_they_prove_nothing(documents) -> None:
    told = worded(documents["private"]).text("figures")
    assert re.search(
        r"At least [\d.]+ with confidence 95.0 %; so many guesses can prove at most [\d.]+", told
    )
    none = changed(documents["private"], empirical_epsilon={"reason": "no coin is fair any more"})
    assert "no coin is fair any more" in worded(none).text("figures")
    proved = {"epsilon": 1.25, "ceiling": 3.5, "confidence": 0.95, "method": "one run"}
    said = worded(changed(documents["private"], empirical_epsilon=proved)).text("figures")
    assert "At least 1.25 with confidence 95.0 %; so many guesses can prove at most 3.5 (one run)." in said


def test_a_class_stands_by_itself_where_enough_of_it_was_measured(documents) -> None:
    none = {label: {"auc": None, "members": 9, "nonmembers": 9} for label in "0123"}
    few = worded(changed(documents["private"], per_class=none)).text("figures")
    assert "Of 4 classes 4 have too few targets." in few
    known = {"2": {"auc": _interval(0.6, 0.5, 0.7), "members": 11, "nonmembers": 12}}
    rows = worded(changed(documents["private"], per_class=known)).rows("figures")
    assert ["2", "0.600", "0.500 to 0.700", "11", "12"] in rows


@pytest.mark.parametrize("status", ["running", "failed", "interrupted"])
def test_attacks_that_broke_off_say_how_far_they_came(documents, status: str) -> None:
    document = documents["bare"]
    one = {**document, "status": status, "attacks": document["attacks"][:1]}
    assert "1 of 3 attacks" in worded(one).text("main")
    assert "No attack was completed" in worded({**one, "attacks": []}).text("main")


def test_attacks_that_an_earlier_version_measured_on_half_of_their_targets_are_refused(documents) -> None:
    document = copy.deepcopy(documents["private"])
    document["attacks"][0]["calibration_auc"] = 0.6
    with pytest.raises(InputError, match=r"attacks\[0\].*: an earlier version measured it.*run it again"):
        report.render(document)


def test_a_document_renders_with_whatever_it_lacks(documents) -> None:
    auc = {"value": 0.5, "low": 0.4, "high": 0.6}
    Page(report.render({"schema": 1, "kind": "replay", "attacks": [{"seat": "server", "auc": auc}]}))
    Page(report.render({"schema": 1, "kind": "replay"}))
    Page(report.render(changed(documents["bare"], roc=[], histograms=[], scores={}, blind=None)))


# --- what is drawn


def test_the_curve_of_several_runs_is_their_mean_and_takes_the_upper_end_of_a_step() -> None:
    step = Curve(fpr=(0.0, 0.5, 0.5, 1.0), tpr=(0.0, 0.0, 1.0, 1.0))
    chance = Curve(fpr=(0.0, 1.0), tpr=(0.0, 1.0))
    assert averaged([step], 0.5) == 1.0
    assert averaged([step], 0.4) == 0.0
    assert averaged([step, chance], 0.25) == 0.125
    assert averaged([step, chance], 1.0) == 1.0


def test_a_bound_is_never_read_off_below_itself() -> None:
    bound = Curve(fpr=(0.0, 0.25, 1.0), tpr=(0.0, 0.5, 1.0))  # of a square root
    assert [allowed(bound, rate) for rate in (0.0, 0.2, 0.25, 0.26, 1.0)] == [0.0, 0.5, 0.5, 1.0, 1.0]
    assert allowed(Curve(fpr=(0.0, 0.5), tpr=(0.0, 0.5)), 0.9) == 0.5


def test_examples_in_docstrings_are_true() -> None:
    for module in (figures, tolerance):
        assert doctest.testmod(module).failed == 0


# --- what every page holds


def test_no_epsilon_is_bare(page: Page) -> None:
    check_epsilons(page)


def test_operator_only_fields_stand_in_their_section_alone(documents) -> None:
    public = stored(documents["bare"])
    operator = Page((public.parent / "operator.html").read_text(encoding="utf-8"))
    assert "--seed 3" in operator.text("operator-only")
    assert not re.search(r"\nseed = |--seed|noise_key|Wall-clock", public.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", NAMES)
def test_nothing_in_a_document_becomes_markup(documents, name: str) -> None:
    document = documents[name]
    hostile = {**poisoned(document), "operator_only": document["operator_only"]}
    hostile["scenario"]["attacks"][HOSTILE] = {HOSTILE: HOSTILE}
    first = hostile["attacks"][0]
    first["scores"][HOSTILE] = first["tpr_at_fpr"][HOSTILE] = first["auc"]
    first["per_class"][HOSTILE] = {"auc": first["auc"]}
    assert HOSTILE in safe(report.render(hostile)).text("h1")


def test_the_page_is_whole_offline_and_accessible(page: Page) -> None:
    check_whole(page)


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("name", NAMES)
def test_the_same_document_gives_the_same_page(documents, name: str) -> None:
    document = copy.deepcopy(documents[name])
    first = stored(document).read_text(encoding="utf-8")
    with mpl.rc_context({"font.size": 30, "axes.grid": False}):
        assert report.render(document) == first
    assert document == documents[name]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"auc": _interval(float("nan"), 0.0, 1.0)}, "attacks[0].auc.value is not a finite number"),
        ({"auc": _interval(1.5, 0.0, 1.0)}, "attacks[0].auc.value"),
        ({"auc": None}, "attacks[0].auc"),
        ({"roc": [{"fpr": [0.0, 1.0], "tpr": [0.0]}]}, "fpr and tpr are not equally many"),
        ({"roc": [{"fpr": [1.0, 0.0], "tpr": [0.0, 1.0]}]}, "fpr and tpr must not fall"),
        ({"roc": [{"fpr": [0.0, 2.0], "tpr": [0.0, 1.0]}]}, "attacks[0].roc[0].fpr[1]"),
        ({"histograms": [{"edges": [0.0, 1.0], "members": [], "nonmembers": [1]}]}, "one count between"),
        ({"histograms": [{"edges": [1.0, 1.0], "members": [1], "nonmembers": [1]}]}, "edges must rise"),
        ({"story": {"moments": ["a", "b"], "member": [1.0], "nonmember": [1.0]}}, "one loss at each"),
        ({"guarantee": {"observer": "server", "epsilon": 1.0}}, "an epsilon without delta"),
    ],
)
def test_a_damaged_attack_is_refused_in_words(documents, change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        report.render(changed(documents["private"], **change))


# --- accounted for again


@pytest.mark.parametrize("name", NAMES)
def test_a_stored_document_is_accounted_for_again(documents, name: str) -> None:
    assert checked_document(Path(documents[name]["path"])) == documents[name]


@pytest.mark.parametrize(
    ("part", "key", "value"),
    [
        ("guarantee", "epsilon", 1.0),
        ("guarantee", "epsilon", None),
        ("guarantee", "delta", 1e-9),
        ("guarantee", "adjacency", "add-remove"),
        ("guarantee", "assumptions", []),
        ("guarantee", "words", "Against the server: at most epsilon = 1."),
        ("bound", "auc", 0.5),
        ("bound", "auc", None),
        ("bound", "curve", {"fpr": [0.0, 1.0], "tpr": [0.0, 1.0]}),
        ("bound", "tpr_at_fpr", {"0.1": 0.1, "0.01": 0.01, "0.001": 0.001}),
    ],
)
def test_a_changed_guarantee_or_bound_is_refused(
    documents, part: str, key: str, value: Any, tmp_path: Path
) -> None:
    document = copy.deepcopy(documents["private"])
    document["attacks"][0][part][key] = value
    with pytest.raises(InputError, match=rf"attacks\[0\]\.{part}\.{key}.*: (says|has) .* imply"):
        checked_document(rewritten(document, tmp_path))


def test_a_guarantee_that_the_ledger_does_not_give_is_refused(documents, tmp_path: Path) -> None:
    [private] = documents["private"]["attacks"]
    document = changed(documents["bare"], guarantee=private["guarantee"], bound=private["bound"])
    with pytest.raises(InputError, match=r"attacks\[0\]\.guarantee\..*: says .* imply"):
        checked_document(rewritten(document, tmp_path))


def test_another_trust_model_than_the_ledgers_or_no_seat_is_refused(documents, tmp_path: Path) -> None:
    document = copy.deepcopy(documents["private"])
    document["scenario"]["privacy"]["trust"] = "central"
    with pytest.raises(InputError, match=r"scenario|plans"):
        checked_document(rewritten(document, tmp_path))
    for change in ({"trust": "none"}, {"epsilon": 0.5}):
        with pytest.raises(InputError, match=r"attacks\[0\]\.(trust|epsilon): says"):
            checked_document(rewritten(changed(documents["private"], **change), tmp_path))
    with pytest.raises(InputError, match="seat"):
        checked_document(rewritten(changed(documents["private"], seat="nobody"), tmp_path))
    del document["ledgers"]
    with pytest.raises(InputError, match="damaged"):
        checked_document(rewritten(document, tmp_path))


# --- in a real browser


@pytest.mark.slow
def test_a_print_is_dark_on_white_without_what_is_for_the_operator(documents, browser: Any) -> None:
    check_shown(browser, stored(documents["bare"]), [PRINT])
    printed = browser.evaluate("document.querySelector('main').innerText")
    assert "Every attack in figures" in printed
    assert "For the operator" not in printed
    assert "--seed" not in printed


# --- in the terminal


@pytest.mark.parametrize("name", NAMES)
def test_the_terminal_shows_figures_findings_guarantees_and_where_the_report_is(
    documents, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    document = documents[name]
    show_replay(document, verbose=True)
    lines = capsys.readouterr().out.splitlines()
    for attack in document["attacks"]:
        auc, bound = attack["auc"], attack["bound"]["auc"]
        value = "too few" if auc["high"] - auc["low"] > 0.5 else f"{auc['value']:.3f}"
        figure = f"{value} [{auc['low']:.3f}, {auc['high']:.3f}]"
        [row] = [line for line in lines if attack["name"] in line.split() and figure in line]
        assert ("none" if bound is None else figures.at_most(bound)) in row
        assert "too few" in row
        assert f"- {attack['guarantee']['words']}" in lines
    result = read(document)
    assert isinstance(result, ReplayDocument)
    assert all(finding.sentence(own) in lines for own in result.seats.values())
    assert lines[-1] == f"report: {document['path']}/report.html"


@pytest.mark.parametrize("name", NAMES)
def test_the_terminal_is_brief_about_attacks(
    documents, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    document = copy.deepcopy(documents[name])
    show_replay(document)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 6
    for attack in document["attacks"]:
        [line] = [line for line in lines if line.startswith(f"{attack['seat']}: ")]
        assert ("epsilon = " in line) is (attack["guarantee"]["epsilon"] is not None)
    document["attacks"][0]["targets_lost"] = 3
    document["verdict"] = {"words": "REFUTED: a bound.", "refuted": ["a figure"], "checks": 4}
    show_replay(document)
    result, *others = capsys.readouterr().out.splitlines()
    assert "; REFUTED: a bound; 3 targets were lost" in result
    assert others == lines[1:]
