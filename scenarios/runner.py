"""Runs one scenario: plan, grid, apps, record, report."""

from __future__ import annotations

import shlex
import sys
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

from flwr.app import Context, RecordDict

from clients.fleet import Fleet
from fedprivacy.account.charge import Charge
from fedprivacy.account.entry import PlannedWork
from fedprivacy.errors import FedPrivacyError, InputError, RunError
from fedprivacy.guarantees.so_far import with_epsilon
from fedprivacy.io.atomic import sweep_parts
from fedprivacy.io.processes import use_one_thread
from fedprivacy.plan.from_scenario import candidates_of
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.population.clients import population
from fedprivacy.records.ownership import begin_run, take_up_run
from fedprivacy.records.receipt import ChargedRun
from fedprivacy.records.run_directory import Checkpoint
from fedprivacy.records.run_record import OnRound, RunRecord
from fedprivacy.scenario import Code, Scenario
from fedprivacy.training.cuda import DeviceLost
from fedprivacy.verification.resume import check_plan, plan_to_resume
from scenarios.budgets.planned_work import training_work
from scenarios.engines.launch import EMBEDDED, Engine, Launched, launched
from scenarios.jobs.outcome import on_resuming, print_charge
from server.app import make_app as make_server_app


def run(
    scenario: Scenario,
    out: Path,
    *,
    plan: Plan | None = None,
    allow_code: bool = False,
    command: str = "",
    on_round: OnRound | None = None,
    report: bool = True,
    engine: Engine = EMBEDDED,
    charge: Charge | None = None,
) -> dict[str, Any]:
    """Runs a scenario from the start, in a new directory under `out`.

    Args:
        scenario: What to run.
        out: Where run directories go.
        plan: The scenario's plan, where it has been calibrated before.
        allow_code: Whether the scenario may run code (`--allow-code`).
        command: The command that reproduces it, for the record.
        on_round: Called with each round's event.
        report: Whether to write report.html.
        engine: Where the apps run; the numbers do not depend on it.
        charge: The account that is charged before the first round.

    Returns:
        The document that is also in run.json.

    Raises:
        InputError: before anything is written, if the scenario cannot run, its plan not enter the account
            or `out` not be written.
        RunError: if the run fails; its directory then has the progress.
    """
    fleet = Fleet.of(scenario, population(scenario.data), plan, allow_code=allow_code)
    candidates = candidates_of(scenario, fleet.model) if report else None
    with (
        launched(engine, scenario, fleet, allow_code=allow_code) as apps,
        ChargedRun(charge, lambda: [_work(scenario, fleet)]) as charged,
        begin_run(out, scenario.label, scenario.to_toml()) as directory,
    ):
        charged.begin(directory)
        record = RunRecord(
            scenario,
            fleet.plan,
            directory,
            command=command,
            on_round=with_epsilon(on_round, fleet.plan, whole=scenario.server.patience is not None),
            tested=fleet.people.tests_clients(scenario.evaluation.on),
            candidates=candidates,
            noise_key=fleet.streams.run,
            sizes=fleet.people.partition.sizes,
            way=fleet.way,
            engine={"engine": engine.name, "workers": apps.workers},
        )
        return _train(apps, fleet, record, None, report)


def resume(
    path: Path,
    *,
    plan: Plan | None = None,
    allow_code: bool = False,
    on_round: OnRound | None = None,
    report: bool = True,
    engine: Engine = EMBEDDED,
    charge: Charge | None = None,
) -> dict[str, Any]:
    """Resumes an interrupted run from its newest whole checkpoint, to the same result.

    Without a checkpoint it starts again at the first round and draws the same cohorts and the same noise. A
    finished run is left as it is, except that a missing report is written.

    Args:
        path: The run's directory.
        plan: The scenario's plan, where it has been calibrated before.
        allow_code: As of `run`.
        on_round: As of `run`.
        report: As of `run`.
        engine: As of `run`; it may differ from the engine that the run started on.
        charge: The account in which the run is charged, to check that it is.

    Raises:
        InputError: if `path` holds no run, or the scenario, data, code or versions changed since it started,
            or its record states another plan than its scenario, or another process works on it, or the
            account does not have it.
    """
    with take_up_run(path) as directory:
        earlier, stored = plan_to_resume(directory)
        if earlier["status"] == "finished":
            if report:
                _write_report(earlier, path, missing=True)
            return earlier
        scenario = Scenario.read(path / "scenario.toml")
        fleet = Fleet.of(scenario, population(scenario.data), plan, allow_code=allow_code)
        if fleet.streams.run != earlier["noise_key"]:
            what = "the data, the weights or the code of its model" if fleet.model.code else "the data"
            raise InputError(
                f"{path}: {what} changed since the run began, so it cannot be resumed. Start a new run."
            )
        check_plan(directory, stored, fleet.plan)
        damaged: list[Path] = []
        checkpoint = directory.load_checkpoint(damaged.append)
        with (
            ChargedRun(charge, lambda: [_work(scenario, fleet)], path) as charged,
            launched(engine, scenario, fleet, allow_code=allow_code) as apps,
        ):
            charged.hold(directory)
            record = RunRecord(
                scenario,
                fleet.plan,
                directory,
                earlier=earlier,
                on_round=with_epsilon(on_round, fleet.plan, whole=scenario.server.patience is not None),
                tested=fleet.people.tests_clients(scenario.evaluation.on),
                noise_key=fleet.streams.run,
                sizes=fleet.people.partition.sizes,
                way=fleet.way,
                engine={"engine": engine.name, "workers": apps.workers},
            )
            if checkpoint is not None:  # read completely before anything is written
                apps.restore(checkpoint.tensors)
                record.restore(checkpoint)
            _report_damage(damaged, checkpoint)
            sweep_parts(path)
            sweep_parts(path / "checkpoint")
            return _train(apps, fleet, record, checkpoint, report)


def _work(scenario: Scenario, fleet: Fleet) -> PlannedWork:
    return training_work(scenario, fleet.plan, fleet.people, fleet.streams.run)


def _write_report(document: dict[str, Any], path: Path, *, missing: bool = False) -> None:
    from fedprivacy.report import is_written, write  # not before the run, which needs none of it

    if not (missing and is_written(path)):
        write(document, path)


def _report_damage(damaged: list[Path], checkpoint: Checkpoint | None) -> None:
    """Reports on stderr which stored files are damaged, and where the run is resumed from."""
    if not damaged:
        return
    which = "the first round" if checkpoint is None else f"the checkpoint of round {checkpoint.rounds}"
    names = ", ".join(map(str, damaged))
    print(f"Damaged: {names}. Resuming from {which}, with the same noise as before.", file=sys.stderr)


def _train(
    apps: Launched, fleet: Fleet, record: RunRecord, checkpoint: Checkpoint | None, report: bool
) -> dict[str, Any]:
    use_one_thread()
    server_app = make_server_app(record, fleet.people, fleet.model, checkpoint=checkpoint, view=apps.view)
    run_id = apps.grid.run.run_id
    context = Context(run_id=run_id, node_id=0, node_config={}, state=RecordDict(), run_config={})
    ended = False
    try:
        server_app(apps.grid, context)
        ended = True
    except DeviceLost as error:
        raise RunError(
            f"the GPU is lost, and the round under way with it: {error}. Repair the model, or set "
            f'training.device = "cpu", and start a new run.'
        ) from error
    except KeyboardInterrupt:
        path = record.directory.path
        allow = " --allow-code" if isinstance(record.scenario.model, Code) else ""
        command = f"fedprivacy run --resume {shlex.quote(str(path))}{allow}"
        remedy = on_resuming(command, record.scenario.description)
        print(f"Interrupted. {remedy}", file=sys.stderr)
        raise
    finally:
        with (
            nullcontext() if ended else suppress(FedPrivacyError)
        ):  # the error that stopped the run is more informative
            document = record.directory.document()
            if report:
                _write_report(document, record.directory.path)
                print_charge(document)
    return document
