"""The answer of a comparison: the accuracy that privacy costs at the strictest epsilon."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fedprivacy.documents.cell import Cell
from fedprivacy.documents.comparison import CompareDocument
from fedprivacy.documents.envelope import Arm
from fedprivacy.report import arm_labels, words
from fedprivacy.report.answers import cards
from fedprivacy.report.blocks import Answer, Entry
from fedprivacy.report.protection import Protected

NAMED = 2  # trust models that the sentence names


@dataclass(frozen=True)
class Best:
    """The most accurate cell of a trust model at an epsilon, and of how many it is the best.

    Args:
        cell: The cell.
        of: The number of cells that were compared, on the same records.
    """

    cell: Cell
    of: int

    def named(self, name: str) -> str:
        """The name of the trust model; a maximum over several cells says so, since it flatters a little."""
        return name if self.of == 1 else f"{name} (best of {self.of})"


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
    every = _best(document, strictest)
    best = {best.named(name): best.cell for name, best in list(every.items())[:NAMED]}
    among = f"; best of {len(every)}" if len(every) > 1 else ""
    if base is None:
        each = words.listed(f"{words.accuracy(_mean(cell))} under {name}" for name, cell in best.items())
        name, cheapest = next(iter(best.items()))
        value, label = words.accuracy(_mean(cheapest)), f"accuracy at {at}, under {name}{among}"
        return cards.answer(f"At {at} the model is right on {each}.", value, label, cells, shown)
    costs = {name: _points(base, cell) for name, cell in best.items()}
    name, least = next(iter(costs.items()))
    label = f"of accuracy lost at {at}, under {name}{among}"
    each = words.listed(
        f"{points}{' points of accuracy' * (other == name)} under {other}" for other, points in costs.items()
    )
    sentence = f"At {at} privacy costs {each}, against {words.accuracy(base)} without noise."
    return cards.answer(sentence, f"{least} points", label, cells, shown)


def _lines(document: CompareDocument, epsilons: Sequence[float], base: float | None) -> list[Entry]:
    """What each trust model costs at the strictest and the largest epsilon."""
    ends = [*epsilons[:1], *(epsilons[-1:] if len(epsilons) > 1 else [])]
    at_end = {epsilon: _best(document, epsilon) for epsilon in ends}
    lines = []
    for name in dict.fromkeys(name for best in at_end.values() for name in best):
        bests = {epsilon: best[name] for epsilon, best in at_end.items() if name in best}
        cells = {epsilon: best.cell for epsilon, best in bests.items()}
        label = max(bests.values(), key=lambda best: best.of).named(name)
        accuracies = [
            f"{words.accuracy(_mean(cell))} at epsilon {words.target(e)}" for e, cell in cells.items()
        ]
        if base is None:
            lines.append(Entry(f"{label}: {words.listed(accuracies)}"))
            continue
        costs = " to ".join(dict.fromkeys(_points(base, cell) for cell in cells.values()))
        lines.append(Entry(f"{label}: {costs} points", words.listed(accuracies)))
    return lines + ([] if base is None else [Entry(f"Without noise: {words.accuracy(base)}")])


def _best(document: CompareDocument, epsilon: float) -> dict[str, Best]:
    """By trust model (and unit) its most accurate cell at an epsilon, the cheapest trust model first."""
    groups: dict[str, list[Cell]] = {}
    for arm in document.arms:
        measured = [cell for cell in document.of(arm) if cell.epsilon == epsilon and _mean(cell) is not None]
        groups.setdefault(arm_labels.trust(Arm(arm.trust, unit=arm.unit)), []).extend(measured)
    best = {name: Best(max(group, key=_reached), len(group)) for name, group in groups.items() if group}
    return dict(sorted(best.items(), key=lambda named: -_reached(named[1].cell)))


def _reached(cell: Cell) -> float:
    return _mean(cell) or 0.0


def _without_noise(document: CompareDocument) -> float | None:
    means = (_mean(cell) for cell in document.cells if cell.trust == "none")
    return next((mean for mean in means if mean is not None), None)


def _mean(cell: Cell) -> float | None:
    mean = cell.accuracy.mean
    return mean if mean is not None and math.isfinite(mean) else None


def _points(base: float, cell: Cell) -> str:
    """Percentage points that a cell lies below the model without noise; above it they are negative."""
    # The printed accuracies must differ by the printed points.
    points = round(100 * base, 1) - round(100 * _reached(cell), 1)
    return f"{points:.1f}".replace("-", "−").replace("−0.0", "0.0")
