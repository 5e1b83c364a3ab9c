"""Keys of marks: the entries of a legend in columns, and labels at the ends of lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fedprivacy.report import svg
from fedprivacy.report.charts.label import LINE, SIZE, SMALL, Label, width, wrapped
from fedprivacy.report.charts.series import FIELD, Key

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SAMPLE, INDENT = 28.0, 36.0  # pixels of a key's line, and from its left end to its text
APART = 24.0  # pixels between two columns
ROW = 18.0  # pixels from an entry to the next


@dataclass(frozen=True)
class Sample:
    """The mark of an entry, its left end at (x, y)."""

    key: Key
    x: float
    y: float


def lines(label: str, note: str, color: str, room: float, *, bold: bool) -> list[Label]:
    """The lines of a label and its note, from (0, 0) down."""
    texts = [
        *((text, color, SIZE, bold) for text in wrapped(label, room, bold=bold)),
        *((text, svg.MUTED, SMALL, False) for text in wrapped(note, room, SMALL)),
    ]
    return [
        Label(text, 0.0, LINE * index, color=ink, size=size, bold=heavy)
        for index, (text, ink, size, heavy) in enumerate(texts)
    ]


def legend(keys: Sequence[Key], room: float) -> tuple[list[Label], list[Sample], float]:
    """The entries from the upper left corner on, and their height in pixels; one for each label."""
    entries = list({key.label: key for key in reversed(keys) if key.label}.values())[::-1]
    if not entries:
        return [], [], 0.0
    wide = (max(width(key.label, bold=bool(key.note)), width(key.note, SMALL)) for key in entries)
    longest = max(wide) + INDENT
    columns = max(1, min(3, len(entries), int((room + APART) // (longest + APART))))
    labels: list[Label] = []
    samples: list[Sample] = []
    top = 0.0
    for start in range(0, len(entries), columns):
        tall = ROW
        for place, key in enumerate(entries[start : start + columns]):
            x = place * (longest + APART)
            written = lines(key.label, key.note, key.look[0], room - x - INDENT, bold=bool(key.note))
            labels += [label.moved(x + INDENT, top + ROW / 2) for label in written]
            samples.append(Sample(key, x, top + ROW / 2))
            tall = max(tall, LINE * len(written) + 4.0)
        top += tall
    return labels, samples, top


def paint(drawn: Figure, sample: Sample) -> None:
    """Draws the mark of an entry."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Rectangle

    wide, tall = drawn.get_size_inches() * 72
    color, marker, line = sample.key.look
    y = 1 - sample.y / tall
    if marker == FIELD:
        corner, size = ((sample.x + 7) / wide, y - 6 / tall), (14 / wide, 12 / tall)
        drawn.add_artist(Rectangle(corner, *size, facecolor=color, linewidth=0))
        return
    ends = [sample.x / wide, (sample.x + SAMPLE / 2) / wide, (sample.x + SAMPLE) / wide]
    drawn.add_artist(
        Line2D(
            ends, [y] * 3, color=color, linestyle=line or "", linewidth=sample.key.width,
            marker=marker, markevery=[1], **edge(color, marker),
        )
    )  # fmt: skip


def edge(color: str, marker: str, size: float = 8.0) -> dict[str, Any]:
    """How a marker's edge is drawn: a stroke has nothing but its edge."""
    stroke = marker in ("|", "_", "x")
    return {
        "markersize": size,
        "markeredgecolor": color if stroke else svg.PAPER,
        "markeredgewidth": 2.25 if stroke else 1.0,
    }


def spread(ends: Sequence[tuple[float, float]], top: float, bottom: float) -> list[float]:
    """The places of labels beside lines, so that none covers another.

    Args:
        ends: For each label the pixel that it belongs to, and its height in pixels.
        top: Where the first may begin.
        bottom: Where the last has to end, as far as there is room.

    Returns:
        The upper edge of each label.
    """
    order = sorted(range(len(ends)), key=lambda index: ends[index][0])
    places = [0.0] * len(ends)
    floor = top
    for index in order:
        at, tall = ends[index]
        places[index] = max(floor, at - min(tall, LINE) / 2)
        floor = places[index] + tall
    # A label pushed below the axes moves the others up.
    ceiling = max(bottom, top + sum(tall for _, tall in ends))
    for index in reversed(order):
        places[index] = min(places[index], ceiling - ends[index][1])
        ceiling = places[index]
    return places
