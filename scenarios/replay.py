"""Plays an attack scenario: trains the runs that are attacked, lets every attack play, and writes it down."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fedprivacy.accounting.ledger import Ledger
from fedprivacy.accounting.statement import guarantees
from fedprivacy.attacks.bounds import bound_of_ledger
from fedprivacy.attacks.document import attack_document
from fedprivacy.attacks.fitted import choose_score, clustered, supervised
from fedprivacy.attacks.metrics import Measured, measure
from fedprivacy.attacks.targets import Targets
from fedprivacy.errors import InputError
from fedprivacy.record import SEEDS, peak_memory_mb, versions
from fedprivacy.report import write as write_report
from fedprivacy.runs import SCHEMA, Checkpoint, RunDirectory
from fedprivacy.scenario.attack import AttackScenario
from scenarios.arena import Arena
from scenarios.ending import Ending
from scenarios.pool import spread

OnAttack = Callable[[str, int, int], None]
CHOSEN = (
    "so many members and so many non-members were taken as targets out of the pool: of these targets, other "
    "than of the pool, no coin is fair any more"
)
GAME = (
    "Each record of the victim and of the public part is a member by a fair coin of its own; the victim "
    "trains on its members, nobody on the others. Scores and thresholds are chosen on one half of the "
    "targets and measured on the other. Each attack begins anew where training ended, with noise and answers "
    "of its own, and its bound is that of this one attack: who sees several has seen several runs."
)


@dataclass(frozen=True)
class Played:
    """What one attack on one run amounts to.

    Args:
        score: The name of the score that did best on the calibration half.
        measured: Its figures.
        scores: The AUC of every score, by name; `supervised` and `clustered` are made of all of them.
        blind: The AUC of a score that looks at the record alone: nothing but the game can help it.
        lost: How many targets were not reached: the victim refused, or the model could not be asked.
        rounds: How many rounds the attack took.
        spread: How the scores of the evaluation half lie: `histogram`.
        story: Of an ascent, the losses of a typical member and non-member: `story`.
        accuracy: Of the attacked model on held-out records, before and after.
        seconds: How long it took.
    """

    score: str
    measured: Measured
    scores: dict[str, dict[str, float]]
    blind: dict[str, float]
    lost: int
    rounds: int
    spread: dict[str, Any]
    story: dict[str, Any] | None
    accuracy: tuple[float, float]
    seconds: float


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
        stored: The directory of an earlier replay, whose trained runs are attacked again.
        workers: Processes that play side by side; the numbers do not depend on it.
        command: The command that reproduces it, for the record.
        on_attack: Called with a label, attacks done and attacks in all.

    Returns:
        The document that is also in run.json.

    Raises:
        InputError: before anything is written, if a game cannot be drawn, `stored` holds other runs, or `out`
            cannot be written; later if the victim refuses so much that too few targets are left.
        RunError: if a run fails.
    """
    first = scenario.seed
    seeds = range(first, first + scenario.game.repeats)
    arena = Arena(scenario)
    for seed in seeds:  # each has coins of its own, and all must give enough targets
        one = arena if seed == first else Arena(_seeded(scenario, seed), arena.fleet.plan)
        if stored is not None:
            stored_run(one.scenario, stored, one)
    directory = RunDirectory.create(out, scenario.name, scenario.to_toml())
    began, started = time.perf_counter(), datetime.now(UTC).isoformat(timespec="seconds")
    jobs = [(seed, name) for name in scenario.attacks for seed in seeds]
    played: dict[tuple[int, str], Played] = {}
    ending = Ending(directory.path)
    try:
        with ending:
            base = stored or directory.path
            fresh = [] if stored else [(_seeded(scenario, seed), base) for seed in seeds]
            for number, _ in spread(train, fresh, min(workers, len(seeds)), __name__):
                if on_attack:
                    on_attack(f"trained the run of seed {seeds[number]}", 0, len(jobs))
            work = [(_seeded(scenario, seed), name, base) for seed, name in jobs]
            for done, (number, result) in enumerate(spread(play, work, min(workers, len(jobs)), __name__), 1):
                played[jobs[number]] = result
                if on_attack:
                    on_attack(jobs[number][1], done, len(jobs))
    finally:
        ledger = Ledger(arena.fleet.plan).in_advance().to_json()
        whole = [name for name in scenario.attacks if all((seed, name) in played for seed in seeds)]
        found = [_document(scenario, name, [played[seed, name] for seed in seeds], ledger) for name in whole]
        document = {
            "schema": SCHEMA,
            "kind": "replay",
            "name": scenario.name,
            "path": str(directory.path),
            "status": ending.status,
            "error": ending.error,
            "command": command,
            "started": started,
            "versions": versions(),
            "scenario": scenario.tables(),
            "attacks": found,
            "ledger": ledger,
            "operator_only": ["attacks[].seconds", "performance.seconds", "error", *SEEDS],
            "notes": [GAME],
            "performance": {
                "seconds": round(time.perf_counter() - began, 3),
                "peak_memory_mb": peak_memory_mb(),
            },
        }
        directory.write_document(document)
        write_report(document, directory.path)
    return document


def train(scenario: AttackScenario, base: Path) -> None:
    """Trains the run of one seed up to where the attack begins, and stores it there."""
    folder = _folder(base, scenario.seed)
    folder.mkdir(parents=True, exist_ok=True)
    arena = Arena(scenario)
    facts = {"run": arena.fleet.streams.run}
    RunDirectory(folder).save_checkpoint(Checkpoint(scenario.warm_up, arena.warm_up(), facts))


def stored_run(scenario: AttackScenario, base: Path, arena: Arena) -> dict[str, NDArray[Any]]:
    """The trained run of one seed, as `Arena.warm_up` gave it.

    Raises:
        InputError: it is not there, or it is another run: other members, settings, data or rounds.
    """
    folder = _folder(base, scenario.seed)
    stored = RunDirectory(folder).load_checkpoint()
    if stored is None:
        raise InputError(f"{folder}: holds no trained run of seed {scenario.seed}. Play the scenario anew.")
    if stored.facts.get("run") != arena.fleet.streams.run or stored.rounds != scenario.warm_up:
        raise InputError(
            f"{folder}: another run than the scenario's: its members, training, privacy, data or warm-up "
            "differ. Only the attacks may be changed; else play the scenario anew."
        )
    return stored.tensors


def play(scenario: AttackScenario, name: str, base: Path) -> Played:
    """One attack on one run, in any process."""
    began = time.perf_counter()
    arena = Arena(scenario)
    tensors = stored_run(scenario, base, arena)
    outcome = arena.attack(name, tensors)
    game = arena.game
    features = outcome.judgement.features()
    if not features:
        raise InputError(f"attacks.{name}: the victim refused every round, so that no target was reached.")
    reached = np.asarray(np.isfinite(np.stack(list(features.values()))).all(axis=0))
    scores = {name: values[reached] for name, values in features.items()}
    members, calibration = game.members[reached], game.calibration[reached]
    classes = arena.probe.y.numpy()[reached]
    chosen = choose_score(scores, members, calibration)
    made = {
        "supervised": supervised(scores, members, calibration),
        "clustered": clustered(scores, "cosine"),
    }

    def figures(values: NDArray[np.float64], *, fitted: bool = True) -> Measured:
        return measure(Targets(values, members, calibration, classes), fitted=fitted)

    blind = arena.probe.x.flatten(1).mean(dim=1).double().numpy()[reached]
    every = {name: figures(values).auc.to_json() for name, values in {**scores, **made}.items()}
    return Played(
        score=chosen,
        measured=figures(scores[chosen]),
        scores=every,
        blind=figures(blind, fitted=False).auc.to_json(),
        lost=int((~reached).sum()),
        rounds=outcome.rounds,
        spread=histogram(scores[chosen][~calibration], members[~calibration]),
        story=story(arena, tensors, scores, members, reached) if outcome.judgement.attacked else None,
        accuracy=(outcome.before.accuracy, outcome.after.accuracy),
        seconds=time.perf_counter() - began,
    )


def histogram(scores: NDArray[np.float64], members: NDArray[np.bool_], bins: int = 30) -> dict[str, Any]:
    """How many members and non-members have a score between two edges, those beyond the ends with the last.

    Args:
        scores: Shape (targets,).
        members: Which of them are members.
        bins: How many intervals.
    """
    low, high = np.quantile(scores, [0.005, 0.995])
    edges = np.linspace(low, high if high > low else low + 1.0, bins + 1)
    inside = np.clip(scores, edges[0], edges[-1])
    counts = {
        name: np.histogram(inside[kind], edges)[0].tolist()
        for name, kind in (("members", members), ("nonmembers", ~members))
    }
    return {"edges": edges.tolist(), **counts}


def story(
    arena: Arena,
    tensors: dict[str, NDArray[Any]],
    scores: dict[str, NDArray[np.float64]],
    members: NDArray[np.bool_],
    reached: NDArray[np.bool_],
) -> dict[str, Any]:
    """The loss of a typical member and a typical non-member: before, raised, and after training.

    Typical is who has the middle `recovery` of its kind.
    """
    weights = torch.from_numpy(tensors["weights"].astype(np.float32))
    before = arena.probe.losses(weights).double().numpy()[reached]
    after = np.exp(-scores["loss"])
    raised = after * np.exp(scores["recovery"])
    told = {}
    for name, kind in (("member", members), ("nonmember", ~members)):
        places = np.flatnonzero(kind)
        typical = places[np.argsort(scores["recovery"][places])[len(places) // 2]]
        told[name] = [float(losses[typical]) for losses in (before, raised, after)]
    return {"moments": ["before", "raised", "after the victim has trained"], **told}


def _seeded(scenario: AttackScenario, seed: int) -> AttackScenario:
    return scenario.model_copy(update={"seed": seed})


def _folder(base: Path, seed: int) -> Path:
    return base / f"run-{seed}"


def _document(
    scenario: AttackScenario, name: str, runs: list[Played], ledger: dict[str, Any]
) -> dict[str, Any]:
    attack = scenario.attacks[name]
    bound = bound_of_ledger(ledger, attack.seat)
    guarantee = next(one for one in guarantees(ledger) if one.observer == attack.seat)
    figures = attack_document([run.measured for run in runs], bound=bound, empirical=CHOSEN)
    return {
        "name": name,
        "attack": attack.kind,
        "seat": attack.seat,
        "isolating": attack.isolating,
        "targets_per_round": getattr(attack, "targets_per_round", None),
        "rounds": runs[0].rounds,
        "targets_lost": sum(run.lost for run in runs),
        **figures,
        "score": [run.score for run in runs],
        "scores": {key: _mean_of([run.scores[key] for run in runs]) for key in runs[0].scores},
        "histograms": [run.spread for run in runs],
        "story": runs[0].story,
        "blind": _mean_of([run.blind for run in runs]),
        "model_accuracy": {
            "before": float(np.mean([run.accuracy[0] for run in runs])),
            "after": float(np.mean([run.accuracy[1] for run in runs])),
        },
        "guarantee": guarantee.to_json(),
        "seconds": round(sum(run.seconds for run in runs), 3),
    }


def _mean_of(figures: list[dict[str, Any]]) -> dict[str, float]:
    return {key: float(np.mean([one[key] for one in figures])) for key in ("value", "low", "high")}
