"""The guarantees and the noise of a cell of a study, which the scenario alone determines."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedprivacy.accounting.events import to_json
from fedprivacy.erm.approach import Approach
from fedprivacy.erm.assumptions import ErmAssumption
from fedprivacy.erm.exponential_grid import GridExponential
from fedprivacy.erm.federated import Federated
from fedprivacy.erm.gradient_perturbation import GradientPerturbation
from fedprivacy.erm.objective_perturbation import ObjectivePerturbation
from fedprivacy.erm.silos import SiloGradients
from fedprivacy.erm.study.approaches import Cell, approach_of, federated_of, objective_of, silos_of
from fedprivacy.errors import InputError
from fedprivacy.guarantees.assumptions import TrainingAssumption
from fedprivacy.guarantees.remote_nodes import SIMULATION, Stated
from fedprivacy.guarantees.statement import Guarantee
from fedprivacy.randomness.system import SEEDED
from fedprivacy.scenario.erm import ErmScenario

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
    """The document's entries for a cell whose conditions do not hold."""
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
    """The document's guarantees for a cell.

    Args:
        scenario: The whole.
        cell: The cell.
        approach: As one curator would take it.
        federated: The procedure of the silos; None: there is one curator.
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
            by_silos(guarantee, stated, nodes=drawn, again=again)
            for guarantee in federated.guarantees(present)
        )
        events = [
            None if guarantee.epsilon is None else federated.event_against(guarantee.observer, present)
            for guarantee in promised
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
    """The document's entries for a cell that do not depend on its records, or the reason for refusing it.

    Args:
        scenario: The whole.
        cell: The cell.
        stated: As `claims_of` has it.
        present: As `claims_of` has it.
        absent: As `claims_of` has it.
        away: How far from 0 the exact minimum is.
    """
    claims = head_of(scenario, cell)
    try:
        approach = approach_of(scenario, objective_of(scenario, cell.records), cell)
        federated = None if silos_of(scenario, cell) == 1 else federated_of(scenario, cell, approach)
        claims |= claims_of(scenario, cell, approach, federated, stated, present=present, absent=absent)
        return {**claims, "bound": None if absent else bound_of(scenario, cell, approach, away)}
    except InputError as error:
        return {**claims, **refusal_of(error)}


def by_curator(guarantee: Guarantee, stated: Stated | None) -> Guarantee:
    """A curator's guarantee with its assumption about the randomness.

    Args:
        guarantee: The approach's own.
        stated: As `claims_of` has it.
    """
    randomness = (stated or SIMULATION).randomness(server=True, nodes=False)
    return guarantee.but(assumptions=(*guarantee.assumptions, randomness))


def by_silos(guarantee: Guarantee, stated: Stated | None, *, nodes: bool, again: bool) -> Guarantee:
    """A guarantee of silos with its assumptions about the randomness, and about remote nodes.

    The server's process has made or read all records, since it knows the exact minimum: where noise is no
    longer a simulation's, nothing is promised against it.

    Args:
        guarantee: The silos' own.
        stated: As `claims_of` has it.
        nodes: Whether it rests on what the silos draw.
        again: Whether a repetition of the study with other silos absent would be another release.
    """
    local, far, stated = guarantee.trust == "local", stated is not None, stated or SIMULATION
    if guarantee.epsilon is None:
        return guarantee
    if local and guarantee.observer == "server" and stated.noise != SEEDED:
        return guarantee.but(
            epsilon=None,
            delta=None,
            accountant=None,
            assumptions=(TrainingAssumption.SERVER_READS,),
        )
    more = [
        *[ErmAssumption.HANDED] * (local and far),
        stated.randomness(server=not local, nodes=nodes),
        *[ErmAssumption.RELEASED_ONCE] * (again and stated.noise == SEEDED),
    ]
    return guarantee.but(assumptions=(*guarantee.assumptions, *more))


def bound_of(scenario: ErmScenario, cell: Cell, approach: Approach, away: float) -> float | None:
    """The theoretical bound on the mean excess; None where theory gives none.

    Args:
        scenario: The whole.
        cell: The cell.
        approach: As one curator would take it.
        away: How far from 0 the exact minimum is.
    """
    section, silos = scenario.approaches[cell.name], silos_of(scenario, cell)
    if isinstance(approach, GradientPerturbation):
        if silos == 1:
            return approach.excess_bound()
        return SiloGradients(approach, section.trust).excess_bound(silos)  # type: ignore[union-attr]
    if silos > 1 or isinstance(approach, GridExponential):
        return None  # averages of minima have a bias, and so has a grid
    if isinstance(approach, ObjectivePerturbation) and approach.solved is not approach.objective:
        return None
    if away >= scenario.objective.radius * (1 - 1e-6):
        return None  # noise is bounded around the free minimum, which then lies elsewhere
    return float(approach.excess_bound())  # type: ignore[attr-defined]


def length(theta: Any) -> float:
    """The distance of a point from 0."""
    return float(np.linalg.norm(np.asarray(theta, dtype=np.float64)))
