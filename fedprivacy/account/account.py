"""An account: the policy, what has entered, and whether more may.

A plan enters before its work begins, and stays charged whatever becomes of the work.

Plans that enter together were chosen before any result of any of them, so ordinary composition covers them. A
first entry may therefore enter by the epsilon of the union of its events, also where it exceeds the budget of
the filter (`fedprivacy.account.filter`). The account is then full. Nothing can follow it, whatever its
results are, so no adaptive choice remains. In every other case the filter alone decides.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from pathlib import Path
from typing import Annotated, Any

from dp_accounting import dp_event as dp
from pydantic import Field

from fedprivacy.account import account_file
from fedprivacy.account.account_file import Lines
from fedprivacy.account.entry import (
    CLOSE,
    Ledgers,
    PlannedWork,
    StoredEnd,
    StoredEntry,
    StoredStart,
    events_of,
    is_same_plan,
)
from fedprivacy.account.filter import RenyiFilter
from fedprivacy.account.largest import Suggest, largest_part
from fedprivacy.account.policy import Policy
from fedprivacy.account.populations import PopulationIds, check_same
from fedprivacy.accounting.epsilon import epsilon
from fedprivacy.accounting.events import from_json
from fedprivacy.accounting.shuffled_event import ShuffledDpEvent
from fedprivacy.errors import InputError, UnsupportedEvent
from fedprivacy.io.validation import Fields, check

SCHEMA = 1
_UNSHUFFLED = (
    "; beside other plans, answers behind a shuffler are charged at the epsilon of each message, as if "
    "nothing were shuffled"
)
_DEARER = "by the accounting of this version its entries cost more than the policy admits"
_MOST_UNIONS = 64  # of plans that are known up to a few possibilities each


class _StoredHead(Fields):
    account: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    schema_: Annotated[int, Field(alias="schema")]


@dataclass(frozen=True)
class Account:
    """The content of an account's file.

    Args:
        path: The file.
        key: A random text that keys its digests.
        policy: What all may cost together.
        entries: The lines that charge plans, by the number of the line, from 0.
        started: The plans whose work has begun, as (line, part).
        ended: The last line about the end of such a plan's run.
        lines: All lines.
    """

    path: Path
    key: str
    policy: Policy
    entries: Mapping[int, Mapping[str, Any]]
    started: frozenset[tuple[int, int]]
    ended: Mapping[tuple[int, int], Mapping[str, Any]]
    lines: Lines

    @classmethod
    def of(cls, path: Path, lines: Lines) -> Account:
        """Reads the lines of a file.

        Raises:
            InputError: a line is not what an account has.
        """
        head, remedy = lines.bodies[0], account_file.RESTORE
        check(head, _StoredHead, f"{path}:1", remedy)
        if head["schema"] != SCHEMA:
            raise InputError(
                f"{path}: of schema {head['schema']}, and {SCHEMA} is read here. Update fedprivacy."
            )
        policy = Policy.from_json(head.get("policy"), f"{path}:1")
        entries: dict[int, Mapping[str, Any]] = {}
        started: set[tuple[int, int]] = set()
        ended: dict[tuple[int, int], Mapping[str, Any]] = {}

        def named(body: Mapping[str, Any], parts: Sequence[int], where: str) -> list[tuple[int, int]]:
            charged = entries.get(body["entry"], {"parts": ()})["parts"]
            if any(part >= len(charged) for part in parts):
                raise InputError(f"{where}: damaged: it names a plan that no line above charges. {remedy}")
            return [(body["entry"], part) for part in parts]

        for number, body in enumerate(lines.bodies[1:], 1):
            where = f"{path}:{number + 1}"
            if body.get("kind") == "start":
                check(body, StoredStart, where, remedy)
                started.update(named(body, [body["part"]], where))
                continue
            if body.get("kind") == "end":
                check(body, StoredEnd, where, remedy)
                ended |= dict.fromkeys(named(body, body["parts"], where), body)
                continue
            check(body, StoredEntry, where, remedy)
            if any(set(policy.filters) - set(part["claims"]) for part in body["parts"]):
                raise InputError(f"{where}: damaged: it lacks an observer of the policy. {remedy}")
            entries[number] = body
            if body["started"]:
                started |= {(number, part) for part in range(len(body["parts"]))}
        return cls(path, head["account"], policy, entries, frozenset(started), ended, lines)

    @classmethod
    def read(cls, path: Path) -> Account:
        """Reads a file without its lock, to show it.

        Raises:
            InputError: it cannot be read, or is damaged.
        """
        return cls.of(path, account_file.read(path))

    @property
    def parts(self) -> Iterator[tuple[int, int, Mapping[str, Any]]]:
        """The charged plans: line, place in it, and the plan."""
        for number, entry in self.entries.items():
            for at, part in enumerate(entry["parts"]):
                yield number, at, part

    @cached_property
    def costs(self) -> Mapping[tuple[int, int], Mapping[str, float]]:
        """The divergence of each plan at the filters' orders; infinite where none is known.

        The larger of what the entry states and what its events cost by this version.
        """
        return {(number, at): self._costs(part) for number, at, part in self.parts}

    def _costs(self, part: Mapping[str, Any]) -> dict[str, float]:
        costs = {}
        for observer, filter_ in self.policy.filters.items():
            claim = part["claims"][observer]
            now = _cost(json.dumps(claim["events"]), filter_, self.policy.adjacency)
            costs[observer] = max(now, math.inf if claim["cost"] is None else claim["cost"])
        return costs

    def spent(self, observer: str) -> float:
        """The divergence, at the filter's order, of all that has entered; infinite where none is known."""
        return math.fsum(costs[observer] for costs in self.costs.values())

    def remaining(self, observer: str) -> float:
        """The divergence that is left for plans to come; 0 where the account is full."""
        return max(0.0, self.policy.filters[observer].budget - self.spent(observer))

    def is_full(self, observer: str) -> bool:
        """Whether the entries cost more than the filter admits, as a first one may."""
        return self.spent(observer) > self.policy.filters[observer].budget * (1 + CLOSE)

    def check_claim(self) -> None:
        """Checks that the policy covers all entries by the accounting of this version.

        Raises:
            InputError: it does not.
        """
        for observer, filter_ in self.policy.filters.items():
            if not self.is_full(observer):
                continue
            claims = [part["claims"][observer] for _, _, part in self.parts]
            alone = len(self.entries) == 1
            if not alone or self._union(claims, filter_.delta) > filter_.epsilon * (1 + CLOSE):
                raise InputError(
                    f"{self.path}: {_DEARER} against the {observer}, so its claim does not hold. Enter "
                    "nothing more, and count all of its entries again."
                )

    def waiting(self, work: PlannedWork) -> tuple[int, int, str] | None:
        """The line, place and digest of a plan that has entered and not begun; None without one."""
        part = work.part(self.policy, self.key)
        for number, at, stored in self.parts:
            if (number, at) not in self.started and is_same_plan(stored, part):
                return number, at, part["digest"]
        return None

    def has(self, work: PlannedWork) -> bool:
        """Whether a plan has entered, begun or not."""
        part = work.part(self.policy, self.key)
        return any(is_same_plan(stored, part) for _, _, stored in self.parts)

    def refusal(self, parts: Sequence[Mapping[str, Any]]) -> str | None:
        """Explains why plans that enter together would exceed the policy; None where they fit."""
        reasons = ((name, self._exceeds(name, parts)) for name in self.policy.filters)
        name, reason = next(((name, reason) for name, reason in reasons if reason), (None, None))
        if name is None or reason is None:
            return None
        claims = [part["claims"][name] for part in parts]
        shuffled = any(isinstance(event, ShuffledDpEvent) for claim in claims for event in events_of(claim))
        return f"{reason}{_UNSHUFFLED if shuffled else ''}"

    def _exceeds(self, observer: str, parts: Sequence[Mapping[str, Any]]) -> str | None:
        filter_ = self.policy.filters[observer]
        claims = [part["claims"][observer] for part in parts]
        cost = math.fsum(math.inf if claim["cost"] is None else claim["cost"] for claim in claims)
        spent = self.spent(observer)
        if filter_.admits([spent, cost]):
            return None
        limit = f"epsilon = {filter_.epsilon:g} at delta = {filter_.delta:g} against the {observer}"
        if self.entries:
            if self.is_full(observer) and len(self.entries) > 1:
                return _DEARER
            if self.is_full(observer):
                return (
                    f"the account is full: its first entry takes all of {limit}, as composition of plans "
                    "that were fixed together allows, and nothing can follow it"
                )
            if math.isinf(cost):
                return (
                    f"no bound of order {filter_.order:g} is known for what it releases, so that nothing may "
                    "come before it"
                )
            return (
                f"it would exceed {limit}: at order {filter_.order:g} it costs {cost:.4g}, and "
                f"{self.remaining(observer):.4g} of {filter_.budget:.4g} remain"
            )
        try:
            together = self._union(claims, filter_.delta)
        except UnsupportedEvent as error:
            return f"no accountant answers for it: {str(error).rstrip('.')}"
        if together <= filter_.epsilon:
            return None
        return f"it would exceed {limit}: it costs epsilon = {together:.4g}"

    def _union(self, claims: Sequence[Mapping[str, Any]], delta: float) -> float:
        """The epsilon of plans that are fixed together, whichever of its events each of them has."""
        events = [events_of(claim) for claim in claims]
        if math.prod(map(len, events)) > _MOST_UNIONS:
            return math.inf
        return max(
            epsilon(dp.ComposedDpEvent(list(chosen)), delta, self.policy.adjacency).epsilon
            for chosen in product(*events)
        )

    def check_cohorts(self, parts: Sequence[Mapping[str, Any]], *, entered: bool = True) -> None:
        """Refuses plans that draw the same cohorts as another one, where these have to stay secret.

        Two runs with one seed share their cohorts. Sampling amplifies the guarantee of each, by its secrecy,
        but not that of both together.

        Args:
            parts: The plans.
            entered: Whether they are held against those of the account too.

        Raises:
            InputError: a plan draws the cohorts of another one.
        """
        drawn: dict[str, tuple[str, bool]] = {}
        for part in [*(part for _, _, part in self.parts if entered), *parts]:
            cohorts = part["cohorts"]
            if cohorts is None:
                continue
            if cohorts in drawn and (part["secret_cohorts"] or drawn[cohorts][1]):
                raise InputError(
                    f"{part['name']}: draws its cohorts by the same seed as {drawn[cohorts][0]}"
                    f"{', which is in the account too' * entered}, and their guarantees rest on independent "
                    f"cohorts.{' Give another seed, such as --seed random.' * entered}"
                )
            drawn[cohorts] = (part["name"], part["secret_cohorts"] or drawn.get(cohorts, ("", False))[1])

    def check_populations(self, populations: Sequence[PopulationIds], stated: bool) -> bool:
        """Refuses plans about other clients than those of the account, or than each other's.

        Args:
            populations: The clients of each plan.
            stated: Whether their submitter states that they are the same.

        Returns:
            Whether it rests on that statement.

        Raises:
            InputError: they are about several populations.
        """
        entered = [each for entry in self.entries.values() for each in entry["populations"]]
        new = [each.to_json(self.key) for each in dict.fromkeys(populations)]
        return check_same(new, entered, self.policy.unit, stated)

    def _other_seeds(self, parts: Sequence[Mapping[str, Any]]) -> str:
        """Words that plans also draw cohorts of the account's entries; empty where they do not."""
        try:
            for part in parts:
                self.check_cohorts([part])
        except InputError:
            return " Their seeds are in the account too: give others, such as --seed random."
        return ""

    def largest(self, works: Sequence[PlannedWork], suggest: Suggest | None = None) -> str:
        """Words the largest part of plans that fits with seeds of its own; see `largest_part`."""

        def part_of(work: PlannedWork, ledgers: Ledgers | None) -> dict[str, Any]:
            return work.part(self.policy, self.key, ledgers)

        def admits(parts: Sequence[Mapping[str, Any]]) -> bool:
            try:
                self.check_cohorts(parts, entered=False)
            except InputError:
                return False
            return self.refusal(parts) is None

        return largest_part(works, part_of, admits, suggest)

    def admitted(
        self, works: Sequence[PlannedWork], same_population: bool, suggest: Suggest | None = None
    ) -> tuple[list[dict[str, Any]], bool]:
        """The plans as an entry states them, and whether it rests on the statement about the population.

        Args:
            works: The plans.
            same_population: As `check_populations` has it.
            suggest: As of `largest_part`.

        Raises:
            InputError: they may not enter; the message has the largest part that fits.
        """
        stated = self.check_populations([work.population for work in works], same_population)
        try:
            parts = [work.part(self.policy, self.key) for work in works]
        except InputError as error:
            if len(works) == 1:
                raise
            raise InputError(f"{error} {self.largest(works, suggest)}") from None
        try:
            self.check_cohorts(parts, entered=False)
        except InputError as error:
            largest = self.largest(works, suggest)
            raise InputError(f"{error} {largest}{self._other_seeds(parts)}") from None
        try:
            self.check_cohorts(parts)
        except InputError as error:
            if self.refusal(parts) is None:
                raise
            largest = self.largest(works, suggest)
            raise InputError(f"{error} With other seeds: {largest[:1].lower()}{largest[1:]}") from None
        if reason := self.refusal(parts):
            names = " and ".join(dict.fromkeys(work.name for work in works))
            largest = self.largest(works, suggest)
            raise InputError(f"{self.path}: {names}: {reason}. Nothing was entered. {largest}")
        return parts, stated


@lru_cache(maxsize=4096)
def _cost(events: str, filter_: RenyiFilter, adjacency: str) -> float:
    """The divergence of stored events, which are mostly those of an earlier call."""
    try:
        return filter_.cost([from_json(event) for event in json.loads(events)], adjacency)
    except UnsupportedEvent:
        return math.inf
