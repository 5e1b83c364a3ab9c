"""What privacy takes from the attacker, and what from the model: both against epsilon."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter
from matplotlib.transforms import ScaledTranslation

from fedprivacy.report import marks, plots, svg, words
from fedprivacy.report.attacks import figures, keys, levels
from fedprivacy.report.attacks.documents import ReplayDocument
from fedprivacy.report.attacks.parts import Attack
from fedprivacy.report.blocks import Block, Details, Picture, Section, Table, Text

UPPER, LOWER, BETWEEN, BELOW = 260.0, 130.0, 50.0, 60.0  # pixels of both axes, between and below them
APART, MOST_APART = 8.0, 36.0  # pixels between the points of two attacks at one level; of all of them
ROOM = 46.0  # pixels that a label of the axis takes
BOUND = keys.Entry("The most that the guarantee allows", keys.ALLOWED, keys.BOUND_LINE, "s")
MODEL = keys.Entry("Accuracy of the attacked model", svg.INK, "-", "o")
HOW_TO_READ = (
    "Above: AUC of each attack with its 95 % interval at each level of privacy; guessing gives 0.5 (thin "
    "line). Below: the accuracy on held-out records of the model that was attacked. Epsilon has a "
    "logarithmic axis, stricter to the left; the last place is without privacy."
)


@dataclass(frozen=True)
class Line:
    """One attack over the levels at which it was played, and how it is drawn."""

    name: str
    look: plots.Look
    attacks: Mapping[float | None, Attack]

    @property
    def entry(self) -> keys.Entry:
        """What stands for it above the picture."""
        color, marker, line = self.look
        return keys.Entry(marks.short(self.name, 40), color, line, marker)


def sections(document: ReplayDocument) -> list[Section]:
    """A picture for each seat that attacks; no section where all runs were of one level."""
    if not document.several:
        return []
    blocks: list[Block | Details] = []
    for number, (seat, own) in enumerate(document.seats.items(), start=1):
        if len({one.epsilon for one in own}) > 1:
            blocks += [
                Text(_seen(document, own, paid=number == 1)),
                _picture(document, seat, f"price-{number}"),
            ]
    heading = "What privacy takes from the attacker, and from the model"
    return [Section("price", heading, blocks)] if blocks else []


def _lines(attacks: Sequence[Attack]) -> list[Line]:
    looks = ((svg.LOCAL, "o", "-"), (svg.DISTRIBUTED, "D", ":"), *plots.MORE)
    names = dict.fromkeys(one.name for one in attacks)
    return [
        Line(
            name,
            looks[place % len(looks)],
            {one.epsilon: one for one in reversed(attacks) if one.name == name},
        )
        for place, name in enumerate(names)
    ]


def _seen(document: ReplayDocument, own: Sequence[Attack], *, paid: bool) -> str:
    """What became of the attack that is strongest where least is guaranteed, where most is."""
    present = [level for level in document.levels if any(one.epsilon == level for one in own)]
    loose, strict = present[-1], present[0]
    best = figures.strongest([one for one in own if one.epsilon == loose])
    there = next((one for one in own if one.epsilon == strict and one.name == best.name), None)
    who = f"From the seat of {figures.seat(best.seat)}"
    if there is None:
        return f"{who}, {best.name} was not played {levels.at(strict)}. {levels.terms(document)}"
    fell = there.auc.high < best.auc.low
    apart = (
        f"has AUC {figures.share(there.auc.value)} ({figures.ends(there.auc)}) {levels.at(strict)}"
        if figures.apart(best.auc, there.auc)
        else f"has AUC {figures.share(there.auc.value)} ({figures.ends(there.auc)}) {levels.at(strict)}; the "
        "intervals overlap, so that no difference can be told"
    )
    left = "" if figures.from_guessing(there.auc) or not fell else ", which cannot be told from guessing"
    return (
        f"{who}, {best.name}, the strongest attack {levels.at(loose)} with AUC "
        f"{figures.share(best.auc.value)} (95 % interval {figures.ends(best.auc)}), {apart}{left}. "
        f"{_paid(best, there) if paid else ''}{levels.terms(document)}"
    )


def _paid(loose: Attack, strict: Attack) -> str:
    before, after = loose.model_accuracy.before, strict.model_accuracy.before
    if before is None or after is None:
        return ""
    return (
        f"The model's accuracy is {words.accuracy(before)} {levels.at(loose.epsilon)} and "
        f"{words.accuracy(after)} {levels.at(strict.epsilon)}. "
    )


def _picture(document: ReplayDocument, seat: str, name: str) -> Picture:
    own = document.seats[seat]
    lines, terms = _lines(own), levels.terms(document)
    title = "Two charts below each other: AUC of attacks, and accuracy of the model, by epsilon"
    said = " ".join(_said(one) for own in _by_level(document, seat) for one in own)
    bounded = any(one.bound.auc is not None for one in own)
    bound = (
        "The dashed blue line is the most that the guarantee allows any attack."
        if bounded
        else f"Nothing is guaranteed against {figures.seat(seat)}, so no bound is drawn."
    )
    return Picture(
        wide=_draw(document, lines, name, title, said, narrow=False),
        narrow=_draw(document, lines, name, title, said, narrow=True),
        caption=f"From the seat of {figures.seat(seat)}. {HOW_TO_READ} {bound} {terms}",
        tables=[_table(document, seat, terms)],
    )


def _by_level(document: ReplayDocument, seat: str) -> list[list[Attack]]:
    return [own for (who, _), own in document.cells.items() if who == seat]


def _said(one: Attack) -> str:
    return (
        f"{words.capital(levels.name(one.epsilon))}, {one.name}: AUC {figures.share(one.auc.value)} "
        f"({figures.ends(one.auc)}), bound {figures.at_most(one.bound.auc)}, accuracy "
        f"{words.accuracy(one.model_accuracy.before)}."
    )


def _table(document: ReplayDocument, seat: str, terms: str) -> Table:
    rows = []
    for one in (one for own in _by_level(document, seat) for one in own):
        rate = one.tpr_at_fpr.get("0.01")
        rows.append(
            (
                words.capital(levels.name(one.epsilon)),
                one.name,
                f"{figures.share(one.auc.value)} ({figures.ends(one.auc)})",
                figures.at_most(one.bound.auc),
                figures.TOO_FEW if rate is None else figures.percent(rate.value),
                figures.at_most(figures.allowed(one.bound, "0.01"), rate=True),
                words.accuracy(one.model_accuracy.before),
            )
        )
    head = (
        "Privacy", "Attack", "AUC (95 % interval)", "AUC allowed", "TPR at 1 % FPR", "TPR allowed",
        "Model accuracy",
    )  # fmt: skip
    caption = f"Attacks from the seat of {figures.seat(seat)}, what is allowed, and the price. {terms}"
    return Table(caption, head, rows, numeric=frozenset(range(2, len(head))))


def _draw(
    document: ReplayDocument, lines: Sequence[Line], name: str, title: str, said: str, *, narrow: bool
) -> str:
    every = [one for line in lines for one in line.attacks.values()]
    bounds = {one.epsilon: one.bound.auc for one in every if one.bound.auc is not None}
    entries = [*(line.entry for line in lines), *([BOUND] if bounds else [])]
    paid = _paid_lines(lines)
    if len(paid) == 1:
        entries.append(MODEL)
    top = keys.LINE * len(entries) + 46
    width, left, right = (360.0, 52.0, 16.0) if narrow else (920.0, 56.0, 24.0)
    lower = BETWEEN + LOWER if paid else 0.0
    height = top + UPPER + lower + BELOW
    places = _places([level for level in document.levels if any(one.epsilon == level for one in every)])
    with svg.style():
        drawn = svg.figure(width, height)
        keys.write(drawn, entries, 4, 2)
        upper = svg.place(drawn, left, top, right, BELOW + lower)
        _axis(upper, places, width - left - right, named=not paid)
        low = min(figures.GUESSING, *(one.auc.low for one in every))
        upper.set_ylim(max(0.0, math.floor(20 * low - 0.5) / 20), 1.0)
        upper.yaxis.set_major_formatter(FuncFormatter(lambda y, _: words.number(round(y, 6))))
        upper.axhline(figures.GUESSING, color=svg.MUTED, linewidth=1.25)
        plots.heading(upper, "AUC of the attack (lower is better)", shift=-48)
        if bounds:
            _line(upper, places, bounds, (keys.ALLOWED, "s", keys.BOUND_LINE))
        step = min(APART, MOST_APART / len(lines))
        for place, line in enumerate(lines):
            shift = step * (place - (len(lines) - 1) / 2)
            areas = {level: one.auc.value for level, one in line.attacks.items()}
            ends = {level: (one.auc.low, one.auc.high) for level, one in line.attacks.items()}
            _line(upper, places, areas, line.look, shift, ends)
        if paid:
            axes = svg.place(drawn, left, top + UPPER + BETWEEN, right, BELOW)
            _axis(axes, places, width - left - right, named=True)
            plots.accuracy_axis(axes, plots.accuracy_range([y for of, _ in paid for y in of.values()]))
            plots.heading(axes, "Accuracy of the model (higher is better)", shift=-48)
            for accuracies, look in paid:
                _line(axes, places, accuracies, look)
        return svg.write(drawn, f"{name}-{'narrow' if narrow else 'wide'}", title, said)


def _paid_lines(lines: Sequence[Line]) -> list[tuple[dict[float | None, float], plots.Look]]:
    """The accuracy of the attacked models: one line, or one for each attack where these models differ."""
    found: list[tuple[dict[float | None, float], plots.Look]] = []
    shared: dict[float | None, set[float]] = {}
    for line in lines:
        known = {
            level: one.model_accuracy.before
            for level, one in line.attacks.items()
            if one.model_accuracy.before is not None
        }
        for level, accuracy in known.items():
            shared.setdefault(level, set()).add(accuracy)
        found += [(known, line.look)] if known else []
    if all(len(values) == 1 for values in shared.values()):
        one = {level: values.pop() for level, values in shared.items()}
        return [(one, (MODEL.color, MODEL.marker, MODEL.line))] if one else []
    return found


def _places(present: Sequence[float | None]) -> dict[float | None, float]:
    """Where each level stands on the axis: powers of two apart, and without privacy aside."""
    places: dict[float | None, float] = {level: math.log2(level) for level in present if level is not None}
    if None in present:
        private = list(places.values())
        places[None] = private[-1] + max(1.0, 0.3 * (private[-1] - private[0]))
    return places


def _axis(axes: Axes, places: Mapping[float | None, float], width: float, *, named: bool) -> None:
    """The axis of both charts: a tick at each level, a name where there is room, a field without privacy."""
    first, last = min(places.values()), max(places.values())
    margin = 0.09 * (last - first)
    axes.set_xlim(first - margin, last + margin)
    axes.xaxis.set_major_locator(FixedLocator(list(places.values())))
    pixels = width / (last - first + 2 * margin)
    shown: list[float] = []
    # From the right, for that without privacy must have its name.
    for place in sorted(places.values(), reverse=True):
        if not shown or (shown[-1] - place) * pixels >= ROOM:
            shown.append(place)
    names = {place: "none" if level is None else words.number(level) for level, place in places.items()}
    axes.xaxis.set_major_formatter(
        FuncFormatter(lambda x, _: names.get(x, "") if named and x in shown else "")
    )
    if None in places:
        private = max(place for level, place in places.items() if level is not None)
        axes.axvspan((private + last) / 2, last + margin, color=svg.GRID, alpha=0.4, linewidth=0, zorder=0)
    if named:
        axes.set_xlabel("Epsilon (none: without privacy)", labelpad=6)


def _line(
    axes: Axes,
    places: Mapping[float | None, float],
    values: Mapping[float | None, float],
    look: plots.Look,
    shift: float = 0.0,
    ends: Mapping[float | None, tuple[float, float]] | None = None,
) -> None:
    """Points so many pixels aside, their intervals, and a line through those that have an epsilon."""
    color, marker, line = look
    figure = axes.get_figure()
    assert figure is not None
    aside = axes.transData + ScaledTranslation(shift / 72, 0, figure.dpi_scale_trans)
    for level, interval in (ends or {}).items():
        axes.plot(
            [places[level]] * 2, interval,
            color=color, linewidth=1.5, marker="_", markersize=7, transform=aside,
        )  # fmt: skip
    ordered = [level for level in places if level in values]
    private = [level for level in ordered if level is not None]
    axes.plot(
        [places[level] for level in private], [values[level] for level in private],
        color=color, linestyle=line, linewidth=1.5, transform=aside,
    )  # fmt: skip
    axes.plot(
        [places[level] for level in ordered], [values[level] for level in ordered], color=color,
        linestyle="", marker=marker, markeredgecolor=svg.PAPER, clip_on=False, transform=aside, zorder=3,
    )  # fmt: skip
