"""The pictures of who is exposed: what they show and say, and what older documents lack."""

from __future__ import annotations

import copy
import html
import re
from typing import Any

import pytest
from pages import HOSTILE, check_layout

from fedprivacy.errors import InputError
from fedprivacy.report.attacks import exposed
from fedprivacy.report.blocks import Details, Picture, Table, Text

NEW = ("auc", "carried", "spread")


def figure(value: float, half: float = 0.05) -> dict[str, Any]:
    return {"value": value, "low": value - half, "high": min(1.0, value + half), "covers": "targets"}


def told(count: int = 3, **parts: Any) -> dict[str, Any]:
    """A document of one attack that exposes 4 of 1,000 records, and class 0 most of all."""
    record = {"record": 7, "advantage": figure(0.9), "hits": 15, "models": 16, "alarms": 0, "others": 16}
    one = {
        "attack": "by-reference",
        "method": "lira",
        "fpr": 0.01,
        "models": 32,
        "records": 1000,
        "exposed": 4,
        "most_exposed": [record],
        "classes": {
            str(label): {"auc": figure(0.9 - 0.4 * label / count, 0.02), "records": 1000 // count}
            for label in range(count)
        },
        "auc": figure(0.7, 0.01),
        "carried": [
            {"records": 10, "hits": 0.21, "alarms": 0.013},
            {"records": 100, "hits": 0.4, "alarms": None},
        ],
        "spread": {
            "edges": [-0.75, -0.25, 0.25, 0.75, 1.25],
            "certain": [0, 0, 1, 3],
            "others": [1, 990, 5, 0],
        },
    }
    return {exposed.FIELD: [{**one, **parts}]}


def pictures(document: dict[str, Any]) -> list[Picture]:
    return [block for block in exposed.blocks(document) if isinstance(block, Picture)]


def texts(drawn: str) -> list[str]:
    """All that is written in a picture."""
    return [text.strip() for text in re.findall(r"<text[^>]*>(.*?)</text>", drawn, re.DOTALL)]


def test_all_records_are_drawn_with_those_exposed_for_certain_in_colour() -> None:
    records, _ = pictures(told())
    for drawn, shape in ((records.wide, "wide"), (records.narrow, "narrow")):
        assert f'id="exposed-1-records-{shape}-desc"' in drawn
        bars = re.findall(r"<path [^>]*?style=\"fill: var\(--(local|none)\)", drawn)
        assert (bars.count("local"), bars.count("none")) == (2 + 1, 4 - 1 + 1)  # and one each in the legend
        assert {"Exposed for certain", "Other records", "Records", "1", "100"} <= set(texts(drawn))
        assert records.drawing.caption in html.unescape(drawn)
    assert "How many of 1,000 records" in records.caption
    assert "4 are exposed for certain" in records.caption
    assert "The middle record's advantage is -0.250 to 0.250." in records.caption
    [table] = records.tables
    assert table.rows == [("0.750 to 1.000", "3", "0"), ("0.250 to 0.750", "1", "5"),
        ("-0.250 to 0.250", "0", "990"), ("-0.750 to -0.250", "0", "1")]  # fmt: skip


def test_the_axis_of_counts_is_logarithmic_only_where_the_exposed_would_not_be_seen() -> None:
    few, _ = pictures(told())
    assert "logarithmic" in few.caption
    even = told(exposed=400, spread={"edges": [0.0, 0.5, 1.0], "certain": [0, 400], "others": [600, 0]})
    assert "logarithmic" not in pictures(even)[0].caption
    assert {"0", "200", "400", "600"} <= set(texts(pictures(even)[0].wide))
    nobody = told(exposed=0, spread={"edges": [0.0, 0.5, 1.0], "certain": [0, 0], "others": [900, 1]})
    assert "logarithmic" not in pictures(nobody)[0].caption


def test_what_the_most_exposed_carry_stands_beside_in_words() -> None:
    blocks = exposed.blocks(told())
    [said] = [one.text for one in blocks if isinstance(one, Text) and "true positives" in one.text]
    assert said.startswith(
        "Of the 1,000 records, 21.0 % of the true positives and 1.3 % of the false alarms fall on the 10 most "
        "exposed (1.0 %) and 40.0 % of the true positives fall on the 100 most exposed (10.0 %)."
    )
    assert not any("true positives" in getattr(one, "text", "") for one in exposed.blocks(told(carried=[])))


def test_classes_are_drawn_from_the_most_exposed_on_beside_all_records() -> None:
    _, classes = pictures(told())
    assert "AUC from 0.900 for class 0 to 0.633 for class 2" in classes.caption
    assert "All records together (dashed line): 0.700, 0.690 to 0.710." in classes.caption
    assert "Of 3 classes 2 lie above it and 1 below it" in classes.caption
    written = texts(classes.wide)
    assert [text for text in written if text in {"0", "1", "2"}][:3] == ["0", "1", "2"]
    assert "All records together: 0.700" in written
    assert classes.drawing.caption in classes.wide
    [table] = classes.tables
    assert [row[0] for row in table.rows] == ["0", "1", "2"]
    assert table.caption.startswith("Each class by its AUC")


def test_of_many_classes_some_are_named_the_first_and_the_last_among_them() -> None:
    _, classes = pictures(told(count=100))
    for drawn, least, most in ((classes.wide, 20, 40), (classes.narrow, 8, 16)):
        named = [int(text) for text in texts(drawn) if re.fullmatch(r"\d{1,2}", text) and text != "1"]
        assert least <= len(named) <= most
        assert (named[0], named[-1]) == (0, 99)
        assert any("named)" in text for text in texts(drawn))
    known = told(count=100)
    for label in range(60):
        known[exposed.FIELD][0]["classes"][str(label)]["auc"] = None
    assert "60 more have too few records for a figure." in pictures(known)[1].caption


def test_older_documents_have_the_tables_and_no_records_picture() -> None:
    old = {exposed.FIELD: [{k: v for k, v in told()[exposed.FIELD][0].items() if k not in NEW}]}
    blocks = exposed.blocks(old)
    assert any(isinstance(one, Table) and "most exposed record" in one.caption for one in blocks)
    [classes] = pictures(old)
    assert "All records together" not in classes.caption + classes.wide
    single = copy.deepcopy(old)
    single[exposed.FIELD][0]["classes"] = {"0": {"auc": None, "records": 1000}}
    assert pictures(single) == []
    assert isinstance(exposed.blocks(single)[-1], Details)


def test_of_many_attacks_the_first_are_drawn_each_under_its_own_name() -> None:
    part = told()[exposed.FIELD][0]
    few = {**part, "classes": {}}
    blocks = exposed.blocks({exposed.FIELD: [few] * (exposed.DRAWN + 1)})
    drawn = [one for one in blocks if isinstance(one, Picture)]
    assert len({one.wide.split('"')[1] for one in drawn}) == len(drawn) == exposed.DRAWN


def test_hostile_names_stay_text() -> None:
    document = told(
        attack=HOSTILE, classes={f"{n}{HOSTILE}": {"auc": figure(0.8), "records": 5} for n in "ab"}
    )
    for one in pictures(document):
        for drawn in (one.wide, one.narrow):
            assert "<script" not in drawn
            assert "<img" not in drawn
            assert drawn.count("</svg>") == 1


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"exposed": 5}, "spread.certain must add up to exposed"),
        ({"records": 999}, "must not have more than records"),
        (
            {"spread": {"edges": [0.0, 1.0], "certain": [4], "others": []}},
            "one count between every two edges",
        ),
        ({"spread": {"edges": [1.0, 0.0], "certain": [4], "others": [0]}}, "edges must rise"),
        ({"carried": [{"records": 1001, "hits": 0.5}]}, "must not be of more than records"),
        ({"carried": [{"records": 10, "hits": 1.5}]}, r"carried\[0\].hits"),
        ({"auc": figure(3.0)}, "auc.value"),
    ],
)
def test_damaged_figures_are_refused_in_words(parts: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        exposed.read(told(**parts))


@pytest.mark.parametrize("count", [3, 30, 1000])
def test_charts_keep_their_texts_apart(count: int) -> None:
    for picture in pictures(told(count=count)):
        check_layout(picture.drawing)
