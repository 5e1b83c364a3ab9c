"""Shows passive attacks by observed rounds, beside the model's accuracy at that time."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fedprivacy.documents.attack import Attack, Measure, Observed
from fedprivacy.documents.replay import ReplayDocument
from fedprivacy.report import learning_curves, svg, words
from fedprivacy.report.attacks import figures, headline, levels, price_chart
from fedprivacy.report.blocks import Block, Details, Entry, Picture, Section, Table, Text, Value
from fedprivacy.report.charts import Axis, Chart, Lines, Point, Reference, Series
from fedprivacy.report.charts.looks import Look

SPREAD = 30  # from the first last round to the last one so many times as late: a logarithmic axis
ATTACK: Look = (svg.LOCAL, "o", "")
MODEL: Look = (svg.INK, "^", "-.")
OBSERVED = "The attack; to its left the rounds that it observed"
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
        if not figures.is_active(attack) and attack.observed and attack.balanced_accuracy:
            key = (attack.seat, attack.isolating, attack.trust, attack.level)
            groups.setdefault(key, []).append((attack, attack.observed, attack.balanced_accuracy))
    several = [points for points in groups.values() if len({seen for _, seen, _ in points}) > 1]
    return [sorted(points, key=lambda point: (point[1].last, point[1].first)) for points in several]


def _where(document: ReplayDocument, attack: Attack) -> str:
    aside = " that isolates its victim" if attack.isolating else ""
    level = f", {levels.at(attack.level)}" if document.several else ""
    return f"the seat of {figures.seat(attack.seat)}{aside}{level}"


def _seen(document: ReplayDocument, points: Points) -> str:
    """The first observation against the last one: they differ only where their intervals are disjoint."""
    (attack, first, early), (_, last, late) = points[0], points[-1]
    differ = "no difference can be told: the intervals overlap"
    if figures.apart(early, late):
        differ = "later rounds tell more" if late.value > early.value else "later rounds tell less"
    chance = "" if late.low > figures.GUESSING else "; the last is indistinguishable from guessing, 50 %"
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
    if not headline.telling(measure):
        return f"{figures.ends(measure, rate=True)} ({headline.too_few(measure)})"
    return f"{figures.percent(measure.value)} ({figures.ends(measure, rate=True)})"


def _terms(document: ReplayDocument, attack: Attack) -> str:
    return levels.terms(document) if attack.epsilon is not None else ""


def _picture(document: ReplayDocument, points: Points, name: str) -> Picture:
    where = _where(document, points[0][0])
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
    return Chart(
        name,
        "Charts of attack accuracy and of model accuracy by the last round observed",
        f"{caption} {_terms(document, points[0][0])}".strip(),
        _panels(points),
        tables=(table,),
    ).picture


def _figures(document: ReplayDocument, points: Points) -> Table:
    """The table of the lectures: the result of each observation."""
    rows: list[Sequence[Value]] = []
    for attack, seen, accuracy in points:
        rate = headline.telling(attack.tpr_at_fpr.get("0.01"))
        rows.append(
            (
                Entry(figures.observed(seen), attack.name),
                Entry(figures.percent(accuracy.value), figures.ends(accuracy, rate=True)),
                Entry(figures.share(attack.auc.value), figures.ends(attack.auc)),
                Entry("—", headline.too_few(attack.tpr_at_fpr.get("0.01")))
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


def _panels(points: Points) -> tuple[Lines, ...]:
    """The attack, and beside it the model that it attacked."""
    known = [(seen.last, attack.model_accuracy.after) for attack, seen, _ in points]
    model = tuple(Point(float(last), accuracy) for last, accuracy in known if accuracy is not None)
    bound = tuple(
        Point(float(seen.last), attack.bound.balanced_accuracy)
        for attack, seen, _ in points
        if attack.bound.balanced_accuracy is not None
    )
    marked = tuple(
        Point(float(seen.last), measure.value, (measure.low, measure.high), since=float(seen.first))
        for _, seen, measure in points
    )
    values = [figures.GUESSING, *(point.y for point in bound)]
    values += [end for _, _, measure in points for end in (measure.low, measure.high)]
    low, high = min(values), max(values)
    shown = max(0.0, math.floor(20 * low - 0.5) / 20), min(1.0, math.ceil(20 * high + 0.5) / 20)
    x = _rounds(points)
    bounds = (Series(price_chart.BOUND, price_chart.ALLOWED, bound),) if bound else ()
    attack = Lines(
        x,
        learning_curves.accuracy("Attack accuracy (balanced)", shown, limits=shown),
        (*bounds, Series(ATTACK, OBSERVED, marked)),
        (Reference(figures.GUESSING),),
    )
    if not model:
        return (attack,)
    accuracy = learning_curves.accuracy("Accuracy of the model", [point.y for point in model])
    return attack, Lines(x, accuracy, (Series(MODEL, "The model when the attack ended", model, width=1.75),))


def _rounds(points: Points) -> Axis:
    """The axis of rounds: logarithmic where the last ones spread so much that most would lie at its left."""
    ends = [seen.last for _, seen, _ in points]
    first, last = min(seen.first for _, seen, _ in points), max(ends)
    log = last >= SPREAD * min(ends)
    limits = (first * 0.8, last * 1.15) if log else (0.0, 1.05 * last)
    return Axis("Last round observed", log=log, limits=limits, whole=not log, phrase="to round {}")
