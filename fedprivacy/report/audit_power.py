"""How many canaries refute a claim or prove a bound, and whether an audit had enough of them."""

from __future__ import annotations

from collections.abc import Iterable

from fedprivacy.attacks.intervals import CONFIDENCE, proportion_high
from fedprivacy.attacks.sample_size import MOST_CANARIES, canaries_needed
from fedprivacy.documents.audit import AuditDocument, Bound, Observer
from fedprivacy.guarantees import certainty
from fedprivacy.guarantees.statement import printed
from fedprivacy.report import words

UP_TO = f"up to {MOST_CANARIES:,}"
NEEDED = (
    "Canaries needed: the fewest that prove a bound above the claim, if all guesses are right; where nothing "
    "is claimed and nothing proved, a bound above 0, if guesses stay as often right."
)
TOO_FEW = "too few"  # where a number would be
_TAIL = (1 - CONFIDENCE) / 2


def too_few(observer: Observer) -> bool:
    """Whether more canaries may prove a bound where none was proved.

    They may if so few cannot exceed the claim, if guesses may be right as often as the claim allows at
    most (within the 95 % interval of their share), or if more guesses that are as often right would do.
    """
    bound, claim = observer.one_run, observer.guarantee.epsilon
    if bound is None or bound.epsilon > 0:
        return False
    if claim is not None and (bound.ceiling <= claim or _reach(bound, certainty.of(observer.guarantee))):
        return True
    return _for_any_bound(bound) is not None


def sentences(document: AuditDocument) -> list[str]:
    """How many canaries could refute each claim, in words."""
    refuting: dict[str, None] = {}
    for observer in document.observers:
        bound, claim = observer.one_run, observer.guarantee.epsilon
        if bound is not None and bound.checks and claim is not None:
            few, above = _for_refuting(bound, claim), f"a bound above epsilon {printed(claim)}"
            refuting[
                f"{words.capital(above)} takes at least {few:,} canaries, all guessed rightly."
                if few
                else f"No number of canaries {UP_TO} proves {above}."
            ] = None
    return list(refuting)


def needed(observer: Observer) -> str:
    """The number of canaries of a row, as `NEEDED` explains it."""
    bound, claim = observer.one_run, observer.guarantee.epsilon
    if bound is None or not bound.checks or (claim is None and bound.epsilon > 0):
        return "—"
    few = _for_any_bound(bound) if claim is None else _for_refuting(bound, claim)
    return f"over {MOST_CANARIES:,}" if few is None else f"{few:,}"


def _reach(bound: Bound, allowed: float) -> bool:
    """Whether the share of right guesses may be as large as allowed, by its interval."""
    highest = [proportion_high(guesses.right, guesses.made, _TAIL) for guesses in bound.guesses]
    return bool(highest) and min(highest) >= allowed


def _for_refuting(bound: Bound, claim: float) -> int | None:
    """The number of canaries that prove a bound above the claim if all guesses are right."""
    return _fewest(canaries_needed(claim, bound.delta, _error(bound), share) for share, _ in _shares(bound))


def _for_any_bound(bound: Bound) -> int | None:
    """The number of canaries that prove a bound above 0 if guesses stay as often right."""
    if not bound.checks:
        return None
    return _fewest(
        canaries_needed(0.0, bound.delta, _error(bound), share, rate) for share, rate in _shares(bound)
    )


def _error(bound: Bound) -> float:
    """The probability of a false alarm that one check has."""
    return (1 - bound.confidence) / (bound.checks or 1)


def _shares(bound: Bound) -> list[tuple[float, float]]:
    """The share of canaries that were guessed, and that of right guesses, at each number of guesses."""
    return [(guesses.made / bound.canaries, guesses.right / guesses.made) for guesses in bound.guesses]


def _fewest(numbers: Iterable[int | None]) -> int | None:
    return min((number for number in numbers if number is not None), default=None)
