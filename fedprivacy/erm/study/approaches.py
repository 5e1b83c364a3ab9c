"""The approach of each cell of a study, as one curator would take it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedprivacy.erm.approach import Approach
from fedprivacy.erm.exponential_grid import GridExponential, regular_grid
from fedprivacy.erm.federated import Federated
from fedprivacy.erm.gradient_perturbation import GradientPerturbation
from fedprivacy.erm.objective import Objective
from fedprivacy.erm.objective_perturbation import ObjectivePerturbation
from fedprivacy.erm.output_perturbation import OutputPerturbation
from fedprivacy.erm.silos import OneShotAverage, SiloGradients
from fedprivacy.erm.study.people import dimension_of, loss_of
from fedprivacy.erm.sufficient_statistics import SufficientStatistics
from fedprivacy.scenario.erm import ErmScenario


@dataclass(frozen=True)
class Cell:
    """One cell of a study.

    Args:
        name: The approach's in the scenario.
        epsilon: Its budget.
        records: How many there are.
    """

    name: str
    epsilon: float
    records: int


def cells_of(scenario: ErmScenario, population: int | None = None) -> Iterator[Cell]:
    """The cells of a scenario, in their order.

    Args:
        scenario: The whole.
        population: The number of records, where it is known and the data are not to be looked at.
    """
    for name in scenario.approaches:
        for count in scenario.study.records or (population or scenario.population,):
            for epsilon in scenario.study.epsilons:
                yield Cell(name, epsilon, count)


def purpose_of_cell(cell: Cell) -> str:
    """Keeps the noise of a cell apart from that of others."""
    return f"{cell.name}/{cell.epsilon!r}/{cell.records}"


def silos_of(scenario: ErmScenario, cell: Cell) -> int:
    """The number of silos of a cell; 1 is a curator, without any messages."""
    return int(getattr(scenario.approaches[cell.name], "silos", 1))


def sizes_of(scenario: ErmScenario, cell: Cell) -> tuple[int, ...]:
    """The public number of records of each silo of a cell."""
    return tuple(len(part) for part in np.array_split(np.arange(cell.records), silos_of(scenario, cell)))


def objective_of(scenario: ErmScenario, count: int) -> Objective:
    """The objective over `count` records; under add-remove their count serves as the public guess."""
    regularisation, dimension = scenario.objective.regularisation, dimension_of(scenario.data)
    return Objective(loss_of(scenario), regularisation, count, dimension)


def approach_of(scenario: ErmScenario, objective: Objective, cell: Cell) -> Approach:
    """The approach of a cell, as one curator would take it.

    Raises:
        InputError: A condition of its theorem does not hold.
    """
    section, adjacency = scenario.approaches[cell.name], scenario.privacy.adjacency
    delta = scenario.privacy.delta if getattr(section, "noise", "gaussian") == "gaussian" else 0.0
    radius = scenario.objective.radius
    shared: dict[str, Any] = {"objective": objective, "epsilon": cell.epsilon, "adjacency": adjacency}
    match section.kind:
        case "output-perturbation":
            return OutputPerturbation(**shared, delta=delta, radius=radius)
        case "objective-perturbation":
            more = section.raise_regularisation
            return ObjectivePerturbation(**shared, delta=delta, radius=radius, raise_regularisation=more)
        case "gradient-perturbation":
            options: dict[str, Any] = {
                "steps": section.steps,
                "rate": section.rate,
                "step_size": section.step_size,
            }
            return GradientPerturbation(**shared, delta=delta, radius=radius, **options)
        case "sufficient-statistics":
            return SufficientStatistics(**shared, delta=delta, radius=radius)
        case _:
            grid = tuple(map(tuple, regular_grid(radius, section.points, objective.dimension).tolist()))
            return GridExponential(**shared, candidates=grid, public=True)


def federated_of(scenario: ErmScenario, cell: Cell, approach: Approach) -> Federated:
    """The federated procedure of a cell.

    Args:
        scenario: The whole.
        cell: The cell, of several silos.
        approach: As one curator would take it (`approach_of`).

    Raises:
        InputError: A condition of its theorem does not hold.
    """
    if isinstance(approach, GradientPerturbation):
        return SiloGradients(approach, scenario.approaches[cell.name].trust)  # type: ignore[union-attr]
    return OneShotAverage(approach, sizes_of(scenario, cell))
