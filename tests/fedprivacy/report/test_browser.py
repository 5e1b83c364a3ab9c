"""Each kind of page in a real browser: on a wide screen, on a phone, in the dark and in print."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from chromium import Browser
from each_kind import KINDS
from shown import LOOKS, PHONE, WIDE, check_shown, open_by_keyboard
from test_index import row
from test_report import run_document

from fedprivacy import report
from fedprivacy.report.index import write
from fedprivacy.report.page_names import OPERATOR, PUBLIC

FIRST_SCREEN = 800  # pixels: what a window of 1280 x 800 shows at first
LONGEST = 6000  # pixels of a page before anything is opened
ROW = 200  # pixels of a row with a long name and many tags, on a phone too
STOPPED = {"early": 12, "at once": 0}  # completed rounds
OPERATED = ("run-central", "replay-bare")

ANSWER = "document.getElementById('answer')"

pytestmark = pytest.mark.slow


def check_page(browser: Browser, path: Path, *, pictures: bool = True) -> None:
    """Checks a page in each look, then what a reader sees first, then its folds by the keyboard."""
    check_shown(browser, path, LOOKS, pictures=pictures)
    browser.open(path, WIDE.width)
    assert browser.evaluate("document.documentElement.scrollHeight") <= LONGEST
    assert browser.evaluate(f"{ANSWER}?.getBoundingClientRect().bottom ?? 0") <= FIRST_SCREEN
    folds = browser.evaluate("document.querySelectorAll('main details').length")
    opened, unreached = open_by_keyboard(browser)
    assert unreached == []
    assert (opened > 0) is (folds > 0)


@pytest.mark.exhaustive(every=3)
@pytest.mark.parametrize("name", KINDS)
def test_a_page_of_each_kind(answered: Any, browser: Browser, name: str) -> None:
    check_page(browser, Path(answered[name]["path"]) / PUBLIC, pictures=name != "choice")
    assert browser.evaluate(f"{ANSWER} !== null")


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("name", OPERATED)
def test_the_page_of_the_operator(answered: Any, browser: Browser, name: str, tmp_path: Path) -> None:
    report.write(answered[name], tmp_path, merged=True)
    check_page(browser, tmp_path / OPERATOR)


@pytest.mark.parametrize("rounds", STOPPED.values(), ids=STOPPED)
def test_a_run_that_stopped(browser: Browser, rounds: int, tmp_path: Path) -> None:
    path = report.write(run_document(rounds, "interrupted", "interrupted by the user"), tmp_path)
    check_page(browser, path, pictures=rounds > 0)


def test_an_index_of_stored_results(browser: Browser, tmp_path: Path) -> None:
    names = ("a", "LongNameWithoutAnySpace" * 8, "unfinished")
    rows = [row(name, tags=["first", "kept for the talk"] * 4, path=str(tmp_path / name)) for name in names]
    path = write(tmp_path, rows)
    check_page(browser, path, pictures=False)
    browser.open(path, PHONE.width)
    heights = browser.evaluate("[...document.querySelectorAll('tr')].map(e => e.offsetHeight)")
    assert max(heights) <= ROW
