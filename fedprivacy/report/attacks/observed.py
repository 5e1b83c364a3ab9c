"""Shows passive attacks by observed rounds, beside the model's accuracy at that time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from fedprivacy.documents.attack import Attack, Measure, Observed
from fedprivacy.documents.replay import ReplayDocument
from fedprivacy.report import plots, svg, words
from fedprivacy.report.attacks import figures, keys, levels
from fedprivacy.report.blocks import Block, Details, Entry, Picture, Section, Table, Text, Value

SPREAD = 30  # from the first last round to the last one so many times as late: a logarithmic axis
TOP, HEIGHT, BELOW = 40.0, 230.0, 52.0  # pixels above, of, and below the axes
ATTACK = keys.Entry("The attack; to its left the rounds that it observed", svg.LOCAL, "-", "o")
BOUND = keys.Entry("The most that the guarantee allows", keys.ALLOWED, keys.BOUND_LINE)
MODEL = keys.Entry("The model when the attack ended", svg.INK, "--", "s")
Points = Sequence[tuple[Attack, Observed, Measure]]


def sections(document: ReplayDocument) -> list[Section]:
    """A picture and a table for passive attacks that differ in their rounds; no section without such."""
    blocks: list[Block | Details] = []
    for number, points in enumerate(_groups(document), start=1):
        blocks += [Text(_seen(document, points)), _picture(document, points, f"observed-{number}")]
        blocks.append(_figures(document, points))
    return [Section("observed", "What more rounds tell", blocks)] if blocks else []


def _groups(document: ReplayDocument) -> list[Points]:
    """Passive attacks on the same run from the same seat, by their last round; at least two observations."""
    groups: dict[tuple[object, ...], list[tuple[Attack, Observed, Measure]]] = {}
    for attack in (attack for points in document.cells.values() for attack in points):
        if attack.attack == "passive" and attack.observed and attack.balanced_accuracy:
            key = (attack.seat, attack.isolating, attack.trust, attack.level)
            groups.setdefault(key, []).append((attack, attack.observed, attack.balanced_accuracy))
    several = [points for points in groups.values() if len({seen for _, seen, _ in points}) > 1]
    return [sorted(points, key=lambda point: (point[1].last, point[1].first)) for points in several]


def _where(document: ReplayDocument, attack: Attack) -> str:
    aside = " that isolates its victim" if attack.isolating else ""
    level = f", {levels.at(attack.level)}" if document.several else ""
    return f"the seat of {figures.seat(attack.seat)}{aside}{level}"


def _seen(document: ReplayDocument, points: Points) -> str:
    """The first observation against the last one: told to differ only where their intervals share nothing."""
    (attack, first, early), (_, last, late) = points[0], points[-1]
    differ = "no difference can be told: the intervals overlap"
    if figures.apart(early, late):
        differ = "later rounds tell more" if late.value > early.value else "later rounds tell less"
    chance = "" if late.low > figures.GUESSING else "; the last cannot be told from guessing, 50 %"
    mixed = (
        " The number of rounds differs too, so that time and number cannot be told apart."
        if first.count != last.count and figures.apart(early, late)
        else ""
    )
    return (
        f"From {_where(document, attack)}: who looks at {_rounds_of(first)} is right about "
        f"{_printed(early)} of "
        f"the targets, who looks at {_rounds_of(last)} about {_printed(late)}: {differ}"
        f"{chance}.{mixed} {_terms(document, attack)}"
    ).strip()


def _rounds_of(seen: Observed) -> str:
    whole = seen.count == seen.last - seen.first + 1
    of = "" if whole else f"{seen.count:,} of the "
    return f"{of}rounds {seen.first:,} to {seen.last:,}"


def _printed(measure: Measure) -> str:
    return f"{figures.percent(measure.value)} ({figures.ends(measure, rate=True)})"


def _terms(document: ReplayDocument, attack: Attack) -> str:
    return levels.terms(document) if attack.epsilon is not None else ""


def _picture(document: ReplayDocument, points: Points, name: str) -> Picture:
    title = "Charts of attack accuracy and of model accuracy by the last round observed"
    where = _where(document, points[0][0])
    alt = f"From {where}. " + " ".join(
        f"Rounds {figures.observed(seen)}: the attack {_printed(accuracy)}, the model "
        f"{words.accuracy(attack.model_accuracy.after)}."
        for attack, seen, accuracy in points
    )
    bounded = any(attack.bound.balanced_accuracy is not None for attack, _, _ in points)
    known = [
        attack.model_accuracy.after for attack, _, _ in points if attack.model_accuracy.after is not None
    ]
    caption = (
        f"Passive attacks from {where}: how many targets they are right about (balanced accuracy, with its "
        "95 % interval) by the last round that they observed, counted since training began; guessing is "
        "right about 50 % (thin line)."
        + (" The dashed blue line is the most that the guarantee allows." if bounded else "")
        + (" Beside it the accuracy on held-out records of the attacked model at that time." if known else "")
        + (words.cut_axis(plots.accuracy_range(known)[0]) if known else "")
    )
    rows = [
        (
            f"{seen.last:,}",
            f"{seen.first:,}",
            figures.percent(accuracy.value),
            figures.ends(accuracy, rate=True),
            words.accuracy(attack.model_accuracy.after),
        )
        for attack, seen, accuracy in points
    ]
    head = ("Last round", "First round", "Attack accuracy", "95 % interval", "Model accuracy")
    table = Table(
        f"What the picture shows. {_terms(document, points[0][0])}".strip(), head, rows,
        numeric=frozenset(range(len(head))),
    )  # fmt: skip
    return Picture(
        draw=partial(_draw, points, name, title, alt),
        caption=f"{caption} {_terms(document, points[0][0])}".strip(),
        tables=[table],
    )


def _figures(document: ReplayDocument, points: Points) -> Table:
    """The table of the lectures: what each observation gives."""
    rows: list[Sequence[Value]] = []
    for attack, seen, accuracy in points:
        rate = attack.tpr_at_fpr.get("0.01")
        rows.append(
            (
                Entry(figures.observed(seen), attack.name),
                Entry(figures.percent(accuracy.value), figures.ends(accuracy, rate=True)),
                Entry(figures.share(attack.auc.value), figures.ends(attack.auc)),
                Entry("—", figures.TOO_FEW)
                if rate is None
                else Entry(figures.percent(rate.value), figures.ends(rate, rate=True)),
                words.accuracy(attack.model_accuracy.after),
            )
        )
    head = ("Rounds observed", "Attack accuracy", "AUC", "TPR at 1 % FPR", "Model accuracy")
    caption = (
        f"Passive attacks from {_where(document, points[0][0])}, by what they observed; below each "
        "figure its "
        "95 % interval. Attack accuracy is balanced: of members and non-members each counts half."
    )
    return Table(f"{caption} {_terms(document, points[0][0])}".strip(), head, rows, stacked=True)


def _draw(points: Points, name: str, title: str, alt: str, *, narrow: bool) -> str:
    known = [(seen.last, attack.model_accuracy.after) for attack, seen, _ in points]
    model = [(last, accuracy) for last, accuracy in known if accuracy is not None]
    bound = [
        (seen.last, attack.bound.balanced_accuracy)
        for attack, seen, _ in points
        if attack.bound.balanced_accuracy is not None
    ]
    entries = [ATTACK, *([BOUND] if bound else []), *([MODEL] if model else [])]
    head = keys.LINE * len(entries) + 12
    tall = TOP + HEIGHT + BELOW
    width, across = (360.0, 1) if narrow else (920.0, 2 if model else 1)
    height = head + tall * (2 if narrow and model else 1)
    with svg.style():
        drawn = svg.figure(width, height)
        keys.write(drawn, entries, 4, 2)
        right = 16.0 if across == 1 else 460.0 + 16.0
        axes = svg.place(drawn, 52, head + TOP, right, height - head - TOP - HEIGHT)
        _attack(axes, points, bound)
        if model:
            top, left = (head + tall + TOP, 52.0) if narrow else (head + TOP, 460.0 + 52.0)
            beside = svg.place(drawn, left, top, 16, height - top - HEIGHT)
            _rounds(beside, points)
            plots.accuracy_axis(beside, plots.accuracy_range([y for _, y in model]))
            plots.heading(beside, "Accuracy of the model", shift=-48)
            _line(beside, model, MODEL)
        return svg.write(drawn, f"{name}-{'narrow' if narrow else 'wide'}", title, alt)


def _attack(axes: Axes, points: Points, bound: Sequence[tuple[int, float]]) -> None:
    _rounds(axes, points)
    values = [figures.GUESSING, *(y for _, y in bound)]
    values += [end for _, _, measure in points for end in (measure.low, measure.high)]
    low, high = min(values), max(values)
    plots.accuracy_axis(
        axes, (max(0.0, math.floor(20 * low - 0.5) / 20), min(1.0, math.ceil(20 * high + 0.5) / 20))
    )
    plots.heading(axes, "Attack accuracy (balanced)", shift=-48)
    axes.axhline(figures.GUESSING, color=svg.MUTED, linewidth=1.25)
    if bound:
        _line(axes, bound, BOUND)
    for _, seen, measure in points:
        axes.plot([seen.first, seen.last], [measure.value] * 2, color=ATTACK.color, linewidth=1.0, alpha=0.6)
        axes.plot(
            [seen.last] * 2, [measure.low, measure.high],
            color=ATTACK.color, linewidth=1.75, marker="_", markersize=9,
        )  # fmt: skip
    axes.plot(
        [seen.last for _, seen, _ in points], [measure.value for _, _, measure in points],
        color=ATTACK.color, linestyle="", marker=ATTACK.marker, markersize=9,
        markeredgecolor=svg.PAPER, clip_on=False, zorder=3,
    )  # fmt: skip


def _line(axes: Axes, points: Sequence[tuple[int, float]], look: keys.Entry) -> None:
    axes.plot(
        [x for x, _ in points], [y for _, y in points], color=look.color, linestyle=look.line,
        linewidth=1.75, marker=look.marker, markeredgecolor=svg.PAPER, clip_on=False,
    )  # fmt: skip


def _rounds(axes: Axes, points: Points) -> None:
    """The axis of rounds: logarithmic where the last ones spread so much that most would lie at its left."""
    ends = [seen.last for _, seen, _ in points]
    first, last = min(seen.first for _, seen, _ in points), max(ends)
    if last >= SPREAD * min(ends):
        axes.set_xscale("log")
        axes.set_xlim(first * 0.8, last * 1.15)
        axes.xaxis.set_minor_locator(NullLocator())
        decades = range(math.floor(math.log10(first)), math.ceil(math.log10(last)) + 1)
        axes.xaxis.set_major_locator(FixedLocator([10.0**power for power in decades]))
    else:
        axes.set_xlim(0, 1.05 * last)
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: words.number(x)))
    axes.set_xlabel("Last round observed", labelpad=6)
