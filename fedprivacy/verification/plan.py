"""Verifies a stored plan: its answers follow from its accuracies, its guarantees from its scenario."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fedprivacy.documents.plan import PlanDocument
from fedprivacy.documents.redaction import TESTED_NOTE
from fedprivacy.errors import InputError
from fedprivacy.forecast.answer import enough_points, forecast, highest, levelled_off, unreachable
from fedprivacy.forecast.cells import cell_tables, is_public
from fedprivacy.forecast.curve import curve_of
from fedprivacy.forecast.question import Question
from fedprivacy.guarantees.ledger import Ledger
from fedprivacy.guarantees.statement import guarantees
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.records.run_record import TUNING_UNSTATED
from fedprivacy.records.seed_statistics import interval
from fedprivacy.scenario import Scenario
from fedprivacy.verification.differences import placed, refusal, refuse_difference
from fedprivacy.verification.run import check_plan
from fedprivacy.verification.scenario_without_data import check_digest, stored_scenario, unread

AGAIN = "plan again"
PUBLIC_RUNS = (
    "These runs are a simulation on public or synthetic records, and cost nobody privacy. Their epsilons are "
    "those that a run as planned would have."
)
CLIENTS_RUNS = (
    "These runs trained on the clients' records without a charge, some of them without noise: they are the "
    "operator's simulation. Their results are operator-only, and no guarantee here covers a choice by them."
)
SETTINGS = (
    "Only the number of clients or epsilon varies. All other settings are the scenario's, and cohorts of "
    "fixed size keep their share of the clients; settings tuned for another number may do better."
)
INTERVALS = (
    "Intervals are 95 % of a parametric bootstrap over repeats, each with other clients and other noise, "
    ""
    "with the error of the development records, that of few clients where these lend them. They do not cover "
    "another task, or clients unlike these."
)


def answers(
    question: Question,
    points: Sequence[tuple[float, Sequence[float]]],
    baseline: Sequence[float],
    of_half: Sequence[float] | None,
    development: Mapping[str, Any],
    seed: int,
    effects: Sequence[float],
) -> dict[str, Any]:
    """The forecast of one curve, from its accuracies alone.

    Args:
        question: What is unknown.
        points: Each number with the accuracies of its repeats.
        baseline: The accuracies without noise.
        of_half: Those of half of the clients; None where they were not measured.
        development: The document's part about development records.
        seed: The scenario's, which draws the replicates.
        effects: The design effects of the baseline and of each number.
    """
    records = development["records"] / max(effects)
    top = highest(baseline, development["records"] / effects[0], interval(list(baseline)))
    means = [sum(values) / len(values) for _, values in points]
    curve = curve_of(
        points,
        floor=1 / development["classes"],
        highest=max(top, *means),
        records=records,
        seed=seed,
        levelled_off=of_half is not None and levelled_off(baseline, of_half),
    )
    return forecast(curve, question)


def no_answer(question: Question, clients: int) -> dict[str, Any]:
    """The answer where the wanted accuracy is above that without noise: more clients may reach it."""
    size = float(clients)
    none = dict.fromkeys(("value", "low", "high"))
    verdict = "beyond" if question.unknown == "clients" else "unreachable"
    answer = {"verdict": verdict, **none, "largest": size, "limit": size}
    return {"answer": answer, "guarantees": []}


def claims_of(plan: Plan, *, tested: bool) -> list[dict[str, Any]]:
    """The guarantees that a run by a plan would have."""
    ledger = Ledger(plan, tested=tested).in_advance().to_json()
    return [each.to_json() for each in guarantees(ledger)]


def closing(scenario: Scenario) -> dict[str, Any]:
    """The notes, and the operator-only fields."""
    public = is_public(scenario.tables()["data"])
    notes = [PUBLIC_RUNS] if public else [CLIENTS_RUNS, TESTED_NOTE]
    return {
        "operator_only": list(PlanDocument.OPERATOR_ONLY),
        "notes": [*notes, SETTINGS, INTERVALS, scenario.tuning or TUNING_UNSTATED],
    }


def check(document: dict[str, Any], folder: Path, where: str) -> dict[str, Any]:
    """The document of a plan, as it may be shown: its answers and guarantees are computed again.

    Raises:
        InputError: a part of it does not follow from its scenario, its question and its accuracies.
    """
    scenario = stored_scenario(Scenario, document, where, AGAIN)
    check_digest(document, scenario, where, AGAIN)
    with placed(where, "question", AGAIN):
        question = Question.from_json(document["question"])
    refuse_difference(document["question"], question.to_json(), "question", where, "its parts imply", AGAIN)
    development, curves = document["development"], document["curves"]
    public = is_public(scenario.tables()["data"])
    if development["public"] is not public:
        raise refusal(where, "development.public", f"says {development['public']}", AGAIN)
    trusts = [curve["trust"] for curve in curves]
    refuse_difference(trusts, list(question.trusts), "curves", where, "its question asks for", AGAIN)
    baseline = document["baseline"]["accuracies"]
    effect = document["baseline"]["design_effect"]
    of_half = (document.get("baseline_of_half") or {}).get("accuracies")
    none = unreachable(question, baseline, development["records"] / effect, interval(baseline))
    for number, curve in enumerate(curves):
        key = f"curves[{number}]"
        points = [(point["x"], point["accuracies"]) for point in curve.get("points", ())]
        if none:
            derived = no_answer(question, development["clients"])
        else:
            _check_points(points, question, f"{where}: {key}.points")
            effects = [effect, *(point["design_effect"] for point in curve["points"])]
            derived = answers(question, points, baseline, of_half, development, scenario.seed, effects)
            _check_planned(curve, scenario, development, key, where)
        for name, value in derived.items():
            source = "its accuracies imply"
            refuse_difference(curve.get(name), value, f"{key}.{name}", where, source, AGAIN, rounded=True)
    for name, value in closing(scenario).items():
        refuse_difference(document.get(name), value, name, where, "its scenario implies", AGAIN)
    return document


def _check_points(points: list[tuple[float, list[float]]], question: Question, where: str) -> None:
    rising = [x for x, _ in points]
    if not enough_points(rising) or rising != sorted(set(rising)):
        raise InputError(f"{where}: are not rising numbers, or too few. Restore the file, or {AGAIN}.")
    if any(len(values) != question.repeats for _, values in points):
        raise InputError(f"{where}: have other repeats than the question. Restore the file, or {AGAIN}.")


def _check_planned(
    curve: Mapping[str, Any], scenario: Scenario, development: Mapping[str, Any], key: str, where: str
) -> None:
    """Checks the plan and the guarantees of the run that was measured on test records."""
    planned, final = curve["planned"], curve["test"]
    clients = planned["population"]
    if final is not None:
        derived = interval(final["accuracies"])
        stored, source = final["accuracy"], "its accuracies imply"
        refuse_difference(stored, derived, f"{key}.test.accuracy", where, source, AGAIN, rounded=True)
        refuse_difference(final["clients"], clients, f"{key}.test.clients", where, "its plan has", AGAIN)
    tables = cell_tables(
        scenario.tables(), curve["trust"], curve["epsilon"], scenario.seed, clients, development["total"]
    )
    requested = unread(Scenario, tables, where, AGAIN)
    plan = check_plan(planned, requested, f"{key}.planned", where, AGAIN, clients)
    derived_claims = claims_of(plan, tested=not development["public"])
    source = "its plan implies"
    refuse_difference(
        curve["guarantees"], derived_claims, f"{key}.guarantees", where, source, AGAIN, rounded=True
    )
