"""What a command says while it waits."""

from __future__ import annotations

import io
import time

import pytest

from fedprivacy.io.console import Terminal
from fedprivacy.io.waiting import beside_progress, waiting


@pytest.mark.parametrize(
    ("terminal", "seconds", "named"), [("1", 0.2, True), ("1", 0.0, False), ("", 0.2, False)]
)
def test_a_long_wait_is_named_on_a_terminal_alone(
    terminal: str,
    seconds: float,
    named: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", terminal)
    with waiting("loading PyTorch", patience=0.1):
        time.sleep(seconds)
    captured = capsys.readouterr()
    assert ("loading PyTorch ..." in captured.err) is named
    assert captured.out == ""


def test_a_wait_is_printed_by_the_progress_that_is_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    display = Terminal(stderr=True)
    display.file = io.StringIO()
    with beside_progress(display), waiting("drawing the page", patience=0.05):
        time.sleep(0.2)
    assert "drawing the page ..." in display.file.getvalue()
    assert capsys.readouterr().err == ""
    with waiting("drawing the page", patience=0.05):
        time.sleep(0.2)
    assert "drawing the page ..." in capsys.readouterr().err


def test_worker_processes_print_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr("multiprocessing.parent_process", lambda: "a process")
    with waiting("drawing the page", patience=0.05):
        time.sleep(0.2)
    assert capsys.readouterr().err == ""
