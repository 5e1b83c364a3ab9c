"""Keys of a picture's lines and fields, in words above them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from fedprivacy.report import svg

LINE = 18.0  # pixels from an entry to the next
MEMBERS, OTHERS, ALLOWED = svg.LOCAL, svg.NONE, svg.CENTRAL
BOUND_LINE: Any = (0, (6, 2))


@dataclass(frozen=True)
class Entry:
    """A colour with its line, or a field of that colour where `line` is empty."""

    label: str
    color: str
    line: Any = "-"
    marker: str = ""
    width: float = 2.25


def write(drawn: Figure, entries: Sequence[Entry], left: float, top: float) -> None:
    """The entries below each other, from so many pixels right and down of the corner on."""
    width, height = drawn.get_size_inches() * 72
    for index, entry in enumerate(entries):
        y = 1 - (top + LINE * (index + 0.5)) / height
        if entry.line:
            ends = [left / width, (left + 28) / width]
            drawn.add_artist(
                Line2D(
                    ends, [y, y], color=entry.color, linestyle=entry.line, linewidth=entry.width,
                    marker=entry.marker, markevery=[1], markeredgecolor=svg.PAPER,
                )
            )  # fmt: skip
        else:
            corner, size = ((left + 8) / width, y - 6 / height), (14 / width, 12 / height)
            drawn.add_artist(Rectangle(corner, *size, facecolor=entry.color, linewidth=0))
        drawn.text((left + 36) / width, y, entry.label, va="center", color=entry.color, fontsize=13)
