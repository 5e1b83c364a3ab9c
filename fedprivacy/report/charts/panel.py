"""The common part of all panels: the box, the head, and the texts around the axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

from fedprivacy.report import svg
from fedprivacy.report.blocks import Table
from fedprivacy.report.charts.axis import Axis
from fedprivacy.report.charts.label import LINE, SIZE, Label, cut, thinned, width, wrapped
from fedprivacy.report.charts.scales import Scale
from fedprivacy.report.charts.series import Key
from fedprivacy.report.charts.spots import Spot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LARGE, PHONE = 600.0, 380.0  # pixels of a panel that has a window to itself, and of one on a phone
GAP = 8.0  # pixels between texts beside each other, and between a tick and its name
NAME = 160.0  # pixels of a tick's name at most
PAD = 4.0  # pixels at the edges of the picture


@dataclass(frozen=True)
class Box:
    """The axes of a panel, in pixels from the upper left corner of the picture.

    Args:
        left: Its left edge.
        top: Its upper edge.
        width: Of the axes.
        height: Of the axes.
        room: The width of the panel with the texts beside its axes.
        start: The left edge of these texts.
    """

    left: float
    top: float
    width: float
    height: float
    room: float
    start: float

    @property
    def right(self) -> float:
        """Its right edge."""
        return self.left + self.width

    @property
    def bottom(self) -> float:
        """Its lower edge."""
        return self.top + self.height


class Panel(Protocol):
    """A kind of chart: computes the room it needs, places its texts, and paints its marks."""

    @property
    def title(self) -> str:
        """Its name, in bold above it."""
        ...

    @property
    def color(self) -> str:
        """The colour of its title."""
        ...

    @property
    def heading(self) -> str:
        """The label of its vertical axis, above it."""
        ...

    def keys(self, room: float) -> list[Key]:
        """The keys of its marks, where no label beside them has the name."""
        ...

    def sides(self, room: float) -> tuple[float, float]:
        """Pixels that its texts take left and right of its axes, where it is so many pixels wide in all."""
        ...

    def height(self, inner: float, room: float) -> float:
        """Pixels of its axes from top to bottom, where they are `inner` pixels wide."""
        ...

    def below(self, inner: float) -> float:
        """Pixels that its texts take below its axes."""
        ...

    def labels(self, box: Box) -> list[Label]:
        """Its texts around and within its axes."""
        ...

    def paint(self, axes: Axes, box: Box) -> None:
        """Draws its marks, without any text."""
        ...

    @property
    def scales(self) -> tuple[Scale, ...]:
        """Its axes with their ends, as far as they measure something."""
        ...

    def spots(self, box: Box) -> list[Spot]:
        """Its marks with their values, which a page shows on hover and on focus."""
        ...

    def sentence(self) -> str:
        """A description in sentences."""
        ...

    def table(self, caption: str) -> Table:
        """The figures that it is drawn from."""
        ...


def head(panel: Panel, room: float) -> list[tuple[str, bool, str]]:
    """The lines above a panel, each with whether it is bold, and its colour."""
    return [
        *((text, True, panel.color) for text in wrapped(panel.title, room, bold=True, most=2)),
        *((text, False, svg.MUTED) for text in wrapped(panel.heading, room, most=3)),
    ]


def across(axis: Axis, ends: tuple[float, float], inner: float) -> list[Label]:
    """The names of the ticks of a horizontal axis; where they would touch some are left out.

    Names of categories break into lines where there is room for each.
    """
    if not axis.named:
        return []
    low, high = ends
    ticks = axis.marks(ends, columns(inner))
    places = [inner * (at - low) / ((high - low) or 1.0) for at, _ in ticks]
    each = min((b - a for a, b in pairwise(places)), default=inner) - GAP
    longest = max((width(word) for _, name in ticks for word in name.split()), default=0.0)
    broken = longest <= each and any(width(name) > min(each, NAME) for _, name in ticks)
    first = [
        Label(lines[0], place, 0.0, "center")
        for place, (_, name) in zip(places, ticks, strict=True)
        if (lines := wrapped(name, each, most=3) if broken else [cut(name, NAME)] if name else [])
    ]
    if not broken:
        return thinned(first, GAP)
    return [
        Label(text, place, LINE * index, "center")
        for place, (_, name) in zip(places, ticks, strict=True)
        for index, text in enumerate(wrapped(name, each, most=3))
    ]


def sides(
    axis: Axis, ends: tuple[float, float], room: float, least: tuple[float, float]
) -> tuple[float, float]:
    """Pixels left and right of the axes: at least so many, and room for the names of the outermost ticks.

    Names jut out by less the wider the axes are, and the axes are the wider the less names jut out.
    """
    left, right = least
    for _ in range(6):
        inner = room - left - right
        boxes = [name.box for name in across(axis, ends, inner)]
        left = max([left, *(-box[0] for box in boxes)])
        right = max([right, *(box[2] - inner for box in boxes)])
    return left, right


def foot(axis: Axis, names: Sequence[Label], inner: float) -> float:
    """Pixels that the names of the ticks and the label of a horizontal axis take below it."""
    lines = round(max((name.y for name in names), default=-LINE) / LINE) + 1
    label = len(wrapped(_label(axis, names), inner + 2 * GAP))
    return 6.0 + LINE * (lines + label) + (4.0 if label else 0.0)


def below(axis: Axis, names: Sequence[Label], box: Box) -> list[Label]:
    """The names of the ticks and the label of a horizontal axis at their places."""
    lines = round(max((name.y for name in names), default=-LINE) / LINE) + 1
    top = box.bottom + 6.0 + LINE / 2
    label = wrapped(_label(axis, names), box.width + 2 * GAP)
    return [
        *(_within(name.moved(box.left, top), box) for name in names),
        *(
            Label(text, box.left + box.width / 2, top + LINE * (lines + index) + 4.0, "center")
            for index, text in enumerate(label)
        ),
    ]


def _within(name: Label, box: Box) -> Label:
    """The same a little aside where it would leave the panel: other panels of its column made it narrower."""
    left, _, right, _ = name.box
    return name.moved(max(0.0, box.start - left) - max(0.0, right - box.start - box.room), 0.0)


def _label(axis: Axis, names: Sequence[Label]) -> str:
    """The label, with a note where not every tick has its name."""
    return axis.title + (axis.partly if len({name.x for name in names}) < len(axis.ticks) else "")


def beside(axis: Axis, ends: tuple[float, float], box: Box, many: int) -> list[Label]:
    """The names of the ticks of a vertical axis, left of it."""
    low, high = ends
    labels = [
        Label(name, box.left - GAP, box.bottom - box.height * (at - low) / ((high - low) or 1.0), "right")
        for at, name in axis.marks(ends, many)
    ]
    shown: list[Label] = []
    for label in sorted(labels, key=lambda label: -label.y):
        if not shown or shown[-1].y - label.y >= SIZE + 1:
            shown.append(label)
    return shown


def columns(inner: float) -> int:
    """About how many ticks a horizontal axis has."""
    return max(3, min(9, int(inner / 68)))


def rows(height: float) -> int:
    """About how many ticks a vertical axis has."""
    return max(2, min(6, int(height / 42)))
