"""Progress in a notebook."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import fedprivacy as fp
from scenarios.api import actions, progress

REGRESSION = """
name = "numbers"
[data]
name = "synthetic"
task = "regression"
target_low = -8.0
target_high = 8.0
records = 80
test_records = 20
features = 3
partition = "fixed-records"
records_per_client = 4
[model]
name = "logistic"
[server]
rounds = 1
[sampling]
name = "all"
[privacy]
trust = "none"
"""


def test_a_line_names_the_primary_metric(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    class Handle:
        def update(self, line: object) -> None:
            shown.append(repr(line))

    def display(line: Any, *, display_id: bool) -> Handle:
        return Handle()

    monkeypatch.setattr("IPython.display.display", display)
    monkeypatch.setattr(actions, "in_notebook", lambda: True)
    scenario = tmp_path / "numbers.toml"
    scenario.write_text(REGRESSION)
    run = fp.run(scenario, out=tmp_path, workers=1)
    reached = 100 * run.document["final"]["score"]
    assert any(f"R2 {reached:.1f} %" in line for line in shown)
    shown.clear()
    with progress.notebook_progress(1) as on_event:
        on_event({"round": 0, "accuracy": 0.5})
    assert shown == ["1 of 1 rounds, accuracy 50.0 %"]
