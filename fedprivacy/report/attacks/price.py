"""AUC of attacks and accuracy of the model against epsilon, one chart below the other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter
from matplotlib.transforms import ScaledTranslation

from fedprivacy.report import marks, plots, svg, words
from fedprivacy.report.attacks import figures, keys
from fedprivacy.report.attacks.parts import CLIPPED, Attack, Level

UPPER, LOWER, BETWEEN, BELOW = 260.0, 130.0, 50.0, 60.0  # pixels of both axes, between and below them
APART, SHARE = 8.0, 0.5  # pixels between two attacks at one level; how much of the way to the next all take
ROOM, MARGIN = 46.0, 0.09  # pixels that a label of the axis takes; the share of the axis beyond both ends
BOUND = keys.Entry("The most that the guarantee allows", keys.ALLOWED, keys.BOUND_LINE, "s")
BARE: Mapping[Level, tuple[str, str]] = {
    CLIPPED: ("clip", "clipping alone"),
    None: ("none", "without privacy"),
}
MODEL = keys.Entry("Accuracy of the attacked model", svg.INK, "-", "o")


@dataclass(frozen=True)
class Line:
    """One attack over the levels at which it was played, and how it is drawn."""

    name: str
    look: plots.Look
    attacks: Mapping[Level, Attack]

    @property
    def entry(self) -> keys.Entry:
        """What stands for it above the picture."""
        color, marker, line = self.look
        return keys.Entry(marks.short(self.name, 40), color, line, marker)


def lines(attacks: Sequence[Attack]) -> list[Line]:
    """A line for each name among the attacks of a seat; looks begin again beyond the last."""
    looks = ((svg.LOCAL, "o", "-"), (svg.DISTRIBUTED, "D", ":"), *plots.MORE)
    names = dict.fromkeys(one.name for one in attacks)
    return [
        Line(
            name,
            looks[place % len(looks)],
            {one.level: one for one in reversed(attacks) if one.name == name},
        )
        for place, name in enumerate(names)
    ]


def draw(
    levels: Sequence[Level],
    lines: Sequence[Line],
    name: str,
    title: str,
    said: str,
    *,
    narrow: bool = False,
) -> str:
    """The attacks of one seat above, the model that they attacked below, on one axis.

    Args:
        levels: Epsilons, the strictest first; then clipping alone, and None, without privacy.
        lines: One for each attack; at two levels at least.
        name: Unique on the page.
        title: What kind of picture it is.
        said: The picture in words.
        narrow: Whether to draw it for a phone.

    Returns:
        Inline SVG.
    """
    every = [one for line in lines for one in line.attacks.values()]
    bounds = {one.level: one.bound.auc for one in every if one.bound.auc is not None}
    entries = [*(line.entry for line in lines), *([BOUND] if bounds else [])]
    paid = paid_lines(lines)
    if len(paid) == 1:
        entries.append(MODEL)
    top = keys.LINE * len(entries) + 46
    width, left, right = (360.0, 52.0, 16.0) if narrow else (920.0, 56.0, 24.0)
    lower = BETWEEN + LOWER if paid else 0.0
    height = top + UPPER + lower + BELOW
    places = _places([level for level in levels if any(one.level == level for one in every)])
    with svg.style():
        drawn = svg.figure(width, height)
        keys.write(drawn, entries, 4, 2)
        upper = svg.place(drawn, left, top, right, BELOW + lower)
        _axis(upper, places, width - left - right, named=not paid)
        low = min(figures.GUESSING, *(one.auc.low for one in every))
        upper.set_ylim(max(0.0, math.floor(20 * low - 0.5) / 20), 1.0)
        upper.yaxis.set_major_formatter(FuncFormatter(lambda y, _: words.number(round(y, 6))))
        upper.axhline(figures.GUESSING, color=svg.MUTED, linewidth=1.25)
        plots.heading(upper, "AUC of the attack (lower is better)", shift=-48)
        if bounds:
            _line(upper, places, bounds, (keys.ALLOWED, "s", keys.BOUND_LINE))
        step = min(APART, SHARE * _gap(places) * _pixels(places, width - left - right) / len(lines))
        for place, line in enumerate(lines):
            shift = step * (place - (len(lines) - 1) / 2)
            areas = {level: one.auc.value for level, one in line.attacks.items()}
            ends = {level: (one.auc.low, one.auc.high) for level, one in line.attacks.items()}
            _line(upper, places, areas, line.look, shift, ends)
        if paid:
            axes = svg.place(drawn, left, top + UPPER + BETWEEN, right, BELOW)
            _axis(axes, places, width - left - right, named=True)
            plots.accuracy_axis(axes, plots.accuracy_range([y for of, _ in paid for y in of.values()]))
            plots.heading(axes, "Accuracy of the model (higher is better)", shift=-48)
            for accuracies, look in paid:
                _line(axes, places, accuracies, look)
        return svg.write(drawn, f"{name}-{'narrow' if narrow else 'wide'}", title, said)


def paid_lines(lines: Sequence[Line]) -> list[tuple[dict[Level, float], plots.Look]]:
    """The accuracy of the attacked models: one line, or one for each attack where these models differ."""
    found: list[tuple[dict[Level, float], plots.Look]] = []
    shared: dict[Level, set[float]] = {}
    for line in lines:
        known = {
            level: one.model_accuracy.before
            for level, one in line.attacks.items()
            if one.model_accuracy.before is not None
        }
        for level, accuracy in known.items():
            shared.setdefault(level, set()).add(accuracy)
        found += [(known, line.look)] if known else []
    if all(len(values) == 1 for values in shared.values()):
        one = {level: values.pop() for level, values in shared.items()}
        return [(one, (MODEL.color, MODEL.marker, MODEL.line))] if one else []
    return found


def _places(present: Sequence[Level]) -> dict[Level, float]:
    """Where each level stands on the axis: powers of two apart, and those without an epsilon aside."""
    places: dict[Level, float] = {level: math.log2(level) for level in present if isinstance(level, float)}
    private = list(places.values()) or [0.0]
    step = max(1.0, 0.3 * (private[-1] - private[0]))
    bare = (level for level in present if not isinstance(level, float))
    return places | {level: private[-1] + step * number for number, level in enumerate(bare, start=1)}


def _gap(places: Mapping[Level, float]) -> float:
    """The least distance between two levels."""
    return min(later - earlier for earlier, later in pairwise(places.values()))


def _pixels(places: Mapping[Level, float], width: float) -> float:
    """How many pixels of so wide an axis a power of two takes."""
    return width / ((1 + 2 * MARGIN) * (max(places.values()) - min(places.values())))


def _axis(axes: Axes, places: Mapping[Level, float], width: float, *, named: bool) -> None:
    """The axis of both charts: a tick at each level, a name where there is room, a field without epsilons."""
    first, last = min(places.values()), max(places.values())
    margin = MARGIN * (last - first)
    axes.set_xlim(first - margin, last + margin)
    axes.xaxis.set_major_locator(FixedLocator(list(places.values())))
    pixels = _pixels(places, width)
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


def _line(
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
