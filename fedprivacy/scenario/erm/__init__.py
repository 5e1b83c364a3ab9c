"""Scenarios that fit private estimates: `[approaches.NAME]` beside their data and objective."""

from __future__ import annotations

from fedprivacy.scenario.erm.scenario import ErmScenario

__all__ = ["ErmScenario"]
