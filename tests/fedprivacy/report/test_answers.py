"""The answer that every page opens with: short, for every kind of document, above the picture."""

from __future__ import annotations

import copy
import doctest
import re
from pathlib import Path
from typing import Any

import pytest
from each_kind import KINDS
from pages import Page, poisoned, worded

from fedprivacy import report
from fedprivacy.documents.comparison import CompareDocument
from fedprivacy.documents.envelope import Arm
from fedprivacy.documents.estimates import CURATOR_TRUSTED, EstimatesDocument
from fedprivacy.guarantees import certainty
from fedprivacy.guarantees.statement import Guarantee
from fedprivacy.report import PAGES, page_of, words
from fedprivacy.report.answers import cards
from fedprivacy.report.answers.compare import cautions
from fedprivacy.report.attacks.answer import NO_NOISE
from fedprivacy.report.blocks import ANSWER_WORDS
from fedprivacy.report.estimates.page import _protected
from fedprivacy.report.protection import Protected

QUESTIONS = [cards.COST, cards.WHO, cards.LEARNED]


def test_every_kind_is_here(answered: dict[str, dict[str, Any]]) -> None:
    assert {document["kind"] for document in answered.values()} == set(PAGES)
    assert set(answered) == set(KINDS)


@pytest.mark.parametrize("name", KINDS)
def test_a_page_opens_with_one_short_sentence_and_one_number(answered: Any, name: str) -> None:
    answer = page_of(answered[name]).answer
    assert len(answer.sentence.split()) <= ANSWER_WORDS == 30
    assert answer.sentence.endswith(".")
    assert "…" not in answer.sentence  # nothing of a real one is cut
    assert re.search(r"\d", answer.value) or answer.value in answer.sentence
    html = worded(answered[name]).html
    first = min(
        html.index(mark) for mark in ("<figure", "<table", "<section", 'class="finding"') if mark in html
    )
    assert html.index("<h1>") < html.index('class="focus"') < html.index(cards.LEARNED) < first


@pytest.mark.parametrize("name", KINDS)
def test_three_questions_are_answered_with_a_line_for_each_observer(answered: Any, name: str) -> None:
    page = page_of(answered[name])
    assert [card.question for card in page.answer.cards] == QUESTIONS
    assert all(card.lines and len(card.lines) <= 8 for card in page.answer.cards)
    # Of attacks only the attacking observers are in question, though the ledgers know the others.
    known = answered[name].get("attacks", answered[name])
    stated = re.findall(r"'observer': '(\w+)', 'trust'", str(known))
    who = page.answer.cards[1].lines
    observed = {words.capital(f"from {words.observer(observer)}") for observer in stated}
    assert {line.text.partition(":")[0] for line in who} == observed
    assert all(line.tone in certainty.WORDS for line in who)


@pytest.mark.parametrize("name", KINDS)
def test_long_and_hostile_names_leave_the_sentence_short(answered: Any, name: str) -> None:
    choices = ("unknown", "source", "verdict") if name == "plan" else ()  # any other value is refused
    hostile = poisoned(answered[name], ("kind", "trust", "observer", *choices))
    answer = page_of(hostile).answer
    assert len(answer.sentence.split()) <= ANSWER_WORDS
    assert len(answer.sentence) <= 400


def steady(document: dict[str, Any], scatter: float = 0.001) -> dict[str, Any]:
    """A comparison whose seeds hardly differ: privacy costs 10 points under central and 20 under local."""
    steady = copy.deepcopy(document)
    for cell in steady["cells"]:
        mean = {"none": 0.9, "central": 0.8, "local": 0.7}[cell["trust"]]
        cell["accuracy"] = {"mean": mean, "low": mean - 0.05, "high": mean + 0.05}
        swing = 0.0 if cell["trust"] == "none" else scatter
        cell["accuracies"] = [mean - swing, mean + swing]
        for number, figure in enumerate(cell["per_class"]):
            figure.update(records=100, accuracy=mean, **{"class": number})
    return steady


def test_the_figures_are_those_of_the_documents(answered: Any) -> None:
    central = answered["run-central"]
    answer = page_of(central).answer
    assert answer.value == f"{100 * central['final']['accuracy']:.1f} %"
    assert (
        "epsilon 2 against other participants and outsiders, no guarantee against the server"
        in answer.sentence
    )
    assert page_of(answered["run-none"]).answer.sentence.endswith("nobody has a guarantee.")
    document = steady(answered["compare"])
    compared = page_of(document).answer
    means = {(c["trust"], c["epsilon"]): round(100 * c["accuracy"]["mean"], 1) for c in document["cells"]}
    costs = {t: means["none", None] - means[t, 1.0] for t in ("central", "local")}
    assert compared.value == f"{min(costs.values()):.1f} points".replace("-", "−")
    for cost in costs.values():
        assert f"{cost:.1f}".replace("-", "−") in compared.sentence
    lines = [line.text for line in compared.cards[1].lines]
    assert lines[0] == "From the server: epsilon\u00a01 to 8"
    assert compared.cards[1].lines[0].note == "Moderate at 1, rules out little at 8; Local only"


def test_a_maximum_over_mechanisms_says_of_how_many(answered: Any) -> None:
    compared = steady(answered["compare"])
    assert "under Central; best of 2" in page_of(compared).answer.label  # central and local
    assert "(best of" not in page_of(compared).answer.sentence
    local = [cell for cell in compared["cells"] if cell["trust"] == "local"]
    for cell in local:
        cell["asked"] = "auto"
    compared["cells"] += [{**cell, "asked": "gaussian", "accuracy": {"mean": 0.99}} for cell in local]
    answer = page_of(compared).answer
    assert "under Local (best of 2)" in answer.sentence
    assert len(answer.sentence.split()) <= ANSWER_WORDS
    assert [line.text.partition(":")[0] for line in answer.cards[0].lines][:2] == [
        "Local (best of 2)",
        "Central",
    ]


def test_too_few_seeds_are_the_headline_and_not_the_points(answered: Any) -> None:
    answer = page_of(steady(answered["compare"])).answer
    assert (answer.value, answer.label) == (
        "10.0 points",
        "of accuracy lost at epsilon 1, under Central; best of 2; 95 % interval 8.7 to 11.3",
    )
    # Pairs differ by 5 and by 15 points under central: 12.71 * 7.07 / sqrt(2) to either side of 10.
    answer = page_of(steady(answered["compare"], scatter=0.05)).answer
    assert answer.value == "Too few seeds"
    assert answer.sentence == (
        "Too few seeds to tell what privacy costs at epsilon 1 under Central and Local: 2 ran, about 5 would do."
    )
    one = steady(answered["compare"])
    local = next(cell for cell in one["cells"] if (cell["trust"], cell["epsilon"]) == ("local", 1.0))
    local["accuracies"] = [0.5, 0.9]
    assert page_of(one).answer.sentence == (
        "At epsilon 1 privacy costs 10.0 points of accuracy under Central; too few seeds to tell under Local."
    )
    document = CompareDocument.model_validate(one)
    assert cautions(document) == [
        "Too few seeds to tell what Local costs at epsilon 1: 2 ran, about 34 would do."
    ]


def test_a_cost_that_is_known_by_its_sign_alone_is_no_headline_at_either_end(answered: Any) -> None:
    document = steady(answered["compare"])
    for cell in document["cells"]:
        if cell["trust"] == "local":
            cell["accuracies"] = [0.3 + 0.04, 0.3 - 0.04]  # a cost of 60 points, 9 to 111
            cell["accuracy"] = {"mean": 0.3, "low": 0.0, "high": 0.8}
    text = "Too few seeds to tell what Local costs at epsilon {}: 2 ran, about 3 would do."
    beaten = "At epsilon {} Local is not measurably better than always naming the most frequent class."
    shown = cautions(CompareDocument.model_validate(document))
    assert shown == [each.format(e) for e in (1, 8) for each in (beaten, text)]
    answer = page_of(document).answer
    assert answer.value == "10.0 points"
    assert answer.cards[0].lines[1].text == "Local: too few seeds to tell"


def test_cells_of_a_comparison_that_broke_off_are_no_pairs(answered: Any) -> None:
    document = steady(answered["compare"], scatter=0.05)
    document["status"] = "interrupted"
    answer = page_of(document).answer
    assert answer.value == "10.0 points"
    assert "interval" not in answer.label


@pytest.mark.parametrize("trusts", [("none", "central", "local"), ("central", "local"), ("local",)])
def test_a_model_that_names_only_the_most_frequent_class_costs_nothing_that_counts(
    answered: Any, trusts: tuple[str, ...]
) -> None:
    document = steady(answered["compare"])
    for cell in document["cells"]:
        if cell["trust"] in trusts:
            for number, figure in enumerate(cell["per_class"]):
                figure.update(records=20 if number else 180, accuracy=float(number == 0))
    answer = page_of(document).answer
    assert "no better than always naming the most frequent class" in answer.sentence
    assert len(answer.sentence.split()) <= ANSWER_WORDS
    assert any("no better than always" in line for line in cautions(CompareDocument.model_validate(document)))
    if "none" in trusts:
        assert answer.value == "90.0 %"
        assert "points" not in str(answer.cards[0].lines)
    elif "central" in trusts:
        assert answer.value == "80.0 %"
    else:
        assert answer.value == "10.0 points"


def test_a_run_that_names_only_the_most_frequent_class_says_so(answered: Any) -> None:
    run = copy.deepcopy(answered["run-central"])
    classes = [{"class": 0, "records": 89, "accuracy": 1.0}, {"class": 1, "records": 11, "accuracy": 0.0}]
    run["final"].update(accuracy=0.89, per_class=classes)
    page = page_of(run)
    assert page.answer.sentence.startswith(
        "The model is no better than always naming the most frequent class (89.0 %); epsilon 2 against"
    )
    assert page.answer.label.endswith(": no better than always naming the most frequent class")
    assert "This model is no better than always naming" in str(page.lead)
    classes[1]["accuracy"] = 0.8
    assert "most frequent" not in page_of(run).answer.sentence


def test_without_noise_means_unclipped_as_in_a_comparison(answered: Any) -> None:
    document = copy.deepcopy(answered["run-central"])
    planned = {key: value for key, value in answered["compare"]["cells"][-1].items() if key != "seeds"}

    def variant(ablation: str, mean: float) -> dict[str, Any]:
        accuracy = {"mean": mean, "low": mean, "high": mean}
        return {**planned, "ablation": ablation, "accuracy": accuracy, "difference": None}

    variants = [variant("no-noise", 0.867), variant("no-clipping", 0.892)]
    document["limits"] = {"folder": "limits", "limiting": None, "planned": planned, "variants": variants}
    assert page_of(document).answer.cards[0].lines[-1].text == "Without noise: 89.2 %"
    variants.pop()
    assert page_of(document).answer.cards[0].lines[-1].text == "Clipping alone, no noise: 86.7 %"


def test_attacks_on_runs_without_noise_say_that_privacy_costs_nothing(answered: Any) -> None:
    for name, bare in [("replay-bare", True), ("replay-private", False)]:
        assert (NO_NOISE in page_of(answered[name]).answer.cards[0].note) == bare


def test_a_curator_sees_everything_beside_silos_with_noise(answered: Any) -> None:
    document = copy.deepcopy(answered["erm"])
    cell = copy.deepcopy(document["cells"][0])
    assert cell["trust"] == "central"
    for guarantee in cell["guarantees"]:
        guarantee.update(observer="server", trust="local")
    document["cells"].append({**cell, "approach": "silos", "trust": "local"})
    answer = page_of(document).answer
    assert answer.cards[1].lines[0].text.startswith("From the server: epsilon")
    assert answer.cards[1].lines[0].note.endswith("Local only")
    assert answer.cards[2].lines[-1].text == "Possibly everything"
    [server] = [g for g in page_cells(document)[0].guarantees if g.observer == "server"]
    assert server.assumptions == (CURATOR_TRUSTED,)
    assert "% more loss than the least possible" in answer.cards[0].lines[0].note


def page_cells(document: dict[str, Any]) -> list[Protected]:
    return _protected(EstimatesDocument.model_validate(document))


def test_of_what_is_missing_the_answer_says_so(answered: Any) -> None:
    none = {**answered["run-none"], "rounds": [], "final": {"accuracy": None, "loss": None}}
    assert page_of(none).answer.sentence == "No round was evaluated; nobody has a guarantee."
    for name, words_ in [("compare", "No cell has a result."), ("erm", "No estimate was made.")]:
        assert page_of({**answered[name], "cells": [], "status": "interrupted"}).answer.sentence == words_
    empty = {**answered["replay-bare"], "attacks": [], "status": "interrupted"}
    assert page_of(empty).answer.sentence == "No attack was completed."


def test_a_line_is_as_weak_as_its_weakest_guarantee_and_never_green_for_epsilon_8() -> None:
    def held(observer: str, epsilon: float | None) -> Guarantee:
        return Guarantee(
            observer=observer, epsilon=epsilon, delta=1e-5, unit="client", adjacency="replace-one"
        )

    cell = Protected(Arm("local"), None, [held("server", 8.0), held("outsider", 0.3)])
    lines = cards.protected([cell]).lines
    assert [(line.text, line.tone) for line in lines] == [
        ("From the server: epsilon\u00a08, rules out little", "little"),
        ("From outsiders: epsilon\u00a00.3, strong", "strong"),
    ]
    learned = cards.learned([cell]).lines
    assert [line.text for line in learned] == [
        "Right in at most 57.5 % of guesses",
        "Right in at most 99.97 % of guesses",
    ]
    swept = [Protected(Arm("local"), e, [held("server", e)]) for e in (0.1, 1.0, 8.0)]
    assert [line.tone for line in cards.protected(swept).lines] == ["little"]
    # Local privacy of records leaves outsiders less than its target: the range is that of the table.
    targets = [(Arm("central"), 1.0, 1.0), (Arm("local"), 1.0, 0.028), (Arm("central"), 8.0, 8.0)]
    mixed = [Protected(arm, target, [held("outsider", epsilon)]) for arm, target, epsilon in targets]
    [line] = cards.protected(mixed).lines
    assert line.text == "From outsiders: epsilon\u00a00.028 to 8"
    assert line.note == "Strong at 0.028, rules out little at 8; Central 1 to 8 and Local 0.028"
    bare = [Protected(Arm("none"), None, [held("server", None)])]
    assert [line.tone for line in cards.protected(bare).lines] == ["none"]
    assert cards.learned(bare).lines[0].text == "Possibly everything"


def test_only_who_is_protected_is_open_beside_the_main_picture(answered: Any) -> None:
    for name, document in answered.items():
        unfolded = [section.id for section in page_of(document).sections if not section.folded]
        assert ("guarantees" in unfolded) is (name != "plan"), name  # nothing is released
        assert len(unfolded) <= 2, name


@pytest.mark.exhaustive
@pytest.mark.slow
def test_a_link_of_the_contents_opens_its_fold(answered: Any, browser: Any, tmp_path: Path) -> None:
    path = report.write(answered["compare"], tmp_path)
    for section in ("settings", "reproduce"):
        browser.open(path, 1280)
        shown = f"document.getElementById('{section}').checkVisibility()"
        assert not browser.evaluate(shown)
        browser.evaluate(f"document.querySelector('.aside a[href=\"#{section}\"]').click()")
        assert browser.evaluate(shown)


@pytest.mark.slow
def test_the_contents_stand_beside_a_wide_page_and_folded_above_a_narrow_one(
    answered: Any, browser: Any, tmp_path: Path
) -> None:
    path = report.write(answered["run-central"], tmp_path)
    for width, selector in ((1280, ".aside"), (390, ".contents summary")):
        browser.open(path, width)
        for each in (".aside", ".contents summary"):
            visible = browser.evaluate(f"document.querySelector('{each}').checkVisibility()")
            assert visible is (each == selector)


def test_both_tables_of_contents_have_every_section(answered: Any) -> None:
    page = Page(report.render(answered["run-central"]))
    linked = [link["href"].removeprefix("#") for link in page.all("a")]
    sections = [section["id"] for section in page.all("section")]
    assert len(sections) > 3
    for section in sections:
        assert linked.count(section) >= 2


def test_examples_in_docstrings_are_true() -> None:
    results = doctest.testmod(cards)
    assert results.attempted
    assert not results.failed


@pytest.mark.parametrize(("trust", "rests"), [("distributed", True), ("central", False)])
def test_epsilons_that_rest_on_a_secure_sum_say_so_on_the_first_screen(trust: str, rests: bool) -> None:
    held = Guarantee(
        observer="server", trust=trust, epsilon=2.0, delta=1e-5, unit="client", adjacency="zero-out"
    )
    shown = cards.answer("Right.", "1", "label", [Protected(Arm(trust), None, [held])], [])
    assert ("hold if the sum is secure" in shown.terms) == rests
