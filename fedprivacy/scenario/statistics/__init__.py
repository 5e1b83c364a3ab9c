"""The statistics scenario: what is asked of clients, in place of a model that they train."""

from __future__ import annotations

from fedprivacy.scenario.statistics.scenario import Statistics

__all__ = ["Statistics"]
