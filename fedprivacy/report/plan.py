"""The page of a plan: the answer, the curve with the law, and how far the law may be trusted."""

from __future__ import annotations

from collections.abc import Sequence

from fedprivacy.documents.envelope import Arm
from fedprivacy.documents.plan import Curve, PlanDocument
from fedprivacy.report import page_end, protection, svg, words
from fedprivacy.report.answers import plan as answer
from fedprivacy.report.blocks import Block, Details, Group, Page, Picture, Section, Table, Text, Value
from fedprivacy.report.charts import Axis, Chart, Lines, Point, Reference, Series, accuracy_range, looks
from fedprivacy.report.charts.axis import at_data, percent

LAW = (
    "The law is accuracy = floor + (ceiling - floor) / (1 + (half / x)^slope), x being the number of clients "
    "or epsilon. Noise on the mean of n clients falls as 1/n with a trusted server, as 1/sqrt(n) where each "
    "client adds its own, so accuracy rises from guessing (floor) to a level (ceiling) at most that without "
    "noise. It is fitted by least squares, each mean weighted by the spread between repeats."
)
REACH = (
    "Beyond the largest measured number the law answers up to four times as far, and only where it has "
    "predicted the largest number from the others, fits, where no mean falls by more than noise explains, "
    "and where all clients reach at most two points more without noise than half of them."
)
MEASURED_ON = {
    "public": "Accuracy while planning is that on {records} public records, which no client owns.",
    "clients": "{clients} do not train: their {records} records measure accuracy, with the error of so many.",
    "records": "A fifth of each client's records do not train: these {records} measure accuracy meanwhile.",
}


def page(document: PlanDocument, *, error: bool = False, command: bool = False) -> Page:
    """The page without its operator-only section.

    Args:
        document: The plan, without its operator-only fields.
        error: As of every page; a record of this kind has none.
        command: Whether the operator-only section contains the command that reproduces it.
    """
    cells = [
        protection.Protected(Arm(curve.trust), curve.epsilon, list(curve.guarantees))
        for curve in document.curves
        if curve.guarantees
    ]
    drawn = _picture(document)
    missing = Text(answer.sentence(document), "status")
    measured_on = MEASURED_ON[document.development.source].format(
        records=f"{document.development.records:,}",
        clients=words.counted(document.development.total - document.development.clients, "client"),
    )
    sections = [
        Section("guarantees", "What a run as planned would guarantee", protection.blocks(cells, "")),
        Section("law", "The law and its error", [Text(LAW), *_checks(document), Text(REACH)], folded=False),
        Section("development", "What was measured on what", [Text(measured_on)]),
        *page_end.closing(document, command=command),
    ]
    return Page(
        title=f"{page_end.title(document)}: {_heading(document)}",
        eyebrow="Plan",
        subtitle=str(document.scenario.get("description") or ""),
        answer=answer.of_plan(document, cells),
        lead=[drawn or missing, *_answers(document)],
        sections=sections,
    )


def _heading(document: PlanDocument) -> str:
    return {"clients": "how many clients?", "epsilon": "which epsilon?", "accuracy": "which accuracy?"}[
        document.question.unknown
    ]


def rows(document: PlanDocument) -> list[tuple[str, str, str]]:
    """Of each trust model its answer and its accuracy on test records."""
    return [
        (words.trust(curve.trust), answer.phrase_of(document, curve), answer.tested(curve) or "—")
        for curve in document.curves
        if curve.answer is not None
    ]


def _answers(document: PlanDocument) -> list[Block | Details]:
    caption = f"The answer under each trust model{_terms(document)}."
    shown = rows(document)
    return [Table(caption, ("Trust model", "Answer", "Measured once"), shown, stacked=True)] if shown else []


def _checks(document: PlanDocument) -> list[Block | Details]:
    table: list[Sequence[Value] | Group] = []
    for curve in document.curves:
        law, predicted = curve.fitted, curve.predicted
        if law is None or predicted is None:
            continue
        ends = words.share_interval(predicted.low, predicted.high)
        forecast = f"{words.accuracy(predicted.predicted)} ({ends})"
        table.append(
            (
                words.trust(curve.trust),
                f"{words.accuracy(law.floor, '')} to {words.accuracy(law.ceiling)}",
                words.number(law.half, 3),
                words.number(law.slope, 3),
                f"{100 * law.fit_error:.1f} points",
                f"{forecast}, measured {words.accuracy(predicted.measured)}",
                "yes" if law.extrapolates else "no",
            )
        )
    head = (
        "Trust model",
        "Floor to ceiling",
        "Half",
        "Slope",
        "Error of the fit",
        "Largest, predicted",
        "May extrapolate",
    )
    caption = "The law of each trust model, and its prediction of the largest number from the others."
    return [Table(caption, head, table, stacked=True)] if table else []


def _terms(document: PlanDocument) -> str:
    terms = words.terms(document.every_guarantee)
    return f"; each epsilon at {terms}" if terms else ""


def _picture(document: PlanDocument) -> Picture | None:
    """Accuracy against clients or epsilon: means, the law with its interval, target and the data's end."""
    by_epsilon = document.question.unknown == "epsilon"
    series: list[Series] = []
    for curve in document.curves:
        color, marker, line = looks.LOOKS.get(curve.trust, looks.LOOKS["none"])
        if not curve.measured:
            continue
        law = tuple(Point(each.x, each.accuracy) for each in curve.drawn)
        ends = [tuple(Point(each.x, getattr(each, end)) for each in curve.drawn) for end in ("low", "high")]
        series += [Series((color, "", ":"), "", points, width=0.9) for points in ends]
        series.append(Series((color, "", line), f"{words.capital(curve.trust)}: law", law))
        series.append(Series((color, marker, ""), f"{words.capital(curve.trust)}: measured", _means(curve)))
    if not series:
        return None
    lines = []
    if document.question.target_accuracy is not None:
        lines.append(Reference(document.question.target_accuracy, label="Target"))
    if document.baseline is not None:
        level = Reference(document.baseline.mean, looks.LOOKS["none"], "Without noise", "all clients")
        lines.append(level)
    largest = max(point.x for curve in document.curves for point in curve.measured)
    if not by_epsilon:
        lines.append(Reference(largest, (svg.MUTED, "", "--"), "The data end", upright=True))
    shown = [point.y for each in series for point in each.points] + [
        line.at for line in lines if not line.upright
    ]
    measured = sorted({point.x for curve in document.curves for point in curve.measured})
    panel = Lines(
        Axis(
            "epsilon (smaller is more private)" if by_epsilon else "Clients that train",
            log=True,
            ticks=at_data(measured),
            phrase="at epsilon {}" if by_epsilon else "with {} clients",
        ),
        Axis("Accuracy (higher is better)", words.accuracy, tick_text=percent, limits=accuracy_range(shown)),
        tuple(series),
        tuple(lines),
        legend=True,
    )
    at = "" if by_epsilon else f" at epsilon {words.target(document.question.epsilon)}"
    caption = (
        f"Accuracy on development records{at}, mean of {document.question.repeats} repeats; bars from the "
        f"least to the largest of them. Dotted: the 95 % interval of the law{_terms(document)}."
    )
    return Chart(
        "plan", "Line chart of accuracy with the fitted law", caption, (panel,), tables=(_table(document),)
    ).picture


def _means(curve: Curve) -> tuple[Point, ...]:
    return tuple(
        Point(each.x, each.mean, (min(each.accuracies), max(each.accuracies))) for each in curve.measured
    )


def _table(document: PlanDocument) -> Table:
    """Every measured number."""
    entries: list[Sequence[Value] | Group] = []
    for curve in document.curves:
        entries.append(Group(words.trust(curve.trust)))
        entries += [
            (
                words.number(each.x),
                words.accuracy(each.mean, ""),
                ", ".join(words.accuracy(value, "") for value in each.accuracies),
            )
            for each in curve.measured
        ]
    name = "Epsilon" if document.question.unknown == "epsilon" else "Clients"
    caption = f"Accuracy on development records, in percent{_terms(document)}."
    return Table(caption, (name, "Mean", "Each repeat"), entries, numeric=frozenset({0, 1, 2}))
