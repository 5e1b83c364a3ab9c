"""The cells of a study: one approach at one epsilon and number of records, with repeated noise."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from fedprivacy.accounting.events import to_json
from fedprivacy.accounting.statement import Guarantee
from fedprivacy.erm.approach import Approach
from fedprivacy.erm.gradient import GradientPerturbation
from fedprivacy.erm.grid import GridExponential, regular_grid
from fedprivacy.erm.objective import Objective
from fedprivacy.erm.output import OutputPerturbation
from fedprivacy.erm.perturbed import ObjectivePerturbation
from fedprivacy.erm.silos import OneShotAverage, SiloGradients
from fedprivacy.erm.solver import minimise_within
from fedprivacy.erm.study.people import Records, loss_of
from fedprivacy.erm.sufficient import SufficientStatistics
from fedprivacy.errors import InputError
from fedprivacy.scenario.erm import ErmScenario
from fedprivacy.seeds import Streams

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Cell:
    """What is played.

    Args:
        name: The approach's in the scenario.
        epsilon: Its budget.
        records: How many there are.
    """

    name: str
    epsilon: float
    records: int


def cells_of(scenario: ErmScenario) -> Iterator[Cell]:
    """The cells of a scenario, in their order."""
    for name in scenario.approaches:
        for count in scenario.study.records or (scenario.population,):
            for epsilon in scenario.study.epsilons:
                yield Cell(name, epsilon, count)


def objective_of(scenario: ErmScenario, people: Records, count: int) -> Objective:
    """What is minimised over so many records; under add-remove the count is taken as the public guess."""
    return Objective(loss_of(scenario), scenario.objective.regularisation, count, people.x.shape[1])


def approach_of(scenario: ErmScenario, objective: Objective, cell: Cell) -> Approach:
    """The approach of a cell, as one curator would take it.

    Raises:
        InputError: A condition of its theorem does not hold.
    """
    asked, adjacency = scenario.approaches[cell.name], scenario.privacy.adjacency
    delta = scenario.privacy.delta if getattr(asked, "noise", "gaussian") == "gaussian" else 0.0
    radius = scenario.objective.radius
    shared: dict[str, Any] = {"objective": objective, "epsilon": cell.epsilon, "adjacency": adjacency}
    match asked.kind:
        case "output-perturbation":
            return OutputPerturbation(**shared, delta=delta, radius=radius)
        case "objective-perturbation":
            more = asked.raise_regularisation
            return ObjectivePerturbation(**shared, delta=delta, radius=radius, raise_regularisation=more)
        case "gradient-perturbation":
            own: dict[str, Any] = {"steps": asked.steps, "rate": asked.rate, "step_size": asked.step_size}
            return GradientPerturbation(**shared, delta=delta, radius=radius, **own)
        case "sufficient-statistics":
            return SufficientStatistics(**shared, delta=delta, radius=radius)
        case _:
            grid = tuple(map(tuple, regular_grid(radius, asked.points, objective.dimension).tolist()))
            return GridExponential(**shared, candidates=grid, public=True)


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
    scenario: ErmScenario, people: Records, truth: Exact, cell: Cell, streams: Streams
) -> dict[str, Any]:
    """The result of a cell, as run.json has it; where a condition does not hold, what `refused` says.

    Args:
        scenario: The whole.
        people: Its records.
        truth: The minimum over the cell's records.
        cell: What is played.
        streams: Those of the study.
    """
    asked, objective = scenario.approaches[cell.name], truth.objective
    silos = getattr(asked, "silos", 1)
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
        thetas, stated, noise = _fitted(asked, approach, x, y, scenario.study.repeats, cell, streams)
    except InputError as error:
        return {**told, "refused": str(error), "guarantees": []}
    values = np.array([objective.value(theta, x, y) for theta in thetas]) - truth.value
    return {
        **told,
        "trust": stated[0].trust,
        "refused": None,
        "delta": approach.delta,
        "noise": noise,
        "excess": _mean(values),
        "bound": _bound(asked, approach, silos),
        "theta": [
            {"name": name, **_spread(thetas[:, i] * people.units[i])} for i, name in enumerate(people.names)
        ],
        "guarantees": [guarantee.to_json() for guarantee in stated],
        "claims": _claims(asked, approach, stated),
    }


def _claims(asked: Any, approach: Approach, stated: tuple[Guarantee, ...]) -> list[dict[str, Any]]:
    """What each observer was shown, as events that are accounted for again; None where no event says it."""
    told = []
    for guarantee in stated:
        event = None if guarantee.epsilon is None else approach.event()
        if guarantee.trust == "local" and isinstance(approach, GradientPerturbation):
            event = SiloGradients(approach, asked.trust).event_against(guarantee.observer, asked.silos)
        told.append({"observer": guarantee.observer, "event": None if event is None else to_json(event)})
    return told


def _fitted(
    asked: Any, approach: Approach, x: Vector, y: Vector, repeats: int, cell: Cell, streams: Streams
) -> tuple[Vector, tuple[Guarantee, ...], str]:
    """The estimates, shape (repeats, d), what is promised of each, and how much noise there is."""
    purpose = f"{cell.name}/{cell.epsilon!r}/{cell.records}"
    silos = getattr(asked, "silos", 1)
    if silos == 1:
        found = [approach.fit(x, y, streams.noise(f"erm/{purpose}", member=i)) for i in range(repeats)]
        return np.array([one.theta for one in found]), (found[0].guarantee,), approach.words
    held = list(zip(np.array_split(x, silos), np.array_split(y, silos), strict=True))
    sizes = tuple(len(part) for _, part in held)
    federated: SiloGradients | OneShotAverage = (
        SiloGradients(approach, asked.trust)
        if isinstance(approach, GradientPerturbation)
        else OneShotAverage(approach, sizes)
    )
    runs = [
        federated.fit(held, replace(streams, run=f"{streams.run}/{purpose}/{repeat}"))
        for repeat in range(repeats)
    ]
    words = (
        f"noise of standard deviation {runs[0].noise:.4g} on the mean gradient of {silos} silos"
        if isinstance(federated, SiloGradients)
        else f"in each of {silos} silos {federated.approaches[0].words}"
    )
    return np.array([one.theta for one in runs]), runs[0].guarantees, words


def _bound(asked: Any, approach: Any, silos: int) -> float | None:
    """What theory says of the mean excess, knowing no record; None where it says nothing."""
    if isinstance(approach, GradientPerturbation):
        federated = SiloGradients(approach, asked.trust) if silos > 1 else None
        return federated.excess_bound(silos) if federated else approach.excess_bound()
    if silos > 1 or isinstance(approach, GridExponential):
        return None  # averages of minima have a bias, and so has a grid
    if isinstance(approach, ObjectivePerturbation) and approach.solved is not approach.objective:
        return None
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
