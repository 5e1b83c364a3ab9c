"""An axis: its label, its scale, its ticks, and how its values are written."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from fedprivacy.report import words

STEPS = [1, 2, 2.5, 5, 10]  # of round numbers
LONGEST = 16  # characters of a tick; a longer number is written with a power of ten
DECADES = 8  # at most so many of them have a tick


def percent(share: float) -> str:
    """A share in percent, as an axis has it.

    >>> percent(0.25), percent(1.0), percent(-10.0)
    ('25 %', '100 %', '-1,000 %')
    """
    return f"{100 * share:.3g} %" if abs(share) < 9.995 else f"{100 * share:,.0f} %"


def accuracy_range(values: Sequence[float]) -> tuple[float, float]:
    """The accuracy axis: all of it, unless every value lies within a quarter of it.

    The axis of a metric that may be below 0, such as R2, goes as far down as its values.
    """
    low, high = min(values), max(values)
    if high - low > 0.25:
        return min(0.0, math.floor(low * 20) / 20), 1.0
    pad = max(0.02, 0.15 * (high - low))
    least = 0.0 if low >= 0 else -math.inf
    return max(least, math.floor((low - pad) * 20) / 20), min(1.0, math.ceil((high + pad) * 20) / 20)


@dataclass(frozen=True)
class Axis:
    """The quantity along an axis.

    Args:
        label: The quantity, with its unit.
        text: Writes a value, at its ticks and in sentences and tables.
        tick_text: Writes a value at a tick where that is shorter than `text`.
        log: Whether it is logarithmic; values at or below 0 have no place on it.
        limits: Its ends; without them all that is drawn is seen, with a little room.
        ticks: Value -> name, where ticks are not to be round numbers; without names the value is written.
        whole: Whether ticks are whole numbers.
        phrase: How a sentence places something on it: "at epsilon {}".
        says: Places something on it in a sentence, in place of `phrase`.
        partly: Follows the label where there is no room to name every tick.
        named: Whether its ticks have their names (the upper of two charts with one axis has none).
    """

    label: str = ""
    text: Callable[[float], str] = words.number
    tick_text: Callable[[float], str] | None = None
    log: bool = False
    limits: tuple[float, float] | None = None
    ticks: Mapping[float, str] = field(default_factory=dict)
    whole: bool = False
    phrase: str = "at {}"
    says: Callable[[float], str] | None = None
    partly: str = ""
    named: bool = True

    @property
    def title(self) -> str:
        """Its label, which says that it is logarithmic."""
        plain = not self.log or not self.label or "logarithmic" in self.label
        return self.label if plain else f"{self.label}, logarithmic"

    def place(self, value: float) -> float:
        """Where a value lies: its logarithm on a logarithmic axis."""
        if not self.log:
            return value
        return math.log10(value) if value > 0 else -math.inf

    def spoken(self, value: float) -> str:
        """Where something lies, in words."""
        if self.says is not None:
            return self.says(value)
        return self.phrase.format(self.ticks.get(value) or self.text(value))

    def interval(self, ends: tuple[float, float] | None) -> str:
        """Both ends of an interval, their unit once; a dash where there is none."""
        if ends is None:
            return "—"
        low, high = map(self.text, ends)
        return f"{low.removesuffix(' %')} to {high}" if high.endswith(" %") else f"{low} to {high}"

    def ends(self, values: Sequence[float], pad: float = 0.05) -> tuple[float, float]:
        """The places of its ends, so that these values are seen."""
        if self.limits is not None:
            low, high = map(self.place, self.limits)
            # An axis of no length has no places: one of a constant that a module could not foresee.
            return (low, high) if high > low else (low, low + max(1.0, 1e-6 * abs(low)))
        places = [place for value in values if math.isfinite(place := self.place(value))]
        low, high = min(places, default=0.0), max(places, default=1.0)
        # Where all lie on one spot, an axis as narrow as rounding would show steps that mean nothing.
        room = max(pad * (high - low), 1e-6 * max(abs(low), abs(high)), 1e-12)
        if self.log:
            room = pad * (high - low) or 0.3
        return low - room, high + room

    def marks(self, ends: tuple[float, float], many: int) -> list[tuple[float, str]]:
        """The places of the ticks between the ends, each with its name; about so many."""
        from matplotlib.ticker import MaxNLocator

        low, high = ends
        slack = 1e-9 * (high - low)

        def write(value: float) -> str:
            text = (self.tick_text or self.text)(value)
            return text if len(text) <= LONGEST else f"{value:.3g}"

        if self.ticks:
            every = [(self.place(value), name or write(value)) for value, name in self.ticks.items()]
        elif self.log:
            every = [(place, write(float(f"{10**place:.3g}"))) for place in _decades(low, high)]
        else:
            locator = MaxNLocator(many, steps=STEPS, integer=self.whole)
            every = [(at, write(float(f"{at:.10g}"))) for at in map(float, locator.tick_values(low, high))]
        return [(at, name) for at, name in every if low - slack <= at <= high + slack]


def _decades(low: float, high: float) -> list[float]:
    """Decades; of fewer than two the steps between them too."""
    steps = (1, 2, 5) if high - low < 2 else (1,)
    decades = range(math.floor(low), math.ceil(high) + 1)
    every = 1 + (len(decades) - 1) // DECADES
    return [decade + math.log10(step) for decade in decades for step in steps if decade % every == 0]


def at_data(values: Sequence[float]) -> dict[float, str]:
    """Ticks where the data is."""
    return dict.fromkeys(sorted(set(values)), "")


def categories(names: Sequence[str]) -> dict[float, str]:
    """Ticks of names, evenly spaced in the listed order."""
    return {float(place): name for place, name in enumerate(names)}
