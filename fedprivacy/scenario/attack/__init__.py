"""The attack scenario: a federated run, a membership game, and its attacks."""

from __future__ import annotations

from fedprivacy.scenario.attack.scenario import AttackScenario

__all__ = ["AttackScenario"]
