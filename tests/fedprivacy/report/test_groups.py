"""Sections about for whom a model works, and what accuracy hides: what they show, and what old documents lack."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from pages import HOSTILE, check_layout

from fedprivacy import report
from fedprivacy.documents.comparison import CompareDocument
from fedprivacy.documents.run import RunDocument
from fedprivacy.report import groups, measures
from fedprivacy.report.attacks import exposed
from fedprivacy.report.blocks import Details, Entry, Group, Picture, Section, Table, Text


def group(name: str, accuracy: float, records: int = 200, **more: Any) -> dict[str, Any]:
    few = records < 30
    return {
        "group": name,
        "records": records,
        "accuracy": accuracy,
        "low": accuracy - 0.05,
        "high": min(1.0, accuracy + 0.05),
        "balanced_accuracy": accuracy - 0.1,
        "gap": None if few else 0.9 - accuracy,
        "few": few,
        **more,
    }


def columns() -> list[dict[str, Any]]:
    ages = [group("below 40", 0.9), group("40 and above", 0.62, 61), group("missing", 0.3, 12)]
    return [
        {"column": "sex", "edges": [], "groups": [group("f", 0.9), group("m", 0.8)]},
        {"column": "age", "edges": [40.0], "groups": ages},
    ]


MEASURES = {"balanced_accuracy": 0.5, "f1": 0.47, "auroc": 0.8, "calibration_error": 0.1, "brier": 0.2}
USERS = {
    "users": 297,
    "mean": 0.84,
    "worst": 0.6,
    "worst_users": 30,
    "worst_by_chance": 0.72,
    "quantiles": [{"share": at / 4, "accuracy": 0.4 + 0.15 * at} for at in range(5)],
}


def run(**final: Any) -> dict[str, Any]:
    scenario = {"name": "census", "evaluation": {"on": "test"}, "privacy": {"trust": "central"}}
    done = [{"round": 0, "accuracy": 0.8, "loss": 0.5}]
    return {
        "schema": 1,
        "kind": "run",
        "name": "census",
        "scenario": scenario,
        "rounds": done,
        "final": {"accuracy": 0.89, "loss": 0.5, **final},
    }


def sections(document: dict[str, Any]) -> list[Section]:
    read = RunDocument.model_validate(document)
    return [*groups.of_run(read, "central"), *measures.of_run(read)]


def pictures(section: Section) -> list[Picture]:
    return [block for block in section.blocks if isinstance(block, Picture)]


def prose(section: Section) -> str:
    return " ".join(block.text for block in section.blocks if isinstance(block, Text))


def plain(table: Table) -> list[list[str]]:
    """The rows of a table as texts."""

    def text(value: Any) -> str:
        return f"{value.text} ({value.note})" if isinstance(value, Entry) else str(value)

    return [[row.text] if isinstance(row, Group) else list(map(text, row)) for row in table.rows]


def test_a_run_shows_its_groups_with_intervals_and_names_the_worst() -> None:
    [section] = sections(run(groups=columns()))
    assert (section.id, section.heading) == ("groups", "For whom does it work")
    said = "Served worst: age 40 and above, 62.0 % of 61 records, 28.0 points below the best group."
    assert prose(section) == f"{said} Groups of fewer than 30 records are too few to compare."
    [picture] = pictures(section)
    for drawn in (picture.wide, picture.narrow):
        assert "missing (few)" in drawn
        check_layout(picture.drawing)
    [table] = picture.tables
    assert plain(table) == [
        ["sex"],
        ["f", "200", "90.0 % (85.0 to 95.0 %)", "80.0 %", "0.0"],
        ["m", "200", "80.0 % (75.0 to 85.0 %)", "70.0 %", "10.0"],
        ["age"],
        ["below 40", "200", "90.0 % (85.0 to 95.0 %)", "80.0 %", "0.0"],
        ["40 and above", "61", "62.0 % (57.0 to 67.0 %)", "52.0 %", "28.0"],
        ["missing", "12 (too few)", "30.0 % (25.0 to 35.0 %)", "20.0 %", "—"],
    ]


def test_the_line_of_a_terminal() -> None:
    said = "Served worst: age 40 and above, 62.0 % of 61 records, 28.0 points below the best group."
    assert groups.worst_group(RunDocument.model_validate(run(groups=columns()))) == said
    assert groups.worst_group(RunDocument.model_validate(run())) is None
    even = [{"column": "sex", "edges": [], "groups": [group("f", 0.9), group("m", 0.9)]}]
    assert groups.worst_group(RunDocument.model_validate(run(groups=even))) is None


def test_the_most_frequent_class_serves_no_group_worst() -> None:
    classes = [{"class": 0, "records": 89, "accuracy": 1.0}, {"class": 1, "records": 11, "accuracy": 0.0}]
    document = run(groups=columns(), per_class=classes)
    assert groups.worst_group(RunDocument.model_validate(document)) is None
    assert prose(sections(document)[0]).startswith("Of a model that is no better than always naming")
    classes[1]["accuracy"] = 0.9
    assert groups.worst_group(RunDocument.model_validate(document)) is not None


def test_the_worst_tenth_of_users_stands_beside_what_chance_would_make_of_it() -> None:
    [section] = sections(run(users=USERS))
    assert prose(section) == (
        "The worst tenth of 297 held-out users (30) have a mean accuracy of 60.0 %; all users 84.0 %. If it "
        "served all users alike, the chance of few records would make it 72.0 %."
    )
    [picture] = pictures(section)
    assert "No held-out user is a client." in picture.caption
    check_layout(picture.drawing)


def test_measures_are_folded_and_what_accuracy_hides_is_not() -> None:
    [section] = sections(run(measures=MEASURES))
    assert prose(section) == (
        "Accuracy 89.0 % looks better than the model is, since classes are of unequal size: balanced accuracy "
        "is 50.0 %."
    )
    [folded] = [block for block in section.blocks if isinstance(block, Details)]
    [table] = folded.blocks
    assert [row[:2] for row in plain(table)][:3] == [
        ["Balanced accuracy", "50.0 %"],
        ["F1", "47.0 %"],
        ["AUROC", "80.0 %"],
    ]
    [section] = sections(run(measures={**MEASURES, "balanced_accuracy": 0.85, "auroc": None}))
    assert prose(section) == ""


def test_older_documents_have_none_of_these_sections() -> None:
    assert sections(run()) == []
    assert sections({**run(), "final": None}) == []


def seeds(mean: float) -> dict[str, float]:
    return {"mean": mean, "low": mean - 0.02, "high": mean + 0.02}


def comparison() -> dict[str, Any]:
    def cell(trust: str, epsilon: float | None, shift: float) -> dict[str, Any]:
        parts = [
            {
                "column": "sex",
                "edges": [],
                "groups": [
                    {"group": "f", "records": 900, "accuracy": seeds(0.9), "gap": seeds(0.0), "few": False},
                    {
                        "group": "m",
                        "records": 800,
                        "accuracy": seeds(0.9 - shift),
                        "gap": seeds(shift),
                        "few": False,
                    },
                ],
            }
        ]
        users = {"users": 40, "worst_users": 4, "mean": seeds(0.8), "worst": seeds(0.8 - 2 * shift)}
        users["worst_by_chance"] = seeds(0.7)
        return {
            "trust": trust,
            "epsilon": epsilon,
            "accuracy": seeds(0.89),
            "accuracies": [0.88, 0.9],
            "groups": parts,
            "users": users,
            "measures": {name: seeds(value) for name, value in MEASURES.items()},
        }

    cells = [cell("none", None, 0.05), cell("central", 1.0, 0.3), cell("central", 8.0, 0.1)]
    compare = {"trusts": ["none", "central"], "epsilons": [1.0, 8.0]}
    scenario = {"name": "census", "compare": compare, "evaluation": {"on": "test"}}
    return {"schema": 1, "kind": "compare", "name": "census", "scenario": scenario, "cells": cells}


def test_a_comparison_shows_each_arm_at_its_largest_epsilon_and_all_cells_folded() -> None:
    read = CompareDocument.model_validate(comparison())
    [section] = groups.of_comparison(read)
    assert prose(section) == (
        "No noise: served worst: sex m, 85.0 % of 800 records, 5.0 points below the best group. Central, "
        "epsilon 8: served worst: sex m, 80.0 % of 800 records, 10.0 points below the best group."
    )
    [picture] = pictures(section)
    check_layout(picture.drawing)
    assert list(picture.tables[0].head) == ["Group", "Held-out records", "No noise", "Central, epsilon 8"]
    [folded] = [block for block in section.blocks if isinstance(block, Details)]
    assert len(folded.blocks[0].head) == 5
    [users] = [block for block in section.blocks if isinstance(block, Table)]
    assert plain(users)[1] == [
        "Central, epsilon 1",
        "80.0 % (78.0 to 82.0 %)",
        "20.0 % (18.0 to 22.0 %)",
        "70.0 % (68.0 to 72.0 %)",
    ]
    assert "only the chance of few records separates them" in users.caption
    [section] = measures.of_comparison(read)
    assert prose(section).startswith("No noise: accuracy 89.0 % looks better than the model is")


def test_seeds_that_agree_on_six_records_leave_the_doubt_of_six_records() -> None:
    document = comparison()
    for cell in document["cells"]:
        small = cell["groups"][0]["groups"][1]
        small.update(records=6, accuracy={"mean": 1.0, "low": 1.0, "high": 1.0})
    read = CompareDocument.model_validate(document)
    [column] = groups.over_seeds(read.cells[0])
    large, small = column.groups
    # Below Wilson's end, above that of the seeds.
    assert (large.low, large.high) == pytest.approx((0.8787, 0.92), abs=1e-4)
    assert small.low == pytest.approx(1 / (1 + 1.959964**2 / 6))  # Wilson's, of 6 out of 6
    assert small.high == 1.0


def test_a_comparison_without_groups_has_no_section() -> None:
    document = comparison()
    for cell in document["cells"]:
        for key in ("groups", "users", "measures"):
            del cell[key]
    read = CompareDocument.model_validate(document)
    assert groups.of_comparison(read) == [] == measures.of_comparison(read)


def test_names_from_data_cannot_become_markup() -> None:
    document = run(groups=columns(), users=USERS, measures=MEASURES)
    for column in document["final"]["groups"]:
        column["column"] += HOSTILE
        for each in column["groups"]:
            each["group"] += HOSTILE
    page = report.render(document)
    assert "<script src=" not in page
    assert "onerror=alert(1)>" not in page


def test_damaged_groups_are_refused() -> None:
    document = run(groups=columns())
    document["final"]["groups"][0]["groups"][0]["accuracy"] = 7.0
    with pytest.raises(Exception, match="accuracy"):
        report.render(document)


def exposures(**parts: Any) -> dict[str, Any]:
    def figure(value: float) -> dict[str, float]:
        return {"value": value, "low": value - 0.05, "high": value + 0.05}

    def part(area: float | None, accuracy: float | None) -> dict[str, Any]:
        return {
            "auc": area and figure(area),
            "rate": figure(0.1),
            "alarms": figure(0.1),
            "records": 500,
            "accuracy": accuracy and figure(accuracy),
            "reference_accuracy": accuracy and figure(accuracy + 0.05),
        }

    one = {
        "attack": "lira",
        "method": "lira",
        "fpr": 0.01,
        "models": 16,
        "records": 1000,
        "exposed": 0,
        "most_exposed": [],
        "classes": {},
        "auc": figure(0.6),
        "groups": {"sex": {"f": part(0.7, 0.8), "m": part(0.55, 0.9)}, "race": {"other": part(None, None)}},
    }
    return {exposed.FIELD: [{**one, **parts}]}


def test_who_pays_and_who_is_exposed_stand_in_one_picture() -> None:
    [picture] = [block for block in exposed.blocks(exposures()) if isinstance(block, Picture)]
    assert picture.drawing.name == "exposed-1-groups"
    assert "Who pays and who is exposed, by the attack lira" in picture.caption
    for drawn in (picture.wide, picture.narrow):
        assert "Who pays: accuracy" in drawn
        assert "Who is exposed: AUC" in drawn
    check_layout(picture.drawing)
    accuracies, areas = picture.drawing.panels
    # Beside the taller panel on the left, names on the right stay beside their marks.
    layout = picture.drawing.layout(narrow=False)
    box = layout.panels[1].box
    [_, name] = [label for label in layout.labels if label.text == "other"]
    assert name.x > box.left - 100 > 300
    heights = areas._heights(box.room)
    assert sum(heights) < 0.9 * box.height
    assert name.y == pytest.approx(box.top + box.height * (1 - heights[-1] / 2 / sum(heights)))
    drawn = {series.label: [point.x for point in series.points] for series in accuracies.series}
    assert drawn["Attacked model"] == [0.8, 0.9]
    assert drawn["Reference models, without noise"] == pytest.approx([0.85, 0.95])
    assert [point.x for point in areas.series[0].points] == [0.7, 0.55]
    assert plain(picture.tables[0])[:3] == [
        ["sex"],
        ["f", "80.0 %", "75.0 to 85.0 %", "85.0 %", "500", "0.700", "0.650 to 0.750", "10.0 %", "10.0 %"],
        ["m", "90.0 %", "85.0 to 95.0 %", "95.0 %", "500", "0.550", "0.500 to 0.600", "10.0 %", "10.0 %"],
    ]
    assert plain(picture.tables[0])[4][:2] == ["other", "—"]


def test_of_many_groups_there_is_a_folded_table() -> None:
    part = copy.deepcopy(exposures()[exposed.FIELD][0]["groups"]["sex"]["f"])
    document = exposures(groups={"town": {str(at): part for at in range(80)}})
    blocks = exposed.blocks(document)
    assert not any(isinstance(block, Picture) for block in blocks)
    assert "Each group, by the attack lira" in {each.summary for each in blocks if isinstance(each, Details)}
