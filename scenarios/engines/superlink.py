"""The superlink engine: submits a run to Flower's deployment engine and downloads its record."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fedprivacy.account.charge import Charge
from fedprivacy.errors import FedPrivacyError, InputError, RunError
from fedprivacy.guarantees.remote_nodes import Stated
from fedprivacy.guarantees.so_far import with_epsilon
from fedprivacy.io.escape import on_one_line
from fedprivacy.io.log_transfer import Result, new_token
from fedprivacy.io.waiting import waiting
from fedprivacy.records.ownership import begin_run
from fedprivacy.records.receipt import ChargedRun
from fedprivacy.records.run_record import broken_off, heard_of
from fedprivacy.report import write as write_report
from fedprivacy.scenario import OnNodes, Scenario
from fedprivacy.scenario.loading import AnyScenario
from fedprivacy.scenario.rules.personal import NO_PERSONAL_MODELS
from fedprivacy.secure_sum.roster import text_of
from fedprivacy.verification.verify import checked_document
from scenarios.budgets.planned_work import planned
from scenarios.budgets.stop_at_epsilon import plan_in_advance
from scenarios.engines.bundle import make_app, with_absolute_paths, write_run_config
from scenarios.engines.run_follower import Following
from scenarios.federation.control import Control
from scenarios.federation.folder import needs_masks
from scenarios.federation.state import SEEDED_WARNING, Target
from scenarios.jobs.interrupts import deferred, undisturbed
from server.app import statement_of

OnEvent = Callable[[dict[str, Any]], None]


def run(
    scenario: AnyScenario,
    out: Path,
    target: Target,
    *,
    allow_code: bool = False,
    command: str = "",
    on_event: OnEvent | None = None,
    charge: Charge | None = None,
) -> dict[str, Any]:
    """Runs a scenario on a federation, and writes its record to a new directory under `out`.

    Args:
        scenario: The scenario to run.
        out: Where run directories go.
        target: The federation.
        allow_code: Whether the scenario may run code (`--allow-code`).
        command: The command that was given, for the record.
        on_event: Called with each round's or query's event.
        charge: The account that is charged before the run is submitted.

    Returns:
        The document that is also in run.json.

    Raises:
        InputError: if a file that the scenario names is not there, or keys of nodes that sum under masks, or
            the plan may not enter the account.
        RunError: if the run fails there, or its record does not arrive complete.
        KeyboardInterrupt: if the user interrupts it; the run is stopped there as well.
    """
    check_masks(scenario, target)
    check_personal(scenario)
    if target.on_this_machine:
        scenario = with_absolute_paths(scenario)
    if target.noise == "seeded":
        print(SEEDED_WARNING, file=sys.stderr)
    roster = "" if target.roster is None else text_of(target.roster)
    stated = statement_of(scenario, target.noise, target.pinned)
    on_event = _with_epsilon(on_event, scenario, allow_code, stated)
    with (
        ChargedRun(charge, lambda: [planned(scenario, allow_code=allow_code, stated=stated)]) as charged,
        tempfile.TemporaryDirectory(prefix="fedprivacy-") as name,
    ):
        writer = _RecordWriter(scenario, out, command, target, charged)
        folder = Path(name)
        control, token = Control(target.link, folder / "flower"), new_token()
        config = write_run_config(
            folder / "run.toml",
            scenario=scenario.to_toml(compare=False),
            allow_code=allow_code,
            noise=target.noise,
            pinned=target.pinned,
            roster=roster,
            record=token,
        )
        following: Following | None = None
        try:
            with (
                deferred()
            ):  # an interrupt between submission and assignment would leave a run that nobody stops
                with waiting(f"submitting the run to {target.link.address}"):
                    number = control.submit(make_app(folder), config)
                following = Following(control, number, token, on_event)
            print(f"Run {following.run} on {target.link.address}", file=sys.stderr)
            result = following.follow()
        except KeyboardInterrupt:
            with undisturbed():
                if following is not None:
                    _stop(control, following.run)
                    writer.write_partial(following, "interrupted", "interrupted by the user")
            raise
        except RunError as error:
            with undisturbed():
                if following is not None:
                    _stop(control, following.run, quietly=True)
                    writer.write_partial(following, "failed", str(error))
            raise
        return writer.write_complete(result)


def _with_epsilon(
    on_event: OnEvent | None, scenario: AnyScenario, allow_code: bool, stated: Stated
) -> OnEvent | None:
    """Adds the epsilon so far to the events of a training with a guarantee."""
    if not isinstance(scenario, Scenario) or scenario.privacy.trust == "none":
        return on_event
    whole = scenario.server.patience is not None
    return with_epsilon(on_event, plan_in_advance(scenario, allow_code), whole=whole, remote=stated)


def check_masks(scenario: AnyScenario, target: Target) -> None:
    """Checks that pinned nodes that sum under masks have a server with their public keys.

    Raises:
        InputError: if not.
    """
    if not needs_masks(scenario) or not (target.pinned or isinstance(scenario.data, OnNodes)):
        return
    if target.pinned and target.roster is not None:
        return
    remedy = (
        f"Start it with them: fedprivacy federation up --nodes {scenario.population} --scenario SCENARIO"
        if target.on_this_machine
        else "Give both: --pinned --roster FILE (fedprivacy federation roster KEY.pub...)."
    )
    raise InputError(
        'privacy.trust = "distributed": nodes that hold their own plan or records sum under masks, for which '
        f"they pin this plan, and the server needs their public keys. {remedy}"
    )


def check_personal(scenario: AnyScenario) -> None:
    """Refuses personal models: no client of a federation would get its model.

    Raises:
        InputError: the scenario has some.
    """
    if isinstance(scenario, Scenario) and scenario.training.personal is not None:
        raise InputError(f"training.personal: {NO_PERSONAL_MODELS}")


class _RecordWriter:
    """Writes the record of a remote run on this machine.

    Args:
        scenario: The submitted scenario.
        out: Where run directories go.
        command: The command that was given.
        target: Where it ran.
        charged: Its charge.
    """

    def __init__(
        self, scenario: AnyScenario, out: Path, command: str, target: Target, charged: ChargedRun
    ) -> None:
        self.scenario, self.out, self.command, self.target = scenario, out, command, target
        self.charged = charged

    def write_complete(self, result: Result) -> dict[str, Any]:
        """Writes a record that arrived, verifies its guarantees, and returns its document.

        Raises:
            RunError: if the run failed, or the record is not one of this scenario.
        """
        failed = None
        if result.status != "finished":
            reason = on_one_line(result.error or "no reason given")
            failed = RunError(f"the run failed on the SuperLink's side: {reason}")
        if "run.json" not in result.files:
            raise failed or RunError("the run ended without a record. Start it again.")
        document = self._write(result)
        if result.left_out:
            print(
                f"{result.left_out} is too large to be sent back. "
                f"It is in {result.path} on the SuperLink's machine.",
                file=sys.stderr,
            )
        if failed is None and document.get("status") != "finished":
            problem = f"the run's record has status {document.get('status')}: {document.get('error')}"
            failed = RunError(on_one_line(problem))
        if failed is not None:
            raise RunError(f"{failed}\nIts record until then: {document['path']}") from None
        return document

    def write_partial(self, following: Following, status: str, error: str) -> None:
        """Writes the events of a run whose record did not arrive; the whole planned budget is charged."""
        try:
            result = following.arrivals.result()
            if "run.json" not in result.files:
                print(
                    f"Nothing of the record of run {following.run} arrived. "
                    "If the run had started, count its whole planned budget as spent.",
                    file=sys.stderr,
                )
                return
            document = self._write(result, status, error)
        except (FedPrivacyError, OSError) as problem:
            print(f"The record cannot be written: {problem}", file=sys.stderr)
            return
        print(f"Partial record of the run: {document['path']}", file=sys.stderr)

    def _write(self, result: Result, status: str | None = None, error: str | None = None) -> dict[str, Any]:
        text = self.scenario.to_toml(compare=False)
        if result.files.get("scenario.toml", b"").decode(errors="replace") != text:
            raise RunError("the record that arrived is of another scenario. Start the run again.")
        directory = None
        try:
            document = json.loads(result.files["run.json"])
            if status is not None:
                if document["kind"] == "run" and isinstance(self.scenario, Scenario):
                    document = heard_of(document, self.scenario, result.events)
                    document = broken_off(document, status, str(error))
                else:
                    document |= {"status": status, "error": error}
            with begin_run(self.out, self.scenario.label, text) as directory:
                self.charged.begin(directory)
                document |= {
                    "path": str(directory.path),
                    "command": self.command,
                    "federation": self._federation(result),
                }
                document["performance"]["engine"] = "superlink"
                directory.write_document(document)
                for name, data in result.files.items():
                    if name.startswith("checkpoint/"):
                        (directory.path / "checkpoint").mkdir(exist_ok=True)
                        (directory.path / name).write_bytes(data)
                lines = "".join(json.dumps(event) + "\n" for event in result.events)
                directory.write("events.jsonl", lines)
                document = checked_document(directory.path)
                write_report(document, directory.path)
        except (FedPrivacyError, ValueError, KeyError, TypeError, AttributeError) as problem:
            if directory is not None:
                shutil.rmtree(directory.path)
            message = str(problem) if isinstance(problem, FedPrivacyError) else repr(problem)
            raise RunError(
                f"what came home is no record: {message}\nThe server's own is in {result.path} on its "
                "machine."
            ) from problem
        return document

    def _federation(self, result: Result) -> dict[str, Any]:
        """Returns where the run took place, and the path of the record there."""
        return {
            "address": self.target.link.address,
            "noise": self.target.noise,
            "pinned": self.target.pinned,
            "path": result.path,
        }


def _stop(control: Control, run: int, *, quietly: bool = False) -> None:
    """Stops a run that may have ended already."""
    problem = ""
    for _ in range(3):
        try:
            if control.status(run)[0].startswith("finished"):
                return
            control.stop(run)
            print(f"Stopped run {run}.", file=sys.stderr)
            return
        except RunError as error:
            problem = str(error)
    if not quietly:
        print(f"Run {run} may still be running: {problem}", file=sys.stderr)
