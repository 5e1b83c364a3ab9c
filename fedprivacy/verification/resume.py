"""Checks that a stored run can be resumed and that its plan is unchanged."""

from __future__ import annotations

import shlex
from typing import Any

from fedprivacy.documents.run import ResumableRun
from fedprivacy.errors import InputError
from fedprivacy.io.document_part import strict
from fedprivacy.io.environment import versions
from fedprivacy.io.validation import check
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.records.run_directory import RunDirectory
from fedprivacy.records.run_record import scenario_digest
from fedprivacy.scenario import Scenario
from fedprivacy.verification import run


def check_plan(directory: RunDirectory, stored: Plan, derived: Plan) -> None:
    """Refuses a record whose plan differs from its scenario's.

    A round that is played again has the same noise, so that all else has to be the same too; and what was
    released under one plan must not be accounted for under another.

    Args:
        directory: The run.
        stored: The plan in its run.json, which may have been changed or damaged.
        derived: That of its scenario, calibrated again.

    Raises:
        InputError: they differ.
    """
    difference = stored.refusal(derived)
    if difference is not None:
        problem = difference.removeprefix("the server asks for another plan ").strip("()")
        problem = problem.replace("asked ", "the scenario asks for ").replace("agreed ", "the record says ")
        raise InputError(
            f"{directory.path}/run.json: its plan is not that of its scenario.toml ({problem}). The "
            "record was "
            f"changed or damaged: start the run anew, for the same noise: fedprivacy run "
            f"{shlex.quote(str(directory.path / 'scenario.toml'))}"
        )


def plan_to_resume(directory: RunDirectory) -> tuple[dict[str, Any], Plan]:
    """The document of a resumable run, with its original plan.

    Raises:
        InputError: if the directory holds no run, or its scenario or the versions are not those that it
            began with, or its clients were elsewhere, or it states what does not follow from its parts.
    """
    if not (directory.path / "run.json").exists():
        raise directory.nothing_started("run")
    document = directory.document()
    if document.get("kind") != "run":
        raise InputError(
            f"{directory.path}: not a run but a {document.get('kind')}; only runs can be resumed."
        )
    check(
        document, strict(ResumableRun), f"{directory.path}/run.json", "Restore the file, or start a new run."
    )
    held, began = document["ledger"]["held"], document["versions"]
    if document["scenario_digest"] != scenario_digest(directory):
        raise InputError(
            f"{directory.path}/scenario.toml: changed since the run began. Start a new run from the "
            "changed file, or restore it."
        )
    if "federation" in document:
        raise InputError(
            f"{directory.path}: made on a federation, whose nodes keep their own state, so it cannot be "
            "resumed. Start a new run."
        )
    if not held:
        raise InputError(
            f"{directory.path}: made by `flwr run`, whose clients kept their own state, so it cannot be "
            "resumed here. Start a new run."
        )
    here = versions("opacus" if "opacus" in began else "fedprivacy")
    other = [f"{name} {began.get(name)} (here {now})" for name, now in here.items() if began.get(name) != now]
    if other:
        raise InputError(
            f"{directory.path}: begun with {', '.join(other)}, and a run is resumed with the same versions. "
            "Install those, or start a new run."
        )
    plan = Plan.from_json(document["plan"])
    clients = Scenario.read(directory.path / "scenario.toml").population
    if plan.population != clients:
        raise InputError(
            f"{directory.path}: its plan is for {plan.population} clients, and its scenario has {clients}: "
            "the data changed since the run began, or run.json. Start a new run."
        )
    return run.check(document, directory.path, f"{directory.path}/run.json"), plan
