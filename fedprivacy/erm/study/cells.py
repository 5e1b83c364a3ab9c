"""The cells of a study: one approach at one epsilon and number of records, with repeated noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from fedprivacy.documents.estimates import EstimatesCell, HeldOutErrors
from fedprivacy.erm.approach import Approach
from fedprivacy.erm.federated import together
from fedprivacy.erm.objective import Objective
from fedprivacy.erm.solver import minimise_within
from fedprivacy.erm.study.approaches import (
    Cell,
    approach_of,
    federated_of,
    objective_of,
    purpose_of_cell,
    silos_of,
)
from fedprivacy.erm.study.claims import bound_of, claims_of, head_of, length, refusal_of
from fedprivacy.erm.study.lots import Lot, LotCall, SiloStudy
from fedprivacy.erm.study.people import HeldOut, Records
from fedprivacy.errors import InputError, RunError
from fedprivacy.guarantees.remote_nodes import Stated
from fedprivacy.io.escape import first_line
from fedprivacy.models.metrics.numbers import R2, Rmse
from fedprivacy.models.metrics.registry import measure
from fedprivacy.models.prediction import Predictions
from fedprivacy.randomness.streams import Streams
from fedprivacy.scenario.erm import ErmScenario

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Exact:
    """The minimum within the radius, which this simulation alone knows."""

    objective: Objective
    theta: Vector
    value: float


def exact(scenario: ErmScenario, people: Records, count: int) -> Exact:
    """The minimum over the given number of records."""
    objective = objective_of(scenario, count)
    x, y = people.first(count)
    theta = minimise_within(objective, x, y, scenario.objective.radius)
    return Exact(objective, theta, objective.value(theta, x, y))


def run_cell(
    scenario: ErmScenario,
    people: Records,
    truth: Exact,
    cell: Cell,
    streams: Streams,
    request: LotCall | None = None,
    stated: Stated | None = None,
) -> dict[str, Any]:
    """The result of a cell, as run.json has it; where a condition does not hold, `refused` has the reason.

    Args:
        scenario: The whole.
        people: Its records.
        truth: The minimum over the cell's records.
        cell: The cell to compute.
        streams: Those of the study.
        request: Sends requests to silos and returns their answers; None: they are in this process.
        stated: What is stated of nodes that are not our own; None: all silos are.

    Raises:
        RunError: A minimum was not found, or no silo answers.
    """
    released, silos = head_of(scenario, cell), silos_of(scenario, cell)
    x, y = people.first(cell.records)
    try:
        approach = approach_of(scenario, truth.objective, cell)
        if silos == 1:
            federated, present, absent, absences = None, 1, 0, dict[str, Any]()
            thetas = _by_curator(approach, x, y, scenario.study.repeats, cell, streams)
        else:
            side = SiloStudy(scenario, people, streams)
            federated = federated_of(scenario, cell, approach)
            thetas, present, absences = _by_silos(side, cell, request)
            absent = absences["absent"]
        claims = claims_of(scenario, cell, approach, federated, stated, present=present, absent=absent)
    except InputError as error:
        return EstimatesCell.new(**released, **refusal_of(error)).to_json()
    values = np.array([truth.objective.value(theta, x, y) for theta in thetas]) - truth.value
    columns = [thetas[:, i] * people.units[i] for i in range(len(people.names))]
    return EstimatesCell.new(
        **{**released, **claims},
        excess=_mean(values),
        bound=None if absent else bound_of(scenario, cell, approach, length(truth.theta)),
        **({} if people.test is None else {"held_out": _on_test(people.test, thetas)}),
        theta=[{"name": name, **_spread(column)} for name, column in zip(people.names, columns, strict=True)],
        **absences,
    ).to_json()


def _by_curator(
    approach: Approach, x: Vector, y: Vector, repeats: int, cell: Cell, streams: Streams
) -> Vector:
    """Estimates by one who holds all records, shape (repeats, d)."""
    purpose = purpose_of_cell(cell)
    fits = [approach.fit(x, y, streams.noise(f"erm/{purpose}", member=i)) for i in range(repeats)]
    return np.array([fit.theta for fit in fits])


def _by_silos(side: SiloStudy, cell: Cell, request: LotCall | None) -> tuple[Vector, int, dict[str, Any]]:
    """Estimates by silos, in this process or over a grid; for silos that do not answer see `federated`.

    Returns:
        The estimates, shape (repeats, d); the fewest silos that answered in any step; and the document's
        entries about the others.
    """
    silos, request = silos_of(side.scenario, cell), request or side.request
    thetas: list[Vector] = []
    present, absent, first = silos, 0, None
    for lot in side.lots_of(cell):

        def answer_at(step: int, point: Vector, lot: Lot = lot) -> Vector:
            nonlocal present, absent, first
            answer = request(lot, step, point)
            if not answer.present:
                why = first_line(answer.first_failure or "")
                raise RunError(f"approaches.{cell.name}: no silo answered. First: {why}")
            present, absent = min(present, answer.present), absent + silos - answer.present
            first = first or answer.first_failure
            return answer.rows

        thetas += [*together(side.lead(lot), side.federated(lot).steps, answer_at)]
    return np.array(thetas), present, {"present": present, "absent": absent, "first_absence": first}


def _on_test(test: HeldOut, thetas: Vector) -> dict[str, Any]:
    """Root mean squared error, in the target's unit, and R2 of each estimate on test records.

    R2 is null where all targets are the same.
    """
    measured = [
        measure((Rmse, R2), [(Predictions((test.x @ theta)[:, None]), test.y[:, None])]) for theta in thetas
    ]
    shares = [figures["r2"] for figures in measured if figures["r2"] is not None]
    return HeldOutErrors.new(
        records=len(test.y),
        rmse=_mean(test.unit * np.array([figures["rmse"] for figures in measured], dtype=np.float64)),
        r2=_mean(np.array(shares)) if shares else None,
    ).to_json()


def _mean(values: Vector) -> dict[str, float]:
    """The mean over noise with its 95 % interval (t)."""
    mean, half = float(values.mean()), 0.0
    if len(values) > 1:
        half = float(scipy.stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values)))
    return {"mean": mean, "low": mean - half, "high": mean + half}


def _spread(values: Vector) -> dict[str, float]:
    """The mean over noise, and where the middle 95 % of the estimates lie."""
    low, high = np.quantile(values, [0.025, 0.975])
    return {"mean": float(values.mean()), "low": float(low), "high": float(high)}
