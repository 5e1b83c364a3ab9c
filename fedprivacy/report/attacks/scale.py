"""The axis of privacy that pictures share: epsilons on a logarithmic scale, those without one aside."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter
from matplotlib.transforms import ScaledTranslation

from fedprivacy.documents.attack import CLIPPED, Level
from fedprivacy.report import plots, svg, words

ROOM, MARGIN = 46.0, 0.09  # pixels that a label of the axis takes; the share of the axis beyond both ends
BARE: Mapping[Level, tuple[str, str]] = {
    CLIPPED: ("clip", "clipping alone"),
    None: ("none", "without privacy"),
}


def places_of(present: Sequence[Level]) -> dict[Level, float]:
    """Where each level stands on the axis: powers of two apart, and those without an epsilon aside."""
    places: dict[Level, float] = {level: math.log2(level) for level in present if isinstance(level, float)}
    private = list(places.values()) or [0.0]
    step = max(1.0, 0.3 * (private[-1] - private[0]))
    bare = (level for level in present if not isinstance(level, float))
    return places | {level: private[-1] + step * number for number, level in enumerate(bare, start=1)}


def gap(places: Mapping[Level, float]) -> float:
    """The least distance between two levels."""
    return min(later - earlier for earlier, later in pairwise(places.values()))


def pixels_of(places: Mapping[Level, float], width: float) -> float:
    """How many pixels of so wide an axis a power of two takes."""
    return width / ((1 + 2 * MARGIN) * (max(places.values()) - min(places.values())))


def axis(axes: Axes, places: Mapping[Level, float], width: float, *, named: bool) -> None:
    """The axis of both charts: a tick at each level, a name where there is room, a field without epsilons."""
    first, last = min(places.values()), max(places.values())
    margin = MARGIN * (last - first)
    axes.set_xlim(first - margin, last + margin)
    axes.xaxis.set_major_locator(FixedLocator(list(places.values())))
    pixels = pixels_of(places, width)
    shown: list[float] = []
    # From the right, for those without an epsilon must have their names.
    for place in sorted(places.values(), reverse=True):
        if not shown or (shown[-1] - place) * pixels >= ROOM:
            shown.append(place)
    bare = [level for level in places if not isinstance(level, float)]
    names = {
        place: words.number(level) if isinstance(level, float) else BARE[level][0]
        for level, place in places.items()
    }
    axes.xaxis.set_major_formatter(
        FuncFormatter(lambda x, _: names.get(x, "") if named and x in shown else "")
    )
    if bare:
        private = max((place for level, place in places.items() if level not in bare), default=first - margin)
        begins = (private + places[bare[0]]) / 2
        axes.axvspan(begins, last + margin, color=svg.GRID, alpha=0.4, linewidth=0, zorder=0)
    if named:
        meant = ", ".join(": ".join(BARE[level]) for level in bare)
        axes.set_xlabel(f"Epsilon ({meant})" if bare else "Epsilon", labelpad=6)


def points(
    axes: Axes,
    places: Mapping[Level, float],
    values: Mapping[Level, float],
    look: plots.Look,
    shift: float = 0.0,
    ends: Mapping[Level, tuple[float, float]] | None = None,
) -> None:
    """Points so many pixels aside, their intervals, and a line through those that have an epsilon."""
    color, marker, line = look
    figure = axes.get_figure()
    assert figure is not None
    aside = axes.transData + ScaledTranslation(shift / 72, 0, figure.dpi_scale_trans)
    for level, interval in (ends or {}).items():
        axes.plot(
            [places[level]] * 2, interval,
            color=color, linewidth=1.5, marker="_", markersize=7, transform=aside,
        )  # fmt: skip
    ordered = [level for level in places if level in values]
    private = [level for level in ordered if isinstance(level, float)]
    axes.plot(
        [places[level] for level in private], [values[level] for level in private],
        color=color, linestyle=line, linewidth=1.5, transform=aside,
    )  # fmt: skip
    axes.plot(
        [places[level] for level in ordered], [values[level] for level in ordered], color=color,
        linestyle="", marker=marker, markeredgecolor=svg.PAPER, clip_on=False, transform=aside, zorder=3,
    )  # fmt: skip
