"""The base of scenarios that are a training scenario with sections of their own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from fedprivacy.errors import Finding
from fedprivacy.scenario.cells import inspect_cells
from fedprivacy.scenario.changes import Tables
from fedprivacy.scenario.kinds import KINDS, Kind
from fedprivacy.scenario.scenario import Scenario
from fedprivacy.scenario.validation import Inspection, SectionReader, inspect

# The sections of the training: without a comparison, which only a plain training has.
TRAINING_SECTIONS = {name: kind for name, kind in KINDS.items() if name != "compare"}
# What an attack measures, and a choice of settings costs, is computed for one noise, rate and weight.
ALIKE = (
    "attacks and choices of settings are made for clients with one budget, and would judge each group by the "
    "claim of all",
    "Remove it, and run each budget as the section's own.",
)

PERSONAL = (
    "attacks and choices of settings train, and judge, the model that all clients share",
    "Remove it.",
)


class ExtendedScenario(Scenario):
    """A training scenario with sections of its own, whose rules are between valid sections.

    Attributes:
        extra: Name of each further section -> its kinds, in the order of a file. A class adds them to
            `TRAINING_SECTIONS` in its `section_kinds`.
    """

    extra: ClassVar[Mapping[str, Kind]]

    @classmethod
    def inspect(cls, tables: Tables) -> Inspection:
        """Returns the valid parts of the tables of a file, and every mistake in them."""
        training = {key: value for key, value in tables.items() if key not in cls.extra}
        whole = inspect(training)
        reader = SectionReader({**KINDS, **cls.extra})
        cls.read_extra(reader, tables)
        findings = [*whole.findings, *inspect_cells(training, whole), *reader.findings]
        if whole.parts.get("privacy") is not None and whole.parts["privacy"].groups is not None:
            findings.append(Finding(("privacy", "groups"), *ALIKE))
        if whole.parts.get("training") is not None and whole.parts["training"].personal is not None:
            findings.append(Finding(("training", "personal"), *PERSONAL))
        if not findings:
            findings += cls.between(training, Scenario(**whole.parts), reader.parts)
        return Inspection(whole.parts | reader.parts, findings)

    @classmethod
    @abstractmethod
    def read_extra(cls, reader: SectionReader, tables: Tables) -> None:
        """Reads the further sections of a file."""

    @classmethod
    @abstractmethod
    def between(cls, training: Tables, run: Scenario, parts: Mapping[str, Any]) -> Iterable[Finding]:
        """Returns the mistakes between the further sections and the rest, all valid by themselves.

        Args:
            training: The tables without the further sections.
            run: The scenario without them.
            parts: The further sections.
        """

    @property
    def plain(self) -> Scenario:
        """The training scenario without the further sections."""
        return Scenario(**{key: getattr(self, key) for key in Scenario.model_fields})

    def tables(self) -> dict[str, Any]:
        """The scenario as plain tables, in the order of a file."""
        tables = super().tables()
        return {**{key: tables[key] for key in tables if key not in self.extra}, **self.extra_tables()}

    @abstractmethod
    def extra_tables(self) -> dict[str, Any]:
        """Returns the further sections as plain tables, in the order of a file."""
