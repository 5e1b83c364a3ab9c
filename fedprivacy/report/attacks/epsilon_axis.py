"""The axis of privacy that pictures share: epsilons on a logarithmic scale, those without one aside."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from fedprivacy.documents.attack import CLIPPED, Level
from fedprivacy.report import words
from fedprivacy.report.attacks import levels
from fedprivacy.report.charts import Axis, Band, Point

MARGIN = 0.09  # the share of the axis beyond both ends
BARE: Mapping[Level, tuple[str, str]] = {
    CLIPPED: ("clip", "clipping alone"),
    None: ("none", "without privacy"),
}


def places_of(present: Sequence[Level]) -> dict[Level, float]:
    """The place of each level on the axis: powers of two apart, and those without an epsilon aside."""
    places: dict[Level, float] = {level: math.log2(level) for level in present if isinstance(level, float)}
    private = list(places.values()) or [0.0]
    step = max(1.0, 0.3 * (private[-1] - private[0]))
    bare = (level for level in present if not isinstance(level, float))
    return places | {level: private[-1] + step * number for number, level in enumerate(bare, start=1)}


def axis(places: Mapping[Level, float], *, named: bool = True) -> tuple[Axis, tuple[Band, ...]]:
    """The axis with a tick at each level, and the field of those without an epsilon."""
    first, last = min(places.values()), max(places.values())
    margin = MARGIN * (last - first)
    level_at = {place: level for level, place in places.items()}
    bare = [level for level in places if not isinstance(level, float)]
    meant = ", ".join(": ".join(BARE[level]) for level in bare)
    label = f"Epsilon, logarithmic ({meant})" if bare else "Epsilon, logarithmic"
    ticks = {
        place: words.target(level) if isinstance(level, float) else BARE[level][0]
        for level, place in places.items()
    }
    drawn = Axis(
        label if named else "",
        ticks=ticks,
        limits=(first - margin, last + margin),
        named=named,
        says=lambda place: levels.at(level_at[place]),
    )
    if not bare:
        return drawn, ()
    private = max((place for level, place in places.items() if level not in bare), default=first - margin)
    return drawn, (Band((private + places[bare[0]]) / 2, last + margin),)


def points(
    places: Mapping[Level, float],
    values: Mapping[Level, float],
    ends: Mapping[Level, tuple[float, float]] | None = None,
) -> tuple[Point, ...]:
    """A point for each level that has a value; a line leads through those that have an epsilon."""
    return tuple(
        Point(place, values[level], (ends or {}).get(level), joined=isinstance(level, float))
        for level, place in places.items()
        if level in values
    )
