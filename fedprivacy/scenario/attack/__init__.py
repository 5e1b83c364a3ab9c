"""The attack scenario: a federated run, a membership game, and the attacks that play it."""

from __future__ import annotations

from fedprivacy.scenario.attack.scenario import AttackScenario

__all__ = ["AttackScenario"]
