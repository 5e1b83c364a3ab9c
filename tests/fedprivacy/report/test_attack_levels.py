"""The report of attacks on runs of several epsilons: what it compares, and that one epsilon changes nothing."""

from __future__ import annotations

import copy
import doctest
import re
from pathlib import Path
from typing import Any

import pytest
from attack_documents import ACCURACY, EPSILONS, UNDRAWN, at_levels, of_seeds, with_clipping
from pages import HOSTILE, Page, check_charts, check_epsilons, check_whole, poisoned, safe, saved, worded
from shown import LOOKS, check_shown

from fedprivacy import report
from fedprivacy.documents.attack import Histogram
from fedprivacy.documents.kinds import read
from fedprivacy.documents.replay import ReplayDocument
from fedprivacy.errors import InputError
from fedprivacy.report import page_of
from fedprivacy.report.attacks import figures, levels, panels
from scenarios.cli.display_attacks import show_replay

STRENGTHS = {"listening": 0.75, "raising": 0.97, "listening-aside": 0.7}
TRUSTS = ("local", "central")
NAMES = (*TRUSTS, "clipped")
CLIPPING = "clipping alone (a heuristic, no epsilon)"


@pytest.fixture(scope="module")
def levelled(documents: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Three attacks, each at three epsilons and without privacy, of three seeds; and with clipping alone."""
    bare = documents["bare"]
    one = {**bare, "attacks": [of_seeds(attack, 3) for attack in bare["attacks"]]}
    found = {trust: at_levels(one, STRENGTHS, trust) for trust in TRUSTS}
    return {**found, "clipped": with_clipping(found["local"])}


@pytest.fixture(scope="module")
def drawn(levelled: dict[str, dict[str, Any]]) -> Page:
    """The page with all pictures that there are: with clipping alone, and all that is without it."""
    return Page(report.render(levelled["clipped"]))


@pytest.fixture(scope="module", params=NAMES)
def page(request: pytest.FixtureRequest, drawn: Page, plain: dict[str, dict[str, Any]]) -> Page:
    return drawn if request.param == "clipped" else Page(report.render(plain[request.param]))


@pytest.fixture(scope="module")
def plain(levelled: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The same without curves, histograms and stories."""
    return {
        trust: {**one, "attacks": [{**attack, **UNDRAWN} for attack in one["attacks"]]}
        for trust, one in levelled.items()
    }


def text_of(document: dict[str, Any], part: str) -> str:
    return worded(document).text(part).replace("\N{NO-BREAK SPACE}", " ")


def attack(document: dict[str, Any], name: str, epsilon: float | None) -> dict[str, Any]:
    [found] = [one for one in document["attacks"] if (one["name"], one["epsilon"]) == (name, epsilon)]
    return found


# --- one level


@pytest.mark.parametrize("name", ["bare", "private"])
def test_of_one_epsilon_nothing_is_shown_that_older_documents_did_not_show(documents, name: str) -> None:
    old, new = copy.deepcopy(documents[name]), copy.deepcopy(documents[name])
    for one in old["attacks"]:
        for key in ("trust", "epsilon", "observed"):
            one.pop(key, None)
    trust = old["scenario"]["privacy"]["trust"]
    for one in new["attacks"]:
        one.update(trust=trust, epsilon=4.0 if trust == "local" else None, observed=None)
    assert worded(new).html == worded(old).html
    for one in (*old["attacks"], *new["attacks"]):
        one.update(UNDRAWN)
    assert report.render(new) == report.render(old)


# --- several


def test_an_interval_of_nearly_everything_is_no_answer(plain) -> None:
    document = copy.deepcopy(plain["local"])
    for one in document["attacks"]:
        one["auc"] |= {"low": 0.1, "high": 0.99, "covers": "targets"}
    answer = page_of(document).answer
    assert answer.value == "too few"
    assert answer.sentence.count("has too few targets to tell") == 2
    assert "the strongest of" in answer.sentence
    assert "members and" in answer.label
    for one in document["attacks"]:
        one["auc"]["covers"] = "training seeds too"
    assert "has too few runs to tell" in page_of(document).answer.sentence
    assert "game.repeats" in page_of(document).answer.label


def test_the_finding_tells_the_widest_and_the_strictest_epsilon_and_no_privacy(plain) -> None:
    document = plain["local"]
    assert text_of(document, "result").endswith("at epsilon 1 it is not distinguishable from guessing.")
    said = text_of(document, "sentence")
    bare, aside = attack(document, "raising", None)["auc"], attack(document, "listening-aside", None)["auc"]
    assert said.startswith(
        f"Without privacy the server distinguishes members from non-members with AUC {bare['value']:.3f} (95 % interval "
        f"{bare['low']:.3f} to {bare['high']:.3f}) and a participant with AUC {aside['value']:.3f} "
        f"({aside['low']:.3f} to {aside['high']:.3f}); the model's accuracy is 95.0 %. At epsilon 64 the server "
    )
    strict = attack(document, "raising", 1.0)
    allowed = figures.at_most(strict["bound"]["auc"])
    assert (
        f"At epsilon 1 the server reaches AUC {strict['auc']['value']:.3f} ({strict['auc']['low']:.3f} to "
        f"{strict['auc']['high']:.3f}; not distinguishable from guessing; the guarantee allows AUC {allowed} at most)"
    ) in said
    assert said.endswith(f"the model's accuracy is {100 * ACCURACY[1.0]:.1f} %.")
    assert "epsilon 8 " not in said


def test_a_seat_without_a_guarantee_is_told_to_have_none_at_any_epsilon(plain) -> None:
    document = plain["central"]
    assert text_of(document, "result").endswith("at epsilon 1 it is not distinguishable from guessing.")
    said = text_of(document, "sentence")
    assert re.search(r"At epsilon 64 the server reaches [^)]*; there is no guarantee against it\)", said)
    assert re.search(r"a participant reaches [^)]*; the guarantee allows AUC", said)
    aside = text_of(document, "aside")
    assert aside.count("Against the server: no guarantee") == 1
    assert "Against a participant: epsilon 1 at delta 1e-5" in aside
    assert "Without privacy: no guarantee against anyone." in aside
    stands = "adjacency replace-one, against a participant, and guarantees nothing against the server."
    assert stands in text_of(document, "finding")


def test_what_privacy_takes_stands_in_a_table_of_each_seat(plain) -> None:
    document = plain["local"]
    rows = worded(document).rows("price")
    for one in document["attacks"]:
        auc, rate = one["auc"], one["tpr_at_fpr"]["0.01"]
        level = "No privacy" if one["epsilon"] is None else f"Epsilon {one['epsilon']:g}"
        allowed = one["bound"]["tpr_at_fpr"]
        assert [
            level,
            one["name"],
            f"{auc['value']:.3f} ({auc['low']:.3f} to {auc['high']:.3f})",
            figures.at_most(one["bound"]["auc"]),
            f"{100 * rate['value']:.1f} %",
            figures.at_most(allowed and allowed["0.01"], rate=True),
            f"{100 * one['model_accuracy']['before']:.1f} %",
        ] in [[cell.replace("\N{NO-BREAK SPACE}", " ") for cell in row] for row in rows]
    assert len(rows) == len(document["attacks"]) + 2


def test_a_difference_is_told_only_where_the_intervals_are_apart(plain) -> None:
    far = text_of(plain["local"], "price")
    assert "From the seat of the server, raising, the strongest attack without privacy with AUC 0.970" in far
    assert "at epsilon 1, which is indistinguishable from guessing." in far
    near = copy.deepcopy(plain["local"])
    for one in near["attacks"]:
        one["auc"] = {"value": 0.7, "low": 0.6, "high": 0.8, "covers": "targets"}
    assert "the intervals overlap, so that no difference can be told" in text_of(near, "price")


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("name", NAMES)
def test_every_attack_stands_at_every_epsilon(levelled, name: str) -> None:
    page = worded(levelled[name])
    check_epsilons(page)
    said = page.text("overview")
    for each in STRENGTHS:
        assert all(f"{each}, epsilon {epsilon:g}" in said for epsilon in EPSILONS)
        assert f"{each}, no privacy" in said
    assert "From the seat of the server, at epsilon 8" in page.text("figures")
    assert "raising, epsilon 1, from the seat of the server (" in page.text("attacks")


@pytest.mark.exhaustive
def test_clipping_alone_is_a_level_of_its_own_between_the_epsilons_and_no_privacy(plain, drawn) -> None:
    document = plain["clipped"]
    result = read(document)
    assert isinstance(result, ReplayDocument)
    assert result.levels == (*EPSILONS, "clipped", None)
    assert result.planned == len(result.attacks) == 15
    assert text_of(document, "result").endswith("at epsilon 1 it is not distinguishable from guessing.")
    said = text_of(document, "sentence")
    assert f"With {CLIPPING} the server reaches AUC 0.950" in said
    assert said.index("Without privacy") < said.index(CLIPPING) < said.index("At epsilon 64")
    assert f"With {CLIPPING}: no guarantee against anyone." in text_of(document, "aside")
    page = worded(document)
    rows = [
        row
        for row in page.rows("price")
        if row[0].replace("\N{NO-BREAK SPACE}", " ") == CLIPPING.capitalize()
    ]
    assert [row[1] for row in rows] == ["listening", "raising", "listening-aside"]
    assert {cell.lower().replace("\N{NO-BREAK SPACE}", " ") for row in rows for cell in row[3::2][:2]} == {
        "no guarantee"
    }
    assert f"From the seat of the server, with {CLIPPING}" in text_of(document, "figures")
    assert f"The grey field is with {CLIPPING} or without privacy." in text_of(document, "price")
    assert "epsilon clip" not in drawn.text("main").lower()
    assert "clipping alone is a heuristic" in text_of(document, "guarantees")


def test_a_run_that_only_clips_is_not_taken_for_one_without_privacy(plain) -> None:
    document = plain["clipped"]
    attacks = [one for one in document["attacks"] if one["epsilon"] is None]
    result = read({**document, "attacks": attacks})
    assert isinstance(result, ReplayDocument)
    assert (result.levels, result.several) == (("clipped", None), True)
    Page(report.render({**document, "attacks": attacks}))


def test_the_pictures_follow_one_attack_of_each_seat_and_are_a_dozen_at_most(levelled) -> None:
    def labels(attacks: list[dict[str, Any]]) -> list[str]:
        result = read({**levelled["local"], "attacks": attacks})
        assert isinstance(result, ReplayDocument)
        return [levels.label(result, one) for one in panels.followed(result)]

    attacks = levelled["local"]["attacks"]
    every = [f"epsilon {epsilon:g}" for epsilon in EPSILONS] + ["no privacy"]
    wanted = [f"{name}, {level}" for name in ("raising", "listening-aside") for level in every]
    assert labels(attacks) == wanted
    more = [{**attacks[1], "epsilon": float(epsilon)} for epsilon in range(9, 29)]
    assert len(labels(attacks + more)) <= 12
    assert {"raising, epsilon 1", "raising, no privacy"} <= set(labels(attacks + more))


def test_a_refuted_verdict_stands_with_what_its_epsilons_stand_at(plain) -> None:
    verdict = {
        "words": "raising, epsilon 8, is above its bound.",
        "refuted": [{"attack": "raising, epsilon 8"}],
    }
    said = text_of({**plain["local"], "verdict": verdict}, "stopped")
    assert said.startswith(verdict["words"])
    assert "delta 1e-5, unit client, adjacency replace-one, against the server and a participant." in said
    nothing = {"words": "There is nothing to check.", "refuted": [], "checks": 0}
    assert nothing["words"] not in text_of({**plain["local"], "verdict": nothing}, "main")


def test_attacks_that_broke_off_are_counted_over_all_epsilons(plain) -> None:
    document = plain["local"]
    broken = {**document, "status": "failed", "attacks": document["attacks"][:5]}
    assert "5 of 12 attacks" in text_of(broken, "main")


def test_labels_are_names_where_one_level_was_played() -> None:
    auc = {"value": 0.5, "low": 0.4, "high": 0.6}
    one = {"name": "look", "seat": "server", "auc": auc, "epsilon": 2.0, "trust": "local"}
    for attacks, label in (([one], "look"), ([one, {**one, "epsilon": None}], "look, epsilon 2")):
        result = read({"schema": 1, "kind": "replay", "attacks": attacks})
        assert isinstance(result, ReplayDocument)
        assert levels.label(result, result.attacks[0]) == label
        Page(report.render({"schema": 1, "kind": "replay", "attacks": attacks}))


def test_a_run_that_was_given_its_noise_is_not_taken_for_one_without_privacy(plain) -> None:
    document = copy.deepcopy(plain["local"])
    document["attacks"] = [one for one in document["attacks"] if one["epsilon"] in (8.0, None)]
    for one in document["attacks"]:
        one["epsilon"] = None
    result = read(document)
    assert isinstance(result, ReplayDocument)
    assert result.levels == (8.0, None)
    assert [one.epsilon for one in result.attacks] == [8.0] * 3 + [None] * 3


def test_examples_in_docstrings_are_true() -> None:
    assert doctest.testmod(levels).failed == 0


def test_the_caption_names_the_mark_of_the_bound_that_is_drawn(plain: dict[str, dict[str, Any]]) -> None:
    document = plain["local"]
    assert "The dashed blue line is the most that the guarantee allows" in text_of(document, "price")
    private = [one for one in document["attacks"] if one["epsilon"] in (None, EPSILONS[0])]
    single = text_of({**document, "attacks": private}, "price")
    assert "The blue square is the most that the guarantee allows" in single
    assert "dashed blue line" not in single


def test_the_brief_of_attacks_has_the_intervals_of_its_figures(
    plain: dict[str, dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    show_replay(plain["local"])
    brief = capsys.readouterr().out.splitlines()[0].replace("\N{NO-BREAK SPACE}", " ")
    before, after = brief.split("; at epsilon ")
    strongest = attack(plain["local"], "raising", None)["balanced_accuracy"]
    ends = f"{100 * strongest['low']:.1f} to {100 * strongest['high']:.1f} %"
    assert f"{100 * strongest['value']:.1f} % (95 % interval {ends}) of guesses" in before
    assert re.search(r"\(95 % interval [0-9.]+ to [0-9.]+( %)?\)", after)
    assert ": without privacy the strongest of" in before  # no capital after a colon


# --- several seeds


def test_the_stories_of_all_seeds_are_drawn_and_an_older_single_one_too(levelled, documents) -> None:
    document = copy.deepcopy(levelled["local"])
    for one in document["attacks"]:
        one.update(roc=[], histograms=[])
    told = attack(document, "raising", None)["story"]
    rows = worded(document).rows("ascent")
    for number, story in enumerate(told, start=1):
        losses = [figures.words.number(loss, 3) for loss in story["member"]]
        assert [f"Member, run {number} of 3", *losses] in rows
    single = copy.deepcopy(documents["bare"])
    for one in single["attacks"]:
        one.update(roc=[], histograms=[])
        told = one["story"]
        one["story"] = told[0] if isinstance(told, list) else told
    listed = copy.deepcopy(single)
    for one in listed["attacks"]:
        one["story"] = one["story"] and [one["story"]]
    assert report.render(single) == report.render(listed)
    assert "Member" in [row[0] for row in worded(single).rows("ascent")]


def test_histograms_are_added_up_where_their_edges_agree() -> None:
    one = Histogram(edges=(0.0, 1.0, 2.0), members=(1, 2), nonmembers=(3, 4))
    other = Histogram(edges=(0.0, 1.0, 3.0), members=(5, 5), nonmembers=(5, 5))
    assert panels.pooled([]) == (None, "")
    assert panels.pooled([one]) == (one, "")
    both = Histogram(edges=one.edges, members=(2, 4), nonmembers=(6, 8))
    assert panels.pooled([one, one]) == (both, "2 runs together")
    assert panels.pooled([one, other]) == (one, "in run 1 of 2")


# --- what every page holds


@pytest.mark.exhaustive(beyond=1)
def test_no_epsilon_is_bare(page: Page) -> None:
    check_epsilons(page)


def test_the_page_is_whole_offline_and_accessible(page: Page) -> None:
    check_whole(page)


@pytest.mark.parametrize("name", ["central", "clipped"])
def test_nothing_in_a_document_becomes_markup(plain, name: str) -> None:
    hostile = poisoned(plain[name])
    assert HOSTILE in safe(report.render(hostile)).text("h1")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0.0}, "attacks[0].epsilon"),
        ({"epsilon": float("inf")}, "attacks[0].epsilon is not a finite number"),
        ({"trust": 3}, "attacks[0].trust is not text"),
        ({"observed": {"first": 5, "last": 4, "count": 1}}, "last must not be before first"),
        ({"observed": {"first": 0, "last": 4, "count": 1}}, "attacks[0].observed.first"),
        ({"story": [{"moments": ["a", "b"], "member": [1.0], "nonmember": [1.0]}]}, "attacks[0].story[0]"),
    ],
)
def test_a_damaged_attack_is_refused_in_words(plain, change: dict[str, Any], message: str) -> None:
    document = copy.deepcopy(plain["local"])
    document["attacks"][0].update(change)
    with pytest.raises(InputError, match=re.escape(message)):
        report.render(document)


# --- in a real browser, in the terminal


@pytest.mark.exhaustive
@pytest.mark.slow
def test_the_page_shows_in_a_real_browser(drawn: Page, browser: Any, tmp_path: Path) -> None:
    check_shown(browser, saved(drawn, tmp_path), LOOKS)


def test_the_terminal_shows_each_epsilon_the_finding_and_the_verdict(
    plain, capsys: pytest.CaptureFixture[str]
) -> None:
    verdict = {"words": "All attacks stay under their bounds.", "refuted": [], "checks": 27}
    show_replay(plain["clipped"], verbose=True)
    assert CLIPPING in " ".join(capsys.readouterr().out.split())
    show_replay({**plain["local"], "verdict": verdict}, verbose=True)
    lines = capsys.readouterr().out.splitlines()
    for level in ("at epsilon 1", "at epsilon 8", "at epsilon 64", "without privacy"):
        assert sum(level in line and "│" in line for line in lines) == 2  # once for each seat
    assert verdict["words"] in lines
    assert any(line.startswith("Each epsilon: delta 1e-5, unit client") for line in lines)
    for one in plain["local"]["attacks"]:
        auc = one["auc"]
        figure = f"{auc['value']:.3f} [{auc['low']:.3f}, {auc['high']:.3f}]"
        assert any(one["name"] in line and figure in line for line in lines)


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("name", NAMES)
def test_charts_keep_their_texts_apart_and_their_lines_differ(levelled, name: str) -> None:
    check_charts(levelled[name])
