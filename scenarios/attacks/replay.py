"""Runs an attack scenario: trains the target runs, runs each attack, writes the result.

A replay consists of two kinds of resumable jobs: training a target run up to its attacks, and running one
branch of attacks on it. A branch is charged to the account of its run before it starts, so an interruption
cannot spend the same answers twice.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fedprivacy.account.charge import Charge
from fedprivacy.account.entry import PlannedWork
from fedprivacy.documents.envelope import Performance
from fedprivacy.documents.replay import ReplayDocument
from fedprivacy.errors import InputError
from fedprivacy.guarantees.charge import under_way
from fedprivacy.io.environment import versions
from fedprivacy.io.folder import check_tree
from fedprivacy.population.clients import population
from fedprivacy.records.receipt import FILE as RECEIPT
from fedprivacy.records.receipt import ChargedRun
from fedprivacy.records.run_directory import RunDirectory
from fedprivacy.report import write as write_report
from fedprivacy.scenario.attack import AttackScenario
from scenarios.attacks.accuracy import Trained, accuracy, measure
from scenarios.attacks.game_setup import GameSetup, rounds_trained
from scenarios.attacks.participation_budget import open_account
from scenarios.attacks.result_document import ResultsByRun, results
from scenarios.attacks.scoring import from_json
from scenarios.attacks.target_run import TargetRun, is_trained, run_branch, stored_run, train
from scenarios.attacks.trial_runs import check_trials
from scenarios.budgets.attack_works import attack_works, fewer_runs
from scenarios.jobs.cell_store import CellTask
from scenarios.jobs.outcome import JobOutcome
from scenarios.jobs.process_pool import spread
from scenarios.jobs.stored_job import StoredJob, Work, open_job

OnAttack = Callable[[str, int, int], None]


def replay(
    scenario: AttackScenario,
    out: Path,
    *,
    workers: int,
    stored: Path | None = None,
    resume: Path | None = None,
    command: str = "",
    report: bool = True,
    on_attack: OnAttack | None = None,
    charge: Charge | None = None,
) -> dict[str, Any]:
    """Runs every attack of a scenario on every one of its runs.

    Args:
        scenario: The run, the game and the attacks.
        out: Where the directory of the result goes.
        stored: The directory of an earlier replay, whose trained runs are attacked again; transcripts of
            passive attackers are scored without any training.
        workers: Parallel processes; the results do not depend on their number.
        resume: The directory of this replay, to resume: finished trainings and attacks are kept. A repeated
            attack sends the same requests, gets the same noise, and costs nothing more.
        command: The command that reproduces it, for the record.
        report: Whether to write report.html.
        on_attack: Called with a label, steps done and steps in all: runs to train, and branches to run.
        charge: The account that is charged before the first run; results are then the operator's.

    Returns:
        The document that is also in run.json.

    Raises:
        InputError: before anything is written, if a game cannot be drawn, `stored` holds other runs or has no
            rounds left for these attacks, or `out` cannot be written, or `resume` cannot be resumed; later
            if the victim refuses so much that too few targets are left.
        RunError: if a run fails.
    """
    targets = [run for variant in range(len(scenario.variants)) for run in _runs(scenario, variant, stored)]
    if stored is not None:
        check_tree(stored)
        for run in targets:
            stored_run(run)
        for run in targets:  # refuses before anything is written; the later charge is the same one
            run.spend()

    def works() -> list[PlannedWork]:
        if stored is not None:
            raise InputError(
                f"--account: {stored}: what its runs have released is not in the account. Start a new replay."
            )
        runs = [(run.scenario, run.plan, run.setup().fleet.streams.run) for run in targets]
        return attack_works(runs, population(scenario.data))

    if stored is not None and (stored / RECEIPT).exists():
        raise InputError(
            f"{stored}: is charged to an account for its own attacks alone, and others release more. Start a "
            "new replay with --account."
        )
    work = Work(
        "replay",
        scenario.name,
        scenario.to_toml(),
        versions(scenario.training.trainer),
        data=population(scenario.data).digest,
        facts={"stored": None if stored is None else str(stored.resolve())},
    )

    def prepare(directory: RunDirectory) -> None:
        charged.begin(directory)
        # Created once: after an interruption a repeated training keeps the answers already charged.
        for run in targets if stored is None else ():
            open_account(directory.path / run.folder)

    with (
        ChargedRun(charge, works, resume, fewer_runs(scenario)) as charged,
        open_job(work, out, resume=resume, command=command, prepare=prepare) as job,
    ):
        charged.hold(job.directory)
        if job.finished is not None:
            return job.finished
        if stored is None:
            targets = [replace(run, folder=job.path / run.folder) for run in targets]
        return _work(job, scenario, targets, stored is None, workers, report, on_attack)


def _work(
    job: StoredJob,
    scenario: AttackScenario,
    targets: list[TargetRun],
    training: bool,
    workers: int,
    report: bool,
    on_attack: OnAttack | None,
) -> dict[str, Any]:
    """Runs the unfinished trainings and attacks, and closes the replay."""
    results_so_far: ResultsByRun = {}
    trained: Trained = {}
    job_outcome = JobOutcome(job.path, job.again)
    try:
        with job_outcome:
            untrained = [run for run in targets if not is_trained(run)] if training else []
            # The remaining time covers all steps: training a run, and each branch on it.
            steps = Steps(on_attack, len(untrained) + sum(len(run.branches) for run in targets))
            todo = [(run,) for run in untrained]
            for number, _ in spread(train, todo, min(workers, max(1, len(todo)))):
                steps.done(f"trained {untrained[number].label}")
            if scenario.arms:
                _measure_all(job, targets, workers, trained)
            _attack_all(job, targets, workers, results_so_far, steps)
    finally:
        runs = [run.plan for run in targets if run.scenario.seed == scenario.seed]
        outcome = results(
            scenario,
            runs,
            dict(sorted(results_so_far.items())),
            trained,
            _started_runs(targets, results_so_far),
        )
        document = ReplayDocument.new(
            name=scenario.name,
            path=str(job.path),
            status=job_outcome.status,
            error=job_outcome.error,
            command=job.command,
            started=job.started,
            versions=versions(scenario.training.trainer),
            scenario=scenario.tables(),
            **({"for_operator": True} if (job.path / RECEIPT).exists() else {}),
            **{**outcome, "notes": [*outcome["notes"], *under_way(job_outcome.status)]},
            performance=Performance.of_process(job.seconds),
        ).to_json()
        job.directory.write_document(document)
        if report:
            write_report(document, job.path)
    return document


@dataclass
class Steps:
    """Counts what has been done for who watches.

    Args:
        tell: Called with a label, steps done and steps in all.
        total: How many there are.
        number: How many are done.
    """

    tell: OnAttack | None
    total: int
    number: int = 0

    def done(self, label: str) -> None:
        """One more is done."""
        self.number += 1
        if self.tell:
            self.tell(label, self.number, self.total)


def _measure_all(job: StoredJob, targets: list[TargetRun], workers: int, trained: Trained) -> None:
    """Measures every trained run that has not been, and puts how good it is into `trained`."""
    tasks: list[CellTask] = [(f"accuracy, {run.label}, variant {run.variant}", (run,)) for run in targets]
    for number, measured in job.cells.complete(measure, accuracy, tasks, min(workers, len(tasks))):
        trained[targets[number].variant, targets[number].scenario.seed] = measured


def _started_runs(targets: list[TargetRun], results_so_far: ResultsByRun) -> dict[tuple[int, int], int]:
    """After how many rounds the attacks on each run that early stopping may have ended began."""
    attacked, counts = {(variant, seed) for variant, seed, _ in results_so_far}, {}
    for run in targets:
        key = run.variant, run.scenario.seed
        if key in attacked and run.scenario.server.patience is not None:
            with suppress(InputError):  # damaged since: its rounds are unknown
                counts[key] = rounds_trained(stored_run(run), run.scenario)
    return counts


def _attack_all(
    job: StoredJob, targets: list[TargetRun], workers: int, results_so_far: ResultsByRun, steps: Steps
) -> None:
    """Runs every branch that has not run yet, and puts its results into `results_so_far`."""
    wanted = [(run, branch, spent) for run in targets for branch, spent in run.spend()]
    # The longest first: else the last to be begun may keep one process busy alone. Of one length the runs of
    # a seed follow each other, since they share reference models.
    wanted.sort(key=lambda pair: (-pair[0].work(pair[1]), pair[0].scenario.seed))
    tasks: list[CellTask] = [
        (f"{', '.join(branch.names)}, {run.label}, variant {run.variant}", (run, branch, spent))
        for run, branch, spent in wanted
    ]
    for number, result in job.cells.complete(run_branch, from_json, tasks, min(workers, max(1, len(tasks)))):
        run, branch, _ = wanted[number]
        for name, score in result.items():
            results_so_far[run.variant, run.scenario.seed, name] = score
        steps.done(f"{', '.join(branch.names)} ({run.label})")


def _runs(scenario: AttackScenario, number: int, base: Path | None) -> list[TargetRun]:
    """The runs of one variant, one for each seed.

    Raises:
        InputError: one of their games cannot be drawn.
    """
    variant, first = scenario.variants[number], scenario.seed
    setup = GameSetup(variant)
    plan, runs = setup.fleet.plan, []
    for seed in range(first, first + scenario.game.repeats):
        seeded = variant.model_copy(update={"seed": seed})
        if seed != first:  # each has coins of its own, and all must give enough targets
            setup = GameSetup(seeded, plan)
        check_trials(setup)
        folder = Path(f"run-{seed}")
        if len(scenario.variants) > 1:
            folder = Path(seeded.label.replace(",", "").replace(" ", "-")) / folder
        runs.append(TargetRun(seeded, number, folder if base is None else base / folder, plan))
    return runs
