"""The runs of a stored audit held against its scenario: their plan, and what each released."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedprivacy.accounting.ledger import Ledger
from fedprivacy.attacks.audited_plan import audited_plan
from fedprivacy.attacks.auditing import ERROR
from fedprivacy.plan import Plan
from fedprivacy.record import SEEDS
from fedprivacy.records.differences import difference, placed, refusal, refuse_difference
from fedprivacy.records.parts import plain, refuse_parts
from fedprivacy.records.run import check_plan
from fedprivacy.records.unread import stored_scenario
from fedprivacy.scenario import Scenario
from fedprivacy.scenario.data import FlwrDatasets, Npz

OPERATOR_ONLY = ("performance.seconds", *SEEDS)
AGAIN = "audit again"


def check_runs(document: Mapping[str, Any], where: str) -> None:
    """Refuses an audit whose ledgers are not those of its scenario with its canaries.

    Raises:
        InputError: they are not, or what it says of its runs is not what they were.
    """
    scenario = stored_scenario(Scenario, document, where, AGAIN)
    plan = check_plan(document["plan"], scenario, "plan", where, AGAIN)
    with placed(where, "audited.canaries", AGAIN):
        audited = audited_plan(plan, document["audited"]["canaries"])
    facts = {
        "trials": len(document["ledgers"]),
        "clients": plan.population,
        "rounds": plan.rounds,
        "noise_multiplier": plan.noise_multiplier,
        "clipping_norm": plan.clipping_norm,
        "false_alarm": ERROR,
    }
    refuse_parts(document["audited"], facts, where, "its plan and its ledgers imply", AGAIN, "audited")
    implied = {"status": "finished", "operator_only": list(OPERATOR_ONLY)}
    refuse_parts(document, implied, where, "an audit has", AGAIN)
    for number, ledger in enumerate(document["ledgers"]):
        key = f"ledgers[{number}]"
        found = [
            plain(_ledger(audited, ledger, tested, key, where).to_json()) for tested in _tested(scenario)
        ]
        fits = next((one for one in found if difference(ledger, one) is None), found[0])
        refuse_difference(ledger, fits, key, where, "its plan implies", AGAIN)


def _tested(scenario: Scenario) -> tuple[bool, ...]:
    """Whether held-out records may belong to clients: only a file can say so."""
    file = isinstance(scenario.data, Npz | FlwrDatasets) and scenario.data.partition == "by-user"
    return (False, True) if file and scenario.evaluation.on == "test" else (False,)


def _ledger(plan: Plan, stored: Mapping[str, Any], tested: bool, key: str, where: str) -> Ledger:
    """The ledger of an audited run: all of its rounds, with the answers that were counted."""
    counts = {int(count): clients for count, clients in stored.get("participations", {}).items()}
    if plan.trust == "local":
        at, asked = f"{key}.participations", sum(counts.values())
        if asked != plan.population or max(counts, default=0) > plan.answers or min(counts.values()) < 1:
            said = f"says {counts}, the plan has {plan.population} clients of {plan.answers} answers at most"
            raise refusal(where, at, said, AGAIN)
    ledger = Ledger(plan, tested=tested, counts=counts)
    ledger.rounds = plan.rounds
    if plan.trust == "local":
        ledger.least_shares = stored["least_shares"]
    return ledger
