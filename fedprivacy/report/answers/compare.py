"""The answer of a comparison: the accuracy that privacy costs at the strictest epsilon."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fedprivacy.documents.comparison import Cell, CompareDocument
from fedprivacy.documents.envelope import Arm
from fedprivacy.report import names, words
from fedprivacy.report.answers import cards
from fedprivacy.report.blocks import Answer, Entry
from fedprivacy.report.protection import Protected

NAMED = 2  # trust models that the sentence names
Best = dict[str, Cell]  # by trust model (and unit), the most accurate cell at an epsilon


def of_comparison(document: CompareDocument, cells: Sequence[Protected]) -> Answer:
    """What each trust model costs at the strictest epsilon, against the model without noise.

    Args:
        document: The comparison.
        cells: Its guarantees.
    """
    base = _without_noise(document)
    private = {
        cell.epsilon for cell in document.cells if cell.epsilon is not None and _mean(cell) is not None
    }
    on = cards.brief(words.evaluated_on(document.evaluated_on), 6)
    shown = [
        cards.cost(_lines(document, sorted(private), base), f"Accuracy on {on}, {document.averaged}."),
        cards.protected(cells),
        cards.learned(cells),
    ]
    if not private:
        if document.lacks_accuracy:
            known = "The accuracies are operator-only."
            return cards.answer(known, "—", f"accuracy on {on}", cells, shown)
        known = "No cell has a result." if base is None else "No cell with privacy has a result."
        return cards.answer(known, words.accuracy(base), f"accuracy without noise, on {on}", cells, shown)
    strictest = min(private)
    at = f"epsilon {words.target(strictest)}"
    best = dict(list(_best(document, strictest).items())[:NAMED])
    if base is None:
        each = words.listed(f"{words.accuracy(_mean(cell))} under {name}" for name, cell in best.items())
        name, cheapest = next(iter(best.items()))
        value, label = words.accuracy(_mean(cheapest)), f"accuracy at {at}, under {name}"
        return cards.answer(f"At {at} the model is right on {each}.", value, label, cells, shown)
    costs = {name: _points(base, cell) for name, cell in best.items()}
    name, least = next(iter(costs.items()))
    each = words.listed(
        f"{points}{' points of accuracy' * (other == name)} under {other}" for other, points in costs.items()
    )
    sentence = f"At {at} privacy costs {each}, against {words.accuracy(base)} without noise."
    return cards.answer(sentence, f"{least} points", f"of accuracy lost at {at}, under {name}", cells, shown)


def _lines(document: CompareDocument, epsilons: Sequence[float], base: float | None) -> list[Entry]:
    """What each trust model costs at the strictest and the largest epsilon."""
    ends = [*epsilons[:1], *(epsilons[-1:] if len(epsilons) > 1 else [])]
    at_end = {epsilon: _best(document, epsilon) for epsilon in ends}
    lines = []
    for name in dict.fromkeys(name for best in at_end.values() for name in best):
        cells = {epsilon: best[name] for epsilon, best in at_end.items() if name in best}
        accuracies = [
            f"{words.accuracy(_mean(cell))} at epsilon {words.target(e)}" for e, cell in cells.items()
        ]
        if base is None:
            lines.append(Entry(f"{name}: {words.listed(accuracies)}"))
            continue
        costs = " to ".join(dict.fromkeys(_points(base, cell) for cell in cells.values()))
        lines.append(Entry(f"{name}: {costs} points", words.listed(accuracies)))
    return lines + ([] if base is None else [Entry(f"Without noise: {words.accuracy(base)}")])


def _best(document: CompareDocument, epsilon: float) -> Best:
    """The most accurate cell of each trust model at an epsilon, the cheapest trust model first."""
    best: Best = {}
    for arm in document.arms:
        for cell in document.of(arm):
            if cell.epsilon != epsilon or _mean(cell) is None:
                continue
            name = names.trust(Arm(arm.trust, unit=arm.unit))
            if name not in best or (_mean(cell) or 0.0) > (_mean(best[name]) or 0.0):
                best[name] = cell
    return dict(sorted(best.items(), key=lambda named: -(_mean(named[1]) or 0.0)))


def _without_noise(document: CompareDocument) -> float | None:
    means = (_mean(cell) for cell in document.cells if cell.trust == "none")
    return next((mean for mean in means if mean is not None), None)


def _mean(cell: Cell) -> float | None:
    mean = cell.accuracy.mean
    return mean if mean is not None and math.isfinite(mean) else None


def _points(base: float, cell: Cell) -> str:
    """Percentage points that a cell lies below the model without noise; above it they are negative."""
    # The printed accuracies must differ by the printed points.
    points = round(100 * base, 1) - round(100 * (_mean(cell) or 0.0), 1)
    return f"{points:.1f}".replace("-", "−").replace("−0.0", "0.0")
