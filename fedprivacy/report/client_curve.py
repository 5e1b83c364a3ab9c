"""Accuracy against the number of clients that a comparison varied, with the law that `plan` fits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fedprivacy.documents.cell import Cell
from fedprivacy.documents.comparison import CompareDocument, Variation
from fedprivacy.report import svg, words
from fedprivacy.report.blocks import Block, Details, Section, Table, Text, Value
from fedprivacy.report.charts import Axis, Chart, Lines, Point, Reference, Series, accuracy_range, looks
from fedprivacy.report.charts.axis import at_data, percent

if TYPE_CHECKING:  # which imports scipy, and most pages have no law
    from fedprivacy.forecast.curve import Curve

KEY = "data.clients"
DRAWN = 25  # points of the law
READ = (
    "The law is accuracy = floor + (ceiling - floor) / (1 + (half / n)^slope) for n clients, fitted as by "
    "fedprivacy plan. Its interval is over the seeds and the test records. The order of the clients is one "
    "draw (data.seed), which is in no interval here, and the law answers for no number beyond the largest: "
    "fedprivacy plan draws an order for each repeat, and checks whether it may go further."
)

BOUNDED = "The ceiling is at most what the clients reach without noise, in the cell of trust none."
UNBOUNDED = (
    "The ceiling is at most 100 %: no cell of trust none has as many clients as the largest number, so that "
    "none bounds it."
)


def of_comparison(document: CompareDocument) -> list[Section]:
    """The section, where enough numbers of clients have enough seeds for a law; accuracy of classes alone."""
    cells = _measured(document)
    if not cells:
        return []
    from fedprivacy.forecast.curve import LEAST_POINTS

    if len(cells) < LEAST_POINTS:
        return []
    curve = _curve(document, cells)
    first = cells[-1]
    at = f"{words.trust(first.trust)} at epsilon {words.target(first.epsilon)}"
    terms = words.terms(g for cell in cells for g in cell.guarantees)
    caption = (
        f"Accuracy on {words.evaluated_on(document.evaluated_on)}, {document.averaged}; bars: from the least "
        f"to the largest. Dotted: the 95 % interval of the law. {at}: {terms}."
    )
    chart = Chart(
        "clients",
        "Line chart of accuracy by the number of clients, with the fitted law",
        caption,
        (_panel(curve, first.trust),),
        tables=(_table(curve, terms),),
    )
    law = curve.law
    fitted = (
        f"Fitted here: floor {words.accuracy(law.floor)}, ceiling {words.accuracy(float(law.ceiling))}, half "
        f"{words.number(float(law.half), 3)} clients, slope {words.number(float(law.slope), 3)}; the law "
        f"misses the means by {100 * curve.fit_error:.1f} points (root mean square)."
    )
    bound = BOUNDED if _without_noise(document, cells) else UNBOUNDED
    blocks: list[Block | Details] = [chart.picture, Text(fitted), Text(f"{READ} {bound}")]
    return [Section("clients", "How many clients it takes", blocks)]


def _measured(document: CompareDocument) -> list[Variation]:
    """The variations of the number of clients, from the fewest on; none unless each has two seeds or more."""
    cells = [cell for cell in document.variations if cell.varied.key == KEY and cell.per_class]
    whole = all(len(cell.accuracies) > 1 and None not in cell.accuracies for cell in cells)
    return sorted(cells, key=_clients) if whole else []


def _clients(cell: Variation) -> float:
    return float(cell.varied.value)


def _curve(document: CompareDocument, cells: Sequence[Variation]) -> Curve:
    """The measured curve, below what is reached without noise if as many clients were compared so."""
    from fedprivacy.forecast.answer import highest
    from fedprivacy.forecast.curve import curve_of

    classes = cells[0].per_class or ()
    records = float(sum(each.records or 0 for each in classes)) or 1.0
    without = [
        highest(known, records, {"high": cell.accuracy.high})
        for cell in _without_noise(document, cells)
        if (known := [value for value in cell.accuracies if value is not None])
    ]
    points = [(_clients(cell), [value or 0.0 for value in cell.accuracies]) for cell in cells]
    return curve_of(
        points,
        floor=1 / max(len(classes), 1),
        highest=max(without, default=1.0),
        records=records,
        seed=0,
        levelled_off=False,
    )


def _without_noise(document: CompareDocument, cells: Sequence[Variation]) -> list[Cell]:
    """The cells without noise that bound the law: fewer clients may reach less than more with noise."""
    most = max(map(_clients, cells))
    return [cell for cell in document.cells if cell.trust == "none" and (cell.population or 0) >= most]


def _panel(curve: Curve, trust: str) -> Lines:
    color, marker, line = looks.LOOKS.get(trust, looks.LOOKS["none"])
    ratio = (curve.x[-1] / curve.x[0]) ** (1 / (DRAWN - 1))
    law = [(x, *curve.accuracy(x)) for x in (curve.x[0] * ratio**place for place in range(DRAWN))]
    value, low, high = (tuple(Point(each[0], each[at]) for each in law) for at in (1, 2, 3))
    means = tuple(
        Point(x, float(mean), (min(values), max(values)))
        for x, mean, values in zip(curve.x, curve.means, curve.accuracies, strict=True)
    )
    series = (
        *(Series((color, "", ":"), "", points, width=0.9) for points in (low, high)),
        Series((color, "", line), "Law", value),
        Series((color, marker, ""), "Measured", means),
    )
    shown = [point.y for each in series for point in each.points]
    return Lines(
        Axis("Clients that train", log=True, ticks=at_data(list(curve.x)), phrase="with {} clients"),
        Axis("Accuracy (higher is better)", words.accuracy, tick_text=percent, limits=accuracy_range(shown)),
        series,
        (Reference(curve.x[-1], (svg.MUTED, "", "--"), "The largest", upright=True),),
        legend=True,
    )


def _table(curve: Curve, terms: str) -> Table:
    rows: list[Sequence[Value]] = []
    for x, mean, values in zip(curve.x, curve.means, curve.accuracies, strict=True):
        law, low, high = curve.accuracy(x)
        rows.append(
            (
                words.number(x),
                words.accuracy(float(mean), ""),
                ", ".join(words.accuracy(value, "") for value in values),
                words.accuracy(law, ""),
                f"{words.accuracy(low, '')} to {words.accuracy(high, '')}",
            )
        )
    caption = f"Accuracy on test records by the number of clients, in percent. Each epsilon: {terms}."
    head = ("Clients", "Mean", "Each seed", "Law", "Its interval")
    return Table(caption, head, rows, numeric=frozenset(range(5)))
