"""The statistics scenario: queries to clients instead of a model to train."""

from __future__ import annotations

from fedprivacy.scenario.statistics.scenario import Statistics

__all__ = ["Statistics"]
