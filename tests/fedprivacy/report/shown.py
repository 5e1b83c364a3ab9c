"""How a page shows in a real browser: whole, readable, apart, silent, and within reach of the keyboard."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from chromium import NARROW, Browser, Media
from playwright.sync_api import Page

MEASURE = (Path(__file__).parent / "measure.js").read_text(encoding="utf-8")
OPEN_ALL = "document.querySelectorAll('details').forEach(fold => { fold.open = true; })"
TABS = 3000  # presses of a key: more than a page has to stop at


class Look(NamedTuple):
    """A window, or the text width of A4 in print."""

    width: int
    dark: bool = False
    media: Media = "screen"

    @property
    def phone(self) -> bool:
        """Whether it is a phone's window."""
        return self.width < NARROW


WIDE, PHONE, DARK = Look(1280), Look(390), Look(1280, dark=True)
PRINT = Look(718, dark=True, media="print")  # a dark window prints on white too
OPPOSITE = (WIDE, Look(390, dark=True))  # two that share nothing
LOOKS = (WIDE, PHONE, DARK, PRINT)


def check_shown(
    browser: Browser, path: Path, looks: Sequence[Look] = OPPOSITE, least: float = 50.0, pictures: bool = True
) -> None:
    """Checks that all of a page shows in each of these looks, and that it asks for nothing else.

    Each window loads the page once. A print comes before the folds are opened: it shows what is folded.

    Args:
        browser: The browser.
        path: The page.
        looks: The windows.
        least: Pictures are wider and higher than so many pixels.
        pictures: Whether the page has any.
    """
    ordered = sorted(looks, key=lambda look: (look.phone, look.media != "print"))
    for _, of_window in groupby(ordered, key=lambda look: look.phone):
        for loaded, look in enumerate(of_window):
            (browser.resize if loaded else partial(browser.open, path))(
                look.width, dark=look.dark, media=look.media
            )
            if look.media == "screen":
                browser.evaluate(OPEN_ALL)
            shown = browser.evaluate(MEASURE)
            assert browser.logged == [], look
            assert browser.requests == [path.as_uri()], look
            check_measured(shown, look, least)
            assert bool(shown["sizes"]) is pictures, look


def check_measured(shown: dict[str, Any], look: Look, least: float = 50.0) -> None:
    """Checks what `measure.js` returned for a page of which all folds are open."""
    assert len(shown["sizes"]) == shown["figures"], look  # of each the wide one or the narrow one
    assert min((min(size) for size in shown["sizes"]), default=least + 1) > least, look
    assert shown["cut"] == [], look
    assert shown["overlapping"] == [], look
    assert shown["faint"] == [], look  # WCAG AA
    assert shown["dark"] is (look.dark and look.media == "screen"), look
    assert shown["wide"] <= look.width, look  # nothing to scroll sideways
    assert shown["folded"] == [], look


def open_by_keyboard(browser: Browser) -> tuple[int, list[str]]:
    """Opens every closed fold that Tab reaches by Enter.

    Returns:
        How many it opened, and the summaries of folds that stayed closed or were never reached.
    """
    return browser.do(_open_by_keyboard)


def _open_by_keyboard(page: Page) -> tuple[int, list[str]]:
    page.evaluate("window.reached = new Set()")
    opened = 0
    for _ in range(TABS):
        page.keyboard.press("Tab")
        stop = page.evaluate(FOCUS)
        if stop == "end":
            break
        if stop == "closed":
            page.keyboard.press("Enter")
            opened += 1
    return opened, page.evaluate(UNREACHED)


FOCUS = """() => {
const focused = document.activeElement;
if (focused === document.body) return "end";
if (focused.tagName !== "SUMMARY") return "other";
const ring = getComputedStyle(focused);
if (ring.outlineStyle !== "none" && parseFloat(ring.outlineWidth) >= 2) window.reached.add(focused);
return focused.parentElement.open ? "open" : "closed";
}"""
UNREACHED = """[...document.querySelectorAll("summary")].filter(fold => fold.checkVisibility())
  .filter(fold => !fold.parentElement.open || !window.reached.has(fold)).map(fold => fold.textContent)"""
