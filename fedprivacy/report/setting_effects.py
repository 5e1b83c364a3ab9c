"""The effect of settings on accuracy: each varied alone at one epsilon, a panel and a table for each."""

from __future__ import annotations

from dataclasses import dataclass

from fedprivacy.documents.comparison import CompareDocument, Variation
from fedprivacy.report import arm_labels, page_end, words
from fedprivacy.report.blocks import Section, Table, Text
from fedprivacy.report.charts import Axis, Chart, Lines, Point, Series, accuracy_range, looks
from fedprivacy.report.charts.axis import categories, percent
from fedprivacy.report.charts.looks import Look

UNCHARGED = (
    "Who picks the best of these on private data learns from it: that choice would have to be charged for, "
    "and is in no epsilon here."
)


@dataclass(frozen=True)
class _Panel:
    """One setting, its values in order.

    Args:
        key: The setting.
        cells: One for each value.
        base: The scenario's own value.
    """

    key: str
    cells: tuple[Variation, ...]
    base: object

    @property
    def label(self) -> str:
        """The label of the axis."""
        return self.key.partition(".")[2].replace("_", " ")

    @property
    def extents(self) -> list[float]:
        """All accuracies that must be seen."""
        return [
            v for c in self.cells for v in (c.accuracy.mean, *(c.accuracy.interval or ())) if v is not None
        ]


def of_comparison(document: CompareDocument) -> list[Section]:
    """The section, where a comparison varied settings."""
    panels = _panels(document)
    if not panels:
        return []
    first = panels[0].cells[0]
    epsilon_terms = words.terms(first.guarantees)
    at = f"{words.trust(first.trust)} at epsilon {words.target(first.epsilon)}"
    look = looks.LOOKS.get(first.trust, looks.LOOKS["none"])
    title = words.capital(document.primary.title)
    shown = accuracy_range([value for panel in panels for value in panel.extents])
    chart = Chart(
        "varied",
        f"Charts of {document.primary.title} by the value of a setting, one for each setting",
        f"{title} on {words.evaluated_on(document.evaluated_on)}, {document.averaged}, with one "
        f"setting changed at a time; the larger mark is the scenario's own value. {at}: "
        f"{epsilon_terms}.",
        tuple(_lines(panel, look, shown, title) for panel in panels),
        tables=tuple(_table(panel, document) for panel in panels),
    )
    return [Section("settings-varied", "What the settings do", [chart.picture, Text(UNCHARGED)])]


def _panels(document: CompareDocument) -> list[_Panel]:
    by_key: dict[str, list[Variation]] = {}
    for cell in document.variations:
        if cell.accuracy.mean is not None:
            by_key.setdefault(cell.varied.key, []).append(cell)
    return [
        _Panel(key, tuple(cells), document.setting(*key.split(".", 1)))
        for key, cells in by_key.items()
        if len(cells) > 1
    ]


def _value(value: object) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return words.number(float(value)) if number else str(value)  # type: ignore[arg-type]


def _lines(panel: _Panel, look: Look, shown: tuple[float, float], title: str) -> Lines:
    """The values are evenly spaced in the listed order."""
    points = tuple(
        Point(
            float(place),
            cell.accuracy.mean or 0.0,
            cell.accuracy.interval,
            large=cell.varied.value == panel.base,
        )
        for place, cell in enumerate(panel.cells)
    )
    ticks = categories([_value(cell.varied.value) for cell in panel.cells])
    return Lines(
        Axis(panel.label, ticks=ticks, limits=(-0.4, len(points) - 0.6)),
        Axis(title, words.accuracy, tick_text=percent, limits=shown),
        (Series(look, "", points),),
    )


def _table(panel: _Panel, document: CompareDocument) -> Table:
    rows = []
    for cell in panel.cells:
        ends = cell.accuracy.interval
        rows.append(
            (
                _value(cell.varied.value)
                + (" (the scenario's own)" if cell.varied.value == panel.base else ""),
                words.accuracy(cell.accuracy.mean),
                "—" if ends is None else f"{words.accuracy(ends[0], '')} to {words.accuracy(ends[1])}",
                arm_labels.noise(cell.noise, cell.noise_multiplier) or "—",
            )
        )
    head = (words.capital(panel.label), words.capital(document.primary.title), "95 % interval", "Noise")
    by = f"{words.capital(document.primary.title)} by {panel.key}, {document.averaged}"
    caption = f"{by}, all else as in the scenario. {arm_labels.NOISE}"
    return page_end.sampled(caption, head, rows)
