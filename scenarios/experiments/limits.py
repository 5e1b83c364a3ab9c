"""Measures what limits a run: trains its ablations as a comparison below its folder."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from fedprivacy.errors import InputError
from fedprivacy.records.ownership import take_up_run
from fedprivacy.report import write as write_report
from fedprivacy.scenario import Scenario
from fedprivacy.scenario.base import MAX_SEED
from fedprivacy.scenario.limit_ablations import applicable
from fedprivacy.scenario.loading import AnyScenario
from fedprivacy.verification.limits import fields_of
from scenarios.engines.launch import REMOTE
from scenarios.experiments.comparison import OnRun, compare
from scenarios.jobs.manifest import MANIFEST

FOLDER = "limits"
SEEDS = 5  # fewer leave intervals too wide to decide anything


def with_ablations(scenario: Scenario) -> Scenario:
    """The comparison of a scenario with all of its ablations, at its own trust model and epsilon alone.

    Args:
        scenario: The scenario of a run.

    Raises:
        InputError: it has no noise to compare with, or no epsilon, or its records are on nodes.
    """
    privacy = scenario.privacy
    if scenario.data.name == "on-nodes":
        raise InputError(
            "--limits: the records are on the nodes of a federation, and ablations without noise would show "
            "them to the server. Measure limits in a simulation, on public records like theirs."
        )
    if privacy.groups is not None:
        raise InputError(
            "--limits: ablations have one epsilon for all clients, and privacy.groups sets several. Leave it "
            "out, or remove the groups."
        )
    if scenario.training.personal is not None:
        raise InputError(
            "--limits: ablations measure the model that all clients share. Leave it out, or remove "
            "training.personal."
        )
    if privacy.trust == "none" or privacy.epsilon is None:
        raise InputError(
            "--limits: ablations keep the epsilon of a run, and this scenario sets none. Set privacy.trust "
            '= "central" or "local" and privacy.epsilon.'
        )
    tables = scenario.tables()
    given = list(scenario.compare.seeds)
    seeds = [*given, *range(max(given) + 1, max(given) + 1 + SEEDS - len(given))]
    # The run has no overlays of [compare], nor have its ablations.
    compare_table = {
        "trusts": [privacy.trust],
        "epsilons": [privacy.epsilon],
        "seeds": [seed for seed in seeds if seed <= MAX_SEED],
        "baselines": False,
    }
    plain = Scenario.from_tables({**tables, "compare": compare_table}, "--limits")
    names = list(applicable(plain.tables(), plain.compare))
    return Scenario.from_tables({**tables, "compare": {**compare_table, "limits": names}}, "--limits")


def check_limits(scenario: AnyScenario, engine: str) -> Scenario:
    """Returns a scenario whose ablations can be trained, before anything is written.

    Raises:
        InputError: the scenario trains no model with an epsilon, or runs on a federation.
    """
    if engine in REMOTE:
        raise InputError(
            f"--limits with --engine {engine}: ablations train without noise, which nodes of a federation do "
            "not do. Measure limits in a simulation, on public records like theirs."
        )
    if not isinstance(scenario, Scenario):
        raise InputError(f"--limits: {scenario.name} trains no model, so nothing limits one. Leave it out.")
    with_ablations(scenario)
    return scenario


def measure(
    document: dict[str, Any],
    scenario: Scenario,
    *,
    workers: int,
    allow_code: bool = False,
    command: str = "",
    on_run: OnRun | None = None,
) -> dict[str, Any]:
    """Trains or resumes the ablations of a finished run, and adds them to its document and page.

    Args:
        document: Of the run.
        scenario: Of the run.
        workers: As of `compare`.
        allow_code: As of `compare`.
        command: As of `compare`.
        on_run: As of `compare`.

    Returns:
        The run's document with its `limits`.

    Raises:
        InputError: as of `with_ablations` and `compare`.
    """
    path = Path(document["path"])
    requested, base = with_ablations(scenario), path / FOLDER
    earlier = sorted(file.parent for file in base.glob(f"*/{MANIFEST}"))
    count = (1 + len(requested.compare.limits)) * len(requested.compare.seeds)
    seconds = count * document["performance"]["seconds"] / workers
    runs = f"{len(requested.compare.limits)} variants with {len(requested.compare.seeds)} seeds, {count} runs"
    print(f"Measuring what limits the run: {runs}, about {seconds:.0f} s.", file=sys.stderr)
    ablations = compare(
        requested,
        base,
        workers=workers,
        resume=earlier[-1] if earlier else None,
        allow_code=allow_code,
        command=command,
        on_run=on_run,
    )
    folder = str(Path(ablations["path"]).relative_to(path))
    document = {**document, "limits": fields_of(ablations, folder)}
    with take_up_run(path) as directory:
        directory.write_document(document)
        write_report(document, path)
    return document
