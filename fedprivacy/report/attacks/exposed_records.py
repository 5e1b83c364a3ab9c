"""Shows the distribution of advantages over records, and the records that are certainly exposed."""

from __future__ import annotations

import numpy as np

from fedprivacy.documents.exposure import Exposure, Spread
from fedprivacy.report import svg, words
from fedprivacy.report.attacks import figures
from fedprivacy.report.blocks import Picture, Table
from fedprivacy.report.charts import Axis, Bars, Chart, Histogram

UNSEEN = 50  # where the largest bar is so many times the coloured ones, these would not be seen beside it


def picture(exposure: Exposure, spread: Spread, name: str) -> Picture:
    """A bar for each range of advantages, its part that is exposed for certain in colour.

    Args:
        exposure: The exposed records and classes.
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
    caption = " ".join(sentences)
    return Chart(
        f"{name}-records",
        "Histogram of the advantage on each record",
        caption,
        (_panel(spread),),
        terms=caption,
        tables=(_table(exposure, spread),),
    ).picture


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


def _panel(spread: Spread) -> Histogram:
    first, last = np.flatnonzero(spread.total)[[0, -1]]
    edges = spread.edges
    return Histogram(
        Axis(
            "Advantage (0: not exposed, 1: certain)",
            figures.share,
            tick_text=lambda x: words.number(round(x, 6)),
            limits=(min(-0.1, edges[first]), max(1.0, edges[last + 1])),
        ),
        tuple(edges),
        (
            Bars("Exposed for certain", svg.LOCAL, tuple(spread.certain)),
            Bars("Other records", svg.NONE, tuple(spread.others)),
        ),
        "Records",
        log=_steep(spread),
        filled=0.9,
    )
