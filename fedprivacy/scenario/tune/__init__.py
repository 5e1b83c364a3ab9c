"""The tuning scenario: a training scenario, the settings to choose from, and how the choice is made."""

from __future__ import annotations

from fedprivacy.scenario.tune.scenario import TuneScenario

__all__ = ["TuneScenario"]
