"""The largest part of plans that fits an account, in place of all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fedprivacy.account.entry import Ledgers, PlannedWork
from fedprivacy.errors import InputError

Part = Mapping[str, Any]
PartOf = Callable[[PlannedWork, Ledgers | None], Part]
Admits = Callable[[Sequence[Part]], bool]
Fits = Callable[[Sequence[int]], bool]
Suggest = Callable[[Fits], str]  # words what of several plans fits, by their numbers; empty: not one of them


def largest_part(
    works: Sequence[PlannedWork], part_of: PartOf, admits: Admits, suggest: Suggest | None = None
) -> str:
    """Words the largest part of plans that fits.

    Args:
        works: Plans that do not fit together.
        part_of: Gives a plan, or a smaller one with ledgers of its own, as an entry states it.
        admits: Whether such plans may enter together.
        suggest: Chooses among several plans; None: in their order, each that still fits.
    """
    if len(works) == 1:
        return _smaller(works[0], part_of, admits)
    parts: dict[int, Part | None] = {}

    def fits(numbers: Sequence[int]) -> bool:
        for number in numbers:
            if number not in parts:
                try:
                    parts[number] = part_of(works[number], None)
                except InputError:
                    parts[number] = None
        chosen = [part for number in numbers if (part := parts[number]) is not None]
        return len(chosen) == len(numbers) and admits(chosen)

    return (suggest or _in_order(works))(fits) or _of_cheapest(works, parts, part_of, admits)


def _in_order(works: Sequence[PlannedWork]) -> Suggest:
    def suggest(fits: Fits) -> str:
        chosen: list[int] = []
        for number in range(len(works)):
            if fits([*chosen, number]):
                chosen.append(number)
        if not chosen:
            return ""
        names = ", ".join(f"{number + 1} ({works[number].name})" for number in chosen)
        return f"Of the plans in their order, these fit together: {names}."

    return suggest


def _of_cheapest(
    works: Sequence[PlannedWork], parts: Mapping[int, Part | None], part_of: PartOf, admits: Admits
) -> str:
    """Words what fits of the cheapest plan, where none fits whole."""
    costs = {number: _cost(part) for number, part in parts.items() if part is not None}
    known = [number for number in costs if works[number].first is not None]
    smaller = _smaller(works[min(known, key=costs.__getitem__)], part_of, admits) if known else ""
    return f"Not one of them fits by itself. {smaller}".strip()


def _cost(part: Part) -> float:
    """The largest cost of a plan against any observer."""
    costs = [claim["cost"] for claim in part["claims"].values()]
    return max(math.inf if cost is None else cost for cost in costs)


_UNKNOWN = "No smaller plan of it is known."


def _smaller(work: PlannedWork, part_of: PartOf, admits: Admits) -> str:
    if work.first is None:
        return _UNKNOWN
    fit, too_many = 0, work.size
    while too_many - fit > 1:
        middle = (fit + too_many) // 2
        fit, too_many = (middle, too_many) if admits([part_of(work, work.first(middle))]) else (fit, middle)
    if fit == 0:
        return f"Not one of its {work.size:,} {work.noun} fits."
    if work.ledgers_of_settings is not None:
        try:
            if not admits([part_of(work, work.ledgers_of_settings(fit))]):
                return _UNKNOWN
        except InputError:
            return _UNKNOWN
    return (
        f"The largest plan that fits: the first {fit:,} of its {work.size:,} {work.noun}{work.settings(fit)}."
    )
