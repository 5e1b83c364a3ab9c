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
Suggest = Callable[[Fits], str]  # the message that names the plans that fit, by their numbers; empty: none


def largest_part(
    works: Sequence[PlannedWork], part_of: PartOf, admits: Admits, suggest: Suggest | None = None
) -> str:
    """Returns the message that names the largest part of plans that fits.

    Args:
        works: Plans that do not fit together.
        part_of: Gives a plan, or a smaller one with ledgers of its own, as an entry states it.
        admits: Whether such plans may enter together.
        suggest: Chooses among several plans; None: in their order, each that still fits.
    """
    if len(works) == 1:
        return _part(works[0], part_of, admits)[1]
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
    """Returns what fits of the cheapest of several plans, none of which fits whole.

    Where nothing of it does, another plan may have more and cheaper rounds.
    """
    costs = {number: _cost(part) for number, part in parts.items() if part is not None}
    different: dict[tuple[float, int], PlannedWork] = {}  # of an audit all trials are alike
    for number in sorted(costs, key=costs.__getitem__):
        if works[number].first is not None:
            different.setdefault((costs[number], works[number].size), works[number])
    messages = []
    for work in different.values():
        fits, message = _part(work, part_of, admits)
        messages.append(f"{work.name}: {message}" if len({each.name for each in works}) > 1 else message)
        if fits:
            return f"Not one of them fits by itself. {messages[-1]}"
    return " ".join(["Not one of them fits by itself.", *messages[:1]])


def _cost(part: Part) -> float:
    """The largest cost of a plan against any observer."""
    costs = [claim["cost"] for claim in part["claims"].values()]
    return max(math.inf if cost is None else cost for cost in costs)


def _part(work: PlannedWork, part_of: PartOf, admits: Admits) -> tuple[bool, str]:
    """Whether a part of a plan fits, and the message that names it, or the reason for none."""
    unknown = False, f"No smaller plan of it is known. {work.remedy}".strip()
    if work.first is None:
        return unknown
    fit, too_many = work.least - 1, work.size
    while too_many - fit > 1:
        middle = (fit + too_many) // 2
        fit, too_many = (middle, too_many) if admits([part_of(work, work.first(middle))]) else (fit, middle)
    if fit < work.least:
        least = "Not one" if work.least == 1 else f"Not even {work.least:,}"
        verb = "fits" if work.least == 1 else "fit"
        return False, f"{least} of its {work.size:,} {work.noun} {verb}. {work.remedy}".strip()
    if work.ledgers_of_settings is not None:
        try:
            if not admits([part_of(work, work.ledgers_of_settings(fit))]):
                return unknown
        except InputError:
            return unknown
    return True, (
        f"The largest plan that fits: the first {fit:,} of its {work.size:,} {work.noun}{work.settings(fit)}."
    )
