"""Audits a scenario: trains it with canary clients, and compares their scores with the claims."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from fedprivacy.account.charge import Charge
from fedprivacy.account.entry import PlannedWork
from fedprivacy.attacks.assessment import assess
from fedprivacy.attacks.audit_record import audit_description, dearest
from fedprivacy.attacks.canaries import check_memory
from fedprivacy.attacks.canary_evidence import ERROR, added, guessed
from fedprivacy.attacks.gaussian_score_bound import ScoreMoments
from fedprivacy.documents import audit as documents
from fedprivacy.documents.audit import AuditDocument
from fedprivacy.documents.envelope import Performance
from fedprivacy.errors import InputError
from fedprivacy.guarantees.observers import OBSERVERS
from fedprivacy.io.environment import versions
from fedprivacy.models.partial_training import trained_size
from fedprivacy.plan.from_scenario import plan_of
from fedprivacy.population.clients import population
from fedprivacy.randomness.streams import Streams
from fedprivacy.records.ownership import begin_run
from fedprivacy.records.receipt import ChargedRun
from fedprivacy.report import write as write_report
from fedprivacy.scenario import Scenario
from fedprivacy.training.model_spec import model_of
from scenarios.budgets.attack_works import audit_works, fewer_trials
from scenarios.experiments.audit_options import check_options, check_privacy
from scenarios.experiments.audit_run import Audited, Heard, listen
from scenarios.jobs.process_pool import spread

OnRun = Callable[[str, int, int], None]


def audit(
    scenario: Scenario,
    out: Path,
    *,
    canaries: int = 1000,
    method: str = "both",
    trials: int = 1,
    workers: int = 1,
    allow_code: bool = False,
    command: str = "",
    report: bool = True,
    on_run: OnRun | None = None,
    charge: Charge | None = None,
) -> dict[str, Any]:
    """Runs a scenario's training with canaries, and judges what it claims.

    Args:
        scenario: What is audited; its unit of privacy is the client.
        out: Where the directory of the result goes; it is made at the end.
        canaries: How many clients are added.
        method: One of `audit_options.METHODS`.
        trials: Runs, each with a seed, coins and noise of its own.
        workers: Processes; the numbers do not depend on it.
        allow_code: Whether the scenario may run code (`--allow-code`).
        command: The command that reproduces it, for the record.
        report: Whether to write report.html.
        on_run: Called with a label, runs done and runs in all.
        charge: The account that is charged before the first trial; results are then the operator's.

    Returns:
        The document that is also in run.json.

    Raises:
        InputError: an option is out of range, the scenario cannot be audited, or its trials may not enter
            the account.
        RunError: a run fails.
    """
    check_options(method, canaries, trials, scenario.seed)
    check_privacy(scenario.privacy, scenario.name)
    if scenario.training.personal is not None:
        raise InputError(
            "training.personal: an audit judges the model that all clients share, with planted canaries. "
            "Remove it."
        )
    began, started = time.perf_counter(), datetime.now(UTC).isoformat(timespec="seconds")
    people = population(scenario.data)
    model = model_of(scenario, people, allow_code=allow_code)
    plan = plan_of(scenario, model)
    if plan.adaptive is not None:
        raise InputError(
            "privacy.clipping_quantile: the canaries of an audit have updates of one norm, and this plan's "
            "changes from round to round. Audit the same scenario without it."
        )
    if scenario.privacy.clipping_layers is not None:
        raise InputError(
            "privacy.clipping_layers: the canaries of an audit have updates that are clipped as a whole and "
            "not by layer. Audit the same scenario without it."
        )
    if plan.encoder is not None:
        raise InputError(
            "privacy.encoding: the canaries of an audit have updates that are clipped and not encoded. "
            "Audit the same scenario without it."
        )
    check_memory(canaries, trained_size(model.build(0)))  # before an account is charged
    seeds = range(scenario.seed, scenario.seed + trials)
    inside = workers if trials == 1 else 1
    jobs = [
        Audited(
            scenario.model_copy(update={"seed": seed}),
            plan,
            canaries,
            inside,
            allow_code,
            seed == scenario.seed,
        )
        for seed in seeds
    ]

    def works() -> list[PlannedWork]:
        return audit_works(scenario, plan, people, model.code, canaries=canaries, trials=trials)

    with ChargedRun(charge, works, suggest=fewer_trials(trials)) as charged:
        heard: dict[int, Heard] = {}
        for number, run in spread(listen, [(job,) for job in jobs], min(workers, trials)):
            heard[number] = run
            if on_run:
                on_run(f"seed {seeds[number]}", len(heard), trials)
        heard_runs = [heard[number] for number in range(trials)]
        observers = [
            _observer(name, heard_runs, scenario, method, [Streams(seed) for seed in seeds])
            for name in OBSERVERS
        ]
        holds = [run["verdict"]["holds"] for run in observers]
        facts = {
            "method": method,
            "canaries": canaries,
            "trials": trials,
            "clients": people.partition.clients,
            "rounds": plan.rounds,
            "noise_multiplier": plan.noise_multiplier,
            "clipping_norm": plan.clipping_norm,
            "false_alarm": ERROR,
            "neighbours": None if heard_runs[0].neighbours is None else heard_runs[0].neighbours.to_json(),
        }
        seconds = time.perf_counter() - began
        with begin_run(out, scenario.label, scenario.to_toml()) as directory:
            charged.begin(directory)
            document = AuditDocument.new(
                path=str(directory.path),
                name=scenario.name,
                seed=scenario.seed,
                status="finished",
                command=command,
                started=started,
                versions=versions(scenario.training.trainer),
                scenario=scenario.tables(),
                **({} if charge is None else {"for_operator": True}),
                audited=documents.Audited.new(words=audit_description(scenario.tables(), facts), **facts),
                plan=plan.to_json(),
                refuted=False in holds,
                observers=observers,
                ledgers=[run.ledger for run in heard_runs],
                operator_only=list(AuditDocument.OPERATOR_ONLY),
                performance=Performance.of_process(seconds),
            ).to_json()
            directory.write_document(document)
            if report:
                write_report(document, directory.path)
    return document


def _observer(
    name: str, heard: Sequence[Heard], scenario: Scenario, method: str, streams: Sequence[Streams]
) -> dict[str, Any]:
    """The audit of one observer by the canaries, with the evidence behind it."""
    guesses = None
    if method != "canary-clients":
        guesses = added(
            [
                guessed(run.scores[name], run.present, stream.noise(f"audit-ties/{name}"))
                for run, stream in zip(heard, streams, strict=True)
            ]
        )
    present = np.concatenate([run.present for run in heard])
    scores = ScoreMoments.of(np.concatenate([run.scores[name] for run in heard]), present)
    number, compared = dearest([run.ledger for run in heard], name), heard[0].neighbours
    assessed = assess(name, heard[number].ledger, scenario.tables(), method, guesses, scores, compared)
    observer = documents.Observer.new(observer=name, ledger=number, scores=scores.to_json(), **assessed)
    return observer.to_json()
