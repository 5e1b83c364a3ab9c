"""Verifies a stored comparison of trust models from its runs and its scenario."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fedprivacy.data.tasks import CLASSIFICATION
from fedprivacy.documents.comparison import PARTS
from fedprivacy.documents.headline import task_of
from fedprivacy.documents.kinds import check_fields
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.records.run_directory import read_document
from fedprivacy.records.seed_statistics import within_range
from fedprivacy.scenario import Scenario
from fedprivacy.scenario.cells import cell as cell_tables
from fedprivacy.scenario.limit_ablations import ablated
from fedprivacy.scenario.variations import varied
from fedprivacy.verification import run
from fedprivacy.verification.cells import Cell, closing, places, results
from fedprivacy.verification.differences import brief, difference, refusal, refuse_difference
from fedprivacy.verification.scenario_without_data import check_digest, unread

AGAIN = "compare again"


def check(document: dict[str, Any], folder: Path, where: str) -> dict[str, Any]:
    """The document of a comparison, as it may be shown: its cells are made again of its runs.

    Raises:
        InputError: a cell is not one of the scenario, or says what its runs do not; or they are missing.
    """
    scenario = unread(Scenario, _with_baselines(document["scenario"]), where, AGAIN)
    check_digest(document, scenario, where, AGAIN)
    cells = list(cells_of(scenario, where))
    _match(document, cells, folder, where)
    complete = all(len(cell.runs) == len(cell.scenarios) for cell in cells)
    if document["status"] == "finished" and not complete:
        raise refusal(where, "status", "says finished, and cells of its scenario are missing", AGAIN)
    if (document["error"] is not None) != (document["status"] in ("interrupted", "failed")):
        problem = f"says {document['status']}, and error is {document['error']}"
        raise refusal(where, "status", problem, AGAIN)
    implied = {
        "name": scenario.name,
        **results(cells, folder),
        **closing(scenario, cells, document["status"]),
    }
    for key in (*PARTS, "limiting"):
        if key in document and key not in implied:
            raise refusal(where, key, "is there, and its scenario asks for none", AGAIN)
    for key, value in implied.items():
        source = "its scenario and its runs imply"
        stored = document.get(key)
        if key == "finding" and isinstance(stored, str) and task_of(scenario.tables()) == CLASSIFICATION:
            stored = within_range(stored)
        refuse_difference(stored, value, key, where, source, AGAIN, rounded=True)
    return {**document, **implied}


def _with_baselines(tables: dict[str, Any]) -> dict[str, Any]:
    """The scenario of a document; one of an earlier version, which had no baselines, has none."""
    compare = tables.get("compare")
    return {**tables, "compare": {"baselines": False, **compare}} if isinstance(compare, dict) else tables


def cells_of(scenario: Scenario, where: str) -> Iterator[Cell]:
    """Yields the cells of a stored comparison's scenario, without a look at the data."""
    tables = scenario.tables()
    for corner, epsilon, variation in places(scenario):
        scenarios = {}
        for seed in scenario.compare.seeds:
            if corner.ablation is not None:
                laid = ablated(tables, corner, scenario.privacy.epsilon, seed)
            elif variation is None:
                laid = cell_tables(tables, corner, epsilon, seed)
            else:
                laid = varied(tables, variation, seed)
            scenarios[seed] = unread(Scenario, laid, where, AGAIN)
        if variation is not None:
            epsilon = next(iter(scenarios.values())).privacy.epsilon
        yield Cell(corner, epsilon, scenarios, variation=variation, origin=scenario.privacy)


def _match(document: Mapping[str, Any], cells: list[Cell], folder: Path, where: str) -> None:
    """Gives each cell the runs that the document names for it.

    Raises:
        InputError: the document has a cell that the scenario has not, or in another order, or a run of a cell
            is not of its scenario.
    """
    for part in PARTS:
        left = iter([cell for cell in cells if cell.part == part])
        for number, stored in enumerate(document.get(part, ())):
            at = f"{part}[{number}]"
            cell = next((candidate for candidate in left if _is_same(candidate, stored)), None)
            if cell is None:
                raise refusal(where, at, "is no cell of its scenario, or not in its order", AGAIN)
            for name in stored["runs"]:
                _take(cell, folder, name, f"{at}.runs", where)
            cell.candidates = stored["candidates"]
            if cell.runs:
                ran = next(iter(cell.runs.values()))
                plan = Plan.from_json(ran["plan"])
                run.check_candidates(cell.candidates, cell.first, plan, f"{at}.candidates", where)


def _is_same(cell: Cell, stored: Mapping[str, Any]) -> bool:
    corner, variation = cell.corner, cell.variation
    varied = None if variation is None else {"key": variation.name, "value": variation.value}
    identity = [
        stored.get(key) for key in ("trust", "asked", "epsilon", "option", "varied", "unit", "ablation")
    ]
    unit = corner.unit or cell.first.privacy.unit
    ablation = None if corner.baseline else corner.ablation
    return identity == [corner.trust, corner.mechanism, cell.epsilon, corner.option, varied, unit, ablation]


def _take(cell: Cell, folder: Path, name: str, key: str, where: str) -> None:
    """Reads a run of a cell, checks it, and puts it into the cell."""
    path = folder / name
    file = str(path / "run.json")
    stored = read_document(path / "run.json")
    check_fields(stored, file)
    if stored["kind"] != "run":
        raise refusal(file, "kind", f"says {stored['kind']}, a comparison is made of runs", AGAIN)
    document, _ = run.checked(stored, file)
    seed = document["seed"]
    if seed not in cell.scenarios or seed in cell.runs or document["status"] != "finished":
        raise refusal(where, key, f"name {name}, which is no finished run of this cell", AGAIN)
    settings = cell.scenarios[seed].tables()
    ran = unread(Scenario, document["scenario"], file, AGAIN).tables()
    if (different := difference(ran, settings, "scenario")) is not None:
        at, stored_value, wanted = different
        problem = f"name {name}, whose {at} is {brief(stored_value)}, and this cell has {brief(wanted)}"
        raise refusal(where, key, problem, AGAIN)
    cell.runs[seed] = {**document, "path": str(path)}
