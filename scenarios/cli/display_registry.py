"""The terminal display of each kind of result document, imported by `output.show_result` when needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fedprivacy.documents.audit import AuditDocument
from fedprivacy.documents.comparison import CompareDocument
from fedprivacy.documents.estimates import EstimatesDocument
from fedprivacy.documents.plan import PlanDocument
from fedprivacy.documents.replay import ReplayDocument
from fedprivacy.documents.run import RunDocument
from fedprivacy.documents.statistics import StatisticsComparison, StatisticsDocument
from fedprivacy.documents.tune import TuneDocument
from scenarios.cli.display import show_comparison, show_run
from scenarios.cli.display_attacks import show_replay
from scenarios.cli.display_audit import show_audit
from scenarios.cli.display_estimates import show_estimates
from scenarios.cli.display_plan import show_plan
from scenarios.cli.display_statistics import show_statistics, show_statistics_comparison
from scenarios.cli.display_tune import show_tune

# Kind of document -> what prints it, from the document and whether every assumption is printed.
DISPLAYS: Mapping[str, Callable[[Mapping[str, Any], bool], None]] = {
    RunDocument.KIND: show_run,
    CompareDocument.KIND: show_comparison,
    StatisticsDocument.KIND: show_statistics,
    StatisticsComparison.KIND: show_statistics_comparison,
    EstimatesDocument.KIND: show_estimates,
    ReplayDocument.KIND: show_replay,
    AuditDocument.KIND: show_audit,
    TuneDocument.KIND: show_tune,
    PlanDocument.KIND: show_plan,
}
