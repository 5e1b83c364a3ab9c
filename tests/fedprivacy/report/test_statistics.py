"""The report of statistics: real documents, played here, and what their pages say and never say."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedprivacy.scenario.statistics import Statistics
from scenarios.asking import ask
from scenarios.sweep import compare

SURVEY = """
name = "survey"
seed = 1
[data]
name = "bits"
clients = 2000
share = 0.6
[queries.seen-it]
kind = "mean-of-bits"
[privacy]
trust = "local"
epsilon = 1.0
[compare]
trusts = ["none", "central", "local"]
epsilons = [0.5, 1.0]
clients = [100, 1000]
repeats = 2
"""


@pytest.mark.parametrize("play", [ask, lambda scenario, out: compare(scenario, out, workers=1)])
def test_what_was_played_has_its_page(play, tmp_path: Path) -> None:
    document = play(Statistics.from_text(SURVEY), tmp_path)
    page = (Path(document["path"]) / "report.html").read_text()
    assert "<h1>survey" in page
    assert "seen-it" in page
