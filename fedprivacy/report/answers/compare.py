"""The answer of a comparison: the accuracy that privacy costs at the strictest epsilon."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fedprivacy.documents.cell import Cell
from fedprivacy.documents.comparison import CompareDocument
from fedprivacy.documents.envelope import Arm
from fedprivacy.models.metrics.classes import Accuracy
from fedprivacy.report import arm_labels, majority, words
from fedprivacy.report.answers import cards, cost_of_privacy
from fedprivacy.report.answers.cost_of_privacy import Cost
from fedprivacy.report.blocks import Answer, Entry
from fedprivacy.report.protection import Protected

NAMED = 2  # trust models that the sentence names
FEW = "Too few seeds"
WITHHELD = "The accuracies are operator-only."


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
    private, title = _private(document), document.primary.title
    on = cards.brief(words.evaluated_on(document.evaluated_on), 6)
    shown = [
        cards.cost(
            _lines(document, sorted(private), base), f"{words.capital(title)} on {on}, {document.averaged}."
        ),
        cards.protected(cells),
        cards.learned(cells),
    ]
    if not private:
        if document.lacks_accuracy:
            known = f"The {title} of each model is operator-only."
            known = WITHHELD if document.primary is Accuracy else known
            return cards.answer(known, "—", f"{title} on {on}", cells, shown)
        known = "No cell has a result." if base is None else "No cell with privacy has a result."
        return cards.answer(known, _accuracy(base), f"{title} without noise, on {on}", cells, shown)
    strictest = min(private)
    at = f"epsilon {words.target(strictest)}"
    every = _best(document, strictest)
    best = {best.named(name): best.cell for name, best in list(every.items())[:NAMED]}
    among = f"; best of {len(every)}" if len(every) > 1 else ""
    if base is None:
        each = words.listed(f"{words.accuracy(_mean(cell))} under {name}" for name, cell in best.items())
        name, cheapest = next(iter(best.items()))
        value, label = words.accuracy(_mean(cheapest)), f"{title} at {at}, under {name}{among}"
        reaches = "is right on" if document.primary is Accuracy else f"reaches {title}"
        return cards.answer(f"At {at} the model {reaches} {each}.", value, label, cells, shown)
    costs = _costs(document, strictest)
    return cards.answer(*_stated(base, costs, at, among, title), cells, shown)


def cautions(document: CompareDocument) -> list[str]:
    """The cautions about a comparison for a terminal: a model that has not learned, or too few seeds."""
    private, base = _private(document), _without_noise(document)
    if not private or base is None:
        return []
    sentences: list[str] = []
    for epsilon in dict.fromkeys((min(private), max(private))):
        at = f"epsilon {words.target(epsilon)}"
        sentences += cost_of_privacy.caution(base, at, _costs(document, epsilon))
    return list(dict.fromkeys(sentences))


def _private(document: CompareDocument) -> set[float]:
    """The epsilons at which a cell has an accuracy."""
    return {cell.epsilon for cell in document.cells if cell.epsilon is not None and _mean(cell) is not None}


def _costs(document: CompareDocument, epsilon: float) -> list[Cost]:
    """The cost under each trust model that the sentence names, the cheapest first."""
    base = _without_noise(document)
    if base is None:
        return []
    every = list(_best(document, epsilon).items())[:NAMED]
    return [_cost(document, base, name, each) for name, each in every]


def _cost(document: CompareDocument, base: Cell, name: str, best: Best) -> Cost:
    # Of a comparison that was interrupted two cells may lack different seeds.
    paired = document.status == "finished"
    return cost_of_privacy.of_cell(base, best.cell, name, best.named(name), paired=paired)


def _stated(base: Cell, costs: Sequence[Cost], at: str, among: str, title: str) -> tuple[str, str, str]:
    """The sentence, the number in focus and its label, of costs that the seeds suffice to state."""
    if unlearned := majority.of_cell(base):
        sentence = cost_of_privacy.UNLEARNED.format(unlearned, _accuracy(base))
        return sentence, _accuracy(base), f"{title} without noise: {unlearned}"
    beaten = [f"{cost.name} is {cost.beaten}" for cost in costs if cost.beaten]
    stated = [cost for cost in costs if not (cost.beaten or cost.undecided)]
    unclear = [cost for cost in costs if cost.undecided and not cost.beaten]
    without = f"against {_accuracy(base)} without noise"
    if len(beaten) == len(costs):
        best = costs[0]
        label = f"{title} at {at}, under {best.best}: {best.beaten}"
        return f"At {at} the model is {best.beaten}, {without}.", best.accuracy, label
    if not stated:
        how_many = cost_of_privacy.enough_seeds(unclear)
        label = f"to tell what privacy costs at {at}: {how_many}"
        ending = f"; {beaten[0]}" if beaten else f": {how_many}"
        who = words.listed(cost.name for cost in unclear)
        return f"{FEW} to tell what privacy costs at {at} under {who}{ending}.", FEW, label
    first, *_ = stated
    least = among if len(stated) == len(costs) else ""
    label = f"of {title} lost at {at}, under {first.best}{least}"
    label += f"; {first.interval}" if first.interval else ""
    each = words.listed(
        f"{cost.points}{f' points of {title}' * (cost is first)} under {cost.best}" for cost in stated
    )
    rest = [*beaten, *(f"too few seeds to tell under {cost.name}" for cost in unclear)]
    ending = f"; {rest[0]}" if rest else f", {without}"
    return f"At {at} privacy costs {each}{ending}.", f"{first.points} points", label


def _lines(document: CompareDocument, epsilons: Sequence[float], base: Cell | None) -> list[Entry]:
    """What each trust model costs at the strictest and the largest epsilon."""
    ends = [*epsilons[:1], *(epsilons[-1:] if len(epsilons) > 1 else [])]
    at_end = {epsilon: _best(document, epsilon) for epsilon in ends}
    unlearned = "" if base is None else majority.of_cell(base)
    lines = []
    for name in dict.fromkeys(name for best in at_end.values() for name in best):
        bests = {epsilon: best[name] for epsilon, best in at_end.items() if name in best}
        cells = {epsilon: best.cell for epsilon, best in bests.items()}
        label = max(bests.values(), key=lambda best: best.of).named(name)
        accuracies = [
            f"{words.accuracy(_mean(cell))} at epsilon {words.target(e)}" for e, cell in cells.items()
        ]
        if base is None or unlearned:  # of a model that has not learned there is nothing to lose
            lines.append(Entry(f"{label}: {words.listed(accuracies)}"))
            continue
        costs = [_cost(document, base, name, best) for best in bests.values()]
        text = f"{' to '.join(dict.fromkeys(cost.points for cost in costs))} points"
        if any(cost.undecided for cost in costs):
            each = [f"{FEW.lower()} to tell" if c.undecided else f"{c.points} points" for c in costs]
            same = len(set(each)) == 1
            at = [] if same else [f"{t} at {words.target(e)}" for t, e in zip(each, bests, strict=True)]
            text = ", ".join(at) or each[0]
        lines.append(Entry(f"{label}: {text}", words.listed(accuracies)))
    if base is not None:
        lines.append(Entry(f"Without noise: {_accuracy(base)}", words.capital(unlearned)))
    return lines


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


def _without_noise(document: CompareDocument) -> Cell | None:
    return next((cell for cell in document.cells if cell.trust == "none" and _mean(cell) is not None), None)


def _accuracy(cell: Cell | None) -> str:
    return words.accuracy(None if cell is None else _mean(cell))


def _mean(cell: Cell) -> float | None:
    mean = cell.accuracy.mean
    return mean if mean is not None and math.isfinite(mean) else None
