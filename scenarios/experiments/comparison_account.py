"""The largest part of a comparison that fits an account: its trust models, epsilons and seeds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from fedprivacy.account.largest import Fits, Suggest
from fedprivacy.scenario.sections import Compare
from fedprivacy.verification.cells import Cell
from scenarios.budgets.planned_work import as_options

_LISTS = ("trusts", "units", "mechanisms", "epsilons")
_NOTHING = {"baselines": False, "limits": [], "vary": {}, "option": {}}


@dataclass(frozen=True)
class _Choice:
    """A part of a comparison, as keys of `[compare]`.

    Args:
        lists: For each key of `_LISTS` its values.
        others: Whether baselines, limits, variations and options stay.
    """

    lists: dict[str, tuple[object, ...]]
    others: bool

    def has(self, cell: Cell) -> bool:
        """Whether a cell belongs to it."""
        if cell.part != "cells":
            in_epsilons = cell.epsilon in self.lists["epsilons"]
            return self.others and (cell.part != "options" or in_epsilons)
        corner = cell.corner
        values = (corner.trust, corner.unit, corner.mechanism, cell.epsilon)
        return all(
            value is None or value in self.lists[key] for key, value in zip(_LISTS, values, strict=True)
        )

    def options(self, compare: Compare, seeds: Sequence[int]) -> list[str]:
        """The options that run it, with these seeds."""
        chosen: dict[str, object] = {key: list(value) for key, value in self.lists.items()}
        chosen |= {"seeds": list(seeds), **({} if self.others else _NOTHING)}
        now = compare.model_dump(mode="json")
        return [f"compare.{key}={json.dumps(value)}" for key, value in chosen.items() if value != now[key]]


def largest_comparison(compare: Compare, cells: Sequence[Cell]) -> Suggest:
    """Chooses among the runs of a comparison those that fit, in the order of cells and their seeds.

    Args:
        compare: Its section.
        cells: Its cells.
    """
    seeds = list(compare.seeds)

    def runs(chosen: Sequence[int], count: int) -> list[int]:
        return [at * len(seeds) + seed for at in chosen for seed in range(count)]

    def suggest(fits: Fits) -> str:
        usable = {at for at in range(len(cells)) if fits(runs([at], 1))}
        parts = []
        for choice in _choices(compare):
            chosen = [at for at, cell in enumerate(cells) if choice.has(cell)]
            if chosen and usable.issuperset(chosen):
                parts.append((choice, chosen))
        best, largest = "", 0
        for choice, chosen in sorted(parts, key=lambda each: -len(each[1])):
            if len(chosen) * len(seeds) <= largest:
                break
            low, high = largest // len(chosen), len(seeds) + 1  # of seeds: too few to be larger, too many
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if fits(runs(chosen, middle)) else (low, middle)
            if low * len(chosen) > largest:
                best, largest = as_options(choice.options(compare, seeds[:low])), low * len(chosen)
        if not best:
            return ""
        return f"The largest part of it that fits has {largest:,} of {len(cells) * len(seeds):,} runs{best}"

    return suggest


def options_of_cell(compare: Compare, cell: Cell, epsilon: float, seed: int) -> list[str]:
    """The options with which a comparison is one run of a cell, at another epsilon.

    Args:
        compare: Its section.
        cell: The cell.
        epsilon: The epsilon.
        seed: The seed of the run.
    """
    values = (cell.corner.trust, cell.corner.unit, cell.corner.mechanism, epsilon)
    lists = {
        key: getattr(compare, key) if value is None else (value,)
        for key, value in zip(_LISTS, values, strict=True)
    }
    return _Choice(lists, others=False).options(compare, [seed])


def _choices(compare: Compare) -> Iterator[_Choice]:
    """The parts of a comparison: of each list all values or a single one; of epsilons the smallest too."""
    lists = []
    for key in _LISTS:
        values = getattr(compare, key)
        several = [values, *([value] for value in values)]
        if key == "epsilons":
            smallest = sorted(values)
            several += [smallest[:count] for count in range(2, len(values))]
        lists.append(list(dict.fromkeys(tuple(each) for each in several)))
    for others, *chosen in product((True, False), *lists):
        yield _Choice(dict(zip(_LISTS, chosen, strict=True)), others)
