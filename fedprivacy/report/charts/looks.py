"""How series look: each has a colour, a marker and a line style that no other of its panel has.

Colours are Okabe and Ito's, which colour-blind readers can distinguish; marker, style and label differ too,
for prints in grey.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from fedprivacy.documents.envelope import Arm
from fedprivacy.report import svg

Look = tuple[str, str, Any]  # colour, marker, line style
LOOKS: dict[str, Look] = {
    "none": (svg.NONE, "", "--"),
    "central": (svg.CENTRAL, "o", "-"),
    "local": (svg.LOCAL, "s", "-."),
    "distributed": (svg.DISTRIBUTED, "D", ":"),
}
# The second of several arms of one trust model, and those after it.
MORE: tuple[Look, ...] = (
    (svg.SECOND, "v", (0, (7, 2, 1.5, 2, 1.5, 2))),
    (svg.THIRD, "P", (0, (4, 1.5))),
    (svg.FOURTH, "X", (0, (2.5, 1))),
    (svg.FIFTH, "p", (0, (10, 3))),
)
# Series of one colour, such as those of several epsilons of an arm.
SHADES: tuple[tuple[str, Any], ...] = (
    ("o", "-"),
    ("s", (0, (6, 2))),
    ("D", (0, (1, 1.5))),
    ("^", (0, (6, 2, 1, 2))),
)


def look(arm: Arm) -> Look:
    """The colour, marker and line style of an arm; beyond the last they begin again."""
    base = LOOKS.get(arm.trust, LOOKS["none"])
    return (base, *MORE)[arm.place % (1 + len(MORE))]


def series(count: int) -> list[Look]:
    """Looks of so many series that are no arms; beyond the last colour each comes with another marker."""
    looks = [LOOKS["central"], LOOKS["local"], LOOKS["distributed"], *MORE]
    every = []
    for place in range(count):
        again, at = divmod(place, len(looks))
        _, marker, line = looks[(at + again) % len(looks)]
        every.append((looks[at][0], marker, line))
    return every


def mark(drawn: Look) -> tuple[str, str]:
    """The colour and the marker of a look, also where its line has none."""
    color, marker, _ = drawn
    return color, marker or "d"


def accuracy_range(values: Sequence[float]) -> tuple[float, float]:
    """The accuracy axis: all of it, unless every value lies within a quarter of it."""
    low, high = min(values), max(values)
    if high - low > 0.25:
        return 0.0, 1.0
    pad = max(0.02, 0.15 * (high - low))
    return max(0.0, math.floor((low - pad) * 20) / 20), min(1.0, math.ceil((high + pad) * 20) / 20)
