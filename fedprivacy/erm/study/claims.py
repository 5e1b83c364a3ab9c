"""What a cell of a study promises, and how much noise that takes: the scenario alone decides it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fedprivacy.accounting.events import to_json
from fedprivacy.erm.approach import Approach
from fedprivacy.erm.federated import Federated
from fedprivacy.erm.gradient import GradientPerturbation
from fedprivacy.erm.grid import GridExponential
from fedprivacy.erm.perturbed import ObjectivePerturbation
from fedprivacy.erm.silos import SiloGradients
from fedprivacy.erm.study.approaches import Cell, approach_of, federated_of, objective_of, silos_of
from fedprivacy.errors import InputError
from fedprivacy.guarantees.deployment import SERVER_READS, SIMULATION, Stated
from fedprivacy.guarantees.statement import Guarantee
from fedprivacy.randomness.system import SEEDED
from fedprivacy.scenario.erm import ErmScenario

HANDED = (
    "whoever submits the run is honest about the plan: each silo adds its noise, and answers each step once, "
    "but by the plan that came with the run"
)
PLAYED_ONCE = (
    "the observer has not seen this study played with other silos absent, which under the same seed is "
    "another release with the same noise"
)
AS_PLANNED = ", of all silos as planned: some did not answer"


def head_of(scenario: ErmScenario, cell: Cell) -> dict[str, Any]:
    """Which cell it is, as the document has it."""
    return {
        "approach": cell.name,
        "kind": scenario.approaches[cell.name].kind,
        "epsilon": cell.epsilon,
        "records": cell.records,
        "silos": silos_of(scenario, cell),
        "trust": "central",
    }


def refusal_of(error: InputError) -> dict[str, Any]:
    """What the document has of a cell whose conditions do not hold."""
    return {"refused": str(error), "guarantees": []}


def claims_of(
    scenario: ErmScenario,
    cell: Cell,
    approach: Approach,
    federated: Federated | None,
    stated: Stated | None,
    *,
    present: int = 1,
    absent: int = 0,
) -> dict[str, Any]:
    """What the document promises of a cell.

    Args:
        scenario: The whole.
        cell: What is played.
        approach: As one curator would take it.
        federated: What silos do together; None: there is one curator.
        stated: What is stated of nodes that are not our own; None: all silos are.
        present: The fewest silos that answered in any step.
        absent: The answers of silos that did not come.
    """
    if federated is None:
        promised: tuple[Guarantee, ...] = (by_curator(approach.guarantee, stated),)
        events = [approach.event()]
        words = approach.words
    else:
        # Under central trust too the silos draw their batches.
        drawn = federated.trust == "local" or getattr(scenario.approaches[cell.name], "rate", 1.0) < 1
        # Other estimates of an average are seen one by one anyway.
        again = isinstance(federated, SiloGradients)
        promised = tuple(
            by_silos(one, stated, nodes=drawn, again=again) for one in federated.guarantees(present)
        )
        events = [
            None if one.epsilon is None else federated.event_against(one.observer, present)
            for one in promised
        ]
        words = federated.words(silos_of(scenario, cell)) + (AS_PLANNED if absent else "")
    return {
        "trust": promised[0].trust,
        "refused": None,
        "delta": approach.delta,
        "noise": words,
        "guarantees": [guarantee.to_json() for guarantee in promised],
        "claims": [
            {"observer": guarantee.observer, "event": None if event is None else to_json(event)}
            for guarantee, event in zip(promised, events, strict=True)
        ],
    }


def cell_claims(
    scenario: ErmScenario,
    cell: Cell,
    stated: Stated | None,
    *,
    present: int,
    absent: int,
    away: float,
) -> dict[str, Any]:
    """All that the document says of a cell without a look at its records, or what refuses it.

    Args:
        scenario: The whole.
        cell: What is played.
        stated: As `claims_of` has it.
        present: As `claims_of` has it.
        absent: As `claims_of` has it.
        away: How far from 0 the exact minimum is.
    """
    found = head_of(scenario, cell)
    try:
        approach = approach_of(scenario, objective_of(scenario, cell.records), cell)
        federated = None if silos_of(scenario, cell) == 1 else federated_of(scenario, cell, approach)
        found |= claims_of(scenario, cell, approach, federated, stated, present=present, absent=absent)
        return {**found, "bound": None if absent else bound_of(scenario, cell, approach, away)}
    except InputError as error:
        return {**found, **refusal_of(error)}


def by_curator(guarantee: Guarantee, stated: Stated | None) -> Guarantee:
    """A curator's guarantee with what it assumes of the randomness.

    Args:
        guarantee: The approach's own.
        stated: As `claims_of` has it.
    """
    randomness = (stated or SIMULATION).randomness(server=True, nodes=False)
    return replace(guarantee, assumptions=(*guarantee.assumptions, randomness))


def by_silos(guarantee: Guarantee, stated: Stated | None, *, nodes: bool, again: bool) -> Guarantee:
    """A guarantee of silos with what it assumes of the randomness, and of nodes that are not our own.

    The server's process has made or read all records, since it knows the exact minimum: where noise is no
    longer a simulation's, nothing is promised against it.

    Args:
        guarantee: The silos' own.
        stated: As `claims_of` has it.
        nodes: Whether it rests on what the silos draw.
        again: Whether the study played again, with other silos absent, would be another release.
    """
    local, far, stated = guarantee.trust == "local", stated is not None, stated or SIMULATION
    if guarantee.epsilon is None:
        return guarantee
    if local and guarantee.observer == "server" and stated.noise != SEEDED:
        return replace(guarantee, epsilon=None, delta=None, accountant=None, assumptions=(SERVER_READS,))
    more = [
        *[HANDED] * (local and far),
        stated.randomness(server=not local, nodes=nodes),
        *[PLAYED_ONCE] * (again and stated.noise == SEEDED),
    ]
    return replace(guarantee, assumptions=(*guarantee.assumptions, *more))


def bound_of(scenario: ErmScenario, cell: Cell, approach: Approach, away: float) -> float | None:
    """What theory says of the mean excess; None where it says nothing.

    Args:
        scenario: The whole.
        cell: What is played.
        approach: As one curator would take it.
        away: How far from 0 the exact minimum is.
    """
    asked, silos = scenario.approaches[cell.name], silos_of(scenario, cell)
    if isinstance(approach, GradientPerturbation):
        if silos == 1:
            return approach.excess_bound()
        return SiloGradients(approach, asked.trust).excess_bound(silos)  # type: ignore[union-attr]
    if silos > 1 or isinstance(approach, GridExponential):
        return None  # averages of minima have a bias, and so has a grid
    if isinstance(approach, ObjectivePerturbation) and approach.solved is not approach.objective:
        return None
    if away >= scenario.objective.radius * (1 - 1e-6):
        return None  # noise is bounded around the free minimum, which then lies elsewhere
    return float(approach.excess_bound())  # type: ignore[attr-defined]


def length(theta: Any) -> float:
    """How far from 0 a point is."""
    return float(np.linalg.norm(np.asarray(theta, dtype=np.float64)))
