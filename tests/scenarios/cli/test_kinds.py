"""Every layer has its part of every kind of scenario, and of no other."""

from __future__ import annotations

from clients.node import RESIDENTS
from fedprivacy.documents.audit import AuditDocument
from fedprivacy.documents.comparison import CompareDocument
from fedprivacy.documents.kinds import KINDS as DOCUMENTS
from fedprivacy.documents.statistics import StatisticsComparison
from fedprivacy.report import PAGES
from fedprivacy.scenario.bundled import NOT_BY_FLOWER, NOT_PINNED
from fedprivacy.scenario.loading import SCENARIOS
from fedprivacy.scenario.scenario import BaseScenario
from fedprivacy.verification.verify import CHECKS
from scenarios.cli.kinds import KINDS as COMMANDS
from server.app import SERVED

KINDS = SCENARIOS.keys()
# Results of commands that take scenarios of these kinds, and have none of their own.
OF_COMMANDS = {CompareDocument.KIND, StatisticsComparison.KIND, AuditDocument.KIND}


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


def test_commands_results_pages_and_checks_cover_the_same_kinds() -> None:
    assert COMMANDS.keys() == KINDS
    assert DOCUMENTS.keys() == KINDS | OF_COMMANDS
    assert PAGES.keys() == CHECKS.keys() == DOCUMENTS.keys()


def test_both_sides_of_the_wall_cover_what_flower_runs() -> None:
    assert NOT_BY_FLOWER.keys() < KINDS
    assert RESIDENTS.keys() == SERVED.keys() == KINDS - NOT_BY_FLOWER.keys()
    assert NOT_PINNED.keys() <= RESIDENTS.keys()
