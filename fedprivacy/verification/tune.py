"""Verifies a stored choice of settings: its candidates, their plans and their costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fedprivacy.documents.guarantee import Privacy
from fedprivacy.documents.redaction import TESTED_NOTE
from fedprivacy.documents.tune import Naive, TuneDocument
from fedprivacy.guarantees.statement import guarantees
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.records.run_record import TUNING_UNSTATED
from fedprivacy.scenario import Scenario
from fedprivacy.scenario.data import FileData
from fedprivacy.scenario.tune import TuneScenario
from fedprivacy.scenario.tune.sections import StoppingTune
from fedprivacy.tuning.ledgers import chosen_ledger, law_of, naive_ledger
from fedprivacy.verification.differences import placed, refusal, refuse_difference
from fedprivacy.verification.run import check_plan
from fedprivacy.verification.scenario_without_data import check_digest, unread

AGAIN = "tune again"
GRID = "The choice among the candidates is charged for here. Of the candidates, and of all other settings: "


def claims_of(
    scenario: TuneScenario, plans: Sequence[Plan], chosen: int | None, *, tested: bool
) -> dict[str, Any]:
    """The parts of the document that the scenario, the plans and the choice decide.

    Args:
        scenario: What was asked for.
        plans: Of each candidate.
        chosen: Which is trained on the clients; None where no try was drawn.
        tested: Whether held-out records belong to clients.
    """
    ledger = chosen_ledger(scenario.tune, plans, chosen, tested=tested)
    naive = naive_ledger(scenario.tune, plans, chosen, tested=tested)
    return {
        "plans": [plan.to_json() for plan in plans],
        "tested": tested,
        "ledger": ledger,
        "privacy": Privacy.new(guarantees=guarantees(ledger)).to_json(),
        "naive": Naive.new(ledger=naive, guarantees=guarantees(naive)).to_json(),
        "operator_only": list(TuneDocument.OPERATOR_ONLY),
        "notes": [f"{GRID}{scenario.tuning or TUNING_UNSTATED}", *[TESTED_NOTE] * tested],
    }


def check(document: dict[str, Any], folder: Path, where: str) -> dict[str, Any]:
    """The document of a choice, as it may be shown: what it guarantees is accounted for again.

    Raises:
        InputError: a part of it does not follow from its scenario and its plans.
    """
    scenario = unread(TuneScenario, document["scenario"], where, AGAIN)
    check_digest(document, scenario, where, AGAIN)
    settings = scenario.settings
    listed = [candidate["settings"] for candidate in document["candidates"]]
    refuse_difference(listed, settings, "candidates", where, "its [tune] implies", AGAIN)
    if len(document["plans"]) != len(settings):
        raise refusal(where, "plans", f"are {len(document['plans'])}, {len(settings)} are requested", AGAIN)
    plans = [
        check_plan(
            plan,
            unread(Scenario, scenario.candidate_tables(number), where, AGAIN),
            f"plans[{number}]",
            where,
            AGAIN,
        )
        for number, plan in enumerate(document["plans"])
    ]
    _check_choice(document, scenario, plans, where)
    data, tested = scenario.data, document["tested"]
    if tested and not (isinstance(data, FileData) and data.partition == "by-user"):
        raise refusal(where, "tested", "says true, and no held-out record is a client's", AGAIN)
    with placed(where, "plans", AGAIN):
        claims = claims_of(scenario, plans, document["choice"]["candidate"], tested=tested)
    for key, value in {"name": scenario.name, "seed": scenario.seed, **claims}.items():
        source = "its scenario and its plans imply"
        exact = key == "ledger"
        refuse_difference(document.get(key), value, key, where, source, AGAIN, rounded=not exact)
    stored = document["naive"]["ledger"]
    refuse_difference(stored, claims["naive"]["ledger"], "naive.ledger", where, "its plans imply", AGAIN)
    return {**document, **claims}


def _check_choice(
    document: Mapping[str, Any], scenario: TuneScenario, plans: Sequence[Plan], where: str
) -> None:
    """Checks that the chosen candidate exists, and that a missing choice has no fields."""
    choice = document["choice"]
    chosen = choice["candidate"]
    if choice["clients"] != plans[0].population:
        problem = f"says {choice['clients']}, the plans have {plans[0].population}"
        raise refusal(where, "choice.clients", problem, AGAIN)
    if chosen is None:
        none = choice["accuracy"] is None and choice["score"] is None and not document.get("tries")
        possible = isinstance(scenario.tune, StoppingTune) and law_of(scenario.tune).least == 0
        if not (none and possible):
            raise refusal(where, "choice.candidate", "is null, and a candidate was chosen", AGAIN)
    elif chosen >= len(plans):
        raise refusal(where, "choice.candidate", f"says {chosen} of {len(plans)} candidates", AGAIN)
    if (choice["score"] is not None) is not (chosen is not None and isinstance(scenario.tune, StoppingTune)):
        problem = f"says {choice['score']}, method {scenario.tune.method}"
        raise refusal(where, "choice.score", problem, AGAIN)
    of_clients = isinstance(scenario.tune, StoppingTune)
    for number, candidate in enumerate(document["candidates"]):
        if (candidate["public_accuracy"] is None) is not of_clients:
            at, problem = f"candidates[{number}].public_accuracy", f"says {candidate['public_accuracy']}"
            raise refusal(where, at, f"{problem}, method {scenario.tune.method}", AGAIN)
    settings = {} if chosen is None else scenario.settings[chosen]
    refuse_difference(choice["settings"], settings, "choice.settings", where, "the candidate has", AGAIN)
