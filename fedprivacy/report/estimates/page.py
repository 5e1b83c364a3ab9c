"""Builds the page of a private ERM study: excess risk, guarantees and coefficients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fedprivacy.documents.envelope import Arm
from fedprivacy.documents.estimates import EstimatesCell, EstimatesDocument
from fedprivacy.report import page_end, protection, words
from fedprivacy.report.blocks import (
    Block,
    Details,
    Facts,
    Finding,
    Group,
    Page,
    Picture,
    Section,
    Table,
    Text,
)
from fedprivacy.report.charts import Axis, Chart, Lines, Point, Series, looks
from fedprivacy.report.charts.axis import at_data
from fedprivacy.report.estimates import answer, held_out, surface
from fedprivacy.report.observer_wording import ESTIMATES

SIMULATED = (
    "The exact minimum is known to this simulation alone; no guarantee covers those who see these losses."
)
TITLES = {
    "output-perturbation": "output perturbation",
    "objective-perturbation": "objective perturbation",
    "gradient-perturbation": "gradient perturbation",
    "sufficient-statistics": "noisy sufficient statistics",
    "exponential-grid": "exponential mechanism on a grid",
}


def page(document: EstimatesDocument, *, error: bool = False, command: bool = False) -> Page:
    """The page without its operator-only section.

    Args:
        document: The study, without its operator-only fields.
        error: Whether the operator-only section contains an error's text.
        command: Whether it contains the command that reproduces the study.
    """
    lead: list[Block | Details] = []
    if document.status != "finished":
        lead.append(page_end.status(document, len(document.cells), None, "cells", error=error))
    pictures = _pictures(document)
    lead += [Text(words.TRUTH_WITHHELD, "status")] if document.lacks_truth else []
    lead += [*pictures, _finding(document)]
    cells = _protected(document)
    guarantees = protection.blocks(cells, "", ESTIMATES)
    return Page(
        title=f"{page_end.title(document)}: private estimates",
        eyebrow="Private empirical risk minimisation",
        subtitle=str(document.scenario.get("description") or ""),
        answer=answer.of_estimates(document, cells),
        lead=lead,
        sections=[
            Section("guarantees", "Who is protected from whom", guarantees, folded=False),
            *_slopes(document),
            *surface.section(document),
            *(
                []
                if document.lacks_truth
                else [Section("coefficients", "The estimates", _coefficients(document))]
            ),
            Section(
                "losses", "What is promised" if document.lacks_truth else "Every loss", _losses(document)
            ),
            *held_out.section(document),
            *_refused(document),
            *_settings(document),
            *page_end.closing(document, command=command),
        ],
    )


def _finding(document: EstimatesDocument) -> Finding:
    epsilon_terms = words.terms([g for cell in document.cells for g in cell.guarantees])
    reason = "losses are operator-only" if document.lacks_truth else "the study is not complete"
    return Finding(
        text=document.finding or f"There is no finding: {reason}.",
        terms=f"Each epsilon: {epsilon_terms}, for one estimate." if epsilon_terms else "",
        heading="Against whom",
        caution=ESTIMATES.caution(sorted({cell.trust for cell in document.cells})),
    )


def _pictures(document: EstimatesDocument) -> list[Picture]:
    """The loss over epsilon for most records, beside that over the records at the largest epsilon."""
    if not document.fitted_cells or document.lacks_truth:
        return []
    most, largest = document.sizes[-1], document.epsilons[-1]
    panels = [
        _panel(document, "epsilon", f"Over epsilon, {most:,} records", lambda cell: cell.records == most)
    ]
    if len(document.sizes) > 1:
        title = f"Over the number of records, at epsilon {largest:g}"
        panels.append(_panel(document, "records", title, lambda cell: cell.epsilon == largest))
    drawn = [panel for panel in panels if panel.series]
    if not drawn:
        return []
    low = 10 ** min(panel.y_ends[0] for panel in drawn)
    high = 10 ** max(panel.y_ends[1] for panel in drawn)
    shared = tuple(replace(panel, y=replace(panel.y, limits=(low, high))) for panel in drawn)
    epsilon_terms = words.terms([g for cell in document.cells for g in cell.guarantees])
    caption = f"Mean excess of the objective, with the 95 % interval over noise. {SIMULATED} "
    caption += f"Each epsilon: {epsilon_terms}."
    head = ("Approach", "Records", "Epsilon", "Mean excess", "95 %", "Bound")
    rows = [
        (
            cell.approach, f"{cell.records:,}", words.target(cell.epsilon), words.number(cell.excess.mean, 3),
            _interval(cell.excess.interval), _bound(cell),
        )
        for cell in document.fitted_cells
        if cell.records == most or cell.epsilon == largest
    ]  # fmt: skip
    table = Table(caption, head, rows, numeric=frozenset({1, 2, 3, 4, 5}))
    title = "Mean excess of the objective by approach"
    return [Chart("excess", title, caption, shared, tables=(table,)).picture]


def _panel(
    document: EstimatesDocument, x_label: str, title: str, shown: Callable[[EstimatesCell], bool]
) -> Lines:
    """A line for each approach; an excess of 0 or less has no place on a logarithmic axis."""
    series = []
    for look, name in zip(looks.series(len(document.approaches)), document.approaches, strict=True):
        points = []
        for cell in document.fitted_cells:
            mean, ends = cell.excess.mean, cell.excess.interval
            if cell.approach == name and shown(cell) and mean is not None and mean > 0:
                x = float(cell.records) if x_label == "records" else cell.epsilon
                points.append(Point(x, mean, ends if ends and ends[0] > 0 else None))
        if points:
            series.append(Series(look, name, tuple(sorted(points, key=lambda point: point.x))))
    ticks = at_data([point.x for line in series for point in line.points])
    phrase = "at {} records" if x_label == "records" else "at epsilon {}"
    return Lines(
        Axis(x_label, log=True, ticks=ticks, phrase=phrase),
        Axis("Excess", lambda excess: words.number(excess, 3), tick_text=words.number, log=True),
        tuple(series),
        title=title,
    )


def _protected(document: EstimatesDocument) -> list[protection.Protected]:
    return [
        protection.Protected(Arm(cell.trust, cell.approach, place), cell.epsilon, cell.against_all)
        for place, name in enumerate(document.approaches)
        for cell in document.fitted_cells
        if cell.approach == name and cell.records == document.sizes[-1]
    ]


def _slopes(document: EstimatesDocument) -> list[Section]:
    if not document.slopes:
        return []
    rows = [
        (
            slope.approach,
            f"{words.direction(slope.slope)} as "
            f"{'n' if slope.over == 'records' else 'epsilon'}^{slope.slope:.2f}",
            f"{slope.at:,.4g} records" if slope.over == "epsilon" else f"epsilon {slope.at:g}",
        )
        for slope in document.slopes
    ]
    caption = (
        "Fitted exponents of the mean excess: lines through the logarithms. At a fixed lambda theory says -2 "
        "for "
        "output and objective perturbation, over epsilon and over n, until the solver's own error shows; a "
        "descent "
        "of a fixed number of steps keeps what it has not yet descended, and a grid what lies between its "
        "points."
    )
    table = Table(caption, ("Approach", "The excess", "At"), rows)
    return [Section("slopes", "How the loss changes with epsilon and records", [table])]


def _coefficients(document: EstimatesDocument) -> list[Block | Details]:
    if not document.fitted_cells:
        return [Text("No estimate was made.")]
    most = document.sizes[-1]
    exact = {
        value.name: value.value for entry in document.exact if entry.records == most for value in entry.theta
    }
    rows: list[tuple[str, ...] | Group] = []
    for name in dict.fromkeys(c.name for cell in document.fitted_cells for c in cell.theta):
        rows.append(Group(name, f"exact: {words.number(exact[name])}" if name in exact else ""))
        for cell in document.fitted_cells:
            if cell.records != most:
                continue
            rows += [
                (cell.approach, words.target(cell.epsilon), words.number(c.mean), _interval(c.interval))
                for c in cell.theta
                if c.name == name
            ]
    caption = (
        f"The estimates from {most:,} records: their mean over noise, and where the middle 95 % of them lie; "
        f"each "
        "coefficient for one more of its feature, where bounds have scaled it. " + SIMULATED
    )
    head = ("Approach", "Epsilon", "Mean", "Middle 95 %")
    return [Table(caption, head, rows, numeric=frozenset({1, 2, 3}))]


def _losses(document: EstimatesDocument) -> list[Block | Details]:
    """The mean excess and its bound; without true values the bound alone."""
    excess = not document.lacks_truth
    rows = [
        (
            cell.approach,
            f"{cell.records:,}",
            words.target(cell.epsilon),
            f"{cell.delta:g}" if cell.delta is not None else "—",
            *[words.number(cell.excess.mean, 3)] * excess,
            _bound(cell),
            words.capital(cell.noise or ""),
        )
        for cell in document.fitted_cells
    ]
    bound = (
        "what theory bounds it by without a look at the records (— where it says nothing: averages of minima "
        "and grids have a bias of their own, and so has a silo that did not answer)"
    )
    caption = f"The mean excess of the objective, and {bound}. {SIMULATED}"
    if not excess:
        caption = f"Of the mean excess of the objective, {bound}."
    head = ("Approach", "Records", "Epsilon", "Delta", *["Mean excess"] * excess, "Bound", "Noise")
    return [Table(caption, head, rows, numeric=frozenset(range(1, len(head) - 1)))]


def _refused(document: EstimatesDocument) -> list[Section]:
    rows = [
        (cell.approach, f"{cell.records:,}", words.target(cell.epsilon), cell.refused)
        for cell in document.cells
        if cell.refused is not None
    ]
    if not rows:
        return []
    table = Table(
        "Cells whose conditions do not hold", ("Approach", "Records", "Epsilon", "Why"), rows, stacked=True
    )
    return [Section("refused", "Approaches that could not run", [table])]


def _settings(document: EstimatesDocument) -> list[Section]:
    facts = []
    for section in ("data", "objective", "privacy", "federation", "study"):
        part = document.scenario.get(section)
        if isinstance(part, dict):
            facts.append((words.capital(section), page_end.flat(part)))
    approaches = document.scenario.get("approaches")
    if isinstance(approaches, dict):
        for name, part in approaches.items():
            if isinstance(part, dict):
                title = TITLES.get(str(part.get("kind")), str(part.get("kind")))
                facts.append((name, f"{title}; {page_end.flat(part, ('kind',))}"))
    tuning = document.scenario.get("tuning")
    facts.append(
        ("How settings were chosen", str(tuning) if tuning else "Not said: nothing is charged for it.")
    )
    return [Section("settings", "Settings", [Facts(facts)])]


def _interval(ends: tuple[float, float] | None) -> str:
    return "—" if ends is None else f"{words.number(ends[0], 3)} to {words.number(ends[1], 3)}"


def _bound(cell: EstimatesCell) -> str:
    return "—" if cell.bound is None else words.number(cell.bound, 3)
