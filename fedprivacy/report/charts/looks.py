"""How series look: each has a colour, and a marker with a line style, that no other of its chart has.

The first colours are Okabe and Ito's, which colour-blind readers can distinguish. No twelve colours are apart
for every eye, so marker and line style alone tell all series apart too, as in a print in grey.
"""

from __future__ import annotations

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
    "shuffled": (svg.DISTRIBUTED, "D", ":"),  # of statistics, which have no secure sums
}
# The second of several arms of one trust model, and those after it.
MORE: tuple[Look, ...] = (
    (svg.SECOND, "v", (0, (7, 2, 1.5, 2, 1.5, 2))),
    (svg.THIRD, "P", (0, (4, 1.5))),
    (svg.FOURTH, "X", (0, (2.5, 1))),
    (svg.FIFTH, "p", (0, (10, 3))),
    (svg.SIXTH, "^", (0, (12, 2, 2, 2))),
    (svg.SEVENTH, "h", (0, (3, 3))),
    (svg.EIGHTH, "*", (0, (8, 1.5, 1.5, 1.5))),
    (svg.NINTH, "<", (0, (14, 4))),
)
EPSILONS = 4  # the most epsilons of an arm that one panel draws


def look(arm: Arm) -> Look:
    """The colour, marker and line style of an arm that stands alone; of several see `arms`."""
    return LOOKS.get(arm.trust, LOOKS["none"])


def arms(every: Sequence[Arm]) -> dict[Arm, Look]:
    """The looks of all arms: the first of a trust model has the usual one, the others have the rest.

    Beyond the last look they begin again.
    """
    taken: set[str] = set()
    looks_of_arms: dict[Arm, Look] = {}
    for arm in every:
        if arm.trust in taken:
            looks_of_arms[arm] = MORE[(len(looks_of_arms) - len(taken)) % len(MORE)]
        else:
            looks_of_arms[arm] = look(arm)
            taken.add(arm.trust)
    return looks_of_arms


def others(count: int) -> list[Look]:
    """Looks of so many series without the colour of a trust model, such as epsilons."""
    return [MORE[place % len(MORE)] for place in range(count)]


def series(count: int) -> list[Look]:
    """Looks of so many series that are no arms; beyond the last colour each comes with another marker."""
    none, _, dashes = LOOKS["none"]
    looks = [LOOKS["central"], LOOKS["local"], LOOKS["distributed"], *MORE, (none, "d", dashes)]
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
