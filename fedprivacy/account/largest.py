"""The largest part of plans that fits an account, in place of all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from fedprivacy.account.entry import PlannedWork
from fedprivacy.errors import InputError

if TYPE_CHECKING:
    from fedprivacy.account.account import Account

Fits = Callable[[Sequence[int]], bool]
Suggest = Callable[[Fits], str]  # words what of several plans fits, which it tries by their numbers


def largest_part(account: Account, works: Sequence[PlannedWork], suggest: Suggest | None = None) -> str:
    """Words the largest part of plans that fits.

    Args:
        account: The account.
        works: Plans that do not fit together.
        suggest: Chooses among several plans; None: in their order, each that still fits.
    """
    if len(works) == 1:
        return _smaller(account, works[0])
    fits = account_fits(account, works)
    return (suggest or _in_order(works))(fits)


def account_fits(account: Account, works: Sequence[PlannedWork]) -> Fits:
    """A function whether some of the plans, by their numbers, may enter an account together."""

    @cache
    def part(number: int) -> dict[str, Any]:
        return works[number].part(account.policy, account.key)

    def fits(numbers: Sequence[int]) -> bool:
        try:
            chosen = [part(number) for number in numbers]
            account.check_cohorts(chosen)
        except InputError:
            return False
        return account.refusal(chosen) is None

    return fits


def _in_order(works: Sequence[PlannedWork]) -> Suggest:
    def suggest(fits: Fits) -> str:
        chosen: list[int] = []
        for number in range(len(works)):
            if fits([*chosen, number]):
                chosen.append(number)
        if not chosen:
            return "Not one of them fits by itself."
        names = ", ".join(f"{number + 1} ({works[number].name})" for number in chosen)
        return f"Of the plans in their order, these fit together: {names}."

    return suggest


def _smaller(account: Account, work: PlannedWork) -> str:
    if work.first is None:
        return "No smaller plan of it is known."
    fit, too_many = 0, work.size
    while too_many - fit > 1:
        middle = (fit + too_many) // 2
        part = work.part(account.policy, account.key, work.first(middle))
        fit, too_many = (middle, too_many) if account.refusal([part]) is None else (fit, middle)
    if fit == 0:
        return f"Not one of its {work.size:,} {work.noun} fits."
    return (
        f"The largest plan that fits: the first {fit:,} of its {work.size:,} {work.noun}{work.settings(fit)}."
    )
