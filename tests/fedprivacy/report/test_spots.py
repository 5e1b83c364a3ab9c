"""Marks have their values on hover and on focus, and axes say where they are cut or logarithmic."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from test_charts import PANELS, SHAPES, chart, dots, histogram, lines

from fedprivacy.report.charts import Axis, Lines, Point, Series, looks
from fedprivacy.report.charts.lines import SPOTS
from fedprivacy.report.charts.spots import FOCUSED, Spot, overlay

SVG = "{http://www.w3.org/2000/svg}"


def spots(drawn: str) -> list[ElementTree.Element]:
    root = ElementTree.fromstring(drawn.replace("<svg ", f'<svg xmlns="{SVG[1:-1]}" ', 1))
    return [group for group in root.iter(f"{SVG}g") if group.get("class") == "spot"]


@pytest.mark.exhaustive(every=5)
@pytest.mark.parametrize("narrow", SHAPES)
@pytest.mark.parametrize("name", PANELS)
def test_every_kind_of_panel_has_values_within_the_picture(name: str, narrow: bool) -> None:
    drawn = chart(PANELS[name])
    layout = drawn.layout(narrow=narrow)
    marked = spots(drawn.draw(narrow=narrow))
    assert marked
    for mark in marked:
        assert mark.findtext(f"{SVG}title")
        for part in mark.iter(f"{SVG}tspan"):
            assert 0 <= float(part.get("x", -1)) < layout.width
            assert 0 < float(part.get("y", -1)) <= layout.height


def test_a_spot_lies_on_its_mark_and_has_series_place_value_and_interval() -> None:
    panel = lines(1)
    drawn = chart(panel).draw(narrow=False)
    markers = re.findall(
        r'<use href="[^"]*" x="([\d.]+)" y="([\d.]+)" style="fill: var\(--central\); stroke: var\(--paper\)',
        drawn,
    )
    places = [(float(part[1].get("cx", 0)), float(part[1].get("cy", 0))) for part in spots(drawn)]
    for (x, y), (cx, cy) in zip(markers, places, strict=True):
        assert (float(x), float(y)) == pytest.approx((cx, cy), abs=0.6)
    titles = [part.findtext(f"{SVG}title") for part in spots(drawn)]
    assert titles[1] == "series 0: 5 % at epsilon 2 (3 to 6 %)"
    [first, *_] = spots(chart(dots()).draw(narrow=False))
    assert first.findtext(f"{SVG}title") == "series 0, cat: 0 (0 to 3)"
    [first, *_] = spots(chart(histogram()).draw(narrow=False))
    assert first.findtext(f"{SVG}title") == "0 to 1: Members: 1, Non-members: 400"


def test_of_a_long_line_some_points_have_values_and_of_many_marks_none_takes_the_keyboard() -> None:
    long = tuple(Point(float(at), at / 500) for at in range(500))
    panel = Lines(Axis("Round"), Axis("Share"), (Series(looks.LOOKS["local"], "a", long),))
    assert len(spots(chart(panel).draw(narrow=False))) == SPOTS
    few, many = ([Spot(5.0 * at, 50.0, str(at)) for at in range(count)] for count in (FOCUSED, FOCUSED + 1))
    assert overlay(few, 900.0, 300.0).count('tabindex="0"') == FOCUSED
    assert "tabindex" not in overlay(many, 900.0, 300.0)
    assert overlay(many, 900.0, 300.0).count("<title>") == FOCUSED + 1


def test_a_cut_axis_has_a_break_mark_and_is_named_in_caption_and_alt_text() -> None:
    whole = lines()
    cut = replace(whole, y=replace(whole.y, limits=(0.6, 1.0)))
    for panel, there in ((whole, False), (cut, True)):
        drawn = chart(panel)
        sentence = "The axis of accuracy begins at 60 %, not at 0."
        assert (sentence in drawn.alt) is there
        assert (sentence in drawn.picture.caption) is there
        zigzag = re.findall(
            r"<path d=\"M [^\"]*\" style=\"fill: none; stroke: var\(--muted\); stroke-width: 1.5",
            drawn.draw(narrow=False),
        )
        assert bool(zigzag) is there


def test_axes_of_dots_are_cut_too_and_many_are_counted() -> None:
    far = replace(dots(), x=Axis("AUC (0.5: guessing)", limits=(0.42, 1.0)))
    assert "The axis of AUC begins at 0.42, not at 0." in chart(far).alt
    several = [replace(far, x=replace(far.x, label=f"Count {at}")) for at in range(3)]
    assert "3 axes do not begin at 0 (zigzag)." in chart(*several).picture.caption
    assert "not at 0" not in chart(replace(dots(), x=Axis("Count", limits=(0.0, 40.0)))).alt


def test_a_logarithmic_axis_says_so() -> None:
    drawn = chart(PANELS["logarithmic"])
    labels = [label.text for label in drawn.layout(narrow=False).labels]
    assert "Error, logarithmic" in labels
    assert "epsilon, logarithmic" in labels
    assert "The axis of error is logarithmic." in drawn.picture.caption
    assert "not at 0" not in drawn.alt
    assert "logarithmic" not in chart(histogram()).alt
    assert "logarithmic" in chart(histogram(log=True)).alt
