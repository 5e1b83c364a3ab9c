"""Marks of charts: points with their intervals in series, reference lines, bands, and their keys."""

from __future__ import annotations

from dataclasses import dataclass

from fedprivacy.report import svg
from fedprivacy.report.charts.looks import Look

FIELD = "field"  # the marker of a bar's key


@dataclass(frozen=True)
class Point:
    """A figure, with its interval where there is one.

    Args:
        x: Along the horizontal axis (of dots the value, elsewhere the variable it depends on).
        y: Along the vertical axis.
        interval: The ends of the interval.
        joined: Whether the series' line leads through it.
        large: Whether its mark is larger than the others'.
        since: The start of the span it was measured over: a thin line leads from there.
    """

    x: float
    y: float
    interval: tuple[float, float] | None = None
    joined: bool = True
    large: bool = False
    since: float | None = None


@dataclass(frozen=True)
class Series:
    """Points that look alike.

    Args:
        look: Colour, marker and line style; without a line only the points are drawn.
        label: Its name; series of one label have one entry in the legend.
        points: At least one, in order.
        note: A note below its label, such as the observer of the guarantee.
        end: The text at its right end in place of its label, such as its last value.
        width: Of its line in pixels.
        steps: Whether it goes up in steps.
        sample: Its sample in a legend, where series of several looks share one label.
    """

    look: Look
    label: str
    points: tuple[Point, ...]
    note: str = ""
    end: str = ""
    width: float = 2.25
    steps: bool = False
    sample: Look | None = None

    @property
    def key(self) -> Key:
        """Its key in a legend."""
        return Key(self.label, self.sample or self.look, self.note, self.width)


@dataclass(frozen=True)
class Reference:
    """A line across the whole panel: guessing, zero, the level of no noise.

    Args:
        at: Where it crosses the axis.
        look: How it is drawn.
        label: Its name; without one it is named in the caption alone.
        note: More about it.
        width: Of the line in pixels.
        upright: Whether it crosses the horizontal axis.
        interval: A band around it.
    """

    at: float
    look: Look = (svg.MUTED, "", "-")
    label: str = ""
    note: str = ""
    width: float = 1.25
    upright: bool = False
    interval: tuple[float, float] | None = None

    @property
    def key(self) -> Key:
        """Its key in a legend."""
        return Key(self.label, (self.look[0], "", self.look[2]), self.note, self.width)


@dataclass(frozen=True)
class Band:
    """A shaded part of the horizontal axis, from a place to another."""

    low: float
    high: float
    color: str = svg.GRID
    opacity: float = 0.4


@dataclass(frozen=True)
class Key:
    """An entry of a legend; a field of its colour where the marker is `FIELD`."""

    label: str
    look: Look
    note: str = ""
    width: float = 2.25
