"""The result document of a study: cells, fitted slopes, the surface of the objective, a finding."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from fedprivacy.documents import estimates as documents
from fedprivacy.documents.envelope import Performance
from fedprivacy.documents.estimates import EstimatesDocument, Slope, Value
from fedprivacy.erm.gradient_perturbation import GradientPerturbation
from fedprivacy.erm.study.approaches import Cell, approach_of, cells_of, objective_of
from fedprivacy.erm.study.cells import Exact, exact, run_cell
from fedprivacy.erm.study.claims import by_curator
from fedprivacy.erm.study.lots import LotCall
from fedprivacy.erm.study.people import Records, dimension_of, study_streams
from fedprivacy.guarantees.charge import under_way
from fedprivacy.guarantees.remote_nodes import Stated
from fedprivacy.io.environment import versions
from fedprivacy.randomness.streams import Streams
from fedprivacy.records.run_directory import RunDirectory
from fedprivacy.scenario.erm import ErmScenario

OnCell = Callable[[dict[str, Any]], None]
SIMULATED = {"server": "seeded: simulation-grade randomness"}
NOTES = (
    "The exact minimum, what an estimate loses against it, and several estimates of one cell are known to "
    "this "
    "simulation alone: no guarantee here holds against those who see them. A guarantee is of one estimate.",
    "Intervals are over the noise alone: that these people were drawn from others is not in them.",
)
GUESSED = (
    "Under add-remove the number of records is private: this study takes it as the public guess all the same."
)
ABSENT = (
    "Answers of silos did not come: each counts as zero, which draws estimates towards zero, and no promise "
    "rests on noise that was not there. Which silos answer is no secret: under local trust the epsilons tell "
    "how many did. What the record counts of it, and why the first did not, is the operator's."
)
_SIDE = 41  # points of the surface along each axis


def study(
    scenario: ErmScenario,
    people: Records,
    directory: RunDirectory,
    *,
    streams: Streams | None = None,
    request: LotCall | None = None,
    dealing: Callable[[], Mapping[str, Any] | None] = lambda: None,
    stated: Stated | None = None,
    for_operator: bool = False,
    command: str = "",
    on_cell: OnCell | None = None,
    on_begin: Callable[[], object] = lambda: None,
) -> None:
    """Runs all cells of a study, and writes the document.

    Args:
        scenario: The study's scenario.
        people: Its records.
        directory: Where it is written, as it goes.
        streams: Its streams; None for those of the scenario.
        request: Sends requests to silos (`server.erm`); None: they are in this process.
        dealing: How the hosts of silos were dealt to nodes, as far as they were (`server.hosts`).
        stated: What is stated of nodes that are not our own; None: all silos are.
        for_operator: Whether an account is charged, so that the results are the operator's.
        command: The command that reproduces it, for the record.
        on_cell: Called with each cell's result.
        on_begin: Called once the record is there, before anything is fitted.
    """
    clock, started = time.perf_counter(), datetime.now(UTC).isoformat(timespec="seconds")
    cells: list[dict[str, Any]] = []
    truths: dict[int, Exact] = {}

    def write(status: str, error: str | None = None, **more: Any) -> None:
        directory.write_document(
            EstimatesDocument.new(
                name=scenario.name,
                seed=scenario.seed,
                path=str(directory.path),
                status=status,
                error=error,
                command=command,
                started=started,
                versions=versions(),
                scenario=scenario.tables(),
                **({"for_operator": True} if for_operator else {}),
                dealing=dealing(),
                cells=cells,
                exact=[_exact_json(people, count, truth) for count, truth in truths.items()],
                **more,
                **frame_of(scenario, cells, stated, status),
                performance=Performance.of_process(time.perf_counter() - clock),
            ).to_json()
        )

    write("running")
    try:
        on_begin()
        streams = streams or study_streams(scenario, people)
        for cell in cells_of(scenario):
            if cell.records not in truths:
                truths[cell.records] = exact(scenario, people, cell.records)
            cells.append(run_cell(scenario, people, truths[cell.records], cell, streams, request, stated))
            directory.append_event(cells[-1])
            if on_cell:
                on_cell(cells[-1])
        surface = surface_of(scenario, people, truths, streams, stated)
    except BaseException as error:
        interrupted = isinstance(error, KeyboardInterrupt)
        write("interrupted" if interrupted else "failed", f"{type(error).__name__}: {error}")
        raise
    write("finished", surface=surface, **summary_of(cells))


def frame_of(
    scenario: ErmScenario, cells: Sequence[dict[str, Any]], stated: Stated | None, status: str
) -> dict[str, Any]:
    """The entries of the document that concern all cells: source of noise, secret fields, and notes."""
    return {
        "randomness": SIMULATED if stated is None else stated.to_json(held=False),
        "operator_only": list(EstimatesDocument.OPERATOR_ONLY),
        "simulation_only": [
            *EstimatesDocument.SIMULATION_ONLY,
            *(["cells[].held_out"] if any(cell.get("held_out") for cell in cells) else []),
        ],
        "notes": [
            *NOTES,
            *([GUESSED] if scenario.privacy.adjacency == "add-remove" else []),
            *under_way(status),
            *([ABSENT] if any(cell.get("absent") for cell in cells) else []),
        ],
    }


def summary_of(cells: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Summarises the cells of a finished study."""
    return {"slopes": slopes_of(cells), "finding": finding_of(cells)}


def _exact_json(people: Records, count: int, truth: Exact) -> dict[str, Any]:
    values = truth.theta * people.units
    theta = [Value.new(name=name, value=float(v)) for name, v in zip(people.names, values, strict=True)]
    return documents.Exact.new(records=count, value=truth.value, theta=theta).to_json()


def slopes_of(cells: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Fits the exponents of epsilon and n in each approach's mean excess risk, on log scales.

    Over epsilon at the largest n, over n at the largest epsilon; of three points at least, all above 0.
    """
    slopes = []
    for name in dict.fromkeys(cell["approach"] for cell in cells):
        finished = [cell for cell in cells if cell["approach"] == name and not cell["refused"]]
        for over, other in (("epsilon", "records"), ("records", "epsilon")):
            most = max((cell[other] for cell in finished), default=None)
            line = [
                (math.log(cell[over]), math.log(cell["excess"]["mean"]))
                for cell in finished
                if cell[other] == most and cell["excess"]["mean"] > 0
            ]
            if len(line) >= 3:
                x, y = np.array(line).T
                slope = float(np.polyfit(x, y, 1)[0])
                slopes.append(Slope.new(approach=name, over=over, at=most, slope=slope).to_json())
    return slopes


def finding_of(cells: Sequence[dict[str, Any]]) -> str:
    """Which approach loses least at the smallest and the largest epsilon, in a sentence."""
    sentences = []
    most = max(cell["records"] for cell in cells)
    epsilons = sorted({cell["epsilon"] for cell in cells})
    for epsilon in dict.fromkeys((epsilons[0], epsilons[-1])):
        fitted = [c for c in cells if c["records"] == most and c["epsilon"] == epsilon and not c["refused"]]
        if fitted:
            best = min(fitted, key=lambda cell: cell["excess"]["mean"])
            sentences.append(f"at epsilon {epsilon:g} {best['approach']} ({best['excess']['mean']:.2g})")
    if not sentences:
        return "No approach could run: see the conditions that are not met."
    return (
        f"Of {most:,} records the least is lost {', and '.join(sentences)}: in mean excess of the objective."
    )


def surface_of(
    scenario: ErmScenario,
    people: Records,
    truths: dict[int, Exact],
    streams: Streams,
    stated: Stated | None = None,
) -> dict[str, Any] | None:
    """The objective over the plane with the path of a descent; None without two features and a descent."""
    cell = drawn_cell(scenario, max(truths))
    if cell is None:
        return None
    name, epsilon, count = cell.name, cell.epsilon, cell.records
    truth, (x, y) = truths[count], people.first(count)
    approach = approach_of(scenario, truth.objective, cell)
    assert isinstance(approach, GradientPerturbation)
    # With seeded noise these are the iterates of the first estimate of the cell, and the same release; with
    # the operating system's they are one estimate more.
    path = approach.path(x, y, streams.noise(f"erm/{name}/{epsilon!r}/{count}", member=0))
    reach = scenario.objective.radius
    axis = np.linspace(-reach, reach, _SIDE)
    # The loss of equal records is counted once: tables of few columns have few different ones.
    rows, weights = np.unique(np.column_stack([x, y]), axis=0, return_counts=True)
    loss, strength = truth.objective.loss, truth.objective.regularisation
    values = [
        [
            float(loss.value(rows[:, :2] @ [a, b], rows[:, 2]) @ weights) / count
            + strength / 2 * (a * a + b * b)
            for a in axis
        ]
        for b in axis
    ]
    return {
        "names": list(people.names),
        **surface_claims(scenario, cell, stated),
        "axis": axis.tolist(),
        "values": values,
        "minimum": truth.theta.tolist(),
        "path": path.tolist(),
        "estimate": path.mean(axis=0).tolist(),
    }


def drawn_cell(scenario: ErmScenario, records: int) -> Cell | None:
    """The cell whose descent is drawn: of two features, by one curator, the first at the first epsilon.

    Args:
        scenario: The whole.
        records: The most records of any cell.
    """
    descents = (
        name
        for name, section in scenario.approaches.items()
        if section.kind == "gradient-perturbation" and section.silos == 1
    )
    name = next(descents, None)
    two = dimension_of(scenario.data) == 2
    return Cell(name, scenario.study.epsilons[0], records) if two and name is not None else None


def surface_claims(scenario: ErmScenario, cell: Cell, stated: Stated | None) -> dict[str, Any]:
    """The cell of a surface, and the guarantee of its path.

    Raises:
        InputError: A condition of its theorem does not hold.
    """
    approach = approach_of(scenario, objective_of(scenario, cell.records), cell)
    guarantee = by_curator(approach.guarantee, stated).to_json()
    return {"approach": cell.name, "epsilon": cell.epsilon, "guarantee": guarantee}
