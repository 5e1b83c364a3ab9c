"""A headless Chromium driven by Playwright."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal, TypeVar

from playwright.sync_api import Page, sync_playwright

T = TypeVar("T")
Media = Literal["screen", "print"]
NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 60.0  # seconds for one action
NARROW = 600  # pixels: a window below that is a phone's
HEIGHT = 100  # pixels of a window: less to draw at each press of a key, and no test depends on it
# One thread draws a frame in a third of the time that several take to agree on it.
ARGUMENTS = ("--no-sandbox", "--disable-threaded-animation")


class Browser:
    """A Chromium with a window and a phone, and what happens on the page opened last.

    Playwright runs in a thread: its event loop would forbid `asyncio.run` in the thread of the tests.
    """

    def __init__(self, program: str) -> None:
        self._program = program
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._windows: dict[bool, Page] = {}  # by whether it is a phone's
        self.logged: list[str] = []
        self.requests: list[str] = []
        self._submit(self._launch)

    def open(self, path: Path, width: int, *, dark: bool = False, media: Media = "screen") -> None:
        """Loads a page at this width, below `NARROW` on a phone, and waits until it has loaded."""
        self.logged, self.requests = [], []
        self._submit(lambda: self._open(path, width, dark, media))

    def resize(self, width: int, *, dark: bool = False, media: Media = "screen") -> None:
        """Shows the page opened last at another width of the same window, in other colours or in print."""
        self.do(lambda page: _set_look(page, width, dark, media))

    def do(self, action: Callable[[Page], T]) -> T:
        """The result of an action on the page, in the thread of Playwright."""
        return self._submit(lambda: action(self._page))

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression on the page, or of a function called there."""
        return self.do(lambda page: page.evaluate(expression))

    def close(self) -> None:
        """Ends Chromium and the thread."""
        self._submit(self._close)
        self._thread.shutdown()

    def _submit(self, action: Callable[[], T]) -> T:
        return self._thread.submit(action).result(PATIENCE)

    def _launch(self) -> None:
        self._playwright = sync_playwright().start()
        self._chromium = self._playwright.chromium.launch(executable_path=self._program, args=ARGUMENTS)

    def _open(self, path: Path, width: int, dark: bool, media: Media) -> None:
        phone = width < NARROW
        if phone not in self._windows:
            self._windows[phone] = self._window(phone)
        self._page = self._windows[phone]
        _set_look(self._page, width, dark, media)
        self._page.goto(path.as_uri())

    def _window(self, phone: bool) -> Page:
        page = self._chromium.new_context(is_mobile=phone).new_page()
        page.on("console", lambda message: self.logged.append(message.text))
        page.on("pageerror", lambda error: self.logged.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        return page

    def _close(self) -> None:
        self._chromium.close()
        self._playwright.stop()


def _set_look(page: Page, width: int, dark: bool, media: Media) -> None:
    page.set_viewport_size({"width": width, "height": HEIGHT})
    page.emulate_media(media=media, color_scheme="dark" if dark else "light")
