"""Derives the ledger of a stored run again: from its plan, its rounds and its counts of answers.

Some facts depend on the data or on the submitter of the run (who was drawn, whether held-out records are
those of clients, what was stated of nodes). They can only be taken from the record. It has them more than
once, and everything else has to follow from them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from fedprivacy.documents.redaction import TESTED_NOTE
from fedprivacy.guarantees.charge import COMPLETED, charged
from fedprivacy.guarantees.ledger import Ledger, has_broken_off
from fedprivacy.guarantees.per_client import group_of
from fedprivacy.guarantees.remote_nodes import possible
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.scenario import Scenario
from fedprivacy.scenario.data import FileData
from fedprivacy.verification.differences import difference, placed, refusal

STOPPED = ("interrupted", "failed")


def rebuilt(
    document: Mapping[str, Any], scenario: Scenario, plan: Plan, where: str, remedy: str
) -> tuple[dict[str, Any], Ledger]:
    """The ledger that a run by this plan has, as JSON, with the facts that it rests on.

    Args:
        document: The run.
        scenario: Its scenario.
        plan: Its plan, which follows from the scenario.
        where: The file.
        remedy: What to do, such as "run it again".

    Raises:
        InputError: its rounds or its participations are not those of a run by this plan.
    """
    stored = document["ledger"]
    check_rounds(document, scenario, plan, where, remedy)
    candidates = []
    for derived, ledger in _possible(document, scenario, plan, where, remedy):
        if difference(stored, derived) is None:
            return derived, ledger
        candidates.append((derived, ledger))
    if not candidates:
        raise refusal(where, "randomness", "is what no run states", remedy)
    # Several statements about nodes and data may give the same record: take the one that is nearest to it.
    return min(candidates, key=lambda candidate: _distance(stored, candidate[0]))


def with_sizes(ledger: dict[str, Any], plan: Plan, stored: Mapping[str, Any], sizes: Any) -> dict[str, Any]:
    """A derived ledger with what only the record knows of the sizes of clients.

    Args:
        ledger: As JSON.
        plan: The plan.
        stored: The ledger of the record.
        sizes: As `sizes_of` gives them.
    """
    if plan.unit != "example":
        return ledger
    ledger = {**ledger, "records_per_client": sizes}
    if COMPLETED in ledger:
        ledger[COMPLETED] = {**ledger[COMPLETED], "records_per_client": sizes}
    noise = plan.step_noise or plan.central_noise
    if plan.batches is not None and noise is not None and "clients" in stored:
        ledger["clients"] = [
            group_of(
                plan.batches,
                noise.event(),
                **{key: group[key] for key in ("clients", "answers", "records")},
            )
            for group in stored["clients"]
        ]
    return ledger


def sizes_of(document: Mapping[str, Any]) -> Any:
    """The records of the smallest, median and largest client; records of earlier versions state them once."""
    stated = document["privacy"].get("records_per_client")
    return document["ledger"].get("records_per_client", stated)


def check_rounds(
    document: Mapping[str, Any], scenario: Scenario, plan: Plan, where: str, remedy: str
) -> None:
    """Checks the order and the number of rounds against status and plan.

    Raises:
        InputError: they are not.
    """
    rounds, status = document["rounds"], document["status"]
    largest = min(plan.population, getattr(plan.sampler, "cohort", plan.population))
    for at, event in enumerate(rounds):
        if event["round"] != at:
            raise refusal(where, f"rounds[{at}].round", f"says {event['round']}, it is round {at}", remedy)
        for key, most in (("cohort", largest), ("contributed", event["cohort"])):
            if (event[key] or 0) > most:
                problem = f"says {event[key]} clients, {most} at most are asked"
                raise refusal(where, f"rounds[{at}].{key}", problem, remedy)
        with placed(where, f"rounds[{at}].clipping_norm", remedy):
            plan.for_round(event.get("clipping_norm"))
    if len(rounds) > plan.rounds:
        raise refusal(where, "rounds", f"are {len(rounds)}, {plan.rounds} are planned", remedy)
    complete = len(rounds) == plan.rounds
    if status == "finished" and not complete and scenario.server.patience is None:
        problem = f"says finished, and {len(rounds)} of {plan.rounds} rounds have completed"
        raise refusal(where, "status", problem, remedy)
    if (document["error"] is not None) != (status in STOPPED):
        raise refusal(where, "status", f"says {status}, and error is {document['error']}", remedy)


def _possible(
    document: Mapping[str, Any], scenario: Scenario, plan: Plan, where: str, remedy: str
) -> Iterator[tuple[dict[str, Any], Ledger]]:
    """The ledgers that a run may have had: for each statement about its nodes, and about held-out records."""
    stored, rounds = document["ledger"], document["rounds"]
    held, released = stored["held"], stored.get(COMPLETED, stored)
    early_stopping = scenario.server.patience is not None
    # Only a file can say that held-out records are those of clients.
    file = isinstance(scenario.data, FileData) and scenario.data.partition == "by-user"
    noted = TESTED_NOTE in document["notes"]
    unknown = (noted, not noted) if file and scenario.evaluation.on == "test" else (False,)
    # What says so of the rounds that completed was resumed after a fault.
    broken_off, counts = has_broken_off(released), counts_of(released)
    of_groups = {
        group["name"]: counts_of(group) for group in released.get("groups") or () if "participations" in group
    }
    ledgers = [
        Ledger(
            plan,
            held=held,
            tested=tested,
            stated=stated,
            counts=counts,
            counts_of_groups=of_groups,
            broken_off=broken_off,
        )
        for stated, tested in product(possible(document["randomness"], held=held), unknown)
    ]

    def sized(candidate: dict[str, Any]) -> dict[str, Any]:
        with placed(where, "ledger.clients", remedy):
            return with_sizes(candidate, plan, stored, sizes_of(document))

    if document["status"] != "finished":
        # Of a run that could not close its record itself (`record.broken_off`) the whole plan stays charged.
        for ledger in ledgers:
            yield sized(ledger.in_advance(broken_off=document["status"] == "failed").to_json()), ledger
    # Of a run that is charged in advance it is not told what it has released.
    states_released = COMPLETED in stored or (len(rounds) == plan.rounds and not early_stopping)
    if states_released and plan.distrusts_server:
        key = f"ledger.{COMPLETED}" if COMPLETED in stored else "ledger"
        check_participations(released, rounds, plan, key, where, remedy)
    for ledger in ledgers:
        # A round that broke off after its release has no line.
        broken = COMPLETED in stored and released["rounds"] == len(rounds) + 1
        ledger.rounds = len(rounds) + broken
        ledger.least_shares = released["least_shares"] if states_released and plan.trust == "local" else None
        derived = charged(
            ledger,
            document["status"],
            rounds=len(rounds),
            planned=plan.rounds,
            early_stopping=early_stopping,
            known=COMPLETED in stored,
        )
        yield sized(derived), ledger


def counts_of(ledger: Mapping[str, Any]) -> dict[int, int]:
    """The number of clients by participations; empty if not counted."""
    return {int(count): clients for count, clients in ledger.get("participations", {}).items()}


def check_participations(
    ledger: Mapping[str, Any],
    rounds: Sequence[Mapping[str, Any]],
    plan: Plan,
    key: str,
    where: str,
    remedy: str,
) -> None:
    """Checks that the counts of clients under local or distributed trust match the rounds.

    Args:
        ledger: What has been released, from the record.
        rounds: Those that have completed.
        plan: The plan.
        key: Where the ledger is in the record.
        where: The file.
        remedy: What to do, such as "run it again".

    Raises:
        InputError: it is not.
    """
    counts, at = counts_of(ledger), f"{key}.participations"
    if any(clients < 1 for clients in counts.values()) or sum(counts.values()) != plan.population:
        problem = f"says {sum(counts.values())} clients, the plan has {plan.population}"
        raise refusal(where, at, problem, remedy)
    if max(counts, default=0) > plan.answers:
        raise refusal(
            where, at, f"says {max(counts)} answers of one client, planned are {plan.answers}", remedy
        )
    _check_groups(ledger, plan, key, where, remedy)
    given, participants = (
        sum(count * clients for count, clients in counts.items()),
        sum(e["cohort"] for e in rounds),
    )
    # A round that broke off has asked its cohort, and has no line.
    broken = 0 if len(rounds) == plan.rounds else plan.population
    if not participants <= given <= participants + broken:
        raise refusal(where, at, f"says {given} answers, its rounds asked {participants} clients", remedy)
    if plan.shares is not None:
        check_survivors(rounds, plan.shares.min_survivors, where, remedy)
    if plan.trust != "local":  # whose sums alone are claimed by their shares
        return
    # One that broke off after its release counts with its cohort.
    shares = possible_shares(rounds, given - participants if ledger["rounds"] > len(rounds) else 0)
    if (least := ledger["least_shares"]) not in shares:
        problem = f"says {least}, its rounds have {' or '.join(map(str, shares))}"
        raise refusal(where, f"{key}.least_shares", problem, remedy)


def _check_groups(ledger: Mapping[str, Any], plan: Plan, key: str, where: str, remedy: str) -> None:
    """Checks that the participations of groups are together those of all clients.

    Raises:
        InputError: they are not.
    """
    if plan.groups is None:
        return
    together, sizes = Counter[int](), plan.groups.sizes(plan.population)
    for at, group in enumerate(ledger.get("groups") or ()):
        counts = counts_of(group)
        if any(clients < 1 for clients in counts.values()) or sum(counts.values()) != sizes.get(
            group["name"]
        ):
            problem = f"says {sum(counts.values())} clients, the group has {sizes.get(group['name'])}"
            raise refusal(where, f"{key}.groups[{at}].participations", problem, remedy)
        together.update(counts)
    if dict(together) != counts_of(ledger):
        problem = f"say {dict(together)} together, all clients have {counts_of(ledger)}"
        raise refusal(where, f"{key}.groups", problem, remedy)


def check_survivors(rounds: Sequence[Mapping[str, Any]], least: int, where: str, remedy: str) -> None:
    """Checks that each round whose sum was opened had enough survivors.

    Args:
        rounds: Those that have completed.
        least: n_min, the fewest clients in a sum.
        where: The file.
        remedy: What to do, such as "run it again".

    Raises:
        InputError: one had fewer.
    """
    for number, event in enumerate(rounds):
        # Clients whose training failed are in the sum by their noise alone, so failures say nothing.
        away = (event.get("refusals") or 0) + event.get("faults", {}).get("dropped", 0)
        if event["cohort"] - away < least and not event.get("void"):
            problem = f"has {event['cohort'] - away} survivors at most; a sum of fewer than {least} is void"
            raise refusal(where, f"rounds[{number}]", problem, remedy)


def possible_shares(rounds: Sequence[Mapping[str, Any]], unknown: int = 0) -> list[int | None]:
    """The least number of noise shares in any sum: 0 if a requested client has not answered.

    Where something went wrong the record does not always say whether that client answered.

    Args:
        rounds: Those that have completed.
        unknown: The cohort of one more, of which nothing else is known; 0 if there is none.
    """
    sizes = [cohort for cohort in (*(event["cohort"] for event in rounds), unknown) if cohort]
    if not sizes:
        return [None]
    whole = not unknown and all(
        not any(event.get(key) for key in ("failures", "refusals"))
        and not event.get("faults", {}).get("dropped")
        for event in rounds
    )
    return [min(sizes)] if whole else [0, min(sizes)]


def _distance(stored: Any, derived: Any) -> int:
    """In how many values two documents differ."""
    if isinstance(stored, Mapping) and isinstance(derived, Mapping):
        return sum(_distance(stored.get(key), derived.get(key)) for key in {**stored, **derived})
    if isinstance(stored, list) and isinstance(derived, list):
        unmatched = abs(len(stored) - len(derived))
        return unmatched + sum(map(_distance, stored, derived))
    return 0 if difference(stored, derived) is None else 1
