"""The entries of an account: plans that were charged, and when their work began and ended."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from dp_accounting import dp_event as dp
from pydantic import Field

from fedprivacy.account.policy import Policy
from fedprivacy.account.populations import PopulationIds, keyed
from fedprivacy.accounting.events import from_json
from fedprivacy.errors import InputError, UnsupportedEvent
from fedprivacy.guarantees.assumptions import TrainingAssumption
from fedprivacy.io.validation import Fields

CLOSE = 1e-9  # relative: calibrated noise and costs of one plan on two machines
Ledgers = tuple[Mapping[str, Any], ...]


class StoredClaim(Fields):
    """The charge of a plan against one observer; `cost` is null where no divergence of the order is known."""

    events: Annotated[list[dict[str, Any]], Field(min_length=1)]
    cost: Annotated[float, Field(ge=0)] | None
    assumptions: list[str]


class StoredPart(Fields):
    """A plan of an entry."""

    name: str
    work: str
    trust: str
    rounds: int
    sampling: str
    claims: dict[str, StoredClaim]
    cohorts: str | None
    secret_cohorts: bool
    digest: str


class StoredPopulation(Fields):
    """The digests of a `PopulationIds`."""

    data: str
    ids: str | None
    records: str | None
    owners: str


class StoredEntry(Fields):
    """A line with plans that were entered together."""

    kind: Literal["entry"]
    time: str
    command: str
    started: bool
    same_population: bool
    populations: Annotated[list[StoredPopulation], Field(min_length=1)]
    parts: Annotated[list[StoredPart], Field(min_length=1)]


class StoredStart(Fields):
    """A line about a plan, entered before, whose work begins now."""

    kind: Literal["start"]
    time: str
    entry: Annotated[int, Field(ge=0)]
    part: Annotated[int, Field(ge=0)]


class StoredEnd(Fields):
    """A line about plans of an entry whose run has ended, which changes no charge."""

    kind: Literal["end"]
    time: str
    entry: Annotated[int, Field(ge=0)]
    parts: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)]
    outcome: Literal["finished", "interrupted"]
    run: str


@dataclass(frozen=True)
class PlannedWork:
    """A plan that may enter an account, with what it releases at most.

    Args:
        name: The scenario's.
        work: "training", "statistics", "tuning", "audit", "attacks" or "estimates".
        ledgers: The ledger of the whole plan as JSON; several, where it is not known in advance which holds.
        population: Its clients.
        seed: Of its cohorts.
        noise_key: Distinguishes its noise from that of other plans (`run_streams`).
        draws_cohorts: Whether cohorts are drawn from the seed.
        size: The number of its rounds or queries.
        noun: What these are, in the plural.
        first: Gives the ledgers of the first so many of them; None where there is no smaller plan.
        settings: How the first so many are run, in words; empty where that is plain.
        ledgers_of_settings: Gives the ledgers of the work that these settings run, or raises InputError where
            they run nothing; None where there are none.
        least: The fewest rounds or queries that can be run.
        remedy: What to change where no smaller plan fits, as a sentence; empty where that is plain.
    """

    name: str
    work: str
    ledgers: Ledgers
    population: PopulationIds
    seed: int
    noise_key: str
    draws_cohorts: bool = False
    size: int = 0
    noun: str = "rounds"
    first: Callable[[int], Ledgers] | None = None
    settings: Callable[[int], str] = lambda count: ""
    ledgers_of_settings: Callable[[int], Ledgers] | None = None
    least: int = 1
    remedy: str = ""

    def part(self, policy: Policy, key: str, ledgers: Ledgers | None = None) -> dict[str, Any]:
        """Returns the plan as an entry states it.

        Args:
            policy: The account's.
            key: The account's, for digests.
            ledgers: Those of a smaller plan, in place of its own.

        Raises:
            InputError: the policy does not cover such a plan, or it has no guarantee against an observer.
        """
        ledgers = ledgers or self.ledgers
        terms = ledgers[0]
        for term, wanted in (("unit", policy.unit), ("adjacency", policy.adjacency)):
            if terms[term] != wanted:
                raise InputError(
                    f"{self.name}: its {term} is {terms[term]}, and the policy's is {wanted}. A guarantee "
                    f"for one is none for the other, and nothing is converted: set privacy.{term} = "
                    f'"{wanted}", or use another account.'
                )
        claims = {observer: self._claim(policy, observer, ledgers) for observer in policy.filters}
        identity = json.dumps([self.work, self.noise_key, self.seed])
        return {
            "name": self.name,
            "work": self.work,
            "trust": terms["trust"],
            "rounds": terms["rounds"],
            "sampling": terms["sampling"],
            "claims": claims,
            "cohorts": keyed(key, f"cohorts/{self.seed}") if self.draws_cohorts else None,
            "secret_cohorts": any(
                TrainingAssumption.SECRET_COHORT.among(claim["assumptions"])
                for ledger in ledgers
                for claim in ledger["claims"]
            ),
            "digest": keyed(key, identity),
        }

    def _claim(self, policy: Policy, observer: str, ledgers: Ledgers) -> dict[str, Any]:
        # A client of any group may be the one that changes, so the dearest group counts.
        of_all = [part for ledger in ledgers for part in (ledger, *ledger.get("groups", ()))]
        claims = [_against(observer, part["claims"]) for part in of_all]
        for claim in claims:
            if claim["event"] is None:
                server = " as the server, since nothing is shuffled" * (claim["observer"] != observer)
                raise InputError(
                    f"{self.name}: has no guarantee against the {observer}{server}, whom the policy covers: "
                    f"{claim['assumptions'][0]}. Choose another trust model, or use an account whose policy "
                    "does not cover this observer."
                )
        events = list({json.dumps(claim["event"]): claim["event"] for claim in claims}.values())
        assumptions = list(dict.fromkeys(text for claim in claims for text in claim["assumptions"]))
        filter_ = policy.filters[observer]
        try:
            cost: float | None = filter_.cost([from_json(event) for event in events], policy.adjacency)
        except UnsupportedEvent:
            cost = None
        if cost == math.inf:  # without noise, or with too little for this order
            cost = None
        return {"events": events, "cost": cost, "assumptions": assumptions}


def _against(observer: str, claims: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The first claim against an observer; without a shuffler an analyst is the server."""
    seat = observer if any(claim["observer"] == observer for claim in claims) else "server"
    return next(claim for claim in claims if claim["observer"] == seat)


def is_same_plan(stored: Mapping[str, Any], part: Mapping[str, Any]) -> bool:
    """Whether a plan is the stored one: the same draws, with events that are equal up to rounding."""
    return stored["digest"] == part["digest"] and all(
        _are_close(claim["events"], part["claims"][observer]["events"])
        for observer, claim in stored["claims"].items()
    )


def _are_close(stored: Any, value: Any) -> bool:
    """Whether two JSON values are equal but for the rounding of numbers."""
    if isinstance(stored, Mapping) and isinstance(value, Mapping):
        return stored.keys() == value.keys() and all(_are_close(stored[key], value[key]) for key in stored)
    if isinstance(stored, list) and isinstance(value, list):
        return len(stored) == len(value) and all(map(_are_close, stored, value))
    if isinstance(stored, float) and isinstance(value, float):
        return math.isclose(stored, value, rel_tol=CLOSE)
    return bool(stored == value)


def events_of(claim: Mapping[str, Any]) -> Sequence[dp.DpEvent]:
    """The events of a stored claim: one, or several of which one holds."""
    return [from_json(event) for event in claim["events"]]
