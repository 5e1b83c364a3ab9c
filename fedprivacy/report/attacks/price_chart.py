"""AUC of attacks and accuracy of the model against epsilon, one panel below the other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fedprivacy.documents.attack import Attack, Level
from fedprivacy.report import svg, words
from fedprivacy.report.attacks import epsilon_axis, figures
from fedprivacy.report.charts import Axis, Lines, Reference, Series, accuracy_range, looks
from fedprivacy.report.charts.axis import percent
from fedprivacy.report.charts.looks import Look

BOUND: Look = (svg.CENTRAL, "s", (0, (6, 2)))
MODEL: Look = (svg.INK, "o", "-")
ALLOWED = "The most that the guarantee allows"


@dataclass(frozen=True)
class Line:
    """One attack over its privacy levels, and how it is drawn."""

    name: str
    look: Look
    attacks: Mapping[Level, Attack]


def lines(attacks: Sequence[Attack]) -> list[Line]:
    """A line for each name among the attacks of a seat; looks begin again beyond the last."""
    every = ((svg.LOCAL, "o", "-"), (svg.DISTRIBUTED, "D", ":"), *looks.MORE)
    names = dict.fromkeys(attack.name for attack in attacks)
    return [
        Line(
            name,
            every[place % len(every)],
            {attack.level: attack for attack in reversed(attacks) if attack.name == name},
        )
        for place, name in enumerate(names)
    ]


def panels(levels: Sequence[Level], lines: Sequence[Line]) -> tuple[Lines, ...]:
    """The attacks of one seat above, the model that they attacked below, on one axis.

    Args:
        levels: Epsilons, the strictest first; then clipping alone, and None, without privacy.
        lines: One for each attack; at two levels at least.
    """
    every = [attack for line in lines for attack in line.attacks.values()]
    places = epsilon_axis.places_of(
        [level for level in levels if any(attack.level == level for attack in every)]
    )
    paid = paid_lines(lines)
    x, bands = epsilon_axis.axis(places, named=not paid)
    series = []
    for line in lines:
        areas = {level: attack.auc.value for level, attack in line.attacks.items()}
        ends = {level: (attack.auc.low, attack.auc.high) for level, attack in line.attacks.items()}
        series.append(Series(line.look, line.name, epsilon_axis.points(places, areas, ends), width=1.5))
    bounds = {attack.level: attack.bound.auc for attack in every if attack.bound.auc is not None}
    if bounds:
        series.append(Series(BOUND, ALLOWED, epsilon_axis.points(places, bounds), width=1.5))
    low = min(figures.GUESSING, *(attack.auc.low for attack in every))
    area = area_axis("AUC of the attack (lower is better)", low)
    upper = Lines(x, area, tuple(series), (Reference(figures.GUESSING),), bands)
    if not paid:
        return (upper,)
    shown = accuracy_range([y for accuracies, _, _ in paid for y in accuracies.values()])
    lower = Lines(
        epsilon_axis.axis(places)[0],
        Axis("Accuracy of the model (higher is better)", words.accuracy, tick_text=percent, limits=shown),
        tuple(
            Series(look, name, epsilon_axis.points(places, means), width=1.5) for means, look, name in paid
        ),
        bands=bands,
        flat=0.5,
    )
    return upper, lower


def area_axis(label: str, low: float) -> Axis:
    """The axis of areas, from a little below the smallest one to certainty."""
    limits = (max(0.0, math.floor(20 * low - 0.5) / 20), 1.0)
    return Axis(label, figures.share, tick_text=lambda y: words.number(round(y, 6)), limits=limits)


def paid_lines(lines: Sequence[Line]) -> list[tuple[dict[Level, float], Look, str]]:
    """The accuracy of the attacked models: one line, or one for each attack where these models differ."""
    lines_paid: list[tuple[dict[Level, float], Look, str]] = []
    shared: dict[Level, set[float]] = {}
    for line in lines:
        known = {
            level: attack.model_accuracy.before
            for level, attack in line.attacks.items()
            if attack.model_accuracy.before is not None
        }
        for level, accuracy in known.items():
            shared.setdefault(level, set()).add(accuracy)
        lines_paid += [(known, line.look, line.name)] if known else []
    if all(len(values) == 1 for values in shared.values()):
        attack = {level: values.pop() for level, values in shared.items()}
        return [(attack, MODEL, "")] if attack else []
    return lines_paid
