"""Errors of a comparison's answers over clients, over epsilon, and in a table."""

from __future__ import annotations

from collections.abc import Sequence

from fedprivacy.documents.answers import HUGE, Repeats, Slope, StatisticsCell
from fedprivacy.documents.envelope import Arm
from fedprivacy.documents.statistics import StatisticsComparison
from fedprivacy.report import arm_labels, words
from fedprivacy.report.blocks import Block, Group, Picture, Section, Table, Text, Value
from fedprivacy.report.charts import Axis, Chart, Lines, Point, Series, looks
from fedprivacy.report.charts.axis import at_data, percent
from fedprivacy.report.charts.spacing import spaced
from fedprivacy.report.statistics import figures
from fedprivacy.report.statistics.answer_charts import CHOICES
from fedprivacy.statistics.comparison import SHARES

TOGETHER = 6  # queries of a picture, as small panels; more queries have another
LINES = 10  # the most lines that one panel can distinguish
SIMULATED = "True values are known to this simulation alone; no guarantee covers those who see errors."
LAWS = (
    "The lectures' laws: to be within alpha of a share, randomized response needs n >= c/(epsilon² alpha²) "
    "clients, and a trusted server n >= c/(epsilon alpha). The errors of shares and means then fall as "
    "n^-1/2 under local trust and as n^-1 under central trust; those of counts, which are n times as large, "
    "grow as n^1/2 and not at all."
)


def of_comparison(document: StatisticsComparison) -> list[Block]:
    """Pictures of the errors, the first two queries in one, and the fitted slopes; else a table alone."""
    shown = [query for query in document.questions if _drawable(document, query)]
    groups = [shown[at : at + TOGETHER] for at in range(0, len(shown), TOGETHER)]
    return [_picture(document, group, f"errors-{place}") for place, group in enumerate(groups)]


def tables(document: StatisticsComparison) -> list[Block]:
    """A table of every figure without a picture."""
    rest = [query for query in document.questions if not _drawable(document, query)]
    return [_table(document, rest)] if rest and document.cells else []


def falls(document: StatisticsComparison) -> list[Section]:
    """The fitted slopes beside the lectures' laws; no section where the number of clients does not vary."""
    if not document.slopes:
        return []
    rows = [
        (
            slope.query,
            arm_labels.arm(_arm(document, slope)),
            words.target(slope.epsilon),
            _exponent(slope.slope),
            "—" if slope.low is None or slope.high is None else f"{slope.low:.2f} to {slope.high:.2f}",
        )
        for slope in document.slopes
    ]
    epsilon_terms = words.terms(document.guarantees())
    caption = "The exponent of n in the root mean squared error: a line through the logarithms, with its "
    caption += "95 % interval, by the law of one error."
    if any(slope.low is None for slope in document.slopes):
        caption += (
            " The largest error of several, and errors of some answers alone, have another: no interval."
        )
    if epsilon_terms:
        caption += f" Each epsilon: {epsilon_terms}, against the observers named above."
    head = ("Query", "Trust model", "Epsilon", "Slope", "95 % interval")
    table = Table(caption, head, rows, numeric=frozenset({2, 3, 4}))
    return [Section("slopes", "How the error falls with the number of clients", [Text(LAWS), table])]


def _arm(document: StatisticsComparison, slope: Slope) -> Arm:
    alike = (arm for arm in document.arms if (arm.trust, arm.mechanism) == (slope.trust, slope.mechanism))
    return next(alike, Arm(slope.trust, slope.mechanism))


def _exponent(slope: float | None) -> str:
    """A slope with its sign, as a person would write it.

    >>> _exponent(-0.471), _exponent(None)
    ('-0.47', '—')
    """
    return "—" if slope is None else f"{slope:.2f}"


def _noisy(document: StatisticsComparison) -> list[Arm]:
    return [arm for arm in document.arms if any(cell.epsilon for cell in document.of(arm))]


def _over_clients(document: StatisticsComparison) -> bool:
    return len(document.sizes) > 1


def _drawable(document: StatisticsComparison, query: Repeats) -> bool:
    panel = _panel(document, query)
    return panel is not None and any(len(line.points) > 1 for line in panel.series)


def _figure(query: Repeats | None) -> tuple[float | None, bool]:
    """The drawn figure of a query in a cell, and whether it is a share of the repeats."""
    if query is None:
        return None, False
    if query.kind in CHOICES:
        return query.right, True
    return (query.error.mean if query.error else None), False


def _panel(document: StatisticsComparison, query: Repeats) -> Lines | None:
    """A line for each arm over epsilon, or for each arm and epsilon over the number of clients."""
    over = _over_clients(document)
    most = _epsilons_drawn(document)
    epsilons = spaced(document.epsilons, most) if over and most > 1 else document.epsilons[-1:]
    series = []
    arms, looks_of_arms = _noisy(document), looks.arms(document.arms)
    free = [look for look in looks.others(len(looks.MORE)) if look not in looks_of_arms.values()]
    rest = iter(free * LINES)
    for arm in arms:
        if not over:
            points = [_point(cell, query.name, cell.epsilon) for cell in document.of(arm)]
            series.append(Series(looks_of_arms[arm], arm_labels.arm(arm), tuple(p for p in points if p)))
            continue
        for epsilon in epsilons:
            look = looks_of_arms[arm] if epsilon == epsilons[0] else next(rest)
            cells = document.of(arm, epsilon=epsilon)
            points = [_point(cell, query.name, cell.clients) for cell in cells]
            label = f"{arm_labels.arm(arm)}, epsilon {words.target(epsilon)}"
            label += _fitted(document, arm, query, epsilon)
            series.append(Series(look, label, tuple(p for p in points if p)))
    drawn = tuple(line for line in series if line.points)
    if not drawn:
        return None
    share, in_points = query.kind in CHOICES, query.kind in SHARES
    x_label = "Number of clients n" if over else "epsilon (smaller is more private)"
    ticks = at_data([point.x for line in drawn for point in line.points])
    return Lines(
        Axis(x_label, log=True, ticks=ticks, phrase="at {} clients" if over else "at epsilon {}"),
        Axis(
            _heading(query),
            figures.percent if share else lambda error: figures.error(error, query.kind),
            tick_text=percent if share else lambda error: words.number(100 * error if in_points else error),
            log=not share,
            limits=(0.0, 1.0) if share else None,
        ),
        drawn,
    )


def _heading(query: Repeats) -> str:
    if query.kind in CHOICES:
        return f"{query.name}: how often the best was chosen"
    unit = ", points" if query.kind in SHARES else ""
    return f"{query.name}: mean {query.measure or 'error'}{unit} (lower is better)"


def _fitted(document: StatisticsComparison, arm: Arm, query: Repeats, epsilon: float) -> str:
    key = (arm.trust, arm.mechanism, query.name, epsilon)
    for slope in document.slopes:
        if (slope.trust, slope.mechanism, slope.query, slope.epsilon) == key and slope.slope is not None:
            return f": n^{_exponent(slope.slope)}"
    return ""


def _point(cell: StatisticsCell, name: str, x: float | None) -> Point | None:
    """The drawn point of a cell; an error of 0 has no place on a logarithmic axis."""
    query = cell.query(name)
    figure, share = _figure(query)
    if query is None or figure is None or x is None or not 0 <= figure < HUGE or (figure == 0 and not share):
        return None
    bars = query.error.interval if query.error and not share else None
    return Point(x, min(figure, 1.0) if share else figure, bars)


def _picture(document: StatisticsComparison, queries: Sequence[Repeats], name: str) -> Picture:
    panels = tuple(panel for query in queries if (panel := _panel(document, query)) is not None)
    epsilon_terms = words.terms(document.guarantees())
    over = "the number of clients" if _over_clients(document) else "epsilon"
    return Chart(
        name,
        f"Line charts of errors against {over}",
        _caption(document, panels, epsilon_terms) + _never_off(document, queries),
        panels,
        terms=f"At {epsilon_terms or 'no guarantee'}.",
        tables=(_table(document, queries),),
    ).picture


def _caption(document: StatisticsComparison, panels: Sequence[Lines], epsilon_terms: str) -> str:
    sentences = [] if all(panel.y.log for panel in panels) else ["Shares of the repeats."]
    if any(panel.y.log for panel in panels):
        sentences.append("Logarithmic axes; an error of exactly 0 is in the table alone.")
    if any(point.interval for panel in panels for line in panel.series for point in line.points):
        sentences.append(f"Bars: {document.interval}." if document.interval else "Bars: intervals.")
    if _over_clients(document):
        if document.slopes:
            sentences.append("n^slope: the fitted law.")
        if len(document.epsilons) > _epsilons_drawn(document):
            sentences.append("The table has the other epsilons.")
    if epsilon_terms:
        against = "; ".join(
            f"{words.trust(trust)}: {words.reach(document.guarantees_under(trust))}"
            for trust in document.trusts
        )
        sentences.append(f"Each epsilon: {epsilon_terms}. {against}.")
    return " ".join([*sentences, SIMULATED])


def _never_off(document: StatisticsComparison, queries: Sequence[Repeats]) -> str:
    """Which lines are missing since their errors are all 0."""
    missing = [
        f"{query.name}, {arm_labels.arm(arm)}"
        for query in queries
        for arm in _noisy(document)
        if query.kind not in CHOICES and not _some_error(document, arm, query.name)
    ]
    return f" No error above 0, hence no line: {'; '.join(missing)}." if missing else ""


def _some_error(document: StatisticsComparison, arm: Arm, name: str) -> bool:
    return any(query.rmse for cell in document.of(arm) if (query := cell.query(name)))


def _epsilons_drawn(document: StatisticsComparison) -> int:
    """The number of epsilons with a line in each arm."""
    return max(1, min(looks.EPSILONS, LINES // max(1, len(_noisy(document)))))


def _table(document: StatisticsComparison, queries: Sequence[Repeats]) -> Table:
    """Every cell's errors over the repeats."""
    rows: list[Sequence[Value] | Group] = []
    for query in queries:
        for arm in document.arms:
            rows.append(Group(f"{query.name}, {arm_labels.arm(arm).lower()}", query.measure or ""))
            rows += [_row(cell, results) for cell in document.of(arm) if (results := cell.query(query.name))]
    caption = f"Errors over the repeats. {SIMULATED}"
    if document.interval:
        caption += f" Interval of the mean: {document.interval}."
    caption += " Held: how many of the 95 % intervals hold the true value."
    if any(
        (results := cell.query(each.name)) and _some_untold(results)
        for each in queries
        for cell in document.cells
    ):
        caption += " Released: the share of answers with an estimate; errors are of those alone."
    epsilon_terms = words.terms(document.guarantees())
    if epsilon_terms:
        caption += f" Each epsilon: {epsilon_terms}, against the observers named below."
    head = ("Epsilon", "Clients", "Repeats", "Mean error", "Interval", "Root mean square", "Held")
    return Table(caption, head, rows, numeric=frozenset(range(1, 7)))


def _row(cell: StatisticsCell, query: Repeats) -> Sequence[Value]:
    ends = query.error.interval if query.error else None
    return (
        words.target(cell.epsilon),
        "—" if cell.clients is None else f"{cell.clients:,}",
        "—" if cell.repeats is None else f"{cell.repeats:,}",
        figures.error(query.error.mean if query.error else None, query.kind)
        + (f"\n({figures.percent(query.told)} released)" if _some_untold(query) else ""),
        "—" if ends is None else " to ".join(figures.error(end, query.kind) for end in ends),
        figures.error(query.rmse, query.kind),
        figures.percent(query.covered),
    )


def _some_untold(query: Repeats) -> bool:
    return query.told is not None and query.told < 1
