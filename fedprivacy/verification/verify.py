"""Reads a stored result, and refuses one whose parts contradict each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fedprivacy.documents.audit import AuditDocument
from fedprivacy.documents.comparison import CompareDocument
from fedprivacy.documents.estimates import EstimatesDocument
from fedprivacy.documents.kinds import check_fields
from fedprivacy.documents.plan import PlanDocument
from fedprivacy.documents.replay import ReplayDocument
from fedprivacy.documents.run import RunDocument
from fedprivacy.documents.statistics import StatisticsComparison, StatisticsDocument
from fedprivacy.documents.tune import TuneDocument
from fedprivacy.errors import InputError
from fedprivacy.records.run_directory import read_document
from fedprivacy.verification import audit, comparison, estimates, limits, plan, replay, statistics, tune
from fedprivacy.verification.differences import brief

# Numbers and texts that fit their fields may still be impossible in a formula.
DAMAGE = (LookupError, TypeError, AttributeError, ValueError, ArithmeticError)

# A document cannot verify itself: rebuilding its plan, attacks and runs takes rooms above `documents`.
# Of a document, its folder and the name of its file: the document as it may be shown.
Check = Callable[[dict[str, Any], Path, str], dict[str, Any]]
CHECKS: Mapping[str, Check] = {
    RunDocument.KIND: limits.check,
    CompareDocument.KIND: comparison.check,
    TuneDocument.KIND: tune.check,
    StatisticsDocument.KIND: statistics.check,
    StatisticsComparison.KIND: statistics.check_comparison,
    ReplayDocument.KIND: replay.check,
    AuditDocument.KIND: audit.check,
    EstimatesDocument.KIND: estimates.check,
    PlanDocument.KIND: plan.check,
}


def checked_document(folder: Path) -> dict[str, Any]:
    """Returns a folder's result document once its guarantees follow from its scenario and plan.

    Raises:
        InputError: if it is damaged, states something else, or lacks the runs that it is made of.
    """
    where = folder / "run.json"
    document = read_document(where)
    check_fields(document, str(where))
    try:
        return CHECKS[document["kind"]](document, folder, str(where))
    except DAMAGE as error:
        raise InputError(f"{where}: damaged, {type(error).__name__}: {brief(error)}.") from error
