"""A stored study of private estimates held against its scenario."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from fedprivacy.erm.study.approaches import Cell, cells_of, silos_of
from fedprivacy.erm.study.claims import cell_claims, length
from fedprivacy.erm.study.document import SIMULATED, drawn_cell, frame_of, summary_of, surface_claims
from fedprivacy.erm.study.people import units_of
from fedprivacy.guarantees.remote_nodes import Stated, possible
from fedprivacy.scenario.erm import ErmScenario, rules
from fedprivacy.scenario.erm.sections import NpzRecords
from fedprivacy.verification.differences import refusal, refuse_length
from fedprivacy.verification.parts import check_status, first_fitting, of_scenario, refuse_parts
from fedprivacy.verification.scenario_without_data import refuse_findings, stored_scenario, unread

SOURCE = "its scenario implies"
AGAIN = "run it again"


def check(document: dict[str, Any], folder: Path, where: str) -> dict[str, Any]:
    """The document of a study, as it may be shown: what it promises is accounted for again.

    Raises:
        InputError: its cells are not those of its scenario, or promise something else than it implies.
    """
    check_status(document, where, AGAIN)
    scenario, stored = stored_scenario(ErmScenario, document, where, AGAIN), document["cells"]
    parts = {name: getattr(scenario, name) for name in ("objective", "privacy", "approaches", "study")}
    synthetic = not isinstance(scenario.data, NpzRecords)  # a file is not looked at
    refuse_findings(rules.findings({**parts, **({"data": scenario.data} if synthetic else {})}), where, AGAIN)
    planned = list(cells_of(scenario, _records(scenario, document)))
    finished = document["status"] == "finished"
    for number, cell in enumerate(stored):
        if (cell["refused"] is None) != ("excess" in cell):
            raise refusal(where, f"cells[{number}].refused", "does not fit what the cell lost", AGAIN)
    if finished or len(stored) > len(planned):
        refuse_length(len(stored), len(planned), "cells", where, SOURCE, AGAIN)
    away = _lengths(document, scenario, where)
    answered = [
        _answered(stored_cell, silos_of(scenario, cell), where, f"cells[{number}].absent")
        for number, (stored_cell, cell) in enumerate(zip(stored, planned, strict=False))
    ]

    tables = json.dumps(document["scenario"])

    def implied(stated: Stated | None) -> dict[str, Any]:
        cells = []
        for number, (cell, (present, absent)) in enumerate(zip(planned, answered, strict=False)):
            claims = _claims(tables, cell, stated, present, absent, away.get(cell.records, 0.0))
            refuse_parts(stored[number], claims, where, SOURCE, AGAIN, f"cells[{number}]")
            cells.append({**stored[number], **claims})
        frame = frame_of(scenario, stored, stated, document["status"])
        refuse_parts(document, frame, where, SOURCE, AGAIN)
        surface = _surface(document, scenario, planned, stated, where)
        return {**document, "cells": cells, **frame, **surface}

    fitting = first_fitting(implied, _stated(document), document["randomness"], where, AGAIN)
    early = [key for key in ("finding", "slopes") if key in document and not finished]
    if early:
        raise refusal(where, early[0], "is there, and the study has not finished", AGAIN)
    summary = summary_of(stored) if finished else {}
    refuse_parts(document, summary, where, "its cells imply", AGAIN)
    return {**fitting, **summary}


def _stated(document: Mapping[str, Any]) -> Iterator[Stated | None]:
    """The possible statements about remote nodes; None if all silos are local."""
    if document["randomness"] == SIMULATED:
        yield None
    yield from possible(document["randomness"], held=False)


def _records(scenario: ErmScenario, document: Mapping[str, Any]) -> int | None:
    """The number of records, from the record, since the file is not read."""
    if not isinstance(scenario.data, NpzRecords):
        return None
    return max((cell["records"] for cell in document["cells"]), default=1)


def _lengths(document: Mapping[str, Any], scenario: ErmScenario, where: str) -> dict[int, float]:
    """The distance from 0 of the exact minimum over a number of records."""
    units, numbers = units_of(scenario), {}
    for number, minimum in enumerate(document["exact"]):
        values = np.array([coordinate["value"] for coordinate in minimum["theta"]])
        at = f"exact[{number}].theta"
        refuse_length(len(values), len(units), at, where, SOURCE, AGAIN)
        numbers[minimum["records"]] = length(values / units)
    missing = {cell["records"] for cell in document["cells"] if cell["refused"] is None} - numbers.keys()
    if missing:
        raise refusal(where, "exact", f"lacks the minimum over {min(missing)} records", AGAIN)
    return numbers


def _answered(cell: Mapping[str, Any], silos: int, where: str, key: str) -> tuple[int, int]:
    """The fewest silos that answered in any step, and the answers that did not come."""
    if silos == 1 or cell["refused"] is not None:
        if any(cell.get(key) is not None for key in ("present", "absent", "first_absence")):
            raise refusal(where, key, "is given, and no silo was asked", AGAIN)
        return 1, 0
    present, absent, first = (cell.get(key) for key in ("present", "absent", "first_absence"))
    whole = present == silos and absent == 0 and first is None
    some = isinstance(present, int) and 1 <= present < silos and (absent or 0) >= silos - present
    if not (whole or (some and isinstance(first, str))):
        problem = f"says {absent} did not come, {present} of {silos} silos were there"
        raise refusal(where, key, problem, AGAIN)
    assert isinstance(present, int)
    return present, int(absent or 0)


def _surface(
    document: Mapping[str, Any],
    scenario: ErmScenario,
    planned: list[Cell],
    stated: Stated | None,
    where: str,
) -> dict[str, Any]:
    """The surface with what its path promises, where one is drawn."""
    surface = document.get("surface")
    cell = drawn_cell(scenario, max(planned_cell.records for planned_cell in planned))
    if (surface is not None) != (cell is not None and document["status"] == "finished"):
        raise refusal(where, "surface", "is drawn where a finished study has none, or lacks", AGAIN)
    if surface is None or cell is None:
        return {}
    with of_scenario(where, AGAIN):
        claims = _surface_claims(json.dumps(document["scenario"]), cell, stated)
    refuse_parts(surface, claims, where, SOURCE, AGAIN, "surface")
    return {"surface": {**surface, **claims}}


# A record is read more than once, for its page and beside others: it is accounted for once.
@lru_cache(maxsize=1024)
def _claims(
    tables: str, cell: Cell, stated: Stated | None, present: int, absent: int, away: float
) -> dict[str, Any]:
    """The parts of a cell that the scenario, whose tables are given as JSON, decides."""
    scenario = unread(ErmScenario, json.loads(tables), "", AGAIN)
    return cell_claims(scenario, cell, stated, present=present, absent=absent, away=away)


@lru_cache(maxsize=64)
def _surface_claims(tables: str, cell: Cell, stated: Stated | None) -> dict[str, Any]:
    """The parts of a surface that the scenario decides."""
    return surface_claims(unread(ErmScenario, json.loads(tables), "", AGAIN), cell, stated)
