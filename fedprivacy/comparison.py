"""The result of a comparison: intervals over seeds, and the finding in a sentence or two."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from fedprivacy.mechanisms.catalogue import title

INTERVAL = "95 % Student t over seeds (the test set is the same, its size is not in it)"
COMPARED = ("central", "local")
AUTO = "auto"


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
    """What local costs against central, in a sentence with numbers.

    Where there are several local mechanisms, `auto` stands for local, which was chosen without any data, or
    else the first one named; a second sentence says what each reaches at the largest epsilon that several
    have.

    Args:
        cells: The cells of a compare document that have finished.
    """
    local = [cell for cell in cells if cell["trust"] == "local"]
    asked = list(dict.fromkeys(cell.get("asked") for cell in local))
    stands = AUTO if AUTO in asked else next(iter(asked), None)
    spoken = {
        (cell["trust"], cell["epsilon"]): cell
        for cell in cells
        if cell["trust"] != "local" or cell.get("asked") == stands
    }
    parts = _costs(spoken, several=len(asked) > 1)
    if ("none", None) in spoken:
        parts.append(f"without any noise the model reaches {_reached(spoken['none', None])}")
    if not parts:
        return "No cell of the comparison has finished."
    sentence = "; ".join(parts)
    return " ".join([sentence[0].upper() + sentence[1:] + ".", *_best(local)])


def _costs(spoken: Mapping[tuple[str, float | None], Mapping[str, Any]], *, several: bool) -> list[str]:
    """Local against central at the smallest and largest epsilon that both have, or what there is of them."""
    both = sorted(e for trust, e in spoken if trust == "local" and e and ("central", e) in spoken)
    if not both:
        parts = []
        for trust in COMPARED:
            known = sorted(e for kind, e in spoken if kind == trust and e)
            for e in known[-1:]:
                cell = spoken[trust, e]
                by = f" ({title(cell['mechanism'])})" if several and trust == "local" else ""
                parts.append(f"{trust}{by} reaches {_reached(cell)} at epsilon {e:g}")
        return parts
    shown = list(dict.fromkeys((both[0], both[-1])))
    ran = [title(spoken["local", e]["mechanism"]) if several else "" for e in shown]
    one = f", {ran[0]}" if ran[0] and len(set(ran)) == 1 else ""
    costs = []
    for e, mechanism in zip(shown, ran, strict=True):
        local, central = spoken["local", e], spoken["central", e]
        points = 100 * (central["accuracy"]["mean"] - local["accuracy"]["mean"])
        by = f"{mechanism} " if len(set(ran)) > 1 else ""
        costs.append(
            f"{points:.1f} points at epsilon {e:g} ({by}{_reached(local)} against {_reached(central)})"
        )
    return [f"Trusting nobody (local{one}) instead of the server (central) costs {' and '.join(costs)}"]


def _best(local: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the local mechanisms reach at the largest epsilon that several have; nothing for one mechanism."""
    found: dict[float, list[Mapping[str, Any]]] = {}
    for cell in local:
        found.setdefault(cell["epsilon"], []).append(cell)
    compared = [e for e, group in found.items() if len(group) > 1]
    if not compared:
        return []
    e = max(compared)
    best, *others = sorted(found[e], key=lambda cell: -cell["accuracy"]["mean"])
    if len({cell["mechanism"] for cell in found[e]}) == 1:
        each = [f"{_reached(cell)} {_by(cell)}" for cell in (best, *others)]
        return [f"At epsilon {e:g} both local choices are {title(best['mechanism'])}: {' and '.join(each)}."]
    names = [
        title(cell["mechanism"]) + (f" ({_by(cell)})" if cell["asked"] == AUTO else "")
        for cell in (best, *others)
    ]
    rest = [f"{name} {_reached(cell)}" for name, cell in zip(names[1:], others, strict=True)]
    return [
        f"At epsilon {e:g} the best local mechanism, {names[0]}, reaches {_reached(best)}, {', '.join(rest)}."
    ]


def _by(cell: Mapping[str, Any]) -> str:
    return "chosen by auto" if cell["asked"] == AUTO else "by name"


def _reached(cell: Mapping[str, Any]) -> str:
    return f"{100 * cell['accuracy']['mean']:.1f} %"
