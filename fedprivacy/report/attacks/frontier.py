"""Attack, bound and accuracy against epsilon: a panel for each seat, a line for each arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fedprivacy.documents.attack import Level
from fedprivacy.documents.replay import ReplayDocument
from fedprivacy.report import svg, words
from fedprivacy.report.attacks import epsilon_axis, figures, price_chart, strongest
from fedprivacy.report.attacks.strongest import Reached
from fedprivacy.report.charts import Axis, Lines, Point, Reference, Series
from fedprivacy.report.charts.axis import percent
from fedprivacy.report.charts.looks import Look

DASH = 4.0  # pixels of a bound's dash; those of the other arms lie in its gaps
ALLOWED = "The most that the arm's guarantee allows"
SAMPLE: Look = (svg.INK, "", (0, (DASH, DASH)))
ABOVE = {
    "server": "The server attacks",
    "participant": "A participant attacks",
    "outsider": "An outsider attacks",
}


def panels(document: ReplayDocument) -> tuple[Lines, ...]:
    """Three panels of AUC, one for each seat, and one of accuracy, on one axis of epsilon.

    Args:
        document: Of arms, at two levels of privacy at least.
    """
    reached = strongest.reached(document)
    places = epsilon_axis.places_of(_levels(document))
    low = min([figures.GUESSING, *(r.best.auc.low for group in reached.values() for r in group if r.best)])
    attacks = (_attacks(document, group, places, low) for group in reached.values())
    return (*attacks, _accuracy(document, places))


def _levels(document: ReplayDocument) -> list[Level]:
    """The levels of all arms, the strictest first; then clipping alone; last no privacy."""
    present = {arm.level for arm in document.arms}
    private = sorted(level for level in present if isinstance(level, float))
    return [*private, *(level for level in ("clipped", None) if level in present)]


def _promises(document: ReplayDocument) -> dict[str, str]:
    """The description of each arm."""
    return {arm.arm: strongest.promise(arm) for arm in reversed(document.arms)}


def _attacks(
    document: ReplayDocument, group: Sequence[Reached], places: Mapping[Level, float], low: float
) -> Lines:
    """The strongest attack of one seat in each arm, with its interval and its bound."""
    every, promises = strongest.looks(document), _promises(document)
    bounded = [name for name in every if any(r.bound.auc is not None for r in group if r.arm.arm == name)]
    bounds, series = [], []
    for name, look in every.items():
        reaches = [reach for reach in group if reach.arm.arm == name]
        allowed = {reach.arm.level: reach.bound.auc for reach in reaches if reach.bound.auc is not None}
        if allowed:
            dashed = dashes(bounded.index(name), len(bounded))
            points = epsilon_axis.points(places, allowed)
            bounds.append(Series((look[0], "_", dashed), ALLOWED, points, width=1.75, sample=SAMPLE))
        best = {reach.arm.level: reach.best.auc for reach in reaches if reach.best is not None}
        areas = {level: auc.value for level, auc in best.items()}
        ends = {level: (auc.low, auc.high) for level, auc in best.items()}
        if areas:
            points = epsilon_axis.points(places, areas, ends)
            series.append(Series(look, name, points, promises[name], width=1.5, sample=_sample(look, points)))
    bare = [name for name in every if name not in bounded]
    named = f"no guarantee: {', '.join(bare)}" if bare else "a guarantee in every arm"
    x, bands = epsilon_axis.axis(places)
    return Lines(
        x,
        price_chart.area_axis(f"AUC of the strongest attack; {named}", low),
        (*bounds, *series),
        (Reference(figures.GUESSING),),
        bands,
        title=ABOVE[group[0].seat],
    )


def _accuracy(document: ReplayDocument, places: Mapping[Level, float]) -> Lines:
    promises = _promises(document)
    series = []
    for name, look in strongest.looks(document).items():
        cells = [arm for arm in document.arms if arm.arm == name]
        means = {arm.level: arm.accuracy.test.mean for arm in cells if arm.accuracy.test.mean is not None}
        ends = {arm.level: interval for arm in cells if (interval := arm.accuracy.test.interval) is not None}
        if means:
            points = epsilon_axis.points(places, means, ends)
            series.append(Series(look, name, points, promises[name], width=1.5, sample=_sample(look, points)))
    x, bands = epsilon_axis.axis(places)
    label = "Accuracy on held-out records (higher is better)"
    y = Axis(label, words.accuracy, tick_text=percent, limits=(0.0, 1.0))
    return Lines(x, y, tuple(series), bands=bands, title="What it costs")


def _sample(look: Look, points: Sequence[Point]) -> Look:
    """The look of an arm: no line connects the points of an arm without an epsilon."""
    return look if any(point.joined for point in points) else (look[0], look[1], "")


def dashes(place: int, count: int) -> Any:
    """Dashes with room between them for those of the other arms, which may lie on the same line."""
    return (DASH * place, (DASH, DASH * max(1, count - 1)))
