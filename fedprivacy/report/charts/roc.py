"""ROC curves on logarithmic axes, beside the most that a guarantee allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from fedprivacy.documents.roc import Curve
from fedprivacy.report import svg, words
from fedprivacy.report.blocks import Table
from fedprivacy.report.charts.axis import Axis, percent
from fedprivacy.report.charts.lines import Lines
from fedprivacy.report.charts.looks import Look
from fedprivacy.report.charts.panel import Box
from fedprivacy.report.charts.series import Band, Point, Series
from fedprivacy.report.charts.spots import Spot

FLOOR = 1e-3  # where both axes begin
STEPS = 6  # points of a straight part, which is bent on logarithmic axes
GRID = np.geomspace(FLOOR, 1.0, 121)
HOVERED = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)  # where it shows values
READ_AT = (0.01, 0.1, 0.5)  # false alarms at which a curve is read in words
ATTACK: Look = (svg.LOCAL, "", "-")
BOUND: Look = (svg.CENTRAL, "", (0, (6, 2)))
GUESSING: Look = (svg.MUTED, "", (0, (1, 2)))


@dataclass(frozen=True)
class Roc(Lines):
    """The curves of an attack, one for each run, with their mean and the bound.

    Args:
        curves: At least one.
        bound: The most that a guarantee allows; None where there is none.
        blind: The rate of false alarms below which too few records were scored for an estimate.
    """

    curves: tuple[Curve, ...] = ()
    bound: Curve | None = None
    blind: float = 0.0

    def sentence(self) -> str:
        """The true positive rates of the curve at some rates of false alarms."""
        parts = []
        for rate in (rate for rate in READ_AT if rate >= self.blind):
            allowed_here = f", allowed {percent(allowed(self.bound, rate))}" if self.bound else ""
            parts.append(f"at {percent(rate)}: {percent(averaged(self.curves, rate))}{allowed_here}")
        return f"{self.y.label} at false alarms (FPR): {'; '.join(parts)}."

    def spots(self, box: Box) -> list[Spot]:
        """The attack and its bound, read at some rates of false alarms."""
        spots = []
        for rate in (rate for rate in HOVERED if rate >= self.blind):
            values = [(self.series[0].label, averaged(self.curves, rate))]
            values += [("Allowed at most", allowed(self.bound, rate))] if self.bound else []
            for name, share in values:
                text = f"{name}: TPR {percent(share)} at FPR {percent(rate)}"
                spots.append(Spot(self._over(rate, box), self._down(max(share, FLOOR), box), text))
        return spots

    def table(self, caption: str) -> Table:
        """The curve, read at some rates of false alarms."""
        rows = [
            (
                percent(rate),
                percent(averaged(self.curves, rate)),
                percent(allowed(self.bound, rate)) if self.bound else words.NO_GUARANTEE.lower(),
            )
            for rate in READ_AT
            if rate >= self.blind
        ]
        head = ("FPR", "TPR of the attack", "TPR that the guarantee allows")
        return Table(caption, head, rows, numeric=frozenset({1, 2}))


def roc(curves: Sequence[Curve], bound: Curve | None, blind: float) -> Roc:
    """The panel of an attack's curves."""
    runs = len(curves)
    series = []
    if runs == 1:
        series.append(Series(ATTACK, "The attack", _points(curves[0])))
    else:
        mean = tuple(Point(float(x), max(FLOOR, averaged(curves, float(x)))) for x in GRID)
        series.append(Series(ATTACK, f"The attack, mean of {runs} runs", mean))
        series += [Series(ATTACK, "Each run", _points(curve), width=0.9) for curve in curves]
    if bound is not None:
        series.append(Series(BOUND, "The most that the guarantee allows", _points(bound)))
    series.append(Series(GUESSING, "Guessing", (Point(FLOOR, FLOOR), Point(1.0, 1.0)), width=1.0))
    blind = min(1.0, blind)
    rates = {rate: f"{words.number(100 * rate)} %" for rate in (FLOOR, 0.01, 0.1, 1.0)}
    return Roc(
        Axis("False alarms (FPR): non-members accused", percent, log=True, limits=(FLOOR, 1.0), ticks=rates),
        Axis("Members found (TPR)", percent, log=True, limits=(FLOOR, 1.0), ticks=rates),
        tuple(series),
        bands=(Band(FLOOR, blind, opacity=0.55),) if blind > FLOOR else (),
        square=True,
        legend=True,
        curves=tuple(curves),
        bound=bound,
        blind=blind,
    )


def averaged(curves: Sequence[Curve], fpr: float) -> float:
    """The TPR at an FPR, averaged over runs; the upper end of an upright part."""
    return float(np.mean([curve.at(fpr) for curve in curves]))


def allowed(bound: Curve, fpr: float) -> float:
    """The TPR of a bound at an FPR: that of its next point, for between two of them it may bend upwards."""
    at = int(np.searchsorted(bound.fpr, fpr * (1 - 1e-9)))
    return bound.tpr[min(at, len(bound.tpr) - 1)]


def _points(curve: Curve) -> tuple[Point, ...]:
    """The points on logarithmic axes, those between two corners too."""
    points: list[Point] = []
    for (x0, y0), (x1, y1) in pairwise(zip(curve.fpr, curve.tpr, strict=True)):
        if x1 < FLOOR:
            continue
        begin = max(x0, FLOOR)
        xs = np.geomspace(begin, x1, STEPS) if x1 > begin else np.array([begin, x1])
        shares = (xs - x0) / (x1 - x0) if x1 > x0 else np.array([0.0, 1.0])
        ys = np.maximum(y0 + shares * (y1 - y0), FLOOR)
        points += [Point(float(x), float(y)) for x, y in zip(xs, ys, strict=True)]
    return tuple(points)
