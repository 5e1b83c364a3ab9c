"""What settings do to accuracy: each varied by itself at one epsilon, a panel and a table for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter

from fedprivacy.documents.comparison import CompareDocument, Variation
from fedprivacy.report import common, names, plots, svg, words
from fedprivacy.report.blocks import Picture, Section, Table, Text

ACROSS = 3  # panels beside each other
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
        own: The scenario's own value.
    """

    key: str
    cells: tuple[Variation, ...]
    base: object

    @property
    def label(self) -> str:
        """What the axis is called."""
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
    stands_with = words.terms(first.guarantees)
    at = f"{words.trust(first.trust)} at epsilon {words.number(first.epsilon)}"
    look = plots.LOOKS.get(first.trust, plots.LOOKS["none"])
    title = "Charts of accuracy by the value of a setting, one for each setting"
    spoken = " ".join(
        f"{words.capital(panel.label)}: "
        + words.listed(f"{words.accuracy(c.accuracy.mean)} at {_value(c.varied.value)}" for c in panel.cells)
        + "."
        for panel in panels
    )
    shown = plots.accuracy_range([value for panel in panels for value in panel.extents])
    picture = Picture(
        draw=partial(_draw, panels, look, shown, title, spoken),
        caption=f"Accuracy on {words.evaluated_on(document.evaluated_on)}, {document.averaged}, with one "
        f"setting changed at a time; the larger mark is the scenario's own value. {at}; it stands at "
        f"{stands_with}." + words.cut_axis(shown[0]),
        tables=[_table(panel, document) for panel in panels],
    )
    return [Section("settings-varied", "What the settings do", [picture, Text(UNCHARGED)])]


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


def _draw(
    panels: Sequence[_Panel],
    look: plots.Look,
    shown: tuple[float, float],
    title: str,
    alt: str,
    *,
    narrow: bool = False,
) -> str:
    across = 1 if narrow else 2 if len(panels) == 4 else min(ACROSS, len(panels))
    down = -(-len(panels) // across)
    width, height = (360.0, 260.0) if narrow else (920.0 / across, 300.0)
    with svg.style():
        drawn = svg.figure(width * across, height * down)
        for index, panel in enumerate(panels):
            row, column = divmod(index, across)
            axes = svg.place(
                drawn,
                width * column + 48,
                height * row + 40,
                width * (across - column - 1) + 18,
                height * (down - row - 1) + 56,
            )
            _panel(axes, panel, look, shown)
        return svg.write(drawn, "varied-narrow" if narrow else "varied-wide", title, alt)


def _panel(axes: Axes, panel: _Panel, look: plots.Look, shown: tuple[float, float]) -> None:
    """The values stand as far apart as they are listed, whatever they are."""
    color, marker, line = look
    plots.accuracy_axis(axes, shown)
    plots.heading(axes, "Accuracy", shift=-44)
    places = range(len(panel.cells))
    axes.set_xlim(-0.4, len(panel.cells) - 0.6)
    axes.xaxis.set_major_locator(FixedLocator(list(places)))
    labels = [_value(cell.varied.value) for cell in panel.cells]
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: labels[round(x)]))
    axes.set_xlabel(panel.label, labelpad=6)
    for place, cell in zip(places, panel.cells, strict=True):
        if cell.accuracy.interval:
            axes.plot(
                [place] * 2, cell.accuracy.interval, color=color, linewidth=1.5, marker="_", markersize=9
            )
    means = [cell.accuracy.mean or 0.0 for cell in panel.cells]
    axes.plot(places, means, color=color, linestyle=line, marker=marker, markersize=6, clip_on=False)
    base = [place for place, cell in zip(places, panel.cells, strict=True) if cell.varied.value == panel.base]
    axes.plot(
        base, [means[place] for place in base], color=color, linestyle="", marker=marker, markersize=12,
        markeredgecolor=svg.PAPER, clip_on=False,
    )  # fmt: skip


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
                names.noise(cell.noise, cell.noise_multiplier) or "—",
            )
        )
    head = (words.capital(panel.label), "Accuracy", "95 % interval", "Noise")
    caption = f"Accuracy by {panel.key}, {document.averaged}, all else as in the scenario. {names.NOISE}"
    return common.sampled(caption, head, rows)
