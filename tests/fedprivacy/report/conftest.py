"""A real headless Chromium, driven over a pipe (no dependency, no network port), and attacks that were played."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attack_documents import BARE, GAME, PRIVATE

from fedprivacy.scenario.attack import AttackScenario
from scenarios.attacks.replay import replay

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 60.0  # seconds for one answer
QUIET = (
    "headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "hide-scrollbars",
    "disable-background-networking", "disable-component-update", "disable-sync", "remote-debugging-pipe",
)  # fmt: skip
# Chromium reads commands from file descriptor 3 and answers on 4.
MOVED = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.dup2(int(sys.argv[2]), 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """One page of one Chromium, spoken to in the DevTools protocol (messages end with a zero byte)."""

    def __init__(self, program: str, profile: Path) -> None:
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        # Above 9, so that moving them to 3 and 4 overwrites neither.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (theirs_in, theirs_out)]
        options = [f"--{name}" for name in QUIET] + [f"--user-data-dir={profile}", "about:blank"]
        command = [sys.executable, "-c", MOVED, *map(str, ends), program, *options]
        self._process = subprocess.Popen(command, pass_fds=ends, stderr=subprocess.DEVNULL)
        for end in (theirs_in, theirs_out, *ends):
            os.close(end)
        self._read, self._number, self._session = b"", 0, ""
        self.events: list[dict[str, Any]] = []

    def attach(self) -> None:
        """Opens the page and listens to all that happens on it."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """One command and its answer; what happens meanwhile is kept in `events`."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self.events.append(answer)

    def open(self, page: Path, width: int, *, dark: bool = False, media: str = "") -> None:
        """Loads a page in a window of this width, and waits until it has loaded."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setDeviceMetricsOverride", **size)
        self.call("Emulation.setEmulatedMedia", media=media, features=scheme)
        self.events = []
        self.call("Page.navigate", url=page.as_uri())
        while not self.happened("Page.loadEventFired"):
            self.events.append(self._message())

    def happened(self, *methods: str) -> list[dict[str, Any]]:
        """The events of these kinds since the page was asked for."""
        return [event["params"] for event in self.events if event.get("method") in methods]

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression on the page (what the page itself may not run)."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def screenshot(self) -> bytes:
        """The whole page as PNG."""
        width, height = self.evaluate("[innerWidth, document.documentElement.scrollHeight]")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        return base64.b64decode(answer["data"])

    def close(self) -> None:
        """Ends the process that was started here."""
        os.close(self._out)
        self._process.terminate()
        self._process.wait(PATIENCE)
        os.close(self._in)

    def _message(self) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE
        while b"\0" not in self._read:
            ready, _, _ = select.select([self._in], [], [], max(0.0, deadline - time.monotonic()))
            data = os.read(self._in, 1 << 16) if ready else b""
            assert data, "Chromium gave no answer"
            self._read += data
        message, _, self._read = self._read.partition(b"\0")
        return json.loads(message)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip(f"no browser here: none of {', '.join(NAMES)} is installed")
    started = Browser(program, tmp_path_factory.mktemp("chromium"))
    try:
        started.attach()
        yield started
    finally:
        started.close()


@pytest.fixture(scope="session")
def documents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Attacks on two runs without noise, and on one with; their folders hold the pages."""
    folder = tmp_path_factory.mktemp("attacked")
    bare = AttackScenario.from_text(GAME + BARE, overrides=["game.repeats=2"])
    private = AttackScenario.from_text(GAME + PRIVATE)
    return {
        "bare": replay(bare, folder, workers=1, command="fedprivacy attack --seed 3"),
        "private": replay(private, folder, workers=1),
    }
