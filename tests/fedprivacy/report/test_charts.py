"""Charts as values: their texts stay in the picture and apart, and their words and tables hold their figures."""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pages import HOSTILE, Page, check_charts, check_layout
from test_report import (
    classes,
    compare_document,
    crowded,
    many_mechanisms,
    partial_comparison,
    run_document,
    two_mechanisms,
)
from test_units import SPENT
from test_units import compared as compared_units
from test_units import ran as ran_by_records

from fedprivacy.documents.roc import Curve
from fedprivacy.report import svg
from fedprivacy.report.blocks import Group, Table
from fedprivacy.report.charts import (
    Axis,
    Band,
    Bars,
    Chart,
    Dots,
    Histogram,
    Lines,
    Mosaic,
    Pixels,
    Point,
    Reference,
    Row,
    Series,
    looks,
    roc,
    surface,
)
from fedprivacy.report.charts.axis import at_data, categories, percent
from fedprivacy.report.charts.label import Label, cut, thinned, width, wrapped
from fedprivacy.report.charts.legend import legend
from fedprivacy.report.charts.series import Key

SHAPES = [False, True]  # wide and narrow


def lines(count: int = 3, points: int = 4, **parts: Any) -> Lines:
    """So many series of so many points, with intervals."""
    series = tuple(
        Series(
            look,
            f"series {number}",
            tuple(
                Point(
                    2.0**x, 0.1 * number + 0.05 * x, (0.1 * number + 0.05 * x - 0.02, 0.1 * number + 0.06 * x)
                )
                for x in range(points)
            ),
        )
        for number, look in enumerate(looks.series(count))
    )
    x = Axis("epsilon", log=True, ticks=at_data([2.0**x for x in range(points)]), phrase="at epsilon {}")
    return Lines(x, Axis("Accuracy", percent, limits=(0.0, 1.0)), series, **parts)


def dots(count: int = 2, names: Sequence[str] = ("cat", "dog", "bird")) -> Dots:
    series = tuple(
        Series(
            (color, marker, ""),
            f"series {number}",
            tuple(
                Point(10.0 * row + number, float(row), (10.0 * row, 10.0 * row + 3))
                for row in range(len(names))
            ),
        )
        for number, (color, marker, _) in enumerate(looks.series(count))
    )
    return Dots(Axis("Count"), tuple(map(Row, names)), series, "How many")


def histogram(**parts: Any) -> Histogram:
    bars = (Bars("Members", svg.LOCAL, (1, 20, 300)), Bars("Non-members", svg.NONE, (400, 50, 6)))
    return Histogram(Axis("Score"), (0.0, 1.0, 2.0, 3.0), bars, "Records", **parts)


CURVE = Curve(fpr=(0.0, 0.0, 0.1, 1.0), tpr=(0.0, 0.2, 0.5, 1.0))
STRICT = Curve(fpr=(0.0, 1.0), tpr=(0.1, 1.0))
AXIS = [-2 + 0.2 * step for step in range(21)]
HEIGHTS = [[x * x + 3 * y * y for x in AXIS] for y in AXIS]


def mosaic() -> Mosaic:
    grey, colour = Pixels(4, 1, "00ff1234" * 2), Pixels(2, 3, "f00" * 2 + "0f0" * 2)
    return Mosaic(
        "Rebuilt",
        ("Original", "Nearest wrong"),
        ((grey,) * 5, (colour,) * 5),
        (("",) * 5, ("PSNR 12 dB",) * 5),
    )


PANELS = {
    "lines": lines(),
    "one line": lines(1),
    "many lines": lines(10),
    "lines, bare": Lines(Axis(), Axis("Level"), (), (Reference(0.5, label="Guessing", interval=(0.4, 0.6)),)),
    "logarithmic": replace(lines(), y=Axis("Error", log=True)),
    "dots": dots(),
    "dots, long names": dots(3, ["a name that has no end to it at all", "b", "c"]),
    "dots, many": dots(1, [f"category {number}" for number in range(40)]),
    "histogram": histogram(),
    "histogram, log": histogram(log=True),
    "histogram, mirrored": histogram(mirrored=True),
    "roc": roc([CURVE], STRICT, 0.02),
    "roc of runs": roc([CURVE, STRICT, CURVE], None, 0.0),
    "mosaic": mosaic(),
    "surface": surface(("age", "education"), AXIS, HEIGHTS, [(0, 0), (0.4, 0.2)], (0, 0), (0.1, 0.1)),
}


def chart(*panels: Any, **parts: Any) -> Chart:
    return Chart("name", "A title", "A caption.", tuple(panels), **parts)


def texts(drawn: str) -> list[str]:
    """The texts that are always there, not those on focus."""
    return [text.strip() for text in re.findall(r"<text [^>]*>(.*?)</text>", drawn, re.DOTALL)]


# --- where things are


@pytest.mark.exhaustive(every=4)
@pytest.mark.parametrize("name", PANELS)
def test_texts_stay_in_the_picture_and_apart(name: str) -> None:
    panel = PANELS[name]
    check_layout(chart(panel))
    check_layout(chart(panel, panel, heading="A heading " * 30))
    check_layout(chart(*[panel] * 4, stacked=True))
    check_layout(chart(*[panel] * 5))


def test_kinds_beside_each_other_stay_apart() -> None:
    check_layout(chart(roc([CURVE], STRICT, 0.0), histogram(mirrored=True)))
    check_layout(chart(lines(), histogram(), dots()))


@given(
    st.lists(st.text(max_size=60), min_size=1, max_size=9, unique=True),
    st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=9),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_whatever_the_names_and_figures_texts_stay_apart(
    names: list[str], values: list[float], log: bool
) -> None:
    values = [abs(value) + 1e-3 for value in values] if log else values
    series = tuple(
        Series(
            look,
            name,
            tuple(Point(float(at), value, (value - 1, value + 1)) for at, value in enumerate(values)),
        )
        for look, name in zip(looks.series(len(names)), names, strict=True)
    )
    ticks = categories([name * 2 for name in (names * 9)[: len(values)]])
    drawn = Lines(
        Axis(names[0], ticks=ticks, limits=(-0.4, len(values) - 0.6)), Axis(names[0], log=log), series
    )
    check_layout(chart(drawn))
    check_layout(chart(drawn, drawn, replace(drawn, title=names[-1])))
    rows = Dots(Axis(names[0]), tuple(map(Row, names)), tuple(
        Series(("#000000", "o", ""), name, (Point(values[0], float(at), (values[0] - 1, values[0] + 1)),))
        for at, name in enumerate(names)
    ), values=True)  # fmt: skip
    check_layout(chart(rows))


def with_classes() -> dict[str, Any]:
    document = run_document(12)
    document["final"]["per_class"] = classes()
    return document


DOCUMENTS = {
    "compare": compare_document,
    "two mechanisms": two_mechanisms,
    "many mechanisms": many_mechanisms,
    "crowded": crowded,
    "partial": partial_comparison,
    "units": compared_units,
    "run": run_document,
    "classes": with_classes,
    "broken off": lambda: run_document(40, "interrupted"),
    "dp-sgd": lambda: ran_by_records(per_client=SPENT),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_charts_of_a_page_keep_their_texts_apart_and_their_lines_differ(name: str) -> None:
    check_charts(copy.deepcopy(DOCUMENTS[name]()))


def test_labels_stand_at_the_ends_of_lines_where_there_is_room_and_else_above() -> None:
    wide, narrow = (chart(lines()).layout(narrow=shape) for shape in SHAPES)
    [box] = [placed.box for placed in wide.panels]
    named = [text for text in wide.labels if text.text.startswith("series")]
    assert len(named) == 3
    assert all(text.box[0] > box.right for text in named)
    long = replace(lines(), series=tuple(replace(s, note="against whom it holds") for s in lines().series))
    phone = chart(long).layout(narrow=True)
    [box] = [placed.box for placed in phone.panels]
    above = [text for text in phone.labels if text.text.startswith("series")]
    assert all(text.y < box.top for text in above)
    assert [sample.key.label for sample in phone.samples] == ["series 0", "series 1", "series 2"]
    assert not narrow.samples  # short labels fit beside lines on a phone too


def test_one_legend_stands_for_panels_that_share_their_series() -> None:
    together = chart(*[replace(lines(), legend=True)] * 3).layout(narrow=False)
    assert len(together.samples) == 3
    assert max(sample.y for sample in together.samples) < min(placed.box.top for placed in together.panels)
    other = replace(
        lines(), legend=True, series=tuple(replace(s, label=f"other {s.label}") for s in lines().series)
    )
    apart = chart(replace(lines(), legend=True), other).layout(narrow=False)
    assert len(apart.samples) == 6  # the same looks mean other things: each panel has its own


def test_panels_in_a_column_share_both_edges() -> None:
    layout = chart(lines(), replace(lines(), y=Axis("A", lambda y: f"{y:.5f}")), stacked=True).layout(
        narrow=False
    )
    assert len({(placed.box.left, placed.box.right) for placed in layout.panels}) == 1


def test_intervals_at_one_place_stand_aside_of_each_other() -> None:
    drawn = chart(lines(2, points=1)).draw(narrow=False)
    alone = chart(lines(1, points=1)).draw(narrow=False)
    upright = r'd="M ([\d.]+) [\d.]+ L \1 [\d.]+"[^>]*stroke: var\(--(?:central|local)\); stroke-width: 1.5'
    assert len(set(re.findall(upright, drawn))) == 2
    assert len(set(re.findall(upright, alone))) == 1


# --- words and tables


@pytest.mark.exhaustive(every=4)
@pytest.mark.parametrize("name", PANELS)
def test_a_drawing_says_what_it_shows(name: str) -> None:
    drawn = chart(PANELS[name], terms="At delta 1e-5.")
    assert "At delta 1e-5." in drawn.alt
    for narrow, shape in ((False, "wide"), (True, "narrow")):
        page = Page(drawn.draw(narrow=narrow))
        [root] = page.all("svg")
        assert root["class"] == f"name-{shape}"
        assert page.text(f"name-{shape}-title") == "A title"
        assert page.text(f"name-{shape}-desc") == " ".join(drawn.alt.split())
        assert sorted(texts(page.html)) == sorted(
            text.text.replace("&", "&amp;") for text in drawn.layout(narrow=narrow).labels
        )


def test_words_and_table_of_lines_hold_every_figure() -> None:
    panel = lines(2)
    drawn = chart(panel)
    [table] = drawn.derived_tables
    assert table.caption == "A caption."
    assert table.head == ("Epsilon", "Accuracy", "Interval")
    rows = [row for row in table.rows if not isinstance(row, Group)]
    assert [row.text for row in table.rows if isinstance(row, Group)] == ["series 0", "series 1"]
    points = [point for series in panel.series for point in series.points]
    assert len(rows) == len(points)
    for row, point in zip(rows, points, strict=True):
        assert row[1] == percent(point.y)
        assert f"{percent(point.y)} at epsilon {row[0]} ({row[2]})" in drawn.alt
    level = Reference(0.97, label="No noise", note="no guarantee", interval=(0.96, 0.98))
    assert "No noise (no guarantee): 97 %" in chart(replace(panel, references=(level,))).alt


def test_of_a_long_line_words_have_both_ends() -> None:
    alt = chart(lines(1, points=12)).alt
    assert "at epsilon 1 " in alt
    assert "at epsilon 2,048 " in alt
    assert "at epsilon 64 " not in alt


def test_words_and_table_of_dots_hold_every_figure() -> None:
    drawn = chart(dots())
    [table] = drawn.derived_tables
    assert table.head == ("", "series 0", "series 1")
    assert table.rows[1] == ("dog", "10\n10 to 13", "11\n10 to 13")
    assert "series 1: cat 1 (0 to 3), dog 11 (10 to 13), bird 21 (20 to 23)" in drawn.alt
    without = replace(dots(), series=(replace(dots().series[0], points=()),), missing="cannot be told")
    assert "series 0: cannot be told" in chart(without).alt


def test_words_and_table_of_a_histogram_hold_every_count() -> None:
    [table] = chart(histogram()).derived_tables
    assert table.rows == [("0 to 1", "1", "400"), ("1 to 2", "20", "50"), ("2 to 3", "300", "6")]
    assert "Members: 321, most of them (300) at 2 to 3" in chart(histogram()).alt


def test_words_and_table_of_a_curve_are_read_off_it() -> None:
    drawn = chart(roc([CURVE], STRICT, 0.05))
    [table] = drawn.derived_tables
    assert table.rows[0] == ("10 %", "50 %", "100 %")  # of the bound its next point
    assert "at 10 %: 50 %, allowed 100 %" in drawn.alt
    assert "at 1 %" not in drawn.alt  # too few records were scored there


def test_words_and_table_of_a_surface_hold_its_marks() -> None:
    drawn = chart(PANELS["surface"])
    assert "Minimum: (0, 0); Private estimate: (0.1, 0.1), 0.141 apart" in drawn.alt
    assert drawn.derived_tables[0].rows == [("age", "0", "0.1"), ("education", "0", "0.1")]


def test_a_module_may_have_tables_with_more() -> None:
    table = Table("More.", ("a",), [("b",)])
    assert chart(lines(), tables=(table,)).picture.tables == (table,)
    assert chart(lines()).picture.tables == chart(lines()).derived_tables


def test_nothing_in_a_chart_becomes_markup() -> None:
    hostile = replace(
        lines(), title=HOSTILE, series=(replace(lines().series[0], label=HOSTILE, note=HOSTILE),)
    )
    drawn = chart(hostile, replace(dots(), heading=HOSTILE), heading=HOSTILE).draw(narrow=True)
    assert "<script" not in drawn
    assert "<img" not in drawn
    assert drawn.count("</svg>") == 1


# --- axes and texts


def test_ticks_are_round_numbers_decades_or_where_the_data_is() -> None:
    assert [name for _, name in Axis().marks((0.0, 1.0), 5)] == ["0", "0.2", "0.4", "0.6", "0.8", "1"]
    assert [name for _, name in Axis(log=True).marks((-2.0, 1.0), 5)] == ["0.01", "0.1", "1", "10"]
    assert [name for _, name in Axis(log=True).marks((0.0, 1.0), 5)] == ["1", "2", "5", "10"]
    assert len(Axis(log=True).marks((-100.0, 100.0), 5)) <= 10
    assert [name for _, name in Axis(ticks={1.0: "", 8.0: "eight"}).marks((0.0, 9.0), 5)] == ["1", "eight"]


@pytest.mark.parametrize("log", [False, True])
@given(values=st.lists(st.floats(1e-9, 1e9), max_size=5))
def test_all_values_lie_between_the_ends(log: bool, values: list[float]) -> None:
    axis = Axis(log=log)
    low, high = axis.ends(values)
    assert low < high
    assert all(low <= axis.place(value) <= high for value in values)


@pytest.mark.parametrize("constant", [0.0, 1.0, -1e18, 1e300])
def test_an_axis_has_a_length_even_where_its_limits_have_none(constant: float) -> None:
    low, high = Axis(limits=(constant, constant)).ends([])
    assert low < high < math.inf
    point = Point(1.0, constant)
    panel = Lines(
        Axis(), Axis("Loss", limits=(constant, constant)), (Series(looks.LOOKS["local"], "", (point,)),)
    )
    check_layout(chart(panel))


def test_a_logarithmic_axis_has_no_place_for_zero() -> None:
    assert Axis(log=True).place(0.0) == -math.inf
    zero = replace(lines(), y=Axis("Error", log=True), series=(
        Series(looks.LOOKS["central"], "a", (Point(1.0, 0.5, (-1.0, 2.0)), Point(2.0, 0.1, (0.0, 1.0)))),
    ))  # fmt: skip
    assert "nan" not in chart(zero).draw(narrow=False)


def test_bands_and_references_are_drawn_across() -> None:
    plain = chart(lines()).draw(narrow=False)
    across = replace(
        lines(), bands=(Band(1.0, 2.0),), references=(Reference(0.5), Reference(2.0, upright=True))
    )
    drawn = chart(across).draw(narrow=False)
    assert len(re.findall("<path", drawn)) == len(re.findall("<path", plain)) + 3


@given(st.text(max_size=80), st.floats(20, 400))
def test_a_cut_text_fits_and_keeps_both_ends(text: str, room: float) -> None:
    shown = cut(text, room)
    assert width(shown) <= room or shown == "…"
    whole = " ".join(text.split())
    assert shown == whole or "…" in shown


@given(st.text(alphabet=st.characters(codec="ascii"), max_size=200), st.floats(40, 400), st.integers(1, 4))
def test_wrapped_lines_fit(text: str, room: float, most: int) -> None:
    written = wrapped(text, room, most=most)
    assert len(written) <= most
    assert all(width(line) <= room for line in written)


def test_of_names_that_would_touch_the_first_and_the_last_stay() -> None:
    labels = [Label(str(at), 7.0 * at, 0.0, "center") for at in range(100)]
    shown = thinned(labels, 8.0)
    assert (shown[0].text, shown[-1].text) == ("0", "99")
    assert all(after.box[0] - before.box[2] >= 8 for before, after in pairwise(shown))
    assert thinned([], 8.0) == []


def test_a_legend_has_one_entry_for_each_label() -> None:
    keys = [Key("a", looks.LOOKS["central"]), Key("a", looks.LOOKS["local"]), Key("", looks.LOOKS["local"])]
    labels, samples, tall = legend(keys, 400.0)
    assert [label.text for label in labels] == ["a"]
    assert samples[0].key.look == looks.LOOKS["central"]
    assert 0 < tall < 30
    assert legend([], 400.0) == ([], [], 0.0)


def test_dejavu_is_wider_than_the_fonts_of_pages() -> None:
    # Advance widths of Arial (Liberation Sans has the same), of 1000 units.
    arial = dict(
        zip(
            "aeimnorst0123.%",
            (556, 556, 222, 833, 556, 556, 333, 500, 278, *[556] * 4, 278, 889),
            strict=True,
        )
    )
    mine = np.array([width(letter, 1000) for letter in arial])
    assert np.all(mine > np.array(list(arial.values())))
