"""What a command says while it waits."""

from __future__ import annotations

import time

import pytest

from scenarios.cli.waiting import waiting


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
