"""Marks in rows: what each stands for, above the picture, and names that fit beside the rows."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fedprivacy.report import plots, svg

HEAD = 26  # pixels of a line above the rows
SHORT = 30  # characters of a label of which three stand beside each other


def mark(look: plots.Look) -> tuple[str, str]:
    """The colour and the marker of a look, also where its line has none."""
    color, marker, _ = look
    return color, marker or "d"


def lines(labels: Sequence[str], *, narrow: bool) -> int:
    """How many lines `legend` takes."""
    return -(-len(labels) // _across(labels, narrow=narrow))


def legend(drawn: Figure, entries: Sequence[tuple[plots.Look, str]], *, narrow: bool) -> None:
    """The marks in words, above the picture."""
    width, height = drawn.get_size_inches() * 72
    across = _across([label for _, label in entries], narrow=narrow)
    for index, (look, text) in enumerate(entries):
        line, place = divmod(index, across)
        x = 10.0 if narrow else 20.0 + (width - 20) / across * place
        y = 1 - (12 + HEAD * line) / height
        color, marker = mark(look)
        drawn.add_artist(
            Line2D(
                [x / width], [y], color=color, marker=marker, markersize=10, linestyle="",
                markeredgewidth=thickness(marker),
            )
        )  # fmt: skip
        label = textwrap.shorten(text, 40, placeholder="…")
        drawn.text((x + 14) / width, y, label, va="center", color=color, fontsize=14, fontweight="bold")


def thickness(marker: str) -> float:
    """The width of a marker's edge: of an upright line that is all there is of it."""
    return 2.5 if marker == "|" else 1.0


def short(name: str, most: int) -> str:
    """A name cut in its middle: what tells two of them apart may stand at the end."""
    if len(name) <= most:
        return name
    end = most // 2 - 1
    return f"{name[: most - 1 - end]}…{name[-end:]}"


def title(text: str, *, narrow: bool) -> list[str]:
    """What a panel shows, in the lines that stand above it."""
    return textwrap.wrap(text, 48 if narrow else 125)[:3] or [""]


def write_title(drawn: Figure, lines: Sequence[str], top: float) -> None:
    """The lines of a title, at so many pixels below the top of the picture."""
    height = drawn.get_size_inches()[1] * 72
    for index, line in enumerate(lines):
        y = 1 - (top + plots.LINE * (index + 0.5)) / height
        drawn.text(0, y, line, va="center", color=svg.INK, fontsize=13)


def _across(labels: Sequence[str], *, narrow: bool) -> int:
    """How many labels stand beside each other."""
    longest = max(map(len, labels))
    return 1 if narrow else min(len(labels), 3 if longest <= SHORT else 2)
