"""The effect of options on accuracy: each against the scenario without it, over epsilons, in panels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fedprivacy.documents.cell import Gap
from fedprivacy.documents.comparison import CompareDocument, Option
from fedprivacy.report import arm_labels, svg, words
from fedprivacy.report.blocks import Group, Section, Table, Text, Value
from fedprivacy.report.charts import Axis, Chart, Lines, Point, Reference, Series, looks
from fedprivacy.report.charts.axis import categories

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
        name: Its name in the scenario.
        cells: Those that can be compared with one without it.
    """

    name: str
    cells: tuple[tuple[Option, Gap], ...]

    @property
    def verdict(self) -> str:
        """The epsilons at which it is better or worse by intervals that exclude zero."""
        by_verdict: dict[str, list[str]] = {"better": [], "worse": [], "undecided": []}
        for cell, gap in self.cells:
            decided = gap.low is not None and gap.high is not None and not gap.low <= 0 <= gap.high
            word = "undecided" if not decided else "better" if gap.points > 0 else "worse"
            by_verdict[word].append(words.target(cell.epsilon or 0.0))
        parts = [f"{word} at epsilon {words.listed(at)}" for word, at in by_verdict.items() if at]
        return f"{self.name}: {'; '.join(parts)}."


def of_comparison(document: CompareDocument) -> list[Section]:
    """The section, where a comparison has options."""
    panels = _panels(document)
    if not panels:
        return []
    cells = [cell for panel in panels for cell, _ in panel.cells]
    guarantees = [guarantee for cell in cells for guarantee in cell.guarantees]
    epsilon_terms = words.terms(guarantees)
    shown = _range([v for p in panels for _, gap in p.cells for v in (gap.points, gap.low, gap.high)])
    chart = Chart(
        "options",
        f"Charts of the difference in {document.primary.title} by epsilon, one for each option",
        "By how many percentage points each option is more accurate than the scenario without it, "
        f"at the same epsilon and seed by seed, on {words.evaluated_on(document.evaluated_on)}; bars: 95 % "
        f"Student t over seeds. {words.trust(cells[0].trust)}; {words.reach(guarantees)}; each epsilon: "
        f"{epsilon_terms}.",
        tuple(_lines(panel, shown) for panel in panels),
        tables=(_table(panels, document, epsilon_terms),),
    )
    verdicts = " ".join(panel.verdict for panel in panels)
    return [Section("options", "What the options do", [chart.picture, Text(verdicts), Text(UNCHARGED)])]


def _panels(document: CompareDocument) -> list[_Panel]:
    by_option: dict[str, list[tuple[Option, Gap]]] = {}
    for option in sorted(document.options, key=lambda cell: cell.epsilon or 0.0):
        if option.difference is not None and option.accuracy.mean is not None:
            by_option.setdefault(option.option, []).append((option, option.difference))
    order = dict.fromkeys(option.option for option in document.options)
    return [_Panel(name, tuple(by_option[name])) for name in order if name in by_option]


def _points(value: float) -> str:
    """A difference with its sign: +0.5, or with a minus sign as typesetters have it."""
    return f"{value:+.1f}".replace("-", MINUS) if value else "0.0"


def _range(values: Sequence[float | None]) -> tuple[float, float]:
    """The axis of all panels: zero and every interval, with a little room."""
    known = [0.0, *(value for value in values if value is not None)]
    pad = max(0.5, 0.08 * (max(known) - min(known)))
    return min(known) - pad, max(known) + pad


def _lines(panel: _Panel, shown: tuple[float, float]) -> Lines:
    """The epsilons are evenly spaced in the listed order; zero is the scenario without the option."""
    points = tuple(
        Point(float(place), gap.points, None if gap.low is None or gap.high is None else (gap.low, gap.high))
        for place, (_, gap) in enumerate(panel.cells)
    )
    ticks = categories([words.target(cell.epsilon or 0.0) for cell, _ in panel.cells])
    return Lines(
        Axis("epsilon", ticks=ticks, limits=(-0.4, len(points) - 0.6), phrase="points at epsilon {}"),
        Axis("", _points, tick_text=_tick, limits=shown),
        (Series(looks.LOOKS.get(panel.cells[0][0].trust, looks.LOOKS["none"]), "", points),),
        (Reference(0.0, (svg.INK, "", "-"), width=1.0),),
        title=panel.name,
    )


def _tick(value: float) -> str:
    return f"{value:+g}".replace("-", MINUS) if value else "0"


def _table(panels: Sequence[_Panel], document: CompareDocument, epsilon_terms: str) -> Table:
    rows: list[Sequence[Value] | Group] = []
    for panel in panels:
        rows.append(Group(panel.name))
        rows += [
            (
                words.target(cell.epsilon or 0.0),
                words.accuracy(cell.accuracy.mean),
                _points(gap.points),
                "—" if gap.low is None or gap.high is None else f"{_points(gap.low)} to {_points(gap.high)}",
                arm_labels.noise(cell.noise, cell.noise_multiplier) or "—",
            )
            for cell, gap in panel.cells
        ]
    caption = (
        f"Each option at each epsilon, {document.averaged}; points: against the scenario without it. "
        f"{arm_labels.NOISE} Each epsilon: {epsilon_terms}."
    )
    head = ("Epsilon", words.capital(document.primary.title), "Points", "95 % interval", "Noise")
    return Table(caption, head, rows, numeric=frozenset(range(1, len(head))))
