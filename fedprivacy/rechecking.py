"""A stored run or comparison accounted for again, before it is shown."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from fedprivacy.accounting.epsilon import epsilon
from fedprivacy.accounting.events import from_json
from fedprivacy.accounting.ledger import CLIPPED_ALONE, OBSERVERS
from fedprivacy.accounting.statement import check_guarantees, check_record, guarantees
from fedprivacy.analytics.shuffled import amplified
from fedprivacy.attacks.auditing import WITHOUT_CLAIM, OneRun, claimed_curve, verdict
from fedprivacy.attacks.bounds import bound_of_ledger
from fedprivacy.comparison import weakest
from fedprivacy.errors import InputError
from fedprivacy.mechanisms.catalogue import ClipOnly
from fedprivacy.runs import read_document
from fedprivacy.sameness import same
from fedprivacy.scenario.tune.sections import TUNE, Tune
from fedprivacy.stored import check_fields
from fedprivacy.tuning.ledgers import check_ledgers

# What numbers and texts that fit their fields may still do to a formula.
DAMAGE = (LookupError, TypeError, AttributeError, ValueError, ArithmeticError)


def checked_document(folder: Path) -> dict[str, Any]:
    """The result document of a folder, once its epsilons are those of the ledgers.

    Of a comparison each run is accounted for again, and each cell has to state what its weakest run does; of
    one of statistics each cell has a ledger of its own, whose trust model and budget it has to name.

    Raises:
        InputError: if it is damaged, states another epsilon, or lacks the runs that it is made of.
    """
    where = folder / "run.json"
    document = read_document(where)
    check_fields(document, str(where))
    check_record(document, str(where))
    try:
        if document["kind"] == "statistics":
            _check_statistics(document, str(where))
        for part in ("cells", "variations", "options") if document["kind"] == "compare" else ():
            for number, cell in enumerate(document.get(part, ())):
                _check_training_cell(cell, folder, f"{where}: {part}[{number}]")
        for number, cell in enumerate(document["cells"] if document["kind"] == "compare-statistics" else ()):
            _check_cell(cell, f"{where}: cells[{number}]")
        for number, cell in enumerate(document["cells"] if document["kind"] == "erm" else ()):
            _check_estimates(cell, document["scenario"]["privacy"], f"{where}: cells[{number}]")
        if document["kind"] == "replay":
            _check_attacks(document, str(where))
        if document["kind"] == "audit":
            _check_audit(document, str(where))
        if document["kind"] == "tune":
            _check_tune(document, str(where))
    except DAMAGE as error:
        raise InputError(f"{where}: damaged, {type(error).__name__}: {_brief(error)}.") from error
    return document


def _check_statistics(document: Mapping[str, Any], where: str) -> None:
    """That a run of statistics names the budget that its ledger keeps to."""
    budget = document["privacy"]["epsilon"]
    stated = [one["epsilon"] for one in document["privacy"]["guarantees"] if one["epsilon"] is not None]
    spent = max(stated, default=0.0)
    named = {budget, document["scenario"]["privacy"].get("epsilon")}
    if len(named) > 1 or (budget is not None and spent > budget * 1.001):
        raise InputError(
            f"{where}: names a budget of epsilon = {', '.join(map(str, sorted(named, key=str)))}, its ledger "
            f"costs {spent}. The record was changed: run it again."
        )
    if document["privacy"].get("shuffled"):
        _check_shuffled(document, where)


def _check_shuffled(document: Mapping[str, Any], where: str) -> None:
    """That what a shuffler would make of the plan is stated no smaller than it is (`analytics.shuffled`)."""
    said, plan = document["privacy"]["shuffled"]["epsilon"], document["plan"]
    epsilons = [ask["mechanism"]["epsilon"] for ask in plan["asks"]]
    found = amplified(epsilons, plan["population"], plan["delta"])
    if not said >= found / 1.001:
        raise InputError(
            f"{where}: says epsilon = {said} if answers were shuffled, its plan costs {found}. "
            "The record was changed: run it again."
        )


def _check_cell(cell: Mapping[str, Any], where: str) -> None:
    """That a cell of a comparison of statistics is what its own ledger says."""
    ledger = cell["ledger"]
    check_guarantees(cell["guarantees"], ledger, where)
    said, charged = (cell["trust"], cell["clients"]), (ledger["trust"], ledger["population"])
    spent = max((one["epsilon"] for one in cell["guarantees"] if one["epsilon"] is not None), default=0.0)
    if said != charged or (cell["epsilon"] is not None and spent > cell["epsilon"] * 1.001):
        raise InputError(
            f"{where} says trust, clients and epsilon {(*said, cell['epsilon'])}, its ledger has "
            f"{(*charged, spent)}. The record was changed: compare again."
        )


def _check_estimates(cell: Mapping[str, Any], terms: Mapping[str, Any], where: str) -> None:
    """That a cell of a study states what was released costs, or no more than it was asked for."""
    if cell["refused"] is not None:
        return
    if len(cell["claims"]) != len(cell["guarantees"]):
        raise InputError(
            f"{where}: has not a claim for each guarantee. The record was changed: run it again."
        )
    for claim, stated in zip(cell["claims"], cell["guarantees"], strict=True):
        found = cell["epsilon"] if stated["epsilon"] is not None else None
        if claim["event"] is not None:
            found = epsilon(from_json(claim["event"]), cell["delta"], terms["adjacency"]).epsilon
        elif found is not None and cell["kind"] != "objective-perturbation":
            raise InputError(f"{where}: lacks the event of an epsilon. The record was changed: run it again.")
        said = (stated["observer"], stated["adjacency"], stated["unit"])
        if said != (claim["observer"], terms["adjacency"], terms["unit"]) or not same(
            stated["epsilon"], found
        ):
            raise InputError(
                f"{where}: says epsilon = {stated['epsilon']} against the {stated['observer']}, its releases "
                f"cost "
                f"{found}. The record was changed, or made with another accountant: run it again."
            )


def _check_attacks(document: Mapping[str, Any], where: str) -> None:
    """That each attack states what the ledger guarantees against its seat, and the bound that follows."""
    ledgers, attacks = document["ledgers"], document["attacks"]
    claims = [{one.observer: one.to_json() for one in guarantees(ledger)} for ledger in ledgers]
    for number, attack in enumerate(attacks):
        if attack["ledger"] >= len(ledgers) or attack["seat"] not in claims[attack["ledger"]]:
            raise InputError(
                f"{where}: damaged: attacks[{number}] names a ledger or a seat that is not there. "
                "Restore the file, or attack again."
            )
    bounds = {
        at: bound_of_ledger(ledgers[at[0]], at[1]).to_json()
        for at in {(attack["ledger"], attack["seat"]) for attack in attacks}
    }
    for number, attack in enumerate(attacks):
        at, seat = attack["ledger"], attack["seat"]
        again = {"guarantee": claims[at][seat], "bound": bounds[at, seat]}
        for part, key in ((part, key) for part, found in again.items() for key in found):
            said, found = attack[part].get(key), again[part][key]
            if not same(said, found):
                raise InputError(
                    f"{where}: attacks[{number}].{part} says {key} = {_brief(said)}, its ledger implies "
                    f"{_brief(found)}. The record was changed, or made with another accountant: attack again."
                )
        said = (attack["trust"], attack["epsilon"])
        if attack["trust"] != ledgers[at]["trust"] or not _keeps_to(attack["epsilon"], claims[at].values()):
            raise InputError(
                f"{where}: attacks[{number}] says trust and epsilon {said}, and not those of "
                f"its ledger ({ledgers[at]['trust']!r}). The record was changed: attack again."
            )
        clipped = claims[at][seat]["assumptions"][0] == CLIPPED_ALONE
        if "mechanism" in attack and (attack["mechanism"] == ClipOnly.name) != clipped:
            raise InputError(
                f"{where}: attacks[{number}] says mechanism {attack['mechanism']!r}, and its ledger another "
                "thing of clipping alone. The record was changed: attack again."
            )
    asked, game = document["scenario"], document["scenario"]["game"]
    if asked.get("arms"):
        _check_arms(document, where)
        return
    allowed = {asked["privacy"]["trust"]} | (
        {"none"} if game.get("unprotected") or game.get("clipped") else set()
    )
    if not {ledger["trust"] for ledger in ledgers} <= allowed:
        raise InputError(
            f"{where}: the scenario says trust {asked['privacy']['trust']!r}, the ledgers "
            f"{', '.join(repr(ledger['trust']) for ledger in ledgers)}."
        )


def _check_arms(document: Mapping[str, Any], where: str) -> None:
    """That each arm, and each attack in one, states what the ledger of its runs and the scenario say."""
    asked, ledgers = document["scenario"], document["ledgers"]
    told = {}
    for number, arm in enumerate(document["arms"]):
        here, ledger = f"{where}: arms[{number}]", ledgers[arm["ledger"]]
        check_guarantees(arm["guarantees"], ledger, here)
        charged = {key: ledger[key] for key in ("trust", "unit", "adjacency")}
        said = {key: arm[key] for key in charged}
        own = asked["arms"][arm["arm"]].get("privacy", {})
        trust = own.get("trust", asked["privacy"]["trust"])
        held = [one.to_json() for one in guarantees(ledger)]
        if said != charged or ledger["trust"] != trust or not _keeps_to(arm["epsilon"], held):
            raise InputError(
                f"{here} says {said} at epsilon {arm['epsilon']}, and its ledger or its scenario another "
                "thing. The record was changed: attack again."
            )
        for seat, stated in arm["bounds"].items():
            found = bound_of_ledger(ledger, seat).to_json()
            if wrong := [key for key in stated if not same(stated[key], found.get(key))]:
                raise InputError(
                    f"{here} says {wrong[0]} = {_brief(stated[wrong[0]])} is the bound of the {seat}, and "
                    "its ledger implies another. The record was changed: attack again."
                )
        told[arm["ledger"]] = (arm["arm"], arm["epsilon"])
    for number, attack in enumerate(document["attacks"]):
        # Of work that broke off an arm may have attacks and not be told yet.
        if attack["arm"] not in asked["arms"] or (
            attack["ledger"] in told and told[attack["ledger"]] != (attack["arm"], attack["epsilon"])
        ):
            raise InputError(
                f"{where}: attacks[{number}] names another arm, or another epsilon, than its ledger's. "
                "The record was changed: attack again."
            )


def _check_audit(document: Mapping[str, Any], where: str) -> None:
    """That each claim, what is proved of it and the verdict follow from its ledger and the guesses."""
    refuted = False
    if sorted(one["observer"] for one in document["observers"]) != sorted(OBSERVERS):
        raise InputError(f"{where}: names other observers than {', '.join(OBSERVERS)}: audit again.")
    for number, one in enumerate(document["observers"]):
        ledger, proved = document["ledgers"][one["ledger"]], None
        claims = {claim.observer: claim for claim in guarantees(ledger)}
        guarantee = claims[one["observer"]].to_json()
        if (one["one_run"] is None) != (document["audited"]["method"] == "canary-clients"):
            raise InputError(f"{where}: observers[{number}].one_run does not fit the method: audit again.")
        if one["one_run"] is not None:
            proved = OneRun.of_json(
                one["one_run"],
                ledger["delta"] or WITHOUT_CLAIM,
                len(OBSERVERS),
                claimed_curve(ledger, one["observer"]),
            ).to_json()
        judged = verdict(guarantee, proved, one["canary_clients"])
        again = {"guarantee": guarantee, "one_run": proved, "verdict": judged}
        for part, found in again.items():
            if not same(one[part], found):
                raise InputError(
                    f"{where}: observers[{number}].{part} says {_brief(one[part])}, its ledger and guesses "
                    f"imply {_brief(found)}. The record was changed: audit again."
                )
        refuted = refuted or judged["holds"] is False
    if document["refuted"] is not refuted:
        raise InputError(f"{where}: says refuted = {document['refuted']}, its verdicts do not: audit again.")


def _check_tune(document: Mapping[str, Any], where: str) -> None:
    """That a choice of settings states what its ledgers cost, and these what its plans imply."""
    check_guarantees(document["privacy"]["guarantees"], document["ledger"], where)
    check_guarantees(document["naive"]["guarantees"], document["naive"]["ledger"], f"{where}: naive")
    tune = TUNE.variants[document["scenario"]["tune"]["method"]].model_validate(document["scenario"]["tune"])
    check_ledgers(document, cast(Tune, tune), where)


def _keeps_to(budget: float | None, claims: Iterable[Mapping[str, Any]]) -> bool:
    """Whether what is guaranteed, if anything is, is within a budget."""
    spent = [claim["epsilon"] for claim in claims if claim["epsilon"] is not None]
    return budget is None or (bool(spent) and max(spent) <= budget * (1 + 1e-9))


def _brief(value: Any) -> str:
    return textwrap.shorten(str(value), 80, placeholder="...")


def _check_training_cell(cell: Mapping[str, Any], folder: Path, where: str) -> None:
    """That a cell of a comparison states what its weakest run does, with the unit of its runs' ledgers."""
    runs = [read_document(folder / run / "run.json") for run in cell["runs"]]
    for run, document in zip(cell["runs"], runs, strict=True):
        file = str(folder / run / "run.json")
        check_fields(document, file)
        if document["kind"] != "run":
            raise InputError(f"{file}: not a run but a {document['kind']}. Restore it, or compare again.")
        check_record(document, file)
    stated = {one["observer"]: one["epsilon"] for one in cell["guarantees"]}
    found = weakest([document["privacy"]["guarantees"] for document in runs])
    if stated != {one["observer"]: one["epsilon"] for one in found}:
        raise InputError(
            f"{where} states other epsilons than its runs cost: {stated}. "
            "The record was changed: compare again."
        )
    for document in runs:
        ledger = document["ledger"]
        units = {cell.get("unit", ledger["unit"]), *(one["unit"] for one in cell["guarantees"])}
        said, sizes = cell.get("records_per_client"), document["privacy"].get("records_per_client")
        if units != {ledger["unit"]} or cell["trust"] != ledger["trust"]:
            named = " and ".join(map(repr, sorted(units)))
            raise InputError(
                f"{where} says trust {cell['trust']!r} and unit {named}, its runs have {ledger['trust']!r} "
                f"and {ledger['unit']!r}. The record was changed: compare again."
            )
        if said != sizes:
            raise InputError(
                f"{where} says that clients have {said} records, its runs {sizes}. "
                "The record was changed: compare again."
            )
