"""Histograms: bars on top of each other, or one kind upwards and the other downwards."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from fedprivacy.report import svg, words
from fedprivacy.report.blocks import Table
from fedprivacy.report.charts import panel
from fedprivacy.report.charts.axis import Axis
from fedprivacy.report.charts.label import Label, width
from fedprivacy.report.charts.panel import GAP, LARGE, Box
from fedprivacy.report.charts.scales import Scale
from fedprivacy.report.charts.series import FIELD, Key
from fedprivacy.report.charts.spots import Spot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TALL, LOW = 230.0, 216.0  # pixels of the axes, large and beside others
FOOT = 0.6  # where a logarithmic axis of counts begins


@dataclass(frozen=True)
class Bars:
    """The counts of one kind, in every bin."""

    label: str
    color: str
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Histogram:
    """Counts of two kinds by value.

    Args:
        x: The axis of values.
        edges: Of the bins, one more than there are counts.
        bars: One kind, or two.
        heading: The label of the vertical axis.
        mirrored: Whether the second kind hangs down; both are shares of their kind then, so that unequal
            numbers compare. Else it is placed on the first.
        log: Whether the axis of counts is logarithmic.
        filled: How much of a bin its bar takes.
        title: The name of the panel.
        color: Of the title.
    """

    x: Axis
    edges: tuple[float, ...]
    bars: tuple[Bars, ...]
    heading: str
    mirrored: bool = False
    log: bool = False
    filled: float = 1.0
    title: str = ""
    color: str = svg.INK

    @property
    def x_ends(self) -> tuple[float, float]:
        """The ends of the horizontal axis."""
        return self.x.limits or (self.edges[0], self.edges[-1])

    @property
    def y(self) -> Axis:
        """The vertical axis: counts, or shares."""
        if self.mirrored:
            most = 1.08 * max(float(heights.max()) for heights in self._shares()) or 1.0
            return Axis(text=lambda share: f"{words.number(100 * abs(share), 3)} %", limits=(-most, most))
        most = max(map(sum, zip(*(bars.counts for bars in self.bars), strict=True)), default=1)
        limits = (FOOT, 1.5 * most) if self.log else (0.0, 1.06 * most)
        powers = {float(10**power): "" for power in range(len(str(most)))} if self.log else {}
        return Axis(text=lambda count: f"{count:,.0f}", log=self.log, limits=limits, ticks=powers, whole=True)

    def keys(self, room: float) -> list[Key]:
        """The colours of the bars."""
        return [Key(bars.label, (bars.color, FIELD, "")) for bars in self.bars]

    def sides(self, room: float) -> tuple[float, float]:
        """The names of the ticks on the left."""
        names = [width(name) for _, name in self.y.marks(self.y.ends([]), panel.rows(TALL))]
        return panel.sides(self.x, self.x_ends, room, (max(names, default=0.0) + GAP, GAP))

    def height(self, inner: float, room: float) -> float:
        """The same at every place."""
        return TALL if room >= LARGE else LOW

    def below(self, inner: float) -> float:
        """The names of the ticks, and the label."""
        return panel.foot(self.x, panel.across(self.x, self.x_ends, inner), inner)

    def labels(self, box: Box) -> list[Label]:
        """The names of all ticks."""
        names = panel.across(self.x, self.x_ends, box.width)
        return [
            *panel.below(self.x, names, box),
            *panel.beside(self.y, self.y.ends([]), box, panel.rows(box.height)),
        ]

    def paint(self, axes: Axes, box: Box) -> None:
        """The bars, the tallest first."""
        y = self.y
        ends = y.ends([])
        axes.set_xlim(*self.x_ends)
        axes.set_ylim(*ends)
        axes.set_xticks([at for at, _ in self.x.marks(self.x_ends, panel.columns(box.width))])
        axes.set_yticks([at for at, _ in y.marks(ends, panel.rows(box.height))])
        edges = np.array(self.edges)
        middles, widths = (edges[1:] + edges[:-1]) / 2, self.filled * np.diff(edges)
        if self.mirrored:
            for bars, share, sign in zip(self.bars, self._shares(), (1, -1), strict=False):
                axes.bar(middles, sign * share, widths, color=bars.color, linewidth=0)
            axes.axhline(0, color=svg.INK, linewidth=1.0)
            return
        tops = np.cumsum([bars.counts for bars in self.bars], axis=0)
        for bars, top in reversed(list(zip(self.bars, tops, strict=True))):
            shown = np.array(bars.counts) > 0
            heights = np.array([y.place(float(count)) for count in top[shown]]) - ends[0]
            axes.bar(middles[shown], heights, widths[shown], bottom=ends[0], color=bars.color, linewidth=0)

    @property
    def scales(self) -> tuple[Scale, ...]:
        """The axis of counts, which begins at 0 where it is not logarithmic."""
        y = self.y
        return (Scale(y, y.ends([]), self.heading),)

    def spots(self, box: Box) -> list[Spot]:
        """A bin with its counts, as a strip from top to bottom."""
        low, high = self.x_ends
        spots = []
        for at, (left, right) in enumerate(pairwise(self.edges)):
            if not any(bars.counts[at] for bars in self.bars):
                continue
            counts = ", ".join(f"{bars.label}: {bars.counts[at]:,}" for bars in self.bars)
            begin, end = (box.width * (edge - low) / (high - low) for edge in (left, right))
            spots.append(
                Spot(box.left + begin, box.top, f"{self._bin(at)}: {counts}", end - begin, box.height)
            )
        return spots

    def sentence(self) -> str:
        """How many there are of each kind, and where most of them lie."""
        parts = []
        for bars in self.bars:
            most = int(np.argmax(bars.counts))
            at = f"most of them ({bars.counts[most]:,}) at {self._bin(most)}"
            parts.append(f"{bars.label}: {sum(bars.counts):,}, {at}")
        return f"{self.heading}. {'; '.join(parts)}."

    def table(self, caption: str) -> Table:
        """A row for each bin."""
        rows = [
            (self._bin(at), *(f"{bars.counts[at]:,}" for bars in self.bars))
            for at in range(len(self.edges) - 1)
        ]
        head = (self.x.label, *(bars.label for bars in self.bars))
        return Table(caption, head, rows, numeric=frozenset(range(1, len(head))))

    def _bin(self, at: int) -> str:
        return f"{self.x.text(self.edges[at])} to {self.x.text(self.edges[at + 1])}"

    def _shares(self) -> list[np.ndarray]:
        return [np.array(bars.counts) / max(1, sum(bars.counts)) for bars in self.bars]
