"""One attack: its ROC curve beside its bound, and the scores of members and non-members."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from fedprivacy.documents.attack import Attack, Histogram
from fedprivacy.documents.roc import Curve
from fedprivacy.report import marks, plots, svg, words
from fedprivacy.report.attacks import figures, keys

FLOOR = 1e-3  # where both axes of an ROC curve begin
STEPS = 6  # points of a straight part, which is bent on logarithmic axes
PER_RATE = 5  # so many false alarms are expected at least, or no TPR is told
GRID = np.geomspace(FLOOR, 1.0, 121)
SIDE, PHONE = 320.0, 280.0  # pixels of the ROC curve's axes
TITLE = 24.0  # pixels of the attack's name


def draw(attack: Attack, label: str, name: str, title: str, alt: str, *, narrow: bool = False) -> str:
    """The ROC curve on logarithmic axes, and the histograms beside it (on a phone below it).

    Args:
        attack: With at least one ROC curve or histogram.
        label: What it is called.
        name: Unique on the page.
        title: What kind of picture it is.
        alt: The picture in words.
        narrow: Whether to draw it for a phone.

    Returns:
        Inline SVG.
    """
    with svg.style():
        entries, (scores, runs) = _entries(attack), pooled(attack.histograms)
        above = TITLE + 40 + keys.LINE * max(len(entries), 2)
        side = PHONE if narrow else SIDE
        part = above + side + 54
        drawn = svg.figure(360.0 if narrow else 920.0, 2 * part if narrow and scores else part)
        whole = drawn.get_size_inches()[1] * 72
        left = 62.0
        right = 360 - left - side if narrow else 920 - left - side
        _roc(svg.place(drawn, left, above, right, whole - above - side), attack)
        keys.write(drawn, entries, 4, TITLE + 4)
        named = marks.short(f"{label}, by {figures.seat(attack.seat)}", 40 if narrow else 100)
        drawn.text(0, 1 - 10 / whole, named, va="center", color=svg.INK, fontsize=14, fontweight="bold")
        if scores:
            x, top = (left, part + above) if narrow else (506.0, above)
            axes = svg.place(drawn, x, top, 18, whole - top - side)
            _histogram(axes, scores, f"Score{runs and f', {runs}'}")
            fields = [keys.Entry("Members", keys.MEMBERS, ""), keys.Entry("Non-members", keys.OTHERS, "")]
            keys.write(drawn, fields, x - 58, top - above + TITLE + 4)
        return svg.write(drawn, f"{name}-{'narrow' if narrow else 'wide'}", title, alt)


def pooled(histograms: Sequence[Histogram]) -> tuple[Histogram | None, str]:
    """The scores of all runs in one histogram where their edges agree, else those of the first run.

    Returns:
        The histogram, None where there is none; and of which runs, empty where there is one run alone.
    """
    if len(histograms) < 2:
        return (histograms[0], "") if histograms else (None, "")
    first, many = histograms[0], len(histograms)
    if any(histogram.edges != first.edges for histogram in histograms):
        return first, f"in run 1 of {many}"
    members = tuple(
        sum(counts) for counts in zip(*(histogram.members for histogram in histograms), strict=True)
    )
    others = tuple(
        sum(counts) for counts in zip(*(histogram.nonmembers for histogram in histograms), strict=True)
    )
    return Histogram(edges=first.edges, members=members, nonmembers=others), f"{many} runs together"


def blind_below(attack: Attack) -> float:
    """The FPR below which too few non-members were scored for a TPR."""
    return PER_RATE / attack.nonmembers if attack.nonmembers else 1.0


def averaged(curves: Sequence[Curve], fpr: float) -> float:
    """The TPR at an FPR, averaged over runs; the upper end of an upright part."""
    return float(np.mean([curve.at(fpr) for curve in curves]))


def allowed(bound: Curve, fpr: float) -> float:
    """The TPR of a bound at an FPR: that of its next point, for between two of them it may bend upwards."""
    at = int(np.searchsorted(bound.fpr, fpr * (1 - 1e-9)))
    return bound.tpr[min(at, len(bound.tpr) - 1)]


def _entries(attack: Attack) -> list[keys.Entry]:
    runs = len(attack.roc)
    entries = [keys.Entry("The attack" if runs < 2 else f"The attack, mean of {runs} runs", keys.MEMBERS)]
    if runs > 1:
        entries.append(keys.Entry("Each run", keys.MEMBERS, width=0.9))
    bound = attack.bound.curve
    if bound:
        entries.append(keys.Entry("The most that the guarantee allows", keys.ALLOWED, keys.BOUND_LINE))
    entries.append(
        keys.Entry("Guessing" + ("" if bound else "; no guarantee, so no bound"), svg.MUTED, width=1.0)
    )
    return entries


def _roc(axes: Axes, attack: Attack) -> None:
    for axis, scale in ((axes.xaxis, axes.set_xscale), (axes.yaxis, axes.set_yscale)):
        scale("log")
        axis.set_minor_locator(NullLocator())
        axis.set_major_locator(FixedLocator([0.001, 0.01, 0.1, 1.0]))
        axis.set_major_formatter(FuncFormatter(lambda rate, _: f"{words.number(100 * rate)} %"))
    axes.set_xlim(FLOOR, 1.0)
    axes.set_ylim(FLOOR, 1.0)
    axes.grid(visible=True, axis="both")
    blind = min(1.0, blind_below(attack))
    if blind > FLOOR:
        axes.axvspan(FLOOR, blind, color=svg.GRID, alpha=0.55, linewidth=0, zorder=0)
    axes.plot([FLOOR, 1.0], [FLOOR, 1.0], color=svg.MUTED, linewidth=1.0)
    if attack.bound.curve:
        axes.plot(*_line(attack.bound.curve), color=keys.ALLOWED, linestyle=keys.BOUND_LINE)
    for curve in attack.roc:
        width = 2.25 if len(attack.roc) == 1 else 0.9
        axes.plot(*_line(curve), color=keys.MEMBERS, linewidth=width)
    if len(attack.roc) > 1:
        axes.plot(GRID, [max(FLOOR, averaged(attack.roc, x)) for x in GRID], color=keys.MEMBERS)
    axes.set_xlabel("False alarms (FPR): non-members accused", labelpad=6)
    plots.heading(axes, "Members found (TPR)", shift=-58)


def _line(curve: Curve) -> tuple[list[float], list[float]]:
    """The points on logarithmic axes, those between two corners too."""
    across: list[float] = []
    up: list[float] = []
    for (x0, y0), (x1, y1) in pairwise(zip(curve.fpr, curve.tpr, strict=True)):
        if x1 < FLOOR:
            continue
        begin = max(x0, FLOOR)
        xs = np.geomspace(begin, x1, STEPS) if x1 > begin else np.array([begin, x1])
        shares = (xs - x0) / (x1 - x0) if x1 > x0 else np.array([0.0, 1.0])
        across += xs.tolist()
        up += np.maximum(FLOOR, y0 + shares * (y1 - y0)).tolist()
    return across, up


def _histogram(axes: Axes, scores: Histogram, label: str) -> None:
    """Members upwards, non-members downwards: shares of each, so that unequal numbers compare."""
    edges = np.array(scores.edges)
    shares = [np.array(counts) / max(1, sum(counts)) for counts in (scores.members, scores.nonmembers)]
    most = 1.08 * max(float(share.max()) for share in shares) or 1.0
    for share, color, sign in zip(shares, (keys.MEMBERS, keys.OTHERS), (1, -1), strict=True):
        axes.bar(edges[:-1], sign * share, np.diff(edges), align="edge", color=color, linewidth=0)
    axes.axhline(0, color=svg.INK, linewidth=1.0)
    axes.set_ylim(-most, most)
    axes.set_xlim(edges[0], edges[-1])
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{words.number(100 * abs(y), 3)} %"))
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: words.number(float(f"{x:.4g}"))))
    axes.set_xlabel(textwrap.shorten(label, 44), labelpad=6)
    plots.heading(axes, "Share of members above, of non-members below", shift=-58)
