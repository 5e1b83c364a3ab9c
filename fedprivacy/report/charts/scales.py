"""Whether an axis is cut or logarithmic: a break mark where it begins, and sentences for captions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedprivacy.report import svg
from fedprivacy.report.charts.axis import Axis

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SEVERAL = 2  # cut axes that are named one by one; of more there is one sentence
# A zigzag on the axis, in pixels from its beginning: along it, and across it.
BREAK = ((0.0, 0.0), (5.0, 0.0), (7.0, -4.0), (11.0, 4.0), (13.0, 0.0), (18.0, 0.0))


@dataclass(frozen=True)
class Scale:
    """An axis of a panel with its ends.

    Args:
        axis: The axis.
        ends: Its places at both ends.
        name: The quantity, where the axis has no label.
        upright: Whether it is the vertical one.
        measured: Whether lengths along it are read as sizes, so that it is cut where it lacks 0.
    """

    axis: Axis
    ends: tuple[float, float]
    name: str = ""
    upright: bool = True
    measured: bool = True

    @property
    def cut(self) -> bool:
        """Whether 0 lies beyond its ends, so that lengths are no sizes."""
        low, high = self.ends
        slack = 1e-9 * max(abs(low), abs(high))
        return self.measured and not self.axis.log and (low > slack or high < -slack)

    @property
    def sentence(self) -> str:
        """What a reader has to know of it; empty where nothing."""
        label = re.split(r"[(;,:]", self.axis.label or self.name)[0].strip()
        which = f"The axis of {label[:1].lower()}{label[1:]}" if label and not label[:2].isupper() else ""
        which = which or (f"The axis of {label}" if label else "The axis of values")
        if self.axis.log:
            return f"{which} is logarithmic."
        if not self.cut:
            return ""
        write = self.axis.tick_text or self.axis.text
        low, high = self.ends
        if high < 0:
            return f"{which} ends at {write(float(f'{high:.2g}'))}, not at 0."
        return f"{which} begins at {write(float(f'{low:.2g}'))}, not at 0."


def sentences(scales: Iterable[Scale]) -> list[str]:
    """The sentences of some axes, each once; of many cut ones together."""
    every = list(scales)
    cut = dict.fromkeys(scale.sentence for scale in every if scale.cut)
    log = dict.fromkeys(scale.sentence for scale in every if scale.axis.log)
    if len(cut) > SEVERAL:
        cut = {f"{len(cut)} axes do not begin at 0 (zigzag).": None}
    return [*cut, *(log if len(log) <= SEVERAL else ["Axes that say so are logarithmic."])]


def paint(drawn: Figure, scale: Scale, left: float, bottom: float) -> None:
    """Draws the break mark at the beginning of a cut axis: the lower left corner of the axes, in pixels."""
    from matplotlib.lines import Line2D

    if not scale.cut:
        return
    wide, tall = drawn.get_size_inches() * 72
    places = [
        (left + across, bottom - along) if scale.upright else (left + along, bottom + across)
        for along, across in BREAK
    ]
    x, y = [x / wide for x, _ in places], [1 - y / tall for _, y in places]
    drawn.add_artist(Line2D(x, y, color=svg.MUTED, linewidth=1.5, solid_capstyle="butt"))
