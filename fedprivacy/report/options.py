"""What options do to accuracy: each against the scenario without it, over epsilons, a panel for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator

from fedprivacy.documents.comparison import CompareDocument, Gap, Option
from fedprivacy.report import names, plots, svg, words
from fedprivacy.report.blocks import Group, Picture, Section, Table, Text, Value

ACROSS = 3  # panels beside each other
MINUS = "\N{MINUS SIGN}"
UNCHARGED = (
    "Each point is at one epsilon, and whoever picks the best option on private data learns from it: that "
    "choice would have to be charged for, and is in no epsilon here. An interval that covers zero decides "
    "nothing; of twenty such intervals one misses what it is to cover."
)


@dataclass(frozen=True)
class _Panel:
    """One option, from the strictest epsilon on.

    Args:
        name: What the scenario calls it.
        cells: Those that can be compared with one without it.
    """

    name: str
    cells: tuple[tuple[Option, Gap], ...]

    @property
    def verdict(self) -> str:
        """At which epsilons it is better or worse, as far as the intervals say."""
        by_verdict: dict[str, list[str]] = {"better": [], "worse": [], "undecided": []}
        for cell, gap in self.cells:
            decided = gap.low is not None and gap.high is not None and not gap.low <= 0 <= gap.high
            word = "undecided" if not decided else "better" if gap.points > 0 else "worse"
            by_verdict[word].append(words.number(cell.epsilon or 0.0))
        parts = [f"{word} at epsilon {words.listed(at)}" for word, at in by_verdict.items() if at]
        return f"{self.name}: {'; '.join(parts)}."


def of_comparison(document: CompareDocument) -> list[Section]:
    """The section, where a comparison has options."""
    panels = _panels(document)
    if not panels:
        return []
    cells = [cell for panel in panels for cell, _ in panel.cells]
    guarantees = [guarantee for cell in cells for guarantee in cell.guarantees]
    stands_with = words.terms(guarantees)
    title = "Charts of the difference in accuracy by epsilon, one for each option"
    spoken = " ".join(_sentence_of(panel) for panel in panels)
    picture = Picture(
        draw=partial(_draw, panels, title, spoken),
        caption="By how many percentage points each option is more accurate than the scenario without it, "
        f"at the same epsilon and seed by seed, on {words.evaluated_on(document.evaluated_on)}; bars: 95 % "
        f"Student t over seeds. {words.trust(cells[0].trust)}; {words.reach(guarantees)}; epsilon stands at "
        f"{stands_with}.",
        tables=[_table(panels, document, stands_with)],
    )
    verdicts = " ".join(panel.verdict for panel in panels)
    return [Section("options", "What the options do", [picture, Text(verdicts), Text(UNCHARGED)])]


def _panels(document: CompareDocument) -> list[_Panel]:
    by_option: dict[str, list[tuple[Option, Gap]]] = {}
    for option in sorted(document.options, key=lambda cell: cell.epsilon or 0.0):
        if option.difference is not None and option.accuracy.mean is not None:
            by_option.setdefault(option.option, []).append((option, option.difference))
    order = dict.fromkeys(option.option for option in document.options)
    return [_Panel(name, tuple(by_option[name])) for name in order if name in by_option]


def _sentence_of(panel: _Panel) -> str:
    figures = [
        f"{_points(gap.points)} points at epsilon {words.number(c.epsilon or 0.0)}" for c, gap in panel.cells
    ]
    return f"{panel.name}: {words.listed(figures)}."


def _points(value: float) -> str:
    """A difference with its sign: +0.5, or with a minus sign as typesetters have it."""
    return f"{value:+.1f}".replace("-", MINUS) if value else "0.0"


def _draw(panels: Sequence[_Panel], title: str, alt: str, *, narrow: bool = False) -> str:
    across = 1 if narrow else 2 if len(panels) in (2, 4) else min(ACROSS, len(panels))
    down = -(-len(panels) // across)
    width, height = (360.0, 230.0) if narrow else (920.0 / across, 250.0)
    shown = _range([v for p in panels for _, gap in p.cells for v in (gap.points, gap.low, gap.high)])
    with svg.style():
        drawn = svg.figure(width * across, height * down)
        for index, panel in enumerate(panels):
            row, column = divmod(index, across)
            axes = svg.place(
                drawn,
                width * column + 48,
                height * row + 40,
                width * (across - column - 1) + 18,
                height * (down - row - 1) + 52,
            )
            _panel(axes, panel, shown)
        return svg.write(drawn, "options-narrow" if narrow else "options-wide", title, alt)


def _range(values: Sequence[float | None]) -> tuple[float, float]:
    """The axis of all panels: zero and every interval, with a little room."""
    known = [0.0, *(value for value in values if value is not None)]
    pad = max(0.5, 0.08 * (max(known) - min(known)))
    return min(known) - pad, max(known) + pad


def _panel(axes: Axes, panel: _Panel, shown: tuple[float, float]) -> None:
    """The epsilons stand as far apart as they are listed; zero is the scenario without the option."""
    color, marker, line = plots.LOOKS.get(panel.cells[0][0].trust, plots.LOOKS["none"])
    axes.set_ylim(*shown)
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:+g}".replace("-", MINUS) if y else "0"))
    axes.axhline(0.0, color=svg.INK, linewidth=1.0)
    plots.heading(axes, panel.name, shift=-44, color=svg.INK, bold=True)
    places = range(len(panel.cells))
    axes.set_xlim(-0.4, len(panel.cells) - 0.6)
    axes.xaxis.set_major_locator(FixedLocator(list(places)))
    labels = [words.number(cell.epsilon or 0.0) for cell, _ in panel.cells]
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: labels[round(x)]))
    axes.set_xlabel("epsilon", labelpad=4)
    for place, (_, gap) in zip(places, panel.cells, strict=True):
        if gap.low is not None and gap.high is not None:
            axes.plot([place] * 2, [gap.low, gap.high], color=color, linewidth=1.5, marker="_", markersize=9)
    axes.plot(
        list(places), [gap.points for _, gap in panel.cells], color=color, linestyle=line, marker=marker,
        markersize=6, markeredgecolor=svg.PAPER, clip_on=False,
    )  # fmt: skip


def _table(panels: Sequence[_Panel], document: CompareDocument, stands_with: str) -> Table:
    rows: list[Sequence[Value] | Group] = []
    for panel in panels:
        rows.append(Group(panel.name))
        rows += [
            (
                words.number(cell.epsilon or 0.0),
                words.accuracy(cell.accuracy.mean),
                _points(gap.points),
                "—" if gap.low is None or gap.high is None else f"{_points(gap.low)} to {_points(gap.high)}",
                names.noise(cell.noise, cell.noise_multiplier) or "—",
            )
            for cell, gap in panel.cells
        ]
    caption = (
        f"Each option at each epsilon, {document.averaged}; points: against the scenario without it. "
        f"{names.NOISE} Epsilon stands at {stands_with}."
    )
    head = ("Epsilon", "Accuracy", "Points", "95 % interval", "Noise")
    return Table(caption, head, rows, numeric=frozenset(range(1, len(head))))
