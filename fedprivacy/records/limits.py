"""What limits the accuracy of a run, as measured by ablations over paired seeds.

Every interval is at 95 % for all ablations together (Bonferroni): where nothing helps, one ablation in
twenty would still seem to by its own interval.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from fedprivacy.io.percentages import percent
from fedprivacy.records.seed_statistics import Difference, difference

Cell = Mapping[str, Any]
CHANGES = {
    "cohort-double": "twice the sampling.rate",
    "rounds-double": "server.rounds = {rounds}",
    "norm-half": "privacy.clipping_norm = {clipping_norm:g}",
    "norm-double": "privacy.clipping_norm = {clipping_norm:g}",
}
TOGETHER = "noise-and-clipping"  # both at once, where neither is measurable apart from the other
NEGLIGIBLE = 1.0  # percentage points: what cannot be more than this is no limit


def gaps(planned: Cell, ablations: Sequence[Cell]) -> dict[str, Difference]:
    """By how many points each ablation is more accurate than the planned run, seed by seed.

    Args:
        planned: The cell of the planned run.
        ablations: The cells of the ablations, with their names under `ablation`.

    Returns:
        Ablation -> difference, its interval at 95 % for all of them together.
    """
    level = _level(ablations)
    every = {cell["ablation"]: difference(cell, planned, level) for cell in ablations}
    return {name: gap for name, gap in every.items() if gap is not None}


def limiting(planned: Cell, ablations: Sequence[Cell]) -> str:
    """The sentence on what limits a run, and what to change; only measured gains count.

    Args:
        planned: As of `gaps`.
        ablations: As of `gaps`.
    """
    by_name, measured = {cell["ablation"]: cell for cell in ablations}, gaps(planned, ablations)
    gains = {name: gap for name, gap in measured.items() if name != "data-half"}
    if {"no-noise", "no-clipping"} <= by_name.keys():  # what clipping alone costs, apart from noise
        without_clipping = difference(by_name["no-clipping"], by_name["no-noise"], _level(ablations))
        gains.pop("no-clipping", None)
        if without_clipping is not None:
            gains["no-clipping"] = without_clipping
        both = measured.get("no-clipping")
        alone = {"no-noise", "no-clipping"} & _certain(gains).keys()
        if both is not None and both.low is not None and both.low > 0 and not alone:
            gains[TOGETHER] = both
    certain = _certain(gains)
    if certain:
        largest = max(certain, key=lambda name: certain[name].points)
        return _sentence(largest, gains, planned, by_name)
    seeds = len(planned["seeds"])
    half = measured.get("data-half")
    if half is not None and half.high is not None and half.high < 0:
        return (
            f"The number of records limits this run: with half of them it reaches {percent(half.mean)} "
            f"instead of {percent(half.minus)}. No other measured change helps. Try more clients."
        )
    free = measured.get("no-clipping")
    if free is not None and free.high is not None and free.high <= NEGLIGIBLE:
        return (
            f"The model or the data limit this run: without noise and clipping it reaches no more "
            f"({percent(free.mean)} instead of {percent(free.minus)}). Try another model."
        )
    return (
        f"No single limit was measurable with {seeds} seeds. More seeds (compare.seeds) narrow the intervals."
    )


def _level(ablations: Sequence[Cell]) -> float:
    """The level of each interval; both variants without noise are compared with each other too."""
    names = {cell["ablation"] for cell in ablations}
    return 1 - 0.05 / max(1, len(ablations) + ({"no-noise", "no-clipping"} <= names))


def _sentence(name: str, gains: Mapping[str, Difference], planned: Cell, by_name: Mapping[str, Cell]) -> str:
    """The text on the largest certain gain of several, at most 30 words.

    Args:
        name: The ablation that gains most.
        gains: All measured gains, from which it was chosen.
        planned: As of `gaps`.
        by_name: The cells of the ablations.
    """
    gap, certain = gains[name], _certain(gains)
    instead = f"{percent(gap.mean)} instead of {percent(gap.minus)}"
    source = f"{_best_of(gains)}{gap.seeds} seeds"
    reached = f"{instead} ({source})"
    if name == TOGETHER:
        advice = _better_setting(gains, by_name) or "Neither alone was measurable; try a larger epsilon."
        return f"Noise and clipping together cost {gap.points:.1f} points ({instead}; {source}). {advice}"
    cell = by_name[name]
    if name == "no-noise":
        advice = _better_setting(gains, by_name) or "Try more clients in a cohort or a larger epsilon."
        return f"Noise limits this run: without it {reached}. {advice}"
    if name == "rounds-double":
        return (
            f"Too few rounds limit this run: with {cell['rounds']:,} at equal epsilon {reached}. "
            f"Try server.rounds = {cell['rounds']}."
        )
    if name == "cohort-double":
        return (
            f"Small cohorts limit this run: with twice the sampling rate at equal epsilon {reached}. "
            "Try a larger sampling.rate."
        )
    if name == "no-clipping":
        advice = "Try a larger privacy.clipping_norm."
        if "norm-double" in certain:
            norm, reaches = by_name["norm-double"]["clipping_norm"], percent(certain["norm-double"].mean)
            advice = f"Try privacy.clipping_norm = {norm:g}: {reaches} at equal epsilon."
        beside = " without noise" if "no-noise" in by_name else ""
        return f"Clipping limits this run: unclipped it reaches {reached}{beside}. {advice}"
    return (
        f"The clipping norm limits this run: with {cell['clipping_norm']:g} in place of "
        f"{planned['clipping_norm']:g} at equal epsilon {reached}. "
        f"Try privacy.clipping_norm = {cell['clipping_norm']:g}."
    )


def _better_setting(gains: Mapping[str, Difference], by_name: Mapping[str, Cell]) -> str:
    """The advice of the setting that gains most at equal epsilon; empty where none certainly does."""
    private = {name: gap for name, gap in _certain(gains).items() if name in CHANGES}
    if not private:
        return ""
    best = max(private, key=lambda name: private[name].points)
    change, reaches = CHANGES[best].format(**by_name[best]), percent(private[best].mean)
    chosen = _best_of([name for name in CHANGES if name in gains]).removesuffix(", ")
    return f"At this epsilon {change} reaches {reaches}{chosen and f' ({chosen})'}."


def _certain(gains: Mapping[str, Difference]) -> dict[str, Difference]:
    """The gains whose interval excludes zero."""
    return {name: gap for name, gap in gains.items() if gap.low is not None and gap.low > 0}


def _best_of(candidates: Collection[str]) -> str:
    """States that a figure is the largest of several, which were compared on the same runs."""
    return f"best of {len(candidates)}, " if len(candidates) > 1 else ""
