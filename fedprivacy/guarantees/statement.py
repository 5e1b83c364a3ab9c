"""Computes guarantees from a ledger, for each observer, in numbers and in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any

from pydantic import Field, field_serializer, model_validator

from fedprivacy.accounting.epsilon import epsilon
from fedprivacy.accounting.events import from_json
from fedprivacy.errors import InputError
from fedprivacy.guarantees.assumptions import TrainingAssumption
from fedprivacy.guarantees.charge import COMPLETED
from fedprivacy.io.document_part import CHECKED, Checked, Number, Part

SEES = {
    "server": "the server, which sees each message that it receives",
    "participant": "another participant, who sees the global models that it is sent",
    "outsider": "an outsider, who sees the final model",
}
SEES_SUMS = "the server, which sees the secure sum of each round and no message"
SEES_STATISTICS = {
    "server": "the server, which sees each answer that it receives",
    "participant": "another participant, who sees the published statistics",
    "outsider": "an outsider, who sees the published statistics",
}
SEES_SHUFFLED = {
    **SEES_STATISTICS,
    "server": "the shuffler, which sees each message with its sender",
    "analyst": "the analyst behind the shuffler, who sees all messages in random order",
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


class Guarantee(Part):
    """A bound on what one observer can learn, with everything that an epsilon needs to be meaningful.

    `epsilon` and `accountant` are None where nothing is guaranteed; the assumptions then give the reason.
    `of` names the release: the models of a "training", "statistics", whose rounds are queries, or an
    "estimate" (`fedprivacy.erm`), whose rounds are noisy releases. A document states it as this class reads
    it; one of an earlier version may lack a field.
    """

    observer: Annotated[str, CHECKED]
    trust: str | None = None
    epsilon: Annotated[float | None, Checked(Number | None)] = Field(None, ge=0)
    delta: float | None = None
    unit: str | None = None
    adjacency: str | None = None
    sampling: Any = None
    rounds: int | None = None
    accountant: str | None = None
    assumptions: tuple[str, ...] = ()
    of: str | None = None
    words: str | None = None

    @classmethod
    def stated(cls, *, of: str = "training", **fields: Any) -> Guarantee:
        """Makes a guarantee that was accounted for, with its words.

        Args:
            of: What is released.
            fields: All others but `words`.
        """
        guarantee = cls.new(**fields, of=of)
        return guarantee.model_copy(update={"words": guarantee._sentence()})

    def but(self, **changes: Any) -> Guarantee:
        """Makes the guarantee with other fields, and the words for them.

        Args:
            changes: The fields that are others.
        """
        fields = {name: getattr(self, name) for name in type(self).model_fields if name != "words"}
        return self.stated(**{**fields, **changes})

    @property
    def holds(self) -> bool:
        """Whether the guarantee has an epsilon."""
        return self.epsilon is not None and math.isfinite(self.epsilon)

    @model_validator(mode="after")
    def _never_bare(self) -> Guarantee:
        missing = [name for name in ("delta", "unit", "adjacency") if getattr(self, name) is None]
        if self.holds and missing:
            raise ValueError(f"an epsilon without {', '.join(missing)} is not a guarantee")
        return self

    def _sentence(self) -> str:
        """The guarantee as one plain sentence."""
        of = str(self.of)
        of_sums = (of, self.trust, self.observer) == ("training", "distributed", "server")
        sees = SEES_SHUFFLED if (of, self.trust) == ("statistics", "shuffled") else SEES_OF[of]
        seen = SEES_SUMS if of_sums and self.holds else sees[self.observer]
        rounds = f"{self.rounds} {NOUNS[of][self.rounds != 1]}"
        if self.epsilon is None:
            return f"No guarantee against {seen}: {self.assumptions[0]}."
        change = NEIGHBOURS[str(self.unit), str(self.adjacency)]
        if of == "estimate":  # whose records are nobody's in particular
            change = change.replace(" of a client", "")
        return (
            f"Against {seen}: at most epsilon = {printed(self.epsilon)} at delta = {self.delta:g}, for "
            f"{change} (unit {self.unit}, {self.adjacency}), trust "
            f"{self.trust}, {self.sampling}, {rounds}, accountant {self.accountant}; provided that "
            f"{'; '.join(self.assumptions)}."
        )

    @field_serializer("assumptions")
    def _texts(self, assumptions: tuple[str, ...]) -> list[str]:
        """JSON knows neither tuples nor the ids of assumptions."""
        return [str(each) for each in assumptions]


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
            # Several claims against one observer are all true, so the least epsilon is too.
            if known is None or _far(guarantee.epsilon) < _far(known.epsilon):
                best[guarantee.observer] = guarantee
    except (KeyError, TypeError) as error:
        raise InputError(f"the ledger is damaged: {type(error).__name__}: {error}") from error
    return list(best.values())


def group_guarantees(ledger: Mapping[str, Any]) -> dict[str, list[Guarantee]]:
    """The guarantees of each group of clients with a budget of its own; empty without groups.

    Args:
        ledger: As for `guarantees`.

    Raises:
        InputError: if the ledger is damaged.
    """
    shared = {key: value for key, value in ledger.items() if key != "groups"}
    try:
        return {group["name"]: guarantees({**shared, **group}) for group in ledger.get("groups") or ()}
    except (KeyError, TypeError) as error:
        raise InputError(f"the ledger is damaged: {type(error).__name__}: {error}") from error


def completed(ledger: Mapping[str, Any]) -> dict[str, Any]:
    """The additional guarantees of a run that stopped early: those of the rounds that completed.

    Args:
        ledger: As for `guarantees`; `guarantees.charge` decides whether it has a second ledger.

    Returns:
        Empty, or under `completed` how many `rounds` (or queries) were charged, and their `guarantees`.
    """
    if COMPLETED not in ledger:
        return {}
    released = ledger[COMPLETED]
    stated = [guarantee.to_json() for guarantee in guarantees(released)]
    return {COMPLETED: {"rounds": released["rounds"], "guarantees": stated}}


def both_figures(privacy: Mapping[str, Any], unanswered: str | None = None) -> list[str]:
    """Both epsilons of a run that stopped early in a sentence, once for all observers with the same ones.

    Args:
        privacy: The run's statement (`privacy` of its document); empty if it states one figure only.
        unanswered: The query that is charged among them, and has no answer.
    """
    if COMPLETED not in privacy:
        return []
    planned = {guarantee["observer"]: guarantee for guarantee in privacy["guarantees"]}
    against: dict[str, list[str]] = {}
    by_then = f"charged by then ({unanswered} has no answer)" if unanswered else "released by then"
    for guarantee in privacy[COMPLETED]["guarantees"]:
        claim = planned[guarantee["observer"]]
        if claim["epsilon"] is None or guarantee["epsilon"] is None:
            continue
        many, noun = NOUNS[guarantee["of"]][1], NOUNS[guarantee["of"]][guarantee["rounds"] != 1]
        sentence = (
            f"epsilon = {printed(claim['epsilon'])} is the claim: all {claim['rounds']:,} planned {many} "
            f"stay charged. The {guarantee['rounds']:,} {noun} {by_then} cost "
            f"epsilon = {printed(guarantee['epsilon'])} alone, which holds only provided that "
            f"{guarantee['assumptions'][0]}. (delta = {claim['delta']:g}, unit {claim['unit']}, "
            f"{claim['adjacency']})"
        )
        against.setdefault(sentence, []).append(f"the {guarantee['observer']}")
    return [f"Against {' and '.join(observers)}: {sentence}" for sentence, observers in against.items()]


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
        assumptions = (str(TrainingAssumption.NOISE_IS_ZERO), *assumptions)
    return Guarantee.stated(
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
