"""The page's table of published figures beside ours."""

from __future__ import annotations

import copy
from typing import Any, get_args

import pytest
from attack_documents import at_levels, in_arms, measure
from pages import HOSTILE, Page, check_epsilons, check_whole, poisoned, safe, worded

from fedprivacy import report
from fedprivacy.documents.attack import Measure
from fedprivacy.report.attacks import published
from fedprivacy.scenario.attack.sections import Published

# Attack accuracies as the lectures print them: server (passive, ascent, isolating, both), participant.
PRINTED = {
    "cifar100-alexnet": (85.1, 88.2, 89.0, 92.1, 73.1, 76.3),
    "cifar100-densenet": (79.2, 82.1, 84.6, 87.3, 72.2, 76.7),
    "texas100": (66.4, 69.5, 69.3, 71.7, 62.4, 66.4),
    "purchase100": (72.4, 75.4, 75.3, 82.5, 65.8, 69.8),
}
NAMES = ("looking", "raising", "aside", "raising-aside", "within", "raising-within")
OURS = (0.80, 0.90, 0.89, 0.97, 0.73, 0.76)


def six(document: dict[str, Any], model: str = "cifar100-alexnet") -> dict[str, Any]:
    """A document with each published attack, right as often as `OURS` and 2 points of per cent around it."""
    attacks = []
    positions = [(seat, alone, kind) for seat, alone, kind in published.POSITIONS]
    for name, right, (seat, alone, kind) in zip(NAMES, OURS, positions, strict=True):
        attack = copy.deepcopy(document["attacks"][0])
        attack.update(name=name, seat=seat, isolating=alone, attack=kind, epsilon=None, trust="none")
        attack.update(balanced_accuracy=measure(right, 0.02))
        attacks.append(attack)
    game = {**document["scenario"]["game"], "published": model}
    data = {"name": "npz", "path": "x/cifar100_subset.npz", "clients": 4, "records_per_client": 250}
    scenario = {**document["scenario"], "game": game, "data": data}
    return {**document, "attacks": attacks, "scenario": scenario}


def rows(document: dict[str, Any]) -> list[list[str]]:
    page = worded(document)
    return [
        [cell.replace("\N{NO-BREAK SPACE}", " ") for cell in row] for row in page.rows("published") if row
    ]


@pytest.mark.parametrize("model", PRINTED)
def test_each_published_figure_stands_beside_ours_and_its_interval(documents, model: str) -> None:
    table = rows(six(documents["bare"], model))
    for name, right, printed in zip(NAMES, OURS, PRINTED[model], strict=True):
        row = next(row for row in table if row[0].startswith(f"{name} "))
        assert row[1] == f"{100 * right:.1f} % {100 * right - 2:.1f} to {100 * right + 2:.1f} %"
        assert row[2] == f"{printed:.1f} %"
        inside = abs(printed - 100 * right) <= 2
        assert row[3] == (
            "lies in our interval" if inside else "is higher" if printed > 100 * right else "is lower"
        )


def test_the_section_begins_with_other_data(documents) -> None:
    document = six(documents["bare"], "texas100")
    for data, ours in (
        ({"name": "digits"}, "digits"),
        ({"name": "npz", "path": "x/cifar100.npz"}, "cifar100.npz"),
        ({"name": "npz"}, "npz"),
    ):
        document["scenario"]["data"] = data
        text = worded(document).text("published").replace("\N{NO-BREAK SPACE}", " ")
        assert f"Other data: here {ours}, published Texas100." in text
        assert "of a network on Texas100" in text
    document["scenario"]["data"] = {"name": "npz", "path": "Texas-100.npz"}
    assert "Other data" not in worded(document).text("published")


def test_trap_units_are_no_published_attack_and_are_described_as_such(documents) -> None:
    document = six(documents["bare"])
    ascents = [attack for attack in document["attacks"] if attack["name"].startswith("raising")]
    for attack in ascents:
        attack["targets_per_round"] = 10
    assert len([row for row in rows(document) if row[0].split()[0] in NAMES]) == 6
    before = {row[0] for row in rows(document)}
    ascents[0].update(trap_units=4, everybody=True)
    ascents[1].update(raw=True)
    table = {row[0].split()[0]: row[0] for row in rows(document)}
    assert set(NAMES) - set(table) == {"raising"}
    assert "one raw step, 10 targets a round" in table["raising-aside"]
    assert table["raising-aside"] not in before
    page = worded(document).html.replace("\N{NO-BREAK SPACE}", " ").replace("&nbsp;", " ")
    assert "trap units, sent to all clients, 10 targets a round" in page


@pytest.mark.exhaustive
def test_the_section_states_how_ours_differ(documents) -> None:
    document = six(documents["bare"])
    whole = Page(report.render(document))
    check_whole(whole)
    check_epsilons(whole)
    page = worded(document)
    text = page.text("published").replace("\N{NO-BREAK SPACE}", " ")
    assert " of 6 published" not in text  # a wide interval would count as a success
    for part in (
        "The data here: cifar100_subset.npz. The published data: CIFAR-100.",
        "Alexnet on CIFAR-100, whose passive attack from the server's seat observed epochs 100 to 300",
        "name mlp; hidden 16; activation tanh",
        "on cifar100_subset.npz 4 clients with 250 records each trained for 2 rounds before the attacks",
        "does not prove that both are equal, and one outside does not prove an error",
    ):
        assert part in text


def test_the_ends_of_an_interval_belong_to_it() -> None:
    ours = Measure(value=0.8, low=0.7499, high=0.85)
    assert [published.place(ours, figure) for figure in (74.9, 75.0, 85.0, 85.1)] == [
        "is lower", "lies in our interval", "lies in our interval", "is higher",
    ]  # fmt: skip


def test_every_table_that_a_scenario_may_name_is_there_and_as_printed() -> None:
    assert set(get_args(Published)) == set(published.FIGURES) == set(PRINTED)
    assert {name: table.right for name, table in published.FIGURES.items()} == PRINTED


def test_private_runs_and_sums_and_arms_and_other_games_have_no_published_figures(documents) -> None:
    document = six(documents["bare"])
    for attack in document["attacks"][1:]:
        attack["clients_in_sum"] = 4
    assert len([row for row in rows(document) if row[0].split()[0] in NAMES]) == 1
    private = at_levels(six(documents["bare"]), dict.fromkeys(NAMES, 0.9))
    assert len([row for row in rows(private) if row[0].split()[0] in NAMES]) == 6  # of 24
    unnamed = six(documents["bare"])
    del unnamed["scenario"]["game"]["published"]
    assert 'id="published"' not in worded(unnamed).html
    armed = in_arms(documents["bare"], {"listening": 0.8, "raising": 0.9, "listening-aside": 0.7})
    armed["scenario"]["game"]["published"] = "cifar100-alexnet"
    assert 'id="published"' not in worded(armed).html


def test_the_section_takes_no_markup(documents) -> None:
    hostile = poisoned(six(documents["bare"]))
    for attack in hostile["attacks"]:
        attack.update(seat="server", attack="passive", isolating=False)
    hostile["scenario"]["game"]["published"] = "cifar100-alexnet"
    assert HOSTILE in safe(report.render(hostile)).text("published")
