"""From a ledger to guarantees: who is protected from whom, in numbers and in words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

from fedprivacy.accounting.charge import COMPLETED
from fedprivacy.accounting.epsilon import epsilon
from fedprivacy.accounting.events import from_json
from fedprivacy.accounting.per_client import per_client
from fedprivacy.errors import InputError

SEES = {
    "server": "the server, which sees each message that it receives",
    "participant": "another participant, who sees the global models that it is sent",
    "outsider": "an outsider, who sees the final model",
}
SEES_STATISTICS = {
    "server": "the server, which sees each answer that it receives",
    "participant": "another participant, who sees the published statistics",
    "outsider": "an outsider, who sees the published statistics",
}
SEES_ESTIMATE = {
    "server": "the server, which sees each message of a silo",
    "participant": "another participant, who sees what the server sends out",
    "outsider": "an outsider, who sees the published estimate",
}
SEES_OF = {"training": SEES, "statistics": SEES_STATISTICS, "estimate": SEES_ESTIMATE}
NOUNS = {
    "training": ("round", "rounds"),
    "statistics": ("query", "queries"),
    "estimate": ("release", "releases"),
}
NEIGHBOURS = {
    ("client", "replace-one"): "all records of one client replaced by any others",
    ("client", "add-remove"): "one client with all its records added or removed",
    ("client", "zero-out"): "one client's update replaced by zero",
    ("example", "replace-one"): "one record of a client replaced by any other",
    ("example", "add-remove"): "one record of a client added or removed",
    ("example", "zero-out"): "one record's gradients replaced by zero",
}


def printed(epsilon: float, digits: int = 4) -> str:
    """An epsilon as text, rounded *up*, so that the print never promises too much.

    >>> printed(1.99978), printed(2.0001), printed(0.0)
    ('2', '2.001', '0')
    """
    if epsilon <= 0 or not math.isfinite(epsilon):
        return f"{epsilon:g}"
    # Decimal, since 10^(number of digits) is no float for the least deltas.
    last = Decimal(1).scaleb(math.floor(math.log10(epsilon)) - digits + 1)
    # A calibrated epsilon may exceed its target by rounding of the last bits: that is not a digit.
    up = float(math.ceil(Decimal(epsilon) / last - Decimal("1e-4")) * last)
    return f"{up:,.0f}" if up >= 1000 else f"{up:.{digits}g}"


@dataclass(frozen=True)
class Guarantee:
    """What one observer can learn at most. There is no bare epsilon.

    `epsilon` and `accountant` are None where nothing is guaranteed; the assumptions then say why. `of` is
    what was released: the models of a "training", "statistics", whose rounds are queries, or an "estimate"
    (`fedprivacy.erm`), whose rounds are noisy releases.
    """

    observer: str
    trust: str
    epsilon: float | None
    delta: float | None
    unit: str
    adjacency: str
    sampling: str
    rounds: int
    accountant: str | None
    assumptions: tuple[str, ...]
    of: str = "training"

    @property
    def words(self) -> str:
        """The guarantee as one plain sentence."""
        seen = SEES_OF[self.of][self.observer]
        rounds = f"{self.rounds} {NOUNS[self.of][self.rounds != 1]}"
        if self.epsilon is None:
            return f"No guarantee against {seen}: {self.assumptions[0]}."
        change = NEIGHBOURS[self.unit, self.adjacency]
        if self.of == "estimate":  # whose records are nobody's in particular
            change = change.replace(" of a client", "")
        return (
            f"Against {seen}: at most epsilon = {printed(self.epsilon)} at delta = {self.delta:g}, for "
            f"{change} (unit {self.unit}, {self.adjacency}), trust "
            f"{self.trust}, {self.sampling}, {rounds}, accountant {self.accountant}; provided that "
            f"{'; '.join(self.assumptions)}."
        )

    def to_json(self) -> dict[str, Any]:
        """The guarantee as a JSON object, with its words."""
        return {**asdict(self), "assumptions": list(self.assumptions), "words": self.words}


def guarantees(ledger: Mapping[str, Any]) -> list[Guarantee]:
    """The guarantees of a ledger, one for each observer: the least epsilon that it may claim.

    Args:
        ledger: The JSON object that `Ledger.to_json` wrote, from a live or a stored run.

    Raises:
        InputError: if the ledger is damaged.
        UnsupportedEvent: if no accountant answers for one of its events.
    """
    best: dict[str, Guarantee] = {}
    try:
        for claim in ledger["claims"]:
            guarantee = _account(ledger, claim)
            known = best.get(guarantee.observer)
            if known is None or _far(guarantee.epsilon) < _far(known.epsilon):
                best[guarantee.observer] = guarantee
    except (KeyError, TypeError) as error:
        raise InputError(f"the ledger is damaged: {type(error).__name__}: {error}") from error
    return list(best.values())


def completed(ledger: Mapping[str, Any]) -> dict[str, Any]:
    """What stands beside the guarantees of a run that stopped early: those of the rounds that completed.

    Args:
        ledger: As of `guarantees`, of which `accounting.charge` says when it has a second ledger.

    Returns:
        Empty, or under `completed` how many `rounds` (or queries) were charged, and their `guarantees`.
    """
    if COMPLETED not in ledger:
        return {}
    released = ledger[COMPLETED]
    stated = [guarantee.to_json() for guarantee in guarantees(released)]
    return {COMPLETED: {"rounds": released["rounds"], "guarantees": stated}}


def both_figures(privacy: Mapping[str, Any]) -> list[str]:
    """Both epsilons of a run that stopped early in a sentence, once for all observers with the same ones.

    Args:
        privacy: What the run states (`privacy` of its document); nothing comes of one that states one figure.
    """
    if COMPLETED not in privacy:
        return []
    planned = {one["observer"]: one for one in privacy["guarantees"]}
    against: dict[str, list[str]] = {}
    for one in privacy[COMPLETED]["guarantees"]:
        claim = planned[one["observer"]]
        if claim["epsilon"] is None or one["epsilon"] is None:
            continue
        many, noun = NOUNS[one["of"]][1], NOUNS[one["of"]][one["rounds"] != 1]
        said = (
            f"epsilon = {printed(claim['epsilon'])} is the claim: all {claim['rounds']:,} planned {many} "
            f"stay charged. The {one['rounds']:,} {noun} released by then cost "
            f"epsilon = {printed(one['epsilon'])} alone, which holds only provided that "
            f"{one['assumptions'][0]}. (delta = {claim['delta']:g}, unit {claim['unit']}, "
            f"{claim['adjacency']})"
        )
        against.setdefault(said, []).append(f"the {one['observer']}")
    return [f"Against {' and '.join(observers)}: {said}" for said, observers in against.items()]


# What an epsilon stands with; accountant and words may be those of another version.
_TERMS = ("trust", "delta", "unit", "adjacency", "sampling", "rounds", "assumptions", "of")


def check_record(document: Mapping[str, Any], where: str) -> None:
    """Accounts for a stored run again from its ledger, and compares.

    Args:
        document: A run.json; a comparison has no ledger of its own and passes.
        where: Its name, for the message.

    Raises:
        InputError: if a stored epsilon is not what the stored ledger costs.
    """
    if document.get("kind") not in ("run", "statistics"):
        return
    try:
        check_guarantees(document["privacy"]["guarantees"], document["ledger"], where)
        _check_completed(document, where)
        for key in ("trust", "unit", "adjacency", "delta"):
            if key in document["privacy"] and document["privacy"][key] != document["ledger"][key]:
                raise InputError(
                    f"{where}: says {key} = {document['privacy'][key]}, its ledger has "
                    f"{document['ledger'][key]}. The record was changed: run it again."
                )
        said, found = document["privacy"].get("per_client"), per_client(document["ledger"])
        if not _same_clients(said, found):
            raise InputError(
                f"{where}: says other epsilons of single clients than its ledger costs. The record was "
                "changed, or made with another accountant: run it again."
            )
    except (KeyError, TypeError) as error:
        raise InputError(f"{where}: damaged, {type(error).__name__}: {error}.") from error


def _check_completed(document: Mapping[str, Any], where: str) -> None:
    """That what is stated of the rounds that completed is what their ledger costs."""
    stated, released = document["privacy"].get(COMPLETED), document["ledger"].get(COMPLETED)
    if (stated is None) is not (released is None):
        raise InputError(
            f"{where}: privacy.{COMPLETED} and ledger.{COMPLETED} do not stand together. The record was "
            "changed: run it again."
        )
    if stated is not None and released is not None:
        check_guarantees(stated["guarantees"], released, f"{where}: {COMPLETED}")
        if stated["rounds"] != released["rounds"]:
            raise InputError(
                f"{where}: says that {stated['rounds']} rounds were charged, its ledger has "
                f"{released['rounds']}. The record was changed: run it again."
            )


def check_guarantees(stated: Iterable[Mapping[str, Any]], ledger: Mapping[str, Any], where: str) -> None:
    """Accounts for a stored ledger again, and compares with the guarantees that stand beside it.

    Raises:
        InputError: if a stored epsilon is not what the ledger costs.
    """
    stated, found_now = list(stated), guarantees(ledger)
    stored = {g["observer"]: g["epsilon"] for g in stated}
    again = {g.observer: g.epsilon for g in found_now}
    terms = {
        g.observer: {key: value for key, value in g.to_json().items() if key in _TERMS} for g in found_now
    }
    for g in stated:
        other = [key for key, value in terms.get(g["observer"], {}).items() if g.get(key) != value]
        if other:
            raise InputError(
                f"{where}: says {other[0]} = {g.get(other[0])} against the {g['observer']}, its ledger has "
                f"{terms[g['observer']][other[0]]}. The record was changed: run it again."
            )
    for observer in stored.keys() | again.keys():
        said, found = stored.get(observer), again.get(observer)
        if _apart(said, found):
            raise InputError(
                f"{where}: says epsilon = {said} against the {observer}, its ledger costs {found}. "
                "The record was changed, or made with another accountant: run it again."
            )


def _same_clients(said: Mapping[str, Any] | None, found: Mapping[str, Any] | None) -> bool:
    """Whether epsilons of single clients (`per_client`) are the same, up to what versions may differ by."""
    if not said or not found:
        return not said and not found
    pairs = [(said["largest"], found["largest"]), (said["median"], found["median"])]
    if len(said["groups"]) != len(found["groups"]):
        return False
    for one, other in zip(said["groups"], found["groups"], strict=True):
        pairs.append((one["epsilon"], other["epsilon"]))
        if {**one, "epsilon": 0} != {**other, "epsilon": 0}:
            return False
    return not any(_apart(*pair) for pair in pairs)


def _apart(said: float | None, found: float | None) -> bool:
    """Whether two epsilons are not the same, up to what versions of a library may differ by."""
    return _far(said) > _far(found) * 1.001 or _far(said) < _far(found) / 1.001


def _far(epsilon: float | None) -> float:
    return math.inf if epsilon is None else epsilon


def _account(ledger: Mapping[str, Any], claim: Mapping[str, Any]) -> Guarantee:
    spent = None
    if claim["event"] is not None:
        spent = epsilon(from_json(claim["event"]), ledger["delta"], ledger["adjacency"])
        if not math.isfinite(spent.epsilon):
            spent = None
    assumptions = tuple(claim["assumptions"])
    if claim["event"] is not None and spent is None:
        assumptions = ("the noise is zero", *assumptions)
    return Guarantee(
        observer=claim["observer"],
        trust=ledger["trust"],
        epsilon=None if spent is None else spent.epsilon,
        delta=ledger["delta"],
        unit=ledger["unit"],
        adjacency=ledger["adjacency"],
        sampling=ledger["sampling"],
        rounds=ledger["rounds"],
        accountant=None if spent is None else spent.accountant,
        assumptions=assumptions,
        of=ledger.get("of", "training"),
    )
