"""Edits of stored studies of private estimates: each is refused, or changes nothing that is promised."""

from __future__ import annotations

from pathlib import Path

import pytest
from edits import a_tenth_or_all, hold

from fedprivacy.scenario.erm import ErmScenario
from scenarios.experiments.erm_study import fit

STUDY = """
name = "small"
seed = 3
[data]
name = "logistic-model"
records = 60
features = {features}
[objective]
regularisation = 0.05
radius = 2.0
[approaches.obj]
kind = "objective-perturbation"
noise = "gaussian"
[approaches.path]
kind = "gradient-perturbation"
steps = 2
[approaches.silos]
kind = "gradient-perturbation"
steps = 2
silos = 2
trust = "local"
[study]
epsilons = [0.01, 8.0]
repeats = 2
"""
MEASURED = r"(cells\[\d+\]\.(excess|theta|first_absence).*|exact.*|slopes.*)"
SURFACE = r"surface\.(names|axis|values|minimum|path|estimate).*"
SETTINGS = {"settings": "records and repeats: what decides privacy is in the guarantees"}


@a_tenth_or_all
@pytest.mark.slow
def test_an_edited_study_is_refused_or_promises_the_same(every: int, tmp_path: Path) -> None:
    folder = Path(fit(ErmScenario.from_text(STUDY.format(features=1)), tmp_path)["path"])
    assert hold(folder, results=SETTINGS, measured=MEASURED, every=every).refused > 500 // every


@a_tenth_or_all
def test_an_edited_surface_is_refused_or_promises_the_same(every: int, tmp_path: Path) -> None:
    folder = Path(fit(ErmScenario.from_text(STUDY.format(features=2)), tmp_path)["path"])
    tally = hold(
        folder,
        results=SETTINGS,
        measured=SURFACE,
        only=r"surface(\.(approach|epsilon|guarantee).*)?",
        every=every,
    )
    assert tally.refused > 50 // every
