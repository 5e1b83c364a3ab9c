"""The answer of a statistics run, and of a comparison of statistics."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fedprivacy.attacks import sample_size
from fedprivacy.documents.answers import Query, Repeats
from fedprivacy.documents.statistics import StatisticsComparison, StatisticsDocument
from fedprivacy.report import words
from fedprivacy.report.answers import cards
from fedprivacy.report.blocks import Answer, Entry
from fedprivacy.report.protection import Protected
from fedprivacy.report.statistics import answer_charts, figures
from fedprivacy.statistics.comparison import SHARES

RELEASED = 3  # queries of a card
MANY = 10  # labels of an answer; of more, none stands for all
NAMED = 2  # trust models of the sentence
FEW, FEW_REPEATS = "Too few people", "Too few repeats"


def of_run(document: StatisticsDocument, cells: Sequence[Protected]) -> Answer:
    """The first answer with its interval, and against whom it is private.

    Args:
        document: The run.
        cells: Its guarantees.
    """
    queries = [(query, *published(query)) for query in document.queries]
    lines = [_line(*published_query) for published_query in queries[:RELEASED]]
    more = len(queries) - RELEASED
    note = f"And {words.counted(more, 'more answer')} below." if more > 0 else ""
    shown = [
        cards.cost(lines or [Entry("No query was answered")], f"{_NOISE} {note}".strip()),
        cards.protected(cells),
        cards.learned(cells),
    ]
    if not queries:
        return cards.answer(f"No query was answered; {cards.against(cells)}.", "—", "no answer", cells, shown)
    query, label, value, interval = queries[0]
    name = cards.brief(query.name)
    if how_many := too_few(document, query):
        sentence = f"{FEW} to tell {name}: {how_many}; {cards.against(cells)}."
        label = f"to tell {name}: {value}, {interval}; {how_many}"
        return cards.answer(sentence, FEW, label, cells, shown)
    if bounded := _bounded(query):
        many, bound, chance = bounded
        sentence = f"All {many} of {name} are within ±{bound}; {cards.against(cells)}."
        return cards.answer(sentence, f"±{bound}", f"{many} of {name}, {chance}", cells, shown)
    what = f"{name}, {label}" if label else name
    sentence = f"The answer to {what} is {value}; {cards.against(cells)}."
    return cards.answer(sentence, value, f"{what}{interval and f', {interval}'}", cells, shown)


def _line(query: Query, label: str, value: str, interval: str) -> Entry:
    """A query's line in a card: of many categories the bound on all of them."""
    name = cards.brief(query.name)
    if bounded := _bounded(query):
        many, bound, chance = bounded
        return Entry(f"{name}: {many}, each ±{bound}", chance)
    return Entry(f"{name}, {label}: {value}" if _is_many(query) else f"{name}: {value}", interval)


def _is_many(query: Query) -> bool:
    """Whether no single category can stand for the answer."""
    return query.kind != "quantile" and len(query.rows) > MANY


def _bounded(query: Query) -> tuple[str, str, str] | None:
    """How many counts, the bound on their errors, and how likely; None without such a bound."""
    bound = query.bound
    if query.kind != "histogram" or bound is None or not _is_many(query):
        return None
    odds = "" if bound.probability is None else f" with probability {figures.chance(bound.probability)}"
    return f"{len(query.rows):,} counts", words.number(bound.at_most), f"all of them{odds}"


_NOISE = "The noise of privacy is in the intervals."


def of_comparison(document: StatisticsComparison, cells: Sequence[Protected]) -> Answer:
    """The error of the first query under each trust model at the strictest epsilon.

    Args:
        document: The comparison.
        cells: Its guarantees.
    """
    query = next((q for q in document.questions if _errors(document, q.name, None)), None)
    rest = [cards.protected(cells), cards.learned(cells)]
    if query is None or not document.epsilons:
        if document.lacks_truth:
            shown = [cards.cost([Entry("Errors are operator-only", "operator.html has them")]), *rest]
            sentence = f"The errors are operator-only; {cards.against(cells)}."
            return cards.answer(sentence, "—", "mean error", cells, shown)
        shown = [cards.cost([Entry("No error was measured")]), *rest]
        return cards.answer("No cell with privacy has a result.", "—", "no error", cells, shown)
    ends = list(dict.fromkeys([document.epsilons[0], document.epsilons[-1]]))
    by_end = {epsilon: _errors(document, query.name, epsilon) for epsilon in ends}
    lines = []
    for trust in dict.fromkeys(trust for errors in by_end.values() for trust in errors):
        known = {epsilon: errors[trust] for epsilon, errors in by_end.items() if trust in errors}
        each = (f"{_error(best)} at epsilon {words.target(epsilon)}" for epsilon, best in known.items())
        few = f"{FEW_REPEATS} to tell" if any(map(figures.unclear, known.values())) else ""
        lines.append(Entry(f"{words.trust(trust)}: error {words.listed(each)}", few))
    name, strictest = cards.brief(query.name), next((e for e in ends if by_end[e]), ends[0])
    measure = query.measure or "error"
    size = f", with {document.sizes[-1]:,} clients" if len(document.sizes) > 1 else ""
    shown = [cards.cost(lines, f"Mean {measure} of {name}{size}."), *rest]
    errors = by_end[strictest]
    # The trust model of the scenario is the headline, not the mildest one.
    requested = document.setting("privacy", "trust")
    errors = dict(sorted(errors.items(), key=lambda named: named[0] != requested)[:NAMED])
    if not errors:
        return cards.answer("No cell with privacy has a result.", "—", "no error", cells, shown)
    shares = words.listed(f"{_error(best)} under {words.trust(trust)}" for trust, best in errors.items())
    trust, first = next(iter(errors.items()))
    at = f"epsilon {words.target(strictest)}"
    label = f"mean error of {name} at {at}, under {words.trust(trust)}"
    if figures.unclear(first):
        sentence = f"{FEW_REPEATS} to tell the mean error of {name} at {at} under {words.trust(trust)}."
        return cards.answer(sentence, FEW_REPEATS, f"to tell the {label}", cells, shown)
    sentence = f"At {at} the mean error of {name} is {shares}."
    return cards.answer(sentence, _error(first), label, cells, shown)


def _errors(document: StatisticsComparison, name: str, epsilon: float | None) -> dict[str, Repeats]:
    """The result of least error under each trust model, for most clients; the smallest first.

    Args:
        document: The comparison.
        name: Of the query.
        epsilon: The budget; None for any.
    """
    most = document.sizes[-1] if document.sizes else None
    errors: dict[str, Repeats] = {}
    for cell in document.cells:
        result: Repeats | None = cell.query(name)
        private = cell.epsilon is not None and epsilon in (None, cell.epsilon)
        if result is None or _mean(result) is None or not private or cell.clients not in (None, most):
            continue
        errors[cell.trust] = min(result, errors.get(cell.trust, result), key=_size)
    return dict(sorted(errors.items(), key=lambda named: _size(named[1])))


def _mean(result: Repeats | None) -> float | None:
    return result.error.mean if result is not None and result.error is not None else None


def _size(result: Repeats) -> float:
    return _mean(result) or 0.0


def _error(result: Repeats) -> str:
    return figures.error(_mean(result), result.kind)


def published(query: Query) -> tuple[str, str, str]:
    """The label of a query's first or largest number, the number, and its interval."""
    if query.kind in answer_charts.CHOICES or isinstance(query.estimate, str):
        return "chosen", cards.brief(figures.chosen(query.kind, query.estimate)), ""
    known = [row for row in query.rows if row.estimate is not None]
    if not known:
        return "", cards.brief(figures.UNKNOWN), ""
    row = known[0] if query.kind == "quantile" else max(known, key=lambda row: row.estimate or 0.0)
    decimals = figures.fitting(query.kind, row.interval)
    interval = (
        f"{answer_charts.confident(query)} {figures.interval(query.kind, row.interval, decimals)}"
        if row.interval
        else ""
    )
    label = cards.brief(row.label)
    if _is_many(query):
        label = f"the largest of {len(query.rows):,} ({label})"
    return label, figures.value(query.kind, row.estimate, decimals=decimals), interval


def too_few(document: StatisticsDocument, query: Query) -> str:
    """How many people would do, where the interval of a query's share tells nothing; else empty.

    The width of the noise falls by the square root of the number of clients under local trust, by the number
    itself where the server adds the noise to a total, and in between behind a shuffler. It is public, as the
    interval is.
    """
    widths = [high - low for low, high in (row.interval for row in query.rows if row.interval)]
    if query.kind not in SHARES or not widths or sample_size.tells(0.0, max(widths)):
        return ""
    ratio = max(widths) / sample_size.GOAL
    times = ratio if document.trust == "central" else ratio**2
    people = document.privacy.population
    if document.trust == "shuffled" and people is not None:
        times = _behind_shuffler(document, query, people, ratio) / people
    if people is None:  # where a client may be there or not, their number is private
        return f"about {_rounded_up(times)} times as many would do"
    return f"{people:,} took part, about {_rounded_up(times * people)} would do"


def _behind_shuffler(document: StatisticsDocument, query: Query, people: int, ratio: float) -> float:
    """The number of people whose noise is `ratio` times smaller, when more of them hide each message."""
    from fedprivacy.statistics.shuffling import clients_for_less_noise  # the accountant is slow to import

    queries = document.scenario.get("queries") or {}
    weights = {name: float(each.get("weight") or 1.0) for name, each in queries.items()}
    share = weights.get(query.name, 1.0) / (math.fsum(weights.values()) or 1.0)
    epsilon, delta = (float(document.setting("privacy", key)) for key in ("epsilon", "delta"))
    return clients_for_less_noise(epsilon, people, delta, share, ratio)


def _rounded_up(number: float) -> str:
    """Two digits of a number, rounded up.

    >>> _rounded_up(432.1), _rounded_up(14.4)
    ('440', '15')
    """
    step: int = 10 ** max(0, len(str(math.ceil(number))) - 2)
    return f"{math.ceil(number / step) * step:,}"
