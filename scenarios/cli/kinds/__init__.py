"""The commands' handling of each kind of scenario: a module for each kind, and their registry."""

from __future__ import annotations

from fedprivacy.scenario import Scenario
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.erm import ErmScenario
from fedprivacy.scenario.loading import AnyScenario
from fedprivacy.scenario.statistics import Statistics
from fedprivacy.scenario.tune import TuneScenario
from scenarios.cli.kinds.attack import AttackKind
from scenarios.cli.kinds.estimates import EstimatesKind
from scenarios.cli.kinds.kind import ComparisonKind, Kind, RunKind, RunOptions
from scenarios.cli.kinds.statistics import StatisticsKind
from scenarios.cli.kinds.training import TrainingKind
from scenarios.cli.kinds.tuning import TuningKind

__all__ = ["KINDS", "ComparisonKind", "Kind", "RunKind", "RunOptions", "kind_of"]

KINDS: dict[type[AnyScenario], Kind] = {
    Scenario: TrainingKind(),
    Statistics: StatisticsKind(),
    ErmScenario: EstimatesKind(),
    AttackScenario: AttackKind(),
    TuneScenario: TuningKind(),
}


def kind_of(scenario: AnyScenario) -> Kind:
    """Returns the kind of a scenario."""
    return KINDS[type(scenario)]
