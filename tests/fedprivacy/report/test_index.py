"""The index page of stored results: escaped, offline, and sorted by its only script."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from pathlib import Path
from typing import Any

import pytest

from fedprivacy.errors import InputError
from fedprivacy.report.index import render, write


def row(run: str, **changes: Any) -> dict[str, Any]:
    return {
        "run": run,
        "path": run,
        "name": "digits",
        "kind": "run",
        "started": "2026-01-01T10:00:00+00:00",
        "status": "finished",
        "trust": "central",
        "unit": "client, replace-one",
        "delta": 1e-5,
        "guarantees": "whole",
        "epsilon_server": None,
        "epsilon_participant": 2.00001,
        "epsilon_outsider": 2.0,
        "accuracy": 0.5,
        "tags": [],
    } | changes


def test_texts_are_escaped_and_names_are_quoted_in_addresses() -> None:
    page = render([row("a b#<script>alert(1)</script>", tags=["<b>"])], [True])
    assert "<script>alert" not in page
    assert "<b>" not in page
    assert 'href="a%20b%23%3Cscript%3Ealert%281%29%3C/script%3E/report.html"' in page


def test_an_epsilon_is_rounded_up_and_a_missing_one_is_explained() -> None:
    page = render([row("r")], [False])
    assert 'data-key="2.00001">2.001</td>' in page
    assert ">no guarantee</td>" in page
    assert "<a " not in page
    page = render([row("r", guarantees="by cell", epsilon_participant=None, epsilon_outsider=None)], [False])
    assert page.count(">by cell</td>") == 3
    assert ">no guarantee</td>" not in page


def test_a_shuffled_result_has_the_analyst_in_a_column_of_its_own() -> None:
    rows = [row("r"), row("s", trust="shuffled", epsilon_server=4.0, epsilon_analyst=0.51234)]
    page = render(rows, [False, False])
    assert re.findall(r"(?:epsilon: server|analyst|participant|outsider)(?=<)", page) == [
        "epsilon: server",
        "analyst",
        "participant",
        "outsider",
    ]
    assert ">0.5124</td>" in page
    assert "analyst" not in render(rows[:1], [False])


def test_a_run_of_no_classes_has_its_score_with_the_metric() -> None:
    page = render([row("r", accuracy=None, answer="R2 55.1 %")], [False])
    assert ">R2 55.1 %</td>" in page
    assert "accuracy or score" in page
    assert "R2 55.1 %" not in render([row("r", answer="R2 55.1 %")], [False])
    assert "12 people" not in render(
        [row("r", kind="statistics", accuracy=None, answer="12 people")], [False]
    )


def test_the_policy_allows_the_script_of_the_page_alone() -> None:
    page = render([row("r")], [False])
    [script] = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page
    assert "default-src 'none'" in page
    assert "http:" not in page.replace("http-equiv", "")


def test_it_links_the_reports_that_are_there(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "report.html").write_text("")
    rows = [row("one", path=str(tmp_path / "one")), row("two", path=str(tmp_path / "two"))]
    page = write(tmp_path, rows).read_text()
    assert 'href="one/report.html"' in page
    assert 'href="two/report.html"' not in page


def test_a_page_of_somebody_else_is_not_overwritten(tmp_path: Path) -> None:
    page, other = tmp_path / "index.html", tmp_path / "other"
    write(tmp_path, [row("one")])
    write(tmp_path, [row("two")])  # ours is
    other.write_text(page.read_text())
    page.write_text("<html>mine</html>")
    with pytest.raises(InputError, match="not a page of"):
        write(tmp_path, [row("one")])
    assert page.read_text() == "<html>mine</html>"
    page.unlink()
    page.symlink_to(other)
    with pytest.raises(InputError, match="not a page of"):
        write(tmp_path, [row("one")])


def test_names_of_any_bytes_have_an_address() -> None:
    page = render([row(os.fsdecode(b"a\xff"))], [True])
    assert 'href="a%FF/report.html"' in page
    page.encode()


@pytest.mark.slow
@pytest.mark.parametrize(("presses", "order"), [(1, ["b", "c", "a", "d"]), (2, ["a", "c", "b", "d"])])
def test_a_pressed_heading_sorts_numbers_and_leaves_missing_ones_last(
    browser: Any, tmp_path: Path, presses: int, order: list[str]
) -> None:
    rows = [row(name, accuracy=value) for name, value in zip("abcd", (0.9, 0.1, 0.25, None), strict=True)]
    browser.open(write(tmp_path, rows), 1280)
    for _ in range(presses):
        browser.do(lambda page: page.get_by_role("button", name="accuracy").click())
    assert browser.do(lambda page: page.locator("tbody th").all_inner_texts()) == order
    heading = browser.do(lambda page: page.locator("th[aria-sort$=ending]").all_inner_texts())
    assert len(heading) == 1
    sorted_by = browser.evaluate("document.querySelector('th[aria-sort$=ending]').ariaSort")
    assert sorted_by == ("ascending" if presses == 1 else "descending")
    assert browser.logged == []
