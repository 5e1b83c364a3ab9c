"""A page carries the values of each chart as CSV and its picture as SVG, which a browser can save."""

from __future__ import annotations

import csv
import io
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from pages import HOSTILE, Page
from test_charts import PANELS, chart
from test_report import compare_document, run_document

from fedprivacy import report
from fedprivacy.report.blocks import Entry, Group, Table
from fedprivacy.report.downloads import csv_text, data_uri, links
from fedprivacy.report.svg import _VARIABLES


def test_csv_has_the_rows_of_the_table_with_their_group() -> None:
    rows = [Group("Central", "a note"), ("8", Entry("81 %", "80 to 82")), Group("Local"), ("8", "—")]
    table = Table("A caption.", ("Epsilon", "Accuracy"), rows)
    assert list(csv.reader(io.StringIO(csv_text([table])))) == [
        ["Group", "Epsilon", "Accuracy"], ["Central", "8", "81 % (80 to 82)"], ["Local", "8", ""],
    ]  # fmt: skip
    assert csv_text([table, table]).count("A caption.") == 2


def test_no_cell_is_a_formula_to_a_spreadsheet() -> None:
    cells = ("=1+1", "+cmd", "@SUM(A1)", "-x", "-0.47", "\t=1")
    [_, row] = csv.reader(io.StringIO(csv_text([Table("", ("a",) * 6, [cells])])))
    assert row == ["'=1+1", "'+cmd", "'@SUM(A1)", "'-x", "-0.47", "'=1"]


def test_a_hostile_text_stays_within_its_link() -> None:
    target = data_uri("text/csv", HOSTILE + "\n#x&y")
    assert not set(target) & set("<>\"'&#\n\\")
    assert "://" not in target
    assert unquote(target.partition(",")[2]) == HOSTILE + "\n#x&y"


@pytest.mark.exhaustive(every=4)
@pytest.mark.parametrize("name", PANELS)
def test_the_picture_stands_alone(name: str) -> None:
    drawn = chart(PANELS[name]).saved("svg").decode()
    root = ElementTree.fromstring(drawn)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "var(" not in drawn
    assert not any(placeholder in drawn for placeholder in _VARIABLES)
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    assert [label for _, label, _ in links(chart(PANELS[name]).picture)] == ["name.csv", "name.svg"]


@pytest.mark.parametrize("document", [compare_document(), run_document(12)])
def test_a_page_carries_every_chart_and_nothing_operator_only(document) -> None:
    page = Page(report.render(document))
    downloads = [link for link in page.all("a") if "download" in link]
    assert len(downloads) == 2 * page.html.count("<figure")
    tables = [unquote(link["href"]) for link in downloads if link["download"].endswith(".csv")]
    assert all("\r\n" in table for table in tables)
    assert not any("cohort" in table.lower() or "client 17" in table for table in tables)


def test_drawings_are_compact_and_nothing_else_is_lost() -> None:
    """Without it a page with downloads would be half as large again."""
    drawn = chart(PANELS["many lines"]).draw(narrow=False)
    assert "<!--" not in drawn
    assert "<g></g>" not in drawn
    assert len(drawn) < 60_000
    ElementTree.fromstring(drawn)


def save(page: Any, selector: str, folder: Path) -> None:
    """Saves the file behind a link."""
    with page.expect_download() as download:
        page.locator(selector).first.click()
    download.value.save_as(folder / download.value.suggested_filename)


@pytest.mark.exhaustive
@pytest.mark.slow
def test_a_browser_saves_both_files(browser, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(report.render(run_document(12)), encoding="utf-8")
    browser.open(page, 1280, dark=False)
    for kind in ("csv", "svg"):
        browser.do(partial(save, selector=f"a[download$='.{kind}']", folder=tmp_path))
    assert (tmp_path / "learning.csv").read_text().startswith("Round,Accuracy,Loss")
    assert ElementTree.parse(tmp_path / "learning.svg").getroot().tag.endswith("svg")
    assert browser.logged == []
