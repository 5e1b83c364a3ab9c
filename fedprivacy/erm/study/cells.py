"""The cells of a study: one approach at one epsilon and number of records, with repeated noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from dp_accounting import DpEvent
from numpy.typing import NDArray
from scipy import stats

from fedprivacy.accounting.deployment import SERVER_READS, SIMULATION, Stated
from fedprivacy.accounting.events import to_json
from fedprivacy.accounting.statement import Guarantee
from fedprivacy.entropy import SEEDED
from fedprivacy.erm.approach import Approach
from fedprivacy.erm.federated import together
from fedprivacy.erm.gradient import GradientPerturbation
from fedprivacy.erm.grid import GridExponential
from fedprivacy.erm.objective import Objective
from fedprivacy.erm.perturbed import ObjectivePerturbation
from fedprivacy.erm.silos import SiloGradients
from fedprivacy.erm.solver import minimise_within
from fedprivacy.erm.study.approaches import Cell, approach_of, objective_of, purpose_of_cell
from fedprivacy.erm.study.lots import Ask, Lot, SiloStudy, silos_of
from fedprivacy.erm.study.people import Records
from fedprivacy.errors import InputError, RunError
from fedprivacy.scenario.erm import ErmScenario
from fedprivacy.seeds import Streams

Vector = NDArray[np.float64]
HANDED = (
    "whoever submits the run is honest about the plan: each silo adds its noise, and answers each step once, "
    "but by the plan that came with the run"
)
PLAYED_ONCE = (
    "the observer has not seen this study played with other silos absent, which under the same seed is "
    "another release with the same noise"
)
AS_PLANNED = ", of all silos as planned: some did not answer"


@dataclass(frozen=True)
class Exact:
    """The minimum within the radius, which this simulation alone knows."""

    objective: Objective
    theta: Vector
    value: float


def exact(scenario: ErmScenario, people: Records, count: int) -> Exact:
    """The minimum over so many records."""
    objective = objective_of(scenario, people, count)
    x, y = people.first(count)
    theta = minimise_within(objective, x, y, scenario.objective.radius)
    return Exact(objective, theta, objective.value(theta, x, y))


def play(
    scenario: ErmScenario,
    people: Records,
    truth: Exact,
    cell: Cell,
    streams: Streams,
    ask: Ask | None = None,
    stated: Stated | None = None,
) -> dict[str, Any]:
    """The result of a cell, as run.json has it; where a condition does not hold, what `refused` says.

    Args:
        scenario: The whole.
        people: Its records.
        truth: The minimum over the cell's records.
        cell: What is played.
        streams: Those of the study.
        ask: Asks silos, and brings what they tell; None: they are in this process.
        stated: What is stated of nodes that are not our own; None: all silos are.

    Raises:
        RunError: A minimum was not found, or no silo answers.
    """
    asked, objective = scenario.approaches[cell.name], truth.objective
    silos = silos_of(scenario, cell)
    told: dict[str, Any] = {
        "approach": cell.name,
        "kind": asked.kind,
        "epsilon": cell.epsilon,
        "records": cell.records,
        "silos": silos,
        "trust": "central",
    }
    x, y = people.first(cell.records)
    try:
        approach = approach_of(scenario, objective, cell)
        if silos == 1:
            made = _by_curator(approach, x, y, scenario.study.repeats, cell, streams, stated)
        else:
            made = _by_silos(SiloStudy(scenario, people, streams), cell, ask, stated)
    except InputError as error:
        return {**told, "refused": str(error), "guarantees": []}
    values = np.array([objective.value(theta, x, y) for theta in made.thetas]) - truth.value
    found = [made.thetas[:, i] * people.units[i] for i in range(len(people.names))]
    return {
        **told,
        "trust": made.guarantees[0].trust,
        "refused": None,
        "delta": approach.delta,
        "noise": made.words,
        "excess": _mean(values),
        "bound": None
        if made.absences.get("absent")
        else _bound(asked, approach, silos, truth, scenario.objective.radius),
        "theta": [{"name": name, **_spread(own)} for name, own in zip(people.names, found, strict=True)],
        "guarantees": [guarantee.to_json() for guarantee in made.guarantees],
        "claims": [
            {"observer": guarantee.observer, "event": None if event is None else to_json(event)}
            for guarantee, event in zip(made.guarantees, made.events, strict=True)
        ],
        **made.absences,
    }


@dataclass(frozen=True)
class _Made:
    """The estimates of a cell.

    Args:
        thetas: Shape (repeats, d).
        guarantees: What is promised of each.
        events: What each of those observers was shown; None where no event says it.
        words: How much noise there is; where silos were absent, how much was planned.
        absences: Of silos: how many of their answers did not come, and why the first.
    """

    thetas: Vector
    guarantees: tuple[Guarantee, ...]
    events: tuple[DpEvent | None, ...]
    words: str
    absences: dict[str, Any] = field(default_factory=dict)


def _by_curator(
    approach: Approach,
    x: Vector,
    y: Vector,
    repeats: int,
    cell: Cell,
    streams: Streams,
    stated: Stated | None,
) -> _Made:
    """Estimates by one who holds all records."""
    purpose = purpose_of_cell(cell)
    found = [approach.fit(x, y, streams.noise(f"erm/{purpose}", member=i)) for i in range(repeats)]
    thetas = np.array([one.theta for one in found])
    promised = by_curator(approach.guarantee, stated)
    return _Made(thetas, (promised,), (approach.event(),), approach.words)


def _by_silos(side: SiloStudy, cell: Cell, ask: Ask | None, stated: Stated | None) -> _Made:
    """Estimates by silos, however they are asked; see `federated` of one that does not answer."""
    silos, ask = silos_of(side.scenario, cell), ask or side.ask
    thetas: list[Vector] = []
    present, absent, first = silos, 0, None
    for lot in side.lots_of(cell):

        def told(step: int, asked: Vector, lot: Lot = lot) -> Vector:
            nonlocal present, absent, first
            answer = ask(lot, step, asked)
            if not answer.present:
                why = str(answer.first_failure).partition("\n")[0]  # without a node's traceback
                raise RunError(f"approaches.{cell.name}: no silo answered. First: {why}")
            present, absent = min(present, answer.present), absent + silos - answer.present
            first = first or answer.first_failure
            return answer.rows

        federated = side.federated(lot)
        thetas += [*together(side.lead(lot), federated.steps, told)]
    # Under central trust too the silos draw their batches.
    drawn = federated.trust == "local" or getattr(side.scenario.approaches[cell.name], "rate", 1.0) < 1
    again = isinstance(federated, SiloGradients)  # other estimates of an average are seen one by one anyway
    promised = tuple(by_silos(one, stated, nodes=drawn, again=again) for one in federated.guarantees(present))
    events = tuple(
        None if one.epsilon is None else federated.event_against(one.observer, present) for one in promised
    )
    absences = {"absent": absent, "first_absence": first}
    words = federated.words(silos) + (AS_PLANNED if absent else "")
    return _Made(np.array(thetas), promised, events, words, absences)


def by_curator(guarantee: Guarantee, stated: Stated | None) -> Guarantee:
    """A curator's guarantee with what it assumes of the randomness.

    Args:
        guarantee: The approach's own.
        stated: As `play` has it.
    """
    randomness = (stated or SIMULATION).randomness(server=True, nodes=False)
    return replace(guarantee, assumptions=(*guarantee.assumptions, randomness))


def by_silos(guarantee: Guarantee, stated: Stated | None, *, nodes: bool, again: bool) -> Guarantee:
    """A guarantee of silos with what it assumes of the randomness, and of nodes that are not our own.

    The server's process has made or read all records, since it knows the exact minimum: where noise is no
    longer a simulation's, nothing is promised against it.

    Args:
        guarantee: The silos' own.
        stated: As `play` has it.
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


def _bound(asked: Any, approach: Any, silos: int, truth: Exact, radius: float) -> float | None:
    """What theory says of the mean excess; None where it says nothing."""
    if isinstance(approach, GradientPerturbation):
        federated = SiloGradients(approach, asked.trust) if silos > 1 else None
        return federated.excess_bound(silos) if federated else approach.excess_bound()
    if silos > 1 or isinstance(approach, GridExponential):
        return None  # averages of minima have a bias, and so has a grid
    if isinstance(approach, ObjectivePerturbation) and approach.solved is not approach.objective:
        return None
    if np.linalg.norm(truth.theta) >= radius * (1 - 1e-6):
        return None  # noise is bounded around the free minimum, which then lies elsewhere
    return float(approach.excess_bound())


def _mean(values: Vector) -> dict[str, float]:
    """The mean over noise with its 95 % interval (t)."""
    mean, half = float(values.mean()), 0.0
    if len(values) > 1:
        half = float(stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values)))
    return {"mean": mean, "low": mean - half, "high": mean + half}


def _spread(values: Vector) -> dict[str, float]:
    """The mean over noise, and where the middle 95 % of the estimates lie."""
    low, high = np.quantile(values, [0.025, 0.975])
    return {"mean": float(values.mean()), "low": float(low), "high": float(high)}
