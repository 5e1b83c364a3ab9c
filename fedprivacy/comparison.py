"""The result of a comparison: intervals over seeds, and the finding in one sentence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

INTERVAL = "95 % Student t over seeds (the test set is the same, its size is not in it)"
COMPARED = ("central", "local")


def interval(values: Sequence[float]) -> dict[str, float | None]:
    """Mean and 95 % Student t interval over seeds, cut to [0, 1]; one value has no interval.

    >>> interval([0.5, 0.5])
    {'mean': 0.5, 'low': 0.5, 'high': 0.5}
    """
    mean = float(np.mean(values))
    if len(values) < 2:
        return {"mean": mean, "low": None, "high": None}
    half = float(stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / math.sqrt(len(values)))
    return {"mean": mean, "low": max(0.0, mean - half), "high": min(1.0, mean + half)}


def mean_curve(rounds: Sequence[Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """The learning curve of a cell: the mean accuracy over seeds, of the rounds that all have evaluated.

    Args:
        rounds: The rounds of each seed's run.

    Returns:
        `round` (the first is 1) and `accuracy`, from the first to the last.

    >>> mean_curve([[{"round": 0, "accuracy": 0.25}], [{"round": 0, "accuracy": 0.75}]])
    [{'round': 1, 'accuracy': 0.5}]
    """
    runs = [{one["round"]: one["accuracy"] for one in run if one["accuracy"] is not None} for run in rounds]
    shared = sorted(set.intersection(*map(set, runs)))
    return [{"round": at + 1, "accuracy": float(np.mean([run[at] for run in runs]))} for at in shared]


def mean_per_class(runs: Sequence[Sequence[Mapping[str, Any]] | None]) -> list[dict[str, Any]] | None:
    """The accuracy within each class, as the mean over seeds; None where a run was not evaluated.

    Args:
        runs: `final.per_class` of each seed's run; they have the same held-out records.
    """
    known = [run for run in runs if run is not None]
    if len(known) < len(runs):
        return None
    means = []
    for classes in zip(*known, strict=True):
        accuracies = [one["accuracy"] for one in classes]
        mean = None if None in accuracies else float(np.mean(accuracies))
        means.append({**classes[0], "accuracy": mean})
    return means


def weakest(runs: Sequence[Sequence[Mapping[str, Any]]]) -> list[Mapping[str, Any]]:
    """The guarantees of a cell: for each observer that of the seed where it is weakest.

    Args:
        runs: The guarantees of each seed's run; an epsilon of None is no guarantee.
    """
    worst: dict[str, Mapping[str, Any]] = {}
    for guarantee in (one for run in runs for one in run):
        known = worst.get(guarantee["observer"])
        if known is None or _far(guarantee) > _far(known):
            worst[guarantee["observer"]] = guarantee
    return list(worst.values())


def _far(guarantee: Mapping[str, Any]) -> float:
    return math.inf if guarantee["epsilon"] is None else float(guarantee["epsilon"])


def finding(cells: Sequence[Mapping[str, Any]]) -> str:
    """What local costs against central, in one sentence with numbers.

    Args:
        cells: The cells of a compare document that have finished. Where they have several local
            mechanisms, the first one named stands for local.
    """
    first = next((cell.get("asked") for cell in cells if cell["trust"] == "local"), None)
    means = {
        (cell["trust"], cell["epsilon"]): cell["accuracy"]["mean"]
        for cell in cells
        if cell["trust"] != "local" or cell.get("asked") == first
    }
    both = sorted(epsilon for trust, epsilon in means if trust == "local" and ("central", epsilon) in means)
    parts = []
    if both:
        costs = [
            f"{100 * (means['central', e] - means['local', e]):.1f} points at epsilon {e:g} "
            f"({_percent(means['local', e])} against {_percent(means['central', e])})"
            for e in dict.fromkeys((both[0], both[-1]))
        ]
        parts.append(f"Trusting nobody (local) instead of the server (central) costs {' and '.join(costs)}")
    else:
        for trust in COMPARED:
            known = sorted(epsilon for kind, epsilon in means if kind == trust)
            parts += [f"{trust} reaches {_percent(means[trust, e])} at epsilon {e:g}" for e in known[-1:]]
    if ("none", None) in means:
        parts.append(f"without any noise the model reaches {_percent(means['none', None])}")
    if not parts:
        return "No cell of the comparison has finished."
    sentence = "; ".join(parts)
    return sentence[0].upper() + sentence[1:] + "."


def _percent(accuracy: float) -> str:
    return f"{100 * accuracy:.1f} %"
