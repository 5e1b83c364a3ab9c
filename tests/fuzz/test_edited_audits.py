"""Edits of stored audits: each is refused, or changes nothing that is printed as a guarantee."""

from __future__ import annotations

from pathlib import Path

import pytest
from edits import a_tenth_or_all, hold

from scenarios.experiments.audit import audit
from scenarios.runner import run

# What was estimated from scores is no bound.
MEASURED = r"observers\[\d+\]\.canary_clients.*"
SETTINGS = {"settings": "data and training: what decides privacy is in the guarantees"}


@a_tenth_or_all
@pytest.mark.slow
def test_an_edited_audit_is_refused_or_guarantees_the_same(every: int, make_scenario, tmp_path: Path) -> None:
    """Of what a run has too, all of whose edits are held in `test_edited_runs.py`, each value is edited once."""
    scenario = make_scenario("server.rounds=1", "privacy.trust=local")
    like = Path(run(scenario, tmp_path, report=False)["path"])
    folder = Path(audit(scenario, tmp_path, canaries=20)["path"])
    assert hold(folder, results=SETTINGS, measured=MEASURED, like=like, every=every).refused > 300 // every
