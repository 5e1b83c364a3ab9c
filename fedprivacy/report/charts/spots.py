"""Values of marks on hover and on keyboard focus, without a script."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

from fedprivacy.report.charts.label import LINE, SMALL, width, wrapped

FOCUSED = 60  # marks of a picture that the keyboard reaches; of more the table below is the better way
RADIUS = 8.0  # pixels around a mark that show its value
WIDE = 300.0  # pixels of a line of the text
ABOVE = 12.0  # pixels between the mark and the text


@dataclass(frozen=True)
class Spot:
    """A mark with its value, in pixels from the upper left corner of the picture.

    Args:
        x: The middle of the mark, or the left edge of a bar.
        y: The middle of the mark, or the upper edge of a bar.
        text: Series, place, value and interval.
        width: Of a bar; 0 for a point.
        height: Of a bar.
    """

    x: float
    y: float
    text: str
    width: float = 0.0
    height: float = 0.0


def overlay(spots: Sequence[Spot], room: float, bottom: float) -> str:
    """Invisible shapes over the marks as SVG, each with the value as its title.

    Args:
        spots: The marks.
        room: The width of the picture in pixels.
        bottom: Its height.
    """
    focused = len(spots) <= FOCUSED
    return "".join(_spot(spot, room, bottom, focused=focused) for spot in spots)


def _spot(spot: Spot, room: float, bottom: float, *, focused: bool) -> str:
    title = f"<title>{html.escape(spot.text)}</title>"
    if spot.width:
        shape = (
            f'<rect x="{spot.x:.4g}" y="{spot.y:.4g}" width="{spot.width:.4g}" height="{spot.height:.4g}"/>'
        )
    else:
        shape = f'<circle cx="{spot.x:.4g}" cy="{spot.y:.4g}" r="{RADIUS:g}"/>'
    if not focused:
        return f'<g class="spot">{title}{shape}</g>'
    return f'<g class="spot" tabindex="0" role="img">{title}{shape}{_text(spot, room, bottom)}</g>'


def _text(spot: Spot, room: float, bottom: float) -> str:
    """The value above the mark, or below it where there is no room above; within the picture."""
    lines = wrapped(spot.text, min(WIDE, room - 8.0), SMALL)
    longest = max((width(line, SMALL) for line in lines), default=0.0)
    x = min(max(4.0, spot.x + spot.width / 2 - longest / 2), room - longest - 4.0)
    top = spot.y - ABOVE - LINE * (len(lines) - 1)
    if top < LINE:
        top = min(spot.y + ABOVE + LINE, bottom - LINE * len(lines))
    rows = "".join(
        f'<tspan x="{x:.4g}" y="{top + LINE * at:.4g}">{html.escape(line)}</tspan>'
        for at, line in enumerate(lines)
    )
    return f"<text>{rows}</text>"
