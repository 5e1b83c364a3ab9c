"""Draws attack, bound and accuracy against epsilon: a panel per seat, a line per arm."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MultipleLocator

from fedprivacy.documents.attack import Level
from fedprivacy.documents.replay import ReplayDocument
from fedprivacy.report import marks, plots, svg, words
from fedprivacy.report.attacks import figures, keys, scale, strongest
from fedprivacy.report.attacks.strongest import Reached

WIDTH = {False: 920.0, True: 360.0}  # pixels, for a window and for a phone
ACROSS = {False: 2, True: 1}  # panels beside each other
TALL, HEAD, BELOW = 210.0, 62.0, 56.0  # pixels of a panel, of what stands above it, and below
LEFT, RIGHT, APART = 52.0, 16.0, 7.0  # pixels beside the axes, and between two arms at one epsilon
DASH = 4.0  # pixels of a bound's dash; those of the other arms lie in its gaps
LABEL = {False: 110, True: 45}  # characters of what stands for an arm
NOTE = {False: 58, True: 44}  # characters of a panel's second line
ABOVE = {
    "server": "The server attacks",
    "participant": "A participant attacks",
    "outsider": "An outsider attacks",
}


def draw(document: ReplayDocument, title: str, alt: str, *, narrow: bool = False) -> str:
    """Three panels of AUC and one of accuracy, on one axis of epsilon.

    Args:
        document: Of arms, at two levels of privacy at least.
        title: What kind of picture it is.
        alt: The picture in words.
        narrow: Whether to draw it for a phone.

    Returns:
        Inline SVG.
    """
    looks, reached = strongest.looks(document), strongest.reached(document)
    entries = _entries(document, looks, narrow=narrow)
    across, width = ACROSS[narrow], WIDTH[narrow]
    each, tall = width / across, HEAD + TALL + BELOW
    top = keys.LINE * len(entries) + 10
    height = top + tall * math.ceil((len(reached) + 1) / across)
    with svg.style():
        drawn = svg.figure(width, height)
        keys.write(drawn, entries, 4, 2)
        shifts = _shifts(document, list(looks))
        low = min(
            [figures.GUESSING, *(r.best.auc.low for group in reached.values() for r in group if r.best)]
        )
        for place, seat in enumerate([*reached, None]):
            row, column = divmod(place, across)
            axes = _panel(drawn, each, column, top + tall * row + HEAD)
            places = scale.places_of(_levels(document))
            scale.axis(axes, places, each - LEFT - RIGHT, named=True)
            if seat is None:
                _accuracy(axes, document, places, looks, shifts)
            else:
                _attacks(axes, reached[seat], places, looks, shifts, low, NOTE[narrow])
        return svg.write(drawn, f"frontier-{'narrow' if narrow else 'wide'}", title, alt)


def _levels(document: ReplayDocument) -> list[Level]:
    """The levels of all arms, the strictest first; then clipping alone; last no privacy."""
    present = {arm.level for arm in document.arms}
    private = sorted(level for level in present if isinstance(level, float))
    return [*private, *(level for level in ("clipped", None) if level in present)]


def _entries(document: ReplayDocument, looks: Mapping[str, plots.Look], *, narrow: bool) -> list[keys.Entry]:
    first = {arm.arm: arm for arm in reversed(document.arms)}
    entries = []
    for name, (color, marker, line) in looks.items():
        promise = strongest.promise(first[name], short=narrow)
        # No line leads through the points of an arm without an epsilon.
        drawn = line if isinstance(first[name].level, float) else " "
        entries.append(keys.Entry(marks.short(f"{name}: {promise}", LABEL[narrow]), color, drawn, marker))
    if any(bound.auc is not None for arm in document.arms for bound in arm.bounds.values()):
        dashes = (0, (DASH, DASH))
        label = "The most that the arm's guarantee allows"
        entries.append(keys.Entry(label, svg.INK, dashes, width=1.5))
    return entries


def _panel(drawn: Figure, each: float, column: int, top: float) -> Axes:
    width, height = drawn.get_size_inches() * 72
    left = each * column + LEFT
    return svg.place(drawn, left, top, width - left - (each - LEFT - RIGHT), height - top - TALL)


def _attacks(
    axes: Axes,
    group: Sequence[Reached],
    places: Mapping[Level, float],
    looks: Mapping[str, plots.Look],
    shifts: Mapping[str, float],
    low: float,
    most: int,
) -> None:
    """The strongest attack of one seat in each arm, with its interval, and what is allowed."""
    axes.set_ylim(max(0.0, math.floor(20 * low - 0.5) / 20), 1.0)
    axes.yaxis.set_major_locator(MultipleLocator(0.1))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: words.number(round(y, 6))))
    axes.axhline(figures.GUESSING, color=svg.MUTED, linewidth=1.25)
    bounded = [name for name in looks if any(r.bound.auc is not None for r in group if r.arm.arm == name)]
    for name, look in looks.items():
        mine = [reach for reach in group if reach.arm.arm == name]
        allowed = {reach.arm.level: reach.bound.auc for reach in mine if reach.bound.auc is not None}
        if allowed:
            _bound(axes, places, allowed, look[0], bounded.index(name), len(bounded))
        best = {reach.arm.level: reach.best.auc for reach in mine if reach.best is not None}
        areas = {level: auc.value for level, auc in best.items()}
        ends = {level: (auc.low, auc.high) for level, auc in best.items()}
        scale.points(axes, places, areas, look, shifts[name], ends)
    bare = [name for name in looks if name not in bounded]
    named = f"no guarantee: {', '.join(bare)}" if bare else "a guarantee in every arm"
    counted = f"no guarantee in {words.counted(len(bare), 'arm')}"
    notes = (f"AUC of the strongest attack; {named}", f"AUC; {named}", f"AUC; {counted}")
    note = next((reach for reach in notes if len(reach) <= most), notes[-1])
    plots.heading(axes, ABOVE[group[0].seat], shift=-44, up=22, color=svg.INK, bold=True)
    plots.heading(axes, note, shift=-44)


def _accuracy(
    axes: Axes,
    document: ReplayDocument,
    places: Mapping[Level, float],
    looks: Mapping[str, plots.Look],
    shifts: Mapping[str, float],
) -> None:
    plots.accuracy_axis(axes, (0.0, 1.0))
    for name, look in looks.items():
        mine = [arm for arm in document.arms if arm.arm == name]
        means = {arm.level: arm.accuracy.test.mean for arm in mine if arm.accuracy.test.mean is not None}
        ends = {arm.level: interval for arm in mine if (interval := arm.accuracy.test.interval) is not None}
        scale.points(axes, places, means, look, shifts[name], ends)
    plots.heading(axes, "What it costs", shift=-44, up=22, color=svg.INK, bold=True)
    plots.heading(axes, "Accuracy on held-out records (higher is better)", shift=-44)


def _shifts(document: ReplayDocument, names: Sequence[str]) -> dict[str, float]:
    """Pixels aside, so that no arm hides another: those with epsilons, and those at each level without."""
    beside: dict[Level, list[str]] = {}
    for name in names:
        level = next(arm.level for arm in document.arms if arm.arm == name)
        beside.setdefault(0.0 if isinstance(level, float) else level, []).append(name)
    return {
        name: APART * (place - (len(shifts) - 1) / 2)
        for shifts in beside.values()
        for place, name in enumerate(shifts)
    }


def _bound(
    axes: Axes, places: Mapping[Level, float], allowed: Mapping[Level, float], color: str, place: int, of: int
) -> None:
    """Dashes with room between them for those of the other arms, which may lie on the same line."""
    dashes: Any = (DASH * place, (DASH, DASH * max(1, of - 1)))
    ordered = [level for level in places if level in allowed]
    axes.plot(
        [places[level] for level in ordered], [allowed[level] for level in ordered],
        color=color, linestyle=dashes, linewidth=1.75, clip_on=False,
    )  # fmt: skip
    # It is proven at these epsilons; between them the dashes lead the eye.
    axes.plot(
        [places[level] for level in ordered], [allowed[level] for level in ordered],
        color=color, linestyle="", marker="_", markersize=11, markeredgewidth=1.75, clip_on=False,
    )  # fmt: skip
