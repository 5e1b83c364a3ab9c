"""The result of a comparison: intervals over seeds, and the finding in a sentence or two."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from fedprivacy.mechanisms.registry import title

INTERVAL = (
    "95 % Student t over seeds, cut at 0 and 100 % (the test set is the same, its size is not in it; the "
    "finding's intervals are those of the differences, seed by seed)"
)
COMPARED = ("central", "local")
AUTO = "auto"


def interval(values: Sequence[float]) -> dict[str, float | None]:
    """Mean and 95 % Student t interval over seeds, cut to [0, 1]; one value has no interval.

    >>> interval([0.5, 0.5])
    {'mean': 0.5, 'low': 0.5, 'high': 0.5}
    """
    mean, half = _student(values)
    if half is None:
        return {"mean": mean, "low": None, "high": None}
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
    """What local costs against central, in a sentence with numbers and their intervals over paired seeds.

    Where the interval of a difference covers 0, it says that no difference can be told. Where there are
    several local mechanisms, `auto` stands for local, which was chosen without any data, or else the first
    one named; a second sentence says what each reaches at the largest epsilon that several have.

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
    return _once(" ".join([sentence[0].upper() + sentence[1:] + ".", *_best(local)]))


def _once(text: str) -> str:
    """The number of seeds where it stands first, unless it is another one later on."""
    said = re.findall(r" over \d+ paired seeds", text)
    if len(set(said)) != 1:
        return text
    before, number, after = text.partition(said[0])
    return before + number + after.replace(number, "")


def _costs(spoken: Mapping[tuple[str, float | None], Mapping[str, Any]], *, several: bool) -> list[str]:
    """Local against central at the smallest and largest epsilon that both have, or what there is of them."""
    found = {
        e: gap
        for trust, e in spoken
        if trust == "local" and e is not None and ("central", e) in spoken
        if (gap := difference(spoken["central", e], spoken["local", e])) is not None
    }
    if not found:
        parts = []
        for trust in COMPARED:
            known = sorted(e for kind, e in spoken if kind == trust and e)
            for e in known[-1:]:
                cell = spoken[trust, e]
                by = f" ({title(cell['mechanism'])})" if several and trust == "local" else ""
                parts.append(f"{trust}{by} reaches {_reached(cell)} at epsilon {e:g}")
        return parts
    shown = list(dict.fromkeys((min(found), max(found))))
    ran = [title(spoken["local", e]["mechanism"]) if several else "" for e in shown]
    one = f", {ran[0]}" if ran[0] and len(set(ran)) == 1 else ""
    costs, before = [], ""
    for e, mechanism in zip(shown, ran, strict=True):
        gap, by = found[e], f"{mechanism} " if len(set(ran)) > 1 else ""
        verb, said = "costs" if gap.points >= 0 else "gains", f"{abs(gap.points):.1f} points"
        uncertain = gap.interval()
        if gap.undecided:
            uncertain = f"a {verb[:-1]} of {said}, {uncertain}"
            verb, said = "makes", "no difference that can be told"
        against = f"{by}{_percent(gap.minus)} against {_percent(gap.mean)} under central"
        repeated = "" if verb == before else f"{verb} "
        costs.append(f"{repeated}{said} at epsilon {e:g} ({against}; {uncertain})")
        before = verb
    return [f"Not having to trust the server (local{one}) {' and '.join(costs)}"]


def _best(local: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the local mechanisms reach at the largest epsilon that several have; nothing for one mechanism.

    One of them is called the best only where its interval against each other one excludes 0.
    """
    found: dict[float, list[Mapping[str, Any]]] = {}
    for cell in local:
        found.setdefault(cell["epsilon"], []).append(cell)
    compared = [e for e, group in found.items() if len(group) > 1]
    if not compared:
        return []
    e = max(compared)
    ranked = sorted(found[e], key=lambda cell: -cell["accuracy"]["mean"])
    best = ranked[0]
    if len({cell["mechanism"] for cell in ranked}) == 1:
        each = [f"{_reached(cell)} {_by(cell)}" for cell in ranked]
        return [f"At epsilon {e:g} both local choices are {title(best['mechanism'])}: {' and '.join(each)}."]
    chosen = {cell["mechanism"] for cell in ranked if cell["asked"] == AUTO}
    names, others = {}, []
    for cell in ranked:
        ran = cell["mechanism"]
        if ran not in names:  # what auto chose may also stand there by its name
            names[ran] = title(ran) + (" (chosen by auto)" if ran in chosen else "")
            others.append((cell, difference(best, cell)))
    rest = [
        f"{names[cell['mechanism']]} {_reached(cell)}"
        + (f" ({abs(gap.points):.1f} points {gap.word}, {gap.interval()})" if gap else "")
        for cell, gap in others[1:]
    ]
    if all(gap is not None and gap.low is not None and gap.low > 0 for _, gap in others[1:]):
        lead = f"the best local mechanism is {names[best['mechanism']]}: it"
    else:
        lead = f"no local mechanism can be told to be better than all others: {names[best['mechanism']]}"
    return [f"At epsilon {e:g} {lead} reaches {_reached(best)}, {', '.join(rest)}."]


@dataclass(frozen=True)
class Difference:
    """By how many percentage points one cell is more accurate than another, over the seeds of both.

    Args:
        mean: The accuracy of the first cell over these seeds, as a share.
        minus: The accuracy of the second.
        points: Their difference, in percentage points with one decimal.
        low: The lower end of its 95 % Student t interval, likewise; None with one seed.
        high: The upper end.
        seeds: How many seeds both have.
    """

    mean: float
    minus: float
    points: float
    low: float | None
    high: float | None
    seeds: int

    @property
    def undecided(self) -> bool:
        """Whether its interval, as it is printed, covers 0."""
        return self.low is not None and self.high is not None and self.low <= 0 <= self.high

    @property
    def word(self) -> str:
        """Whether the second cell reaches less or more."""
        return "less" if self.points >= 0 else "more"

    def interval(self) -> str:
        """The interval in words, in the direction in which `points` is positive."""
        if self.low is None or self.high is None:
            return "one seed, no interval"
        low, high = (self.low, self.high) if self.points >= 0 else (-self.high, -self.low)
        return f"95 % interval {low:.1f} to {high:.1f} over {self.seeds} paired seeds"


def difference(first: Mapping[str, Any], second: Mapping[str, Any]) -> Difference | None:
    """The first cell's accuracy less the second's, paired by seed; None where they share no seed."""
    own, other = (dict(zip(cell["seeds"], cell["accuracies"], strict=True)) for cell in (first, second))
    shared = [seed for seed in own if seed in other]
    if not shared:
        return None
    gap, half = _student([own[seed] - other[seed] for seed in shared])
    mean, minus = (float(np.mean([run[seed] for seed in shared])) for run in (own, other))
    low, high = (None, None) if half is None else (_points(gap - half), _points(gap + half))
    return Difference(mean, minus, _points(gap), low, high, len(shared))


def _student(values: Sequence[float]) -> tuple[float, float | None]:
    """The mean, and half of its 95 % Student t interval where there is more than one value."""
    mean = float(np.mean(values))
    if len(values) < 2:
        return mean, None
    return mean, float(stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / math.sqrt(len(values)))


def _points(share: float) -> float:
    return round(100 * share, 1) + 0.0  # no -0.0


def _by(cell: Mapping[str, Any]) -> str:
    return "chosen by auto" if cell["asked"] == AUTO else "by name"


def _reached(cell: Mapping[str, Any]) -> str:
    return _percent(cell["accuracy"]["mean"])


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
