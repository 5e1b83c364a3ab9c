"""The runs of a stored audit held against its scenario: their plan, and what each released."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedprivacy.attacks.audit_record import audit_description
from fedprivacy.attacks.audited_plan import audited_plan
from fedprivacy.attacks.canary_evidence import ERROR
from fedprivacy.documents.audit import AuditDocument
from fedprivacy.guarantees.ledger import Ledger
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.scenario import Scenario
from fedprivacy.scenario.data import FileData
from fedprivacy.verification.differences import difference, refusal, refuse_difference
from fedprivacy.verification.parts import plain, refuse_parts
from fedprivacy.verification.run import check_plan
from fedprivacy.verification.scenario_without_data import stored_scenario

AGAIN = "audit again"


def checked_runs(document: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The verified entry about the runs of an audit (`audited`).

    Raises:
        InputError: it is not what they were, or a ledger is not that of its scenario with its canaries.
    """
    scenario = stored_scenario(Scenario, document, where, AGAIN)
    plan = check_plan(document["plan"], scenario, "plan", where, AGAIN)
    implied = {"status": "finished", "operator_only": list(AuditDocument.OPERATOR_ONLY)}
    refuse_parts(document, implied, where, "an audit has", AGAIN)
    facts = _facts(document, plan, where)
    audited = audited_plan(plan, facts["canaries"])
    for number, ledger in enumerate(document["ledgers"]):
        key = f"ledgers[{number}]"
        ledgers = [
            plain(_ledger(audited, ledger, tested, key, where).to_json()) for tested in _tested(scenario)
        ]
        fits = next(
            (ledger_possible for ledger_possible in ledgers if difference(ledger, ledger_possible) is None),
            ledgers[0],
        )
        refuse_difference(ledger, fits, key, where, "its plan implies", AGAIN)
    return facts


def _facts(document: Mapping[str, Any], plan: Plan, where: str) -> dict[str, Any]:
    """The stated facts of the runs, after comparison with plan, ledgers and words."""
    audited, ledgers = document["audited"], document["ledgers"]
    facts = {
        "trials": len(ledgers),
        "canaries": ledgers[0]["population"] - plan.population,
        "clients": plan.population,
        "rounds": plan.rounds,
        "noise_multiplier": plan.noise_multiplier,
        "clipping_norm": plan.clipping_norm,
        "false_alarm": ERROR,
    }
    refuse_parts(audited, facts, where, "its plan and its ledgers imply", AGAIN, "audited")
    # Neighbouring data sets are compared wherever two clients are clipped: a finding cannot just be left out.
    compared, wanted = audited["neighbours"], plan.clipping_norm is not None and plan.population > 1
    if (compared is not None) != wanted:
        raise refusal(where, "audited.neighbours", "are there only where two clients are clipped", AGAIN)
    if compared is not None:
        allowed = {"allowed": 2.0 if plan.adjacency == "replace-one" else 1.0}
        refuse_parts(compared, allowed, where, "its plan implies", AGAIN, "audited.neighbours")
    words = {"words": audit_description(document["scenario"], {**audited, **facts})}
    refuse_parts(audited, words, where, "its other facts imply", AGAIN, "audited")
    return {**audited, **facts, **words}


def _tested(scenario: Scenario) -> tuple[bool, ...]:
    """Whether held-out records may belong to clients, which only a file can state."""
    file = isinstance(scenario.data, FileData) and scenario.data.partition == "by-user"
    return (False, True) if file and scenario.evaluation.on == "test" else (False,)


def _ledger(plan: Plan, stored: Mapping[str, Any], tested: bool, key: str, where: str) -> Ledger:
    """The ledger of an audited run: all of its rounds, with the answers that were counted."""
    counts = {int(count): clients for count, clients in stored.get("participations", {}).items()}
    if plan.trust == "local":
        _check_counts(plan, counts, stored["least_shares"], key, where)
    ledger = Ledger(plan, tested=tested, counts=counts)
    ledger.rounds = plan.rounds
    if plan.trust == "local":
        ledger.least_shares = stored["least_shares"]
    return ledger


def _check_counts(plan: Plan, counts: Mapping[int, int], shares: int | None, key: str, where: str) -> None:
    """Checks that answers and least noise shares are possible in the plan's rounds."""
    clients, most = sum(counts.values()), max(counts, default=0)
    if clients != plan.population or most > plan.answers or min(counts.values(), default=0) < 1:
        problem = f"says {counts}, the plan has {plan.population} clients of {plan.answers} answers at most"
        raise refusal(where, f"{key}.participations", problem, AGAIN)
    if plan.sampler.name == "all" and counts != {plan.answers: plan.population}:
        problem = f"says {counts}, the plan asks all {plan.population} clients {plan.answers} times"
        raise refusal(where, f"{key}.participations", problem, AGAIN)
    given = sum(count * clients for count, clients in counts.items())
    if (shares or 0) > given / plan.rounds:  # the smallest cohort is no larger than the mean one
        problem = f"says {shares}, and {given} clients were asked in {plan.rounds} rounds"
        raise refusal(where, f"{key}.least_shares", problem, AGAIN)
    if shares is None and given:
        problem = f"says nothing, and {given} clients were asked in {plan.rounds} rounds"
        raise refusal(where, f"{key}.least_shares", problem, AGAIN)
