"""Plays an attack scenario: trains the runs that are attacked, lets every attack play, and writes it down."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fedprivacy.record import SEEDS, peak_memory_mb, versions
from fedprivacy.report import write as write_report
from fedprivacy.runs import SCHEMA, RunDirectory
from fedprivacy.scenario.attack import AttackScenario
from scenarios.arena import Arena
from scenarios.attacked import Attacked, play, stored_run, train
from scenarios.ending import Ending
from scenarios.played import Played, results
from scenarios.pool import spread

OnAttack = Callable[[str, int, int], None]


def replay(
    scenario: AttackScenario,
    out: Path,
    *,
    workers: int,
    stored: Path | None = None,
    command: str = "",
    on_attack: OnAttack | None = None,
) -> dict[str, Any]:
    """Plays every attack of a scenario on every one of its runs.

    Args:
        scenario: The run, the game and the attacks.
        out: Where the directory of the result goes.
        stored: The directory of an earlier replay, whose trained runs are attacked again; what passive
            attackers saw of them is scored without any training.
        workers: Processes that play side by side; the numbers do not depend on it.
        command: The command that reproduces it, for the record.
        on_attack: Called with a label, attacks done and attacks in all.

    Returns:
        The document that is also in run.json.

    Raises:
        InputError: before anything is written, if a game cannot be drawn, `stored` holds other runs or has no
            rounds left for these attacks, or `out` cannot be written; later if the victim refuses so much
            that too few targets are left.
        RunError: if a run fails.
    """
    asked = [run for variant in range(len(scenario.variants)) for run in _runs(scenario, variant, stored)]
    if stored is not None:
        for run in asked:
            stored_run(run)
        for run in asked:  # what is refused is refused before anything is written; played, it costs no more
            run.spend()
    directory = RunDirectory.create(out, scenario.name, scenario.to_toml())
    began, started = time.perf_counter(), datetime.now(UTC).isoformat(timespec="seconds")
    played: Played = {}
    ending = Ending(directory.path)
    try:
        with ending:
            if stored is None:
                asked = [replace(run, folder=directory.path / run.folder) for run in asked]
                for number, _ in spread(train, [(run,) for run in asked], min(workers, len(asked))):
                    if on_attack:
                        on_attack(f"trained {asked[number].label}", 0, len(asked))
            jobs = [(run, branch, spent) for run in asked for branch, spent in run.spend()]
            # The longest first: else the last to be begun may keep one process busy alone.
            jobs.sort(key=lambda job: -job[0].work(job[1]))
            for done, (number, result) in enumerate(spread(play, jobs, min(workers, len(jobs))), 1):
                run, branch, _ = jobs[number]
                for name, judged in result.items():
                    played[run.variant, run.scenario.seed, name] = judged
                if on_attack:
                    on_attack(f"{', '.join(branch.names)} ({run.label})", done, len(jobs))
    finally:
        document = {
            "schema": SCHEMA,
            "kind": "replay",
            "name": scenario.name,
            "path": str(directory.path),
            "status": ending.status,
            "error": ending.error,
            "command": command,
            "started": started,
            "versions": versions(scenario.training.trainer),
            "scenario": scenario.tables(),
            **results(scenario, [run.plan for run in asked if run.scenario.seed == scenario.seed], played),
            "operator_only": ["attacks[].seconds", "performance.seconds", "error", *SEEDS],
            "performance": {
                "seconds": round(time.perf_counter() - began, 3),
                "peak_memory_mb": peak_memory_mb(),
            },
        }
        directory.write_document(document)
        write_report(document, directory.path)
    return document


def _runs(scenario: AttackScenario, number: int, base: Path | None) -> list[Attacked]:
    """The runs of one variant, one for each seed.

    Raises:
        InputError: one of their games cannot be drawn.
    """
    variant, first = scenario.variants[number], scenario.seed
    plan, runs = Arena(variant).fleet.plan, []
    for seed in range(first, first + scenario.game.repeats):
        one = variant.model_copy(update={"seed": seed})
        if seed != first:  # each has coins of its own, and all must give enough targets
            Arena(one, plan)
        folder = Path(f"run-{seed}")
        if len(scenario.variants) > 1:
            folder = Path(one.kept.replace(" ", "-")) / folder
        runs.append(Attacked(one, number, folder if base is None else base / folder, plan))
    return runs
