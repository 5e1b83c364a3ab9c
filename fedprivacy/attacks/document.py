"""One attack in the result document: figures over one or several seeds, empirical epsilon, bound."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy

from fedprivacy.attacks.bounds import Bound
from fedprivacy.attacks.intervals import CONFIDENCE, SEEDS, Figure
from fedprivacy.attacks.metrics import Measured, Performance, points_of
from fedprivacy.attacks.repeated_run_epsilon import LowerBound
from fedprivacy.errors import InputError


def over_targets(figures: Sequence[Figure]) -> Figure:
    """The mean of several runs, with the mean of their intervals.

    Runs may share their targets, and then their errors: the mean of the ends holds whatever they share.
    """
    return Figure(
        _mean([figure.value for figure in figures]),
        _mean([figure.low for figure in figures]),
        _mean([figure.high for figure in figures]),
    )


def over_seeds(figures: Sequence[Figure], least: float = 0.0) -> Figure:
    """The mean of several runs with an interval over training seeds too, by Student's t.

    Never narrower than over the targets alone: near 1 the values of a few seeds may all be the same, and
    their spread is then meaningless.

    Args:
        figures: One for each seed, at least two.
        least: The least value that there is; the largest is 1.
    """
    values = np.array([figure.value for figure in figures])
    inner, error = over_targets(figures), values.std(ddof=1) / math.sqrt(len(values))
    half = float(scipy.stats.t.isf((1 - CONFIDENCE) / 2, len(values) - 1) * error)
    return Figure(
        inner.value,
        min(inner.low, max(least, inner.value - half)),
        max(inner.high, min(1.0, inner.value + half)),
        SEEDS,
    )


def attack_document(runs: Sequence[Measured], *, bound: Bound, empirical: LowerBound | str) -> dict[str, Any]:
    """The figures of one attack as JSON: the part of a replay document that the library computes.

    Numbers of targets are those of one run, of the one with fewest. A figure that one run lacks is null.

    Args:
        runs: One for each training seed; of one seed alone the intervals cover targets only.
        bound: The bound that the ledger implies for the attack's seat.
        empirical: The lower bound on epsilon, or in words why its statistics do not hold here. The guesses of
            several seeds are added up before.

    Raises:
        InputError: no runs.
    """
    if not runs:
        raise InputError("runs: an attack without runs has no figures.")
    proved = None if isinstance(empirical, str) else empirical
    return {
        "members": min(run.members for run in runs),
        "nonmembers": min(run.nonmembers for run in runs),
        "fitted": any(run.fitted for run in runs),
        "seeds": len(runs),
        **performance_figures(runs),
        "points": {
            name: [counts.to_json() for counts in counted] for name, counted in points_of(runs).items()
        },
        "per_class": {str(label): _class(runs, label) for label in sorted(_labels(runs))},
        "thresholds": [list(run.thresholds) for run in runs],
        "roc": [run.curve.to_json() for run in runs],
        "epsilon_lower_bound": None if proved is None else proved.epsilon,
        "empirical_epsilon": {"reason": empirical} if proved is None else _epsilon(proved),
        "bound": bound.to_json(),
    }


def performance_figures(runs: Sequence[Performance]) -> dict[str, Any]:
    """AUC, balanced accuracy, advantage and TPRs of one score as a JSON object.

    Args:
        runs: One for each training seed.
    """
    return {
        "auc": _figure([run.auc for run in runs]),
        "balanced_accuracy": _figure([run.balanced_accuracy for run in runs]),
        "advantage": _figure([run.advantage for run in runs], least=-1.0),
        "tpr_at_fpr": {rate: _rate(runs, rate) for rate in runs[0].tpr_at_fpr},
    }


def _figure(figures: Sequence[Figure], least: float = 0.0) -> dict[str, Any]:
    if len(figures) == 1:
        return figures[0].to_json()
    inner = over_targets(figures)
    return {**over_seeds(figures, least).to_json(), "over_targets": {"low": inner.low, "high": inner.high}}


def _rate(runs: Sequence[Performance], rate: str) -> dict[str, Any] | None:
    rates = [at_rate for run in runs if (at_rate := run.tpr_at_fpr[rate]) is not None]
    if len(rates) < len(runs):
        return None
    return {
        **_figure([at_rate.tpr for at_rate in rates]),
        "thresholds": [list(at_rate.thresholds) for at_rate in rates],
        "fpr": _figure([at_rate.fpr for at_rate in rates]),
    }


def _class(runs: Sequence[Measured], label: int) -> dict[str, Any]:
    there = [run.per_class[label] for run in runs if label in run.per_class]
    figures = [figure.auc for figure in there if figure.auc is not None]
    return {
        "auc": _figure(figures) if len(figures) == len(runs) else None,
        "members": min(figure.members for figure in there),
        "nonmembers": min(figure.nonmembers for figure in there),
    }


def _labels(runs: Sequence[Measured]) -> set[int]:
    return {label for run in runs for label in run.per_class}


def _epsilon(proved: LowerBound) -> dict[str, Any]:
    return {
        "epsilon": proved.epsilon,
        "ceiling": proved.ceiling,
        "confidence": proved.confidence,
        "method": proved.method,
    }


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))
