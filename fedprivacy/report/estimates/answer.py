"""The answer of a study of private estimates: the approach that loses least at the strictest epsilon."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fedprivacy.documents.estimates import EstimatesCell, EstimatesDocument
from fedprivacy.report import words
from fedprivacy.report.answers import cards
from fedprivacy.report.blocks import Answer, Entry
from fedprivacy.report.protection import Protected

SHOWN = 3  # approaches of the card


def of_estimates(document: EstimatesDocument, cells: Sequence[Protected]) -> Answer:
    """The best approach, and how many times as much the worst loses.

    Args:
        document: The study.
        cells: Its guarantees.
    """
    rest = [cards.protected(cells), cards.learned(cells)]
    ranked = _ranked(document)
    if not ranked:
        if document.lacks_truth:
            shown = [cards.cost([Entry("Losses are operator-only")], "Their bounds stand below."), *rest]
            sentence = f"The losses are operator-only; {cards.against(cells)}."
            return cards.answer(sentence, "—", "mean excess of the objective", cells, shown)
        shown = [cards.cost([Entry("No loss was measured")]), *rest]
        return cards.answer("No estimate was made.", "—", "no loss", cells, shown)
    best, worst = ranked[0], ranked[-1]
    at = f"epsilon {words.target(best.epsilon)} and {best.records:,} records"
    value = words.number(_excess(best), 3)
    lines = [
        Entry(f"{cards.brief(cell.approach)}: {words.number(_excess(cell), 3)}", _above(document, cell))
        for cell in ranked[:SHOWN]
    ]
    more = len(ranked) - SHOWN
    note = f"Mean excess of the objective over its exact minimum, at {at}"
    note += (
        f"; {words.counted(more, 'approach')[:-1] + 'es' if more > 1 else '1 approach'} more below."
        if more > 0
        else "."
    )
    name = cards.brief(best.approach)
    among = f" of {len(ranked)}" if len(ranked) > 1 else ""
    sentence = f"At {at}, {name} loses least{among}: {value} above the exact minimum"
    if len(ranked) > 1 and _excess(best) > 0:
        ratio = words.number(_excess(worst) / _excess(best), 2)
        sentence += f"; {cards.brief(worst.approach)} loses {ratio} times that"
    above = _above(document, best)
    label = f"mean excess of the objective{above and f', {above}'}, by {name}, at {at}"
    return cards.answer(f"{sentence}.", value, label, cells, [cards.cost(lines, note), *rest])


def _above(document: EstimatesDocument, cell: EstimatesCell) -> str:
    """By which share the loss exceeds the least possible one; empty where that is not known."""
    least = next((entry.value for entry in document.exact if entry.records == cell.records), None)
    if not isinstance(least, int | float) or not 0 < least < math.inf:
        return ""
    return f"{words.number(100 * _excess(cell) / least, 2)} % more loss than the least possible"


def _ranked(document: EstimatesDocument) -> list[EstimatesCell]:
    """The cells of most records at the strictest epsilon, the least loss first."""
    measured = [cell for cell in document.fitted_cells if cell.excess.mean is not None]
    if not measured:
        return []
    records = max(cell.records for cell in measured)
    epsilon = min(cell.epsilon for cell in measured if cell.records == records)
    return sorted((c for c in measured if (c.records, c.epsilon) == (records, epsilon)), key=_excess)


def _excess(cell: EstimatesCell) -> float:
    return cell.excess.mean or 0.0
