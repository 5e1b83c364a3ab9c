"""Audits a scenario: trains it with canary clients, and holds what they show against what is claimed."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from fedprivacy.accounting.ledger import OBSERVERS
from fedprivacy.accounting.statement import guarantees
from fedprivacy.at_work import begun
from fedprivacy.attacks.auditing import (
    ERROR,
    WITHOUT_CLAIM,
    claimed_curve,
    estimate,
    guessed,
    together,
    verdict,
)
from fedprivacy.attacks.empirical import Guesses
from fedprivacy.data.population import population
from fedprivacy.errors import InputError
from fedprivacy.plan import Plan
from fedprivacy.planning import plan_of
from fedprivacy.record import SEEDS
from fedprivacy.report import write as write_report
from fedprivacy.runs import SCHEMA
from fedprivacy.scenario import Scenario
from fedprivacy.seeds import Streams
from fedprivacy.surroundings import peak_memory_mb, versions
from scenarios.audit_options import check_options, check_unit
from scenarios.audited import Audited, Heard, listen
from scenarios.pool import spread

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
    on_run: OnRun | None = None,
) -> dict[str, Any]:
    """Plays a scenario's training with canaries, and judges what it claims.

    Args:
        scenario: What is audited; its unit of privacy is the client.
        out: Where the directory of the result goes; it is made when all has been played.
        canaries: How many clients are added.
        method: One of `audit_options.METHODS`.
        trials: Runs, each with a seed, coins and noise of its own.
        workers: Processes; the numbers do not depend on it.
        allow_code: Whether the scenario may run code (`--allow-code`).
        command: The command that reproduces it, for the record.
        on_run: Called with a label, runs done and runs in all.

    Returns:
        The document that is also in run.json.

    Raises:
        InputError: an option is out of range, or the scenario cannot be audited.
        RunError: a run fails.
    """
    check_options(method, canaries, trials, scenario.seed)
    check_unit(scenario.privacy.unit, scenario.name)
    began, started = time.perf_counter(), datetime.now(UTC).isoformat(timespec="seconds")
    people = population(scenario.data)
    plan = plan_of(scenario)
    if plan.adaptive is not None:
        raise InputError(
            "privacy.clipping_quantile: the canaries of an audit have updates of one norm, and this plan's "
            "changes from round to round. Audit the same scenario without it."
        )
    if plan.encoder is not None:
        raise InputError(
            "privacy.encoding: the canaries of an audit have updates that are clipped and not encoded. "
            "Audit the same scenario without it."
        )
    seeds = range(scenario.seed, scenario.seed + trials)
    inside = workers if trials == 1 else 1
    jobs = [
        Audited(scenario.model_copy(update={"seed": seed}), plan, canaries, inside, allow_code)
        for seed in seeds
    ]
    heard: dict[int, Heard] = {}
    for number, one in spread(listen, [(job,) for job in jobs], min(workers, trials)):
        heard[number] = one
        if on_run:
            on_run(f"seed {seeds[number]}", len(heard), trials)
    found = [heard[number] for number in range(trials)]
    observers = [
        _observer(name, found, plan, method, [Streams(seed) for seed in seeds]) for name in OBSERVERS
    ]
    holds = [one["verdict"]["holds"] for one in observers]
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "kind": "audit",
        "path": "",
        "name": scenario.name,
        "seed": scenario.seed,
        "status": "finished",
        "command": command,
        "started": started,
        "versions": versions(scenario.training.trainer),
        "scenario": scenario.tables(),
        "audited": {
            "words": _words(scenario, people.partition.clients, canaries, trials, method),
            "method": method,
            "canaries": canaries,
            "trials": trials,
            "clients": people.partition.clients,
            "rounds": plan.rounds,
            "noise_multiplier": plan.noise_multiplier,
            "clipping_norm": plan.clipping_norm,
            "false_alarm": ERROR,
        },
        "refuted": False in holds,
        "observers": observers,
        "ledgers": [one.ledger for one in found],
        "operator_only": ["performance.seconds", *SEEDS],
        "performance": {
            "seconds": round(time.perf_counter() - began, 3),
            "peak_memory_mb": peak_memory_mb(),
        },
    }
    with begun(out, scenario.name, scenario.to_toml()) as directory:
        document["path"] = str(directory.path)
        directory.write_document(document)
        write_report(document, directory.path)
    return document


def _observer(
    name: str, heard: Sequence[Heard], plan: Plan, method: str, streams: Sequence[Streams]
) -> dict[str, Any]:
    """What the canaries tell of one observer."""
    delta = plan.delta or WITHOUT_CLAIM
    claims = [next(one for one in guarantees(run.ledger) if one.observer == name) for run in heard]
    # Each run keeps to its own claim, and so all of them to the largest.
    dearest = max(range(len(claims)), key=lambda at: _far(claims[at].epsilon))
    one_run, estimated = None, None
    if method != "canary-clients":
        made: list[tuple[Guesses, ...]] = [
            guessed(run.scores[name], run.present, own.noise(f"audit-ties/{name}"))
            for run, own in zip(heard, streams, strict=True)
        ]
        curve = claimed_curve(heard[dearest].ledger, name)
        one_run = together(made, delta, len(OBSERVERS), curve).to_json()
    if method != "one-run" and _normal(plan):
        scores = np.concatenate([run.scores[name] for run in heard])
        present = np.concatenate([run.present for run in heard])
        estimated = estimate(scores[present], scores[~present], delta)
    guarantee = claims[dearest].to_json()
    return {
        "observer": name,
        "ledger": dearest,
        "guarantee": guarantee,
        "one_run": one_run,
        "canary_clients": estimated,
        "verdict": verdict(guarantee, one_run, estimated),
    }


def _normal(plan: Plan) -> bool:
    """Whether what is seen of a canary is normal, which is what the estimate takes for granted."""
    mechanism = plan.mechanism
    noisy = mechanism is None or mechanism.name in ("gaussian", "clip-only")
    return noisy and plan.sampler.name == "all"


def _far(epsilon: float | None) -> float:
    return math.inf if epsilon is None else epsilon


def _words(scenario: Scenario, clients: int, canaries: int, trials: int, method: str) -> str:
    """What was audited, in plain sentences."""
    privacy = scenario.privacy
    runs = "one run" if trials == 1 else f"{trials:,} runs"
    norm = "norm 1, since nothing is clipped" if privacy.clipping_norm is None else "the clipping norm"
    other = "the opposite of it" if privacy.adjacency == "replace-one" else "zero"
    text = (
        f"Audited was the scenario with {canaries:,} canary clients beside its {clients:,}, in {runs} of its "
        f"{scenario.server.rounds} rounds; noise, clipping and sampling are the scenario's own. By a fair "
        f"coin a canary answers with a random direction of {norm}, or with {other}. "
    )
    if method != "canary-clients":
        text += (
            f"True claims are refuted with a probability of {100 * ERROR:g} % at most, all together, and all "
            f"lower bounds hold with {100 * (1 - ERROR):g} % confidence. A ceiling is the largest bound that "
            "so many canaries could have given. "
        )
    if method != "one-run":
        text += (
            "An estimate is no bound; it is given only for Gaussian noise or none, and where everybody is "
            "asked: it takes what is seen of a canary for normal. "
        )
    if privacy.trust == "local":
        text += (
            "The noise of the canaries covers each of them too: what is claimed here of an outsider, or a "
            "participant, may be that of more clients, and the scenario's own claim larger. "
        )
    if scenario.sampling.name == "fixed":
        text += "A cohort of fixed size is drawn from canaries too: the claim here is that of more clients. "
    return text.strip()
