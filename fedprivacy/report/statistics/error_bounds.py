"""Error bounds of whole answers, and the share of repeats within them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from fedprivacy.documents.answers import Repeats
from fedprivacy.documents.statistics import StatisticsComparison
from fedprivacy.report import arm_labels, words
from fedprivacy.report.blocks import Group, Section, Table, Value
from fedprivacy.report.statistics import figures
from fedprivacy.report.statistics.answer_charts import CHOICES

Row = Callable[[Repeats], tuple[str, ...]]
CHOSEN = (
    "Epsilon", "Clients", "Best chosen", "Worth on average", "Best possible", "Lost", "Promised loss at most",
    "Within it",
)  # fmt: skip
ERRED = ("Epsilon", "Clients", "Error on average", "Interval", "Promised at most", "Within it")
PROMISED = ("Epsilon", "Clients", "Promised at most")
TRUTH = "Only this simulation knows what is true, and no guarantee covers those who see it."


def of_comparison(document: StatisticsComparison) -> list[Section]:
    """Shares of best choices with their losses, and largest errors beside their bounds."""
    if document.lacks_truth:
        return _promised(document)
    choices = [query for query in document.questions if query.kind in CHOICES]
    bounded = [
        query
        for query in document.questions
        if query.kind not in CHOICES
        and any(result.bound for cell in document.cells if (result := cell.query(query.name)))
    ]
    epsilon_terms = words.terms(document.guarantees())
    epsilon = f" Each epsilon: {epsilon_terms}, against the observers named above." if epsilon_terms else ""
    odds = " A promise holds with the probability in brackets."
    rows = []
    if choices:
        caption = f"What was chosen over the repeats, beside the best. Lost: as a share. {TRUTH}{epsilon}"
        table = _table(caption + odds, CHOSEN, _rows(document, choices, _choice))
        rows.append(Section("choices", "How good the choices are", [table]))
    if bounded:
        caption = f"Errors over the repeats beside what the mechanism promises. {TRUTH}{epsilon}"
        table = _table(caption + odds, ERRED, _rows(document, bounded, _bounded))
        rows.append(Section("promises", "What was promised, and what held", [table]))
    return rows


def _promised(document: StatisticsComparison) -> list[Section]:
    """The bounds alone, which need no true value."""
    queries = [
        query
        for query in document.questions
        if any(result.bound for cell in document.cells if (result := cell.query(query.name)))
    ]
    if not queries:
        return []
    caption = "What the mechanisms promise, with the probability in brackets. Each epsilon: "
    caption += f"{words.terms(document.guarantees())}, against the observers named above."
    rows = _rows(document, queries, lambda query: _observed_errors(query)[:1])
    return [Section("promises", "What was promised", [_table(caption, PROMISED, rows)])]


def _table(caption: str, head: Sequence[str], rows: Iterable[Sequence[Value] | Group]) -> Table:
    return Table(caption, head, list(rows), numeric=frozenset(range(1, len(head))))


def _rows(
    document: StatisticsComparison, queries: Sequence[Repeats], row: Row
) -> Iterator[Sequence[Value] | Group]:
    """A group for each query and arm, a row for each epsilon and number of clients."""
    for query in queries:
        for arm in document.arms:
            cells = [(cell, result) for cell in document.of(arm) if (result := cell.query(query.name))]
            cells = [(cell, result) for cell, result in cells if cell.epsilon is not None]
            if not cells:
                continue
            promised = next((result.bound.what for _, result in cells if result.bound), "")
            what = [f"worth: {query.scored}"] if query.scored else []
            what.append(f"promised: {promised}" if promised else "nothing is promised")
            yield Group(f"{query.name}: {arm_labels.arm(arm)}", "; ".join(what))
            for cell, result in cells:
                clients = "—" if cell.clients is None else f"{cell.clients:,}"
                yield (words.target(cell.epsilon), clients, *row(result))


def _choice(query: Repeats) -> tuple[str, ...]:
    score = query.score.mean if query.score else None
    return (
        figures.percent(query.right),
        words.number(score),
        words.number(query.best),
        figures.percent(query.error.mean if query.error else None),
        *_observed_errors(query),
    )


def _bounded(query: Repeats) -> tuple[str, ...]:
    ends = query.error.interval if query.error else None
    return (
        figures.error(query.error.mean if query.error else None),
        "—" if ends is None else f"{figures.error(ends[0])} to {figures.error(ends[1])}",
        *_observed_errors(query),
    )


def _observed_errors(query: Repeats) -> tuple[str, str]:
    """Each bound with its probability, and the share of the repeats within it."""
    if query.bound is None:
        return "—", "—"
    chance = query.bound.probability
    often = "" if chance is None else f" ({figures.chance(chance)})"
    return words.number(query.bound.at_most) + often, figures.percent(query.within_bound)
