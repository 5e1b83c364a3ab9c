"""A stored run held against its own scenario, plan and rounds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fedprivacy.data.secrets import CANDIDATES
from fedprivacy.documents.run import RunDocument
from fedprivacy.guarantees.per_client import binned
from fedprivacy.mechanisms.local import LOCAL
from fedprivacy.plan.from_scenario import stored_plan
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.records.bias import estimate
from fedprivacy.records.run_record import notes_of, simulation_only, stated_privacy
from fedprivacy.scenario import Scenario
from fedprivacy.verification.differences import placed, refusal, refuse_difference, refuse_length
from fedprivacy.verification.rebuild import counts_of, rebuilt, sizes_of
from fedprivacy.verification.scenario_without_data import check_digest, unread

AGAIN = "run it again"


def check(document: dict[str, Any], folder: Path, where: str) -> dict[str, Any]:
    """The document of a run, as it may be shown: what it guarantees is accounted for again.

    Raises:
        InputError: a part of it does not follow from its scenario, its plan and its rounds.
    """
    return checked(document, where)[0]


def checked(document: dict[str, Any], where: str) -> tuple[dict[str, Any], bool]:
    """The document of a run, and whether held-out records belong to its clients; see `check`."""
    scenario = unread(Scenario, document["scenario"], where, AGAIN)
    check_digest(document, scenario, where, AGAIN)
    plan = check_plan(document["plan"], scenario, "plan", where, AGAIN)
    ledger, facts = rebuilt(document, scenario, plan, where, AGAIN)
    stored = {**({"records_per_client": None} if plan.unit == "example" else {}), **document["ledger"]}
    if "records_per_client" not in document["ledger"] and plan.unit == "example":  # of earlier versions
        stored["records_per_client"] = ledger["records_per_client"]
    refuse_difference(stored, ledger, "ledger", where, "its plan and its rounds imply", AGAIN)
    _check_sizes(document, plan, where)
    candidates = document["privacy"].get("candidates")
    check_candidates(candidates, scenario, plan, "privacy.candidates", where)
    with placed(where, "ledger", AGAIN):
        privacy = stated_privacy(plan, ledger, candidates)
    implied = {
        "name": scenario.name,
        "seed": scenario.seed,
        "randomness": facts.stated.to_json(held=facts.held),
        "operator_only": list(RunDocument.OPERATOR_ONLY),
        **simulation_only([scenario], ["final"]),
        "estimate": estimate(document["rounds"], scenario.server.aggregation),
        "notes": notes_of(scenario, plan, document["rounds"], tested=facts.tested),
    }
    _check_exposure(document, scenario, ledger, where)
    for key, value in implied.items():
        refuse_difference(document.get(key), value, key, where, "its scenario and its plan imply", AGAIN)
    refuse_difference(
        document["privacy"], privacy, "privacy", where, "its plan and its ledger imply", AGAIN, rounded=True
    )
    return {**document, **implied, "privacy": privacy, "ledger": ledger}, facts.tested


def _check_exposure(
    document: Mapping[str, Any], scenario: Scenario, ledger: Mapping[str, Any], where: str
) -> None:
    """Refuses an exposure of other secrets than the scenario has, or another mean, chance or bound."""
    exposure = (document["final"] or {}).get("exposure")
    secrets = getattr(scenario.data, "secrets", 0)
    if exposure is None:
        if secrets and document["status"] == "finished":
            raise refusal(where, "final.exposure", f"is missing, its scenario has {secrets} secrets", AGAIN)
        return
    refuse_length(len(exposure["bits"]), secrets, "final.exposure.bits", where, "its scenario implies", AGAIN)
    most = math.log2(CANDIDATES)
    for place, bits in enumerate(exposure["bits"]):
        if bits > most + 1e-9:
            what = f"says {bits:g}, {CANDIDATES:,} candidates allow {most:.4g} at most"
            raise refusal(where, f"final.exposure.bits[{place}]", what, AGAIN)
    from fedprivacy.attacks.exposure_bound import bound_of_ledger, chance_exposure  # few runs have secrets

    bound = bound_of_ledger(ledger, CANDIDATES)
    implied = {
        "copies": getattr(scenario.data, "copies", None),
        "candidates": CANDIDATES,
        "mean": math.fsum(exposure["bits"]) / len(exposure["bits"]),
        "chance": chance_exposure(CANDIDATES),
        "bound": None if bound is None else bound.model_dump(mode="json"),
    }
    for key, value in implied.items():
        what = f"final.exposure.{key}"
        refuse_difference(exposure[key], value, what, where, "its ledger implies", AGAIN, rounded=True)


def check_plan(
    data: Any, scenario: Scenario, key: str, where: str, remedy: str, clients: int | None = None
) -> Plan:
    """The plan of a record, checked against its scenario.

    Args:
        data: The plan as JSON.
        scenario: The scenario.
        key: Where the plan is in the record.
        where: The file.
        remedy: What to do, such as "run it again".
        clients: As of `stored_plan`.

    Raises:
        InputError: it is none, or another, or its noise is not what the scenario's epsilon asks for.
    """
    with placed(where, key, remedy):
        plan = Plan.from_json(data)
        derived = stored_plan(scenario, plan, clients)
    refuse_difference(data, derived.to_json(), key, where, "its scenario asks for", remedy)
    return plan


def _check_sizes(document: Mapping[str, Any], plan: Plan, where: str) -> None:
    """Checks that the statements about clients' sizes are consistent."""
    sizes, groups = sizes_of(document), document["ledger"].get("clients")
    if plan.unit != "example" or sizes is None:
        return
    at, least = "ledger.records_per_client", sizes["smallest"]
    if not 1 <= least <= sizes["median"] <= sizes["largest"]:
        raise refusal(where, at, f"says {sizes}, which are not in order", AGAIN)
    if plan.least_records is not None and least < plan.least_records:
        raise refusal(where, at, f"says {least} at least, the plan is for {plan.least_records}", AGAIN)
    if groups is None:
        return
    order = [(group["answers"], group["records"] or 0) for group in groups]
    if order != sorted(set(order)) or any(group["clients"] < 1 for group in groups):
        raise refusal(where, "ledger.clients", "are not in order, or a group is empty or twice there", AGAIN)
    named = [group["records"] for group in groups if group["records"] is not None]
    if named and min(named) != least:
        raise refusal(where, "ledger.clients", f"have {min(named)} records at least, not {least}", AGAIN)
    answers, counts = Counter[int](), counts_of(document["ledger"])
    for group in groups:
        answers[group["answers"]] += group["clients"]
    implied = binned(counts) if counts else {plan.charged(document["ledger"]["rounds"]): plan.population}
    if answers != implied:
        problem = f"have answered {dict(answers)} times, its participations imply {implied}"
        raise refusal(where, "ledger.clients", problem, AGAIN)


def check_candidates(
    candidates: Sequence[Mapping[str, Any]] | None, scenario: Scenario, plan: Plan, at: str, where: str
) -> None:
    """Checks that the chosen mechanism is the plan's, among the known candidates.

    Args:
        candidates: As the record has them.
        scenario: What was asked for.
        plan: What ran.
        at: Where the candidates are in the record.
        where: The file.

    Raises:
        InputError: it is another.
    """
    if candidates is None:
        return
    if scenario.privacy.mechanism != "auto":
        raise refusal(where, at, "are named, and the scenario names one mechanism", AGAIN)
    if [candidate["mechanism"] for candidate in candidates] != list(LOCAL):
        raise refusal(where, at, f"are others than {', '.join(LOCAL)}", AGAIN)
    chosen = [(candidate["mechanism"], candidate["noise"]) for candidate in candidates if candidate["chosen"]]
    assert plan.mechanism is not None  # a plan with candidates has one
    ran = [(plan.mechanism.name, plan.noise_words)]
    if chosen != ran:
        raise refusal(where, at, f"say that {chosen} was chosen, and {ran} ran", AGAIN)
