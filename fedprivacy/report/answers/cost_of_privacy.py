"""The accuracy that a trust model costs against no noise, and whether the seeds suffice to state it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fedprivacy.documents.cell import Cell
from fedprivacy.records.seed_statistics import Difference, difference
from fedprivacy.report import majority, words

NARROW = 2.0  # points: an interval around 0 that is not wider to either side is an answer too


@dataclass(frozen=True)
class Cost:
    """What one trust model costs at one epsilon.

    Args:
        name: Of the trust model.
        best: The same, with the number of cells of which this is the most accurate.
        accuracy: What it reaches, as printed.
        points: The cost in percentage points, as printed.
        gap: The difference to the cell without noise, seed by seed; None where the pairs are not known.
        beaten: The clause that the model does not exceed the most frequent class; else empty.
    """

    name: str
    best: str
    accuracy: str
    points: str
    gap: Difference | None
    beaten: str

    @property
    def undecided(self) -> bool:
        """Whether the seeds are too few to tell the cost: its interval is too wide for its size."""
        gap = self.gap
        if gap is None or gap.low is None or gap.high is None:
            return False
        return gap.vague or (gap.undecided and max(-gap.low, gap.high) > NARROW)

    @property
    def interval(self) -> str:
        """The interval of the cost, for a label."""
        gap = self.gap
        if gap is None:
            return ""
        if gap.low is None or gap.high is None:
            return gap.interval()
        low, high = max(gap.low, -gap.most), min(gap.high, gap.most)
        return f"95 % interval {low:.1f} to {high:.1f}".replace("-", "−")


def of_cell(base: Cell, cell: Cell, name: str, best: str, *, paired: bool) -> Cost:
    """The cost of a cell.

    Args:
        base: The cell without noise.
        cell: The cell.
        name: Of its trust model.
        best: The same, with the number of cells of which this is the most accurate.
        paired: Whether both cells have the accuracies of the same seeds, in the same order.
    """
    gap = _difference(base, cell) if paired else None
    accuracy = words.accuracy(cell.accuracy.mean)
    return Cost(name, best, accuracy, points(base, cell), gap, majority.of_cell(cell))


def points(base: Cell, cell: Cell) -> str:
    """Percentage points that a cell lies below the model without noise; above it they are negative."""
    # The printed accuracies must differ by the printed points.
    lost = round(100 * (base.accuracy.mean or 0.0), 1) - round(100 * (cell.accuracy.mean or 0.0), 1)
    return f"{lost:.1f}".replace("-", "−").replace("−0.0", "0.0")


def enough_seeds(costs: Sequence[Cost]) -> str:
    """How many seeds ran, and how many would tell the costs that these do not.

    >>> gap = Difference(0.9, 0.4, 48.7, -8.4, 105.8, seeds=2)
    >>> enough_seeds([Cost("Local", "Local", "40.5 %", "48.7", gap, "")])
    '2 ran, about 4 would do'
    """
    gaps = [cost.gap for cost in costs if cost.gap is not None]
    ran, needed = min(gap.seeds for gap in gaps), [gap.seeds_needed for gap in gaps]
    known = [number for number in needed if number is not None]
    if len(known) < len(needed):
        return f"{ran} ran"
    return f"{ran} ran, about {max(known):,} would do"


def caution(base: Cell | None, at: str, costs: Sequence[Cost]) -> list[str]:
    """The sentences that keep a reader from taking the accuracies at their word.

    Args:
        base: The cell without noise, if it was trained.
        at: The epsilon, with its name.
        costs: Those at this epsilon.
    """
    if base is not None and (beaten := majority.of_cell(base)):
        return [UNLEARNED.format(beaten, words.accuracy(base.accuracy.mean))]
    sentences = [f"At {at} {cost.name} is {cost.beaten}." for cost in costs if cost.beaten]
    if unclear := [cost for cost in costs if cost.undecided]:
        who = words.listed(cost.name for cost in unclear)
        sentences.append(f"Too few seeds to tell what {who} costs at {at}: {enough_seeds(unclear)}.")
    return sentences


NO_COST = "this measures no cost of privacy."
UNLEARNED = f"Even without noise the model is {{}} ({{}}): {NO_COST}"


def _difference(base: Cell, cell: Cell) -> Difference | None:
    """The difference over pairs in their order, since a public page has no seeds."""
    first, second = base.accuracies, cell.accuracies
    if len(first) != len(second) or not first or None in (*first, *second):
        return None
    seeds, key = range(len(first)), "scores" if base.scores else "accuracies"
    return difference({"seeds": seeds, key: first}, {"seeds": seeds, key: second})
