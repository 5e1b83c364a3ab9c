"""Every table by the kind of a scenario or of a result has every kind, and no other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

import pytest

from clients.node import CLIENTS
from fedprivacy.documents.audit import AuditDocument
from fedprivacy.documents.comparison import CompareDocument
from fedprivacy.documents.envelope import Document
from fedprivacy.documents.kinds import KINDS as DOCUMENTS
from fedprivacy.documents.plan import PlanDocument
from fedprivacy.documents.statistics import StatisticsComparison
from fedprivacy.report import PAGES
from fedprivacy.scenario.bundled import NOT_BY_FLOWER, NOT_PINNED
from fedprivacy.scenario.loading import SCENARIOS
from fedprivacy.scenario.scenario import BaseScenario
from fedprivacy.verification.verify import CHECKS
from scenarios.api.results import KINDS as RESULTS
from scenarios.cli.display_registry import DISPLAYS
from scenarios.cli.kind_registry import KINDS as COMMANDS
from scenarios.cli.main import COMMANDS as ALL_COMMANDS
from scenarios.jobs.manifest import COMMANDS as RESUMED_BY
from scenarios.stored.differences import CELLS
from scenarios.stored.export import SIMULATED
from scenarios.stored.listing import BY_CELL
from scenarios.stored.tables import TABLES
from server.app import SERVED

KINDS = SCENARIOS.keys()
# Results of commands that take scenarios of these kinds, and have none of their own.
OF_COMMANDS = {CompareDocument.KIND, StatisticsComparison.KIND, AuditDocument.KIND, PlanDocument.KIND}


def _classes(base: type[BaseScenario]) -> set[type[BaseScenario]]:
    """The classes under a base of which scenarios are made."""
    below = {each for child in base.__subclasses__() for each in _classes(child)}
    return below | ({base} if "kind" in vars(base) else set())


def test_the_table_has_every_class_of_scenario() -> None:
    ours = {cls for cls in _classes(BaseScenario) if cls.__module__.startswith("fedprivacy.")}
    assert set(SCENARIOS.values()) == ours
    assert {name: cls.kind for name, cls in SCENARIOS.items()} == {name: name for name in SCENARIOS}


def test_no_section_reveals_two_kinds_and_one_kind_needs_none() -> None:
    revealing = [section for cls in SCENARIOS.values() for section in cls.revealed_by]
    assert len(revealing) == len(set(revealing))
    assert [name for name, cls in SCENARIOS.items() if not cls.revealed_by] == ["run"]
    assert list(SCENARIOS)[-1] == "run"  # which `kind_of` falls back on


def test_every_kind_of_scenario_has_its_commands_and_its_result() -> None:
    assert COMMANDS.keys() == KINDS
    assert DOCUMENTS.keys() == KINDS | OF_COMMANDS


@pytest.mark.parametrize("table", [CHECKS, PAGES, DISPLAYS, TABLES, RESULTS])
def test_every_kind_of_result_is_verified_shown_exported_and_returned(table: Mapping[str, object]) -> None:
    assert table.keys() == DOCUMENTS.keys()


def test_kinds_whose_figures_need_the_true_answers_are_kinds_of_results() -> None:
    assert SIMULATED.keys() < DOCUMENTS.keys()


def test_what_has_no_guarantee_as_a_whole_has_one_by_cell() -> None:
    assert set(BY_CELL) == {kind for kind, cls in DOCUMENTS.items() if "privacy" not in cls.model_fields}
    assert CELLS.keys() == {kind for kind, cls in DOCUMENTS.items() if "cells" in cls.model_fields}
    assert all(set(key) <= _of_cells(DOCUMENTS[kind]) for kind, key in CELLS.items())


def _of_cells(document: type[Document]) -> set[str]:
    """The fields of the cells of a document."""
    (cell,) = [each for each in get_args(document.model_fields["cells"].annotation) if each is not ...]
    return set(cell.model_fields)


def test_resumable_work_is_resumed_by_a_command_that_takes_the_scenario() -> None:
    assert RESUMED_BY.keys() < DOCUMENTS.keys()
    for kind, command in RESUMED_BY.items():
        assert command in {each.__name__ for each in ALL_COMMANDS}
        if kind in KINDS:
            assert COMMANDS[kind].command in ("", command)


def test_both_sides_of_the_wall_cover_what_flower_runs() -> None:
    assert NOT_BY_FLOWER.keys() < KINDS
    assert CLIENTS.keys() == SERVED.keys() == KINDS - NOT_BY_FLOWER.keys()
    assert NOT_PINNED.keys() <= CLIENTS.keys()
