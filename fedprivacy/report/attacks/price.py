"""AUC of attacks and accuracy of the model against epsilon, one chart below the other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.ticker import FuncFormatter

from fedprivacy.documents.attack import Attack, Level
from fedprivacy.report import marks, plots, svg, words
from fedprivacy.report.attacks import figures, keys, scale

UPPER, LOWER, BETWEEN, BELOW = 260.0, 130.0, 50.0, 60.0  # pixels of both axes, between and below them
APART, SHARE = 8.0, 0.5  # pixels between two attacks at one level; how much of the way to the next all take
BOUND = keys.Entry("The most that the guarantee allows", keys.ALLOWED, keys.BOUND_LINE, "s")
MODEL = keys.Entry("Accuracy of the attacked model", svg.INK, "-", "o")


@dataclass(frozen=True)
class Line:
    """One attack over the levels at which it was played, and how it is drawn."""

    name: str
    look: plots.Look
    attacks: Mapping[Level, Attack]

    @property
    def entry(self) -> keys.Entry:
        """What stands for it above the picture."""
        color, marker, line = self.look
        return keys.Entry(marks.short(self.name, 40), color, line, marker)


def lines(attacks: Sequence[Attack]) -> list[Line]:
    """A line for each name among the attacks of a seat; looks begin again beyond the last."""
    looks = ((svg.LOCAL, "o", "-"), (svg.DISTRIBUTED, "D", ":"), *plots.MORE)
    names = dict.fromkeys(attack.name for attack in attacks)
    return [
        Line(
            name,
            looks[place % len(looks)],
            {attack.level: attack for attack in reversed(attacks) if attack.name == name},
        )
        for place, name in enumerate(names)
    ]


def draw(
    levels: Sequence[Level],
    lines: Sequence[Line],
    name: str,
    title: str,
    alt: str,
    *,
    narrow: bool = False,
) -> str:
    """The attacks of one seat above, the model that they attacked below, on one axis.

    Args:
        levels: Epsilons, the strictest first; then clipping alone, and None, without privacy.
        lines: One for each attack; at two levels at least.
        name: Unique on the page.
        title: What kind of picture it is.
        alt: The picture in words.
        narrow: Whether to draw it for a phone.

    Returns:
        Inline SVG.
    """
    every = [attack for line in lines for attack in line.attacks.values()]
    bounds = {attack.level: attack.bound.auc for attack in every if attack.bound.auc is not None}
    entries = [*(line.entry for line in lines), *([BOUND] if bounds else [])]
    paid = paid_lines(lines)
    if len(paid) == 1:
        entries.append(MODEL)
    top = keys.LINE * len(entries) + 46
    width, left, right = (360.0, 52.0, 16.0) if narrow else (920.0, 56.0, 24.0)
    lower = BETWEEN + LOWER if paid else 0.0
    height = top + UPPER + lower + BELOW
    places = scale.places_of([level for level in levels if any(attack.level == level for attack in every)])
    with svg.style():
        drawn = svg.figure(width, height)
        keys.write(drawn, entries, 4, 2)
        upper = svg.place(drawn, left, top, right, BELOW + lower)
        scale.axis(upper, places, width - left - right, named=not paid)
        low = min(figures.GUESSING, *(attack.auc.low for attack in every))
        upper.set_ylim(max(0.0, math.floor(20 * low - 0.5) / 20), 1.0)
        upper.yaxis.set_major_formatter(FuncFormatter(lambda y, _: words.number(round(y, 6))))
        upper.axhline(figures.GUESSING, color=svg.MUTED, linewidth=1.25)
        plots.heading(upper, "AUC of the attack (lower is better)", shift=-48)
        if bounds:
            scale.points(upper, places, bounds, (keys.ALLOWED, "s", keys.BOUND_LINE))
        room = scale.gap(places) * scale.pixels_of(places, width - left - right)
        step = min(APART, SHARE * room / len(lines))
        for place, line in enumerate(lines):
            shift = step * (place - (len(lines) - 1) / 2)
            areas = {level: attack.auc.value for level, attack in line.attacks.items()}
            ends = {level: (attack.auc.low, attack.auc.high) for level, attack in line.attacks.items()}
            scale.points(upper, places, areas, line.look, shift, ends)
        if paid:
            axes = svg.place(drawn, left, top + UPPER + BETWEEN, right, BELOW)
            scale.axis(axes, places, width - left - right, named=True)
            plots.accuracy_axis(axes, plots.accuracy_range([y for of, _ in paid for y in of.values()]))
            plots.heading(axes, "Accuracy of the model (higher is better)", shift=-48)
            for accuracies, look in paid:
                scale.points(axes, places, accuracies, look)
        return svg.write(drawn, f"{name}-{'narrow' if narrow else 'wide'}", title, alt)


def paid_lines(lines: Sequence[Line]) -> list[tuple[dict[Level, float], plots.Look]]:
    """The accuracy of the attacked models: one line, or one for each attack where these models differ."""
    lines_paid: list[tuple[dict[Level, float], plots.Look]] = []
    shared: dict[Level, set[float]] = {}
    for line in lines:
        known = {
            level: attack.model_accuracy.before
            for level, attack in line.attacks.items()
            if attack.model_accuracy.before is not None
        }
        for level, accuracy in known.items():
            shared.setdefault(level, set()).add(accuracy)
        lines_paid += [(known, line.look)] if known else []
    if all(len(values) == 1 for values in shared.values()):
        attack = {level: values.pop() for level, values in shared.items()}
        return [(attack, (MODEL.color, MODEL.marker, MODEL.line))] if attack else []
    return lines_paid
