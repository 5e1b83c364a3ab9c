"""Draws the distribution of advantages over records, and the records that are certainly exposed."""

from __future__ import annotations

from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from fedprivacy.documents.exposure import Exposure, Spread
from fedprivacy.report import plots, svg, words
from fedprivacy.report.attacks import figures, keys
from fedprivacy.report.blocks import Picture, Table

HEIGHT, BELOW = 210.0, 58.0  # pixels of the axes, and below them
UNSEEN = 50  # where the largest bar is so many times the coloured ones, these would not be seen beside it
FOOT = 0.6  # where a logarithmic axis of counts begins
FILLED = 0.9  # of a bin by its bar


def picture(exposure: Exposure, spread: Spread, name: str) -> Picture:
    """A bar for each range of advantages, its part that is exposed for certain in colour.

    Args:
        exposure: Who is exposed.
        spread: With at least one record.
        name: Unique on the page.
    """
    known = sum(spread.total)
    middle = int(np.searchsorted(np.cumsum(spread.total), known / 2))
    sentences = [
        f"How many of {known:,} records have which advantage under the attack {exposure.attack}: the "
        "share of "
        "models with a record that call it a member, less that of models without it. 0 is no exposure, 1 "
        "certainty. "
        f"{exposure.exposed:,} are exposed for certain (in colour). The middle record's advantage is "
        f"{_range(spread, middle)}."
    ]
    if _steep(spread):
        sentences.append("The axis of counts is logarithmic, so that a few records are seen beside many.")
    caption = " ".join(sentences)
    title = "Histogram of the advantage on each record"
    return Picture(partial(_draw, spread, name, title, caption), caption, [_table(exposure, spread)])


def _table(exposure: Exposure, spread: Spread) -> Table:
    rows = [
        (_range(spread, at), f"{spread.certain[at]:,}", f"{spread.others[at]:,}")
        for at in reversed(range(len(spread.total)))
        if spread.total[at]
    ]
    return Table(
        f"Records by their advantage under the attack {exposure.attack}.",
        ("Advantage", "Exposed for certain", "Others"),
        rows,
        numeric=frozenset({1, 2}),
    )


def _range(spread: Spread, at: int) -> str:
    low, high = (min(1.0, max(-1.0, edge)) for edge in spread.edges[at : at + 2])
    return f"{figures.share(low)} to {figures.share(high)}"


def _steep(spread: Spread) -> bool:
    """Whether the records that are exposed for certain would not be seen on a linear axis."""
    return max(spread.total) > UNSEEN * max(spread.certain) > 0


def _draw(spread: Spread, name: str, title: str, alt: str, *, narrow: bool) -> str:
    entries = [
        keys.Entry("Exposed for certain", keys.MEMBERS, ""),
        keys.Entry("Other records", keys.OTHERS, ""),
    ]
    top, left = keys.LINE * len(entries) + 40, 54.0
    with svg.style():
        drawn = svg.figure(360.0 if narrow else 920.0, top + HEIGHT + BELOW)
        axes = svg.place(drawn, left, top, 12, BELOW)
        _counts(axes, spread)
        edges, total = np.array(spread.edges), np.array(spread.total)
        middles, widths = (edges[1:] + edges[:-1]) / 2, FILLED * np.diff(edges)
        certain, others = np.array(spread.certain), np.array(spread.others)
        for height, counts, color in ((total, others, keys.OTHERS), (certain, certain, keys.MEMBERS)):
            shown = counts > 0
            axes.bar(middles[shown], height[shown], widths[shown], color=color, linewidth=0)
        first, last = np.flatnonzero(total)[[0, -1]]
        axes.set_xlim(min(-0.1, edges[first]), max(1.0, edges[last + 1]))
        axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: words.number(round(x, 6))))
        axes.set_xlabel("Advantage (0: not exposed, 1: certain)", labelpad=6)
        plots.heading(axes, "Records", shift=-left)
        keys.write(drawn, entries, 4, 2)
        return svg.write(drawn, f"{name}-records-{'narrow' if narrow else 'wide'}", title, alt)


def _counts(axes: Axes, spread: Spread) -> None:
    """The axis of counts."""
    most = max(spread.total)
    if _steep(spread):
        axes.set_yscale("log")
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_locator(FixedLocator([10.0**power for power in range(len(str(most)))]))
        axes.set_ylim(FOOT, 1.5 * most)
    else:
        axes.set_ylim(0, 1.06 * most)
        axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10], integer=True))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.0f}"))
