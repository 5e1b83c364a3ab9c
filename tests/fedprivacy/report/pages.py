"""Rendered pages taken apart, and hostile documents."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

from fedprivacy.report import html, page_of
from fedprivacy.report.blocks import Block, Details, Picture
from fedprivacy.report.charts import Chart, Dots, looks
from fedprivacy.report.charts.label import overlap
from fedprivacy.report.operator_only import operator_section

HOSTILE = "<script src=http://evil.test/x.js></script><img src=x onerror=alert(1)>"
HOSTILE += "\"' $x^2$ {{ 7*7 }} </svg></style>"


def poisoned(value: Any, keep: tuple[str, ...] = ("kind", "trust", "observer")) -> Any:
    """The document with hostile text in each of its strings, but those of some keys."""
    if isinstance(value, dict):
        return {key: entry if key in keep else poisoned(entry, keep) for key, entry in value.items()}
    if isinstance(value, list):
        return [poisoned(entry, keep) for entry in value]
    return value + HOSTILE if isinstance(value, str) else value


class Page(HTMLParser):
    """A rendered page, taken apart as a browser would: elements with their attributes and texts."""

    VOID = frozenset({"meta", "br", "hr", "img", "link", "input"})

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.html = html
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.open: list[tuple[str, dict[str, str]]] = []
        self.texts: list[tuple[tuple[str, ...], str]] = []  # (ids, classes and tags above it, text)
        self.feed(html)
        self.close()
        assert not self.open, f"unclosed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.elements.append((tag, attributes))
        if tag not in self.VOID:
            self.open.append((tag, attributes))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1][0] == tag, f"</{tag}> closes {self.open[-1]}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        marks = [
            mark
            for tag, found in self.open
            for mark in (tag, found.get("id"), *found.get("class", "").split())
        ]
        self.texts.append((tuple(mark for mark in marks if mark), data))

    def text(self, within: str = "main", without: str = "") -> str:
        """The text below an element (by tag, id or class), without that below another."""
        found = [
            text for marks, text in self.texts if within in marks and (not without or without not in marks)
        ]
        return re.sub(r"\s+", " ", " ".join(found)).strip()

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def rows(self, section: str = "") -> list[list[str]]:
        """The cells of every table row of a section, or of the first picture."""
        part = rf'<section id="{section}".*?</section>' if section else "<figure.*?</figure>"
        body = re.search(part, self.html, re.DOTALL)
        assert body
        rows = re.findall(r"<tr.*?</tr>", body.group(), re.DOTALL)
        return [[Page(cell).text("t") for cell in _cells(row)] for row in rows]


def _cells(row: str) -> list[str]:
    return [f"<t>{inner}</t>" for _, inner in re.findall(r"<(t[hd])\b[^>]*>(.*?)</\1>", row, re.DOTALL)]


def worded(document: dict[str, Any]) -> Page:
    """Both pages of a document in one without drawings, which take nearly all the time: words and tables."""
    page = page_of(document, operator=True)
    sections = [replace(section, blocks=_undrawn(section.blocks)) for section in page.sections]
    page = replace(page, lead=_undrawn(page.lead), sections=sections)
    return Page(html(page, operator_section(document)))


class Undrawn:
    """A drawing of nothing."""

    name = "undrawn"

    def draw(self, *, narrow: bool) -> str:
        return ""

    def saved(self, kind: str) -> bytes:
        return b""


def _undrawn(blocks: Sequence[Block | Details]) -> list[Any]:
    def undrawn(block: Block | Details) -> Block | Details:
        if isinstance(block, Picture):
            return replace(block, drawing=Undrawn())
        return replace(block, blocks=_undrawn(block.blocks)) if isinstance(block, Details) else block

    return [undrawn(block) for block in blocks]


def saved(page: Page, folder: Path) -> Path:
    """A rendered page as the file that a browser opens."""
    path = folder / "report.html"
    path.write_text(page.html, encoding="utf-8")
    return path


def safe(html: str) -> Page:
    """The page of a `poisoned` document, once nothing in it has become markup."""
    page = Page(html)
    assert not page.all("script")
    assert not page.all("img")
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
    assert html.count("</style>") == 1
    return page


def check_whole(page: Page) -> None:
    """That a page needs no network, and says in words and tables what its pictures show."""
    ids = [found["id"] for _, found in page.elements if "id" in found]
    assert len(ids) == len(set(ids))
    assert "://" not in page.html
    figures = re.findall(r"<figure.*?</figure>", page.html, re.DOTALL)
    assert figures
    assert len(re.findall("<svg", page.html)) == 2 * len(figures)
    for figure in map(Page, figures):
        for drawing in figure.all("svg"):
            title, description = drawing["aria-labelledby"].split()
            assert figure.text(title)
            assert len(figure.text(description)) > 60
        assert figure.all("table")
    for table in re.findall(r"<table.*?</table>", page.html, re.DOTALL):
        assert Page(table).text("caption")


def check_epsilons(page: Page, delta: str = "1e-5") -> None:
    """Checks that every epsilon of a page has its delta, unit, adjacency and an observer."""
    block = r"<figure>?.*?</figcaption>|<div class=.finding.>.*?</aside>|<p>.*?</p>|<table.*?</table>"
    found = re.findall(block, page.html, re.DOTALL)
    plain = [re.sub(r"<[^>]*>|\s+", " ", re.sub(r"<(title|desc).*?</\1>", "", text)) for text in found]
    for text in (text for text in plain if re.search(r"[Ee]psilon \d", text)):
        assert all(term in text for term in (f"delta {delta}", "unit client", "adjacency replace-one")), text
        assert re.search(r"server|participant|outsider|observer", text), text


def check_layout(drawn: Chart) -> None:
    """That every text lies in the picture, and none on another, in both shapes."""
    for narrow in (False, True):
        layout = drawn.layout(narrow=narrow)
        assert layout.width == (360.0 if narrow else 920.0)
        for text in layout.labels:
            left, top, right, bottom = text.box
            assert left >= -0.5, text
            assert right <= layout.width + 0.5, text
            assert top >= -0.5, text
            assert bottom <= layout.height + 0.5, text
        assert not [(a.text, b.text) for a, b in combinations(layout.labels, 2) if overlap(a, b)]
        for placed in layout.panels:
            assert placed.box.width > 0.3 * placed.box.room
            assert placed.box.height > 20
            assert placed.box.bottom <= layout.height
        for (_, upper), (_, lower) in pairwise((p, p.box) for p in layout.panels):
            assert lower.top >= upper.bottom or lower.left >= upper.right


def pictures(blocks: Sequence[Block | Details]) -> Iterator[Picture]:
    """All pictures among these blocks, those in folded ones too."""
    for block in blocks:
        if isinstance(block, Details):
            yield from pictures(block.blocks)
        elif isinstance(block, Picture):
            yield block


def charts_of(document: dict[str, Any]) -> list[Chart]:
    """All charts of a page, those of its operator-only part too."""
    page, operator = page_of(document), operator_section(document)
    parts = [page.lead, *(section.blocks for section in page.sections), operator.blocks if operator else ()]
    drawn = [picture for blocks in parts for picture in pictures(blocks)]
    assert all(picture.tables for picture in drawn)
    charts = [picture.drawing for picture in drawn if isinstance(picture.drawing, Chart)]
    assert len(charts) == len(drawn)
    return charts


def check_looks(chart: Chart) -> None:
    """That no two series of a chart share a colour, nor a marker with its line style.

    Series of one label are one thing in several panels or runs, such as the thin lines of other runs; only
    those that a legend shows by a sample of another look (bounds in the colour of their arm) may differ.
    """
    named: dict[str, set[tuple[str, str, str]]] = {}
    filled: dict[str, str] = {}
    for panel in chart.panels:
        dots = isinstance(panel, Dots)
        for series in getattr(panel, "series", ()):
            if not series.label or not series.points or (series.width < 1 and series.look[1] == ""):
                continue
            color, marker, line = series.sample or series.look
            shape = (looks.mark((color, marker, line))[1], "") if dots else (marker, str(line))
            named.setdefault(series.label, set()).add((color, *shape))
        for bars in getattr(panel, "bars", ()):
            filled[bars.label] = bars.color
    assert len(set(filled.values())) == len(filled)
    assert all(len(drawn) == 1 for drawn in named.values()), named
    every = [look for drawn in named.values() for look in drawn]
    assert len({color for color, _, _ in every}) == len(every), named
    assert len({(marker, line) for _, marker, line in every}) == len(every), named


def check_charts(document: dict[str, Any]) -> None:
    """That a page has charts, that these keep their texts apart, and that no two series look alike."""
    charts = charts_of(document)
    assert charts
    for chart in charts:
        check_layout(chart)
        check_looks(chart)
