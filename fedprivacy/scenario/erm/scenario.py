"""A scenario of private empirical risk minimisation, from a TOML file and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from fedprivacy.errors import Finding
from fedprivacy.io.toml_text import literal
from fedprivacy.scenario.changes import Tables
from fedprivacy.scenario.erm import rules
from fedprivacy.scenario.erm import sections as s
from fedprivacy.scenario.erm.derived_values import records_of
from fedprivacy.scenario.erm.sections import APPROACH, KINDS
from fedprivacy.scenario.kinds import HEAD, Kind
from fedprivacy.scenario.scenario import BaseScenario
from fedprivacy.scenario.summary import data_label, records_label
from fedprivacy.scenario.validation import Inspection, SectionReader


class ErmScenario(BaseScenario):
    """The estimates of a study, their data, and the approaches: frozen, complete, and valid as a whole."""

    kind: ClassVar[str] = "erm"
    revealed_by: ClassVar[tuple[str, ...]] = ("approaches",)
    section_kinds: ClassVar[Mapping[str, Kind]] = {
        **{name: KINDS[name] for name in ("data", "objective")},
        "approaches": APPROACH,
        **{name: KINDS[name] for name in ("privacy", "federation", "study")},
    }
    named_sections: ClassVar[tuple[str, ...]] = ("approaches",)
    data: Annotated[s.LogisticModel | s.NpzRecords, Field(discriminator="name")]
    objective: s.Objective
    approaches: dict[
        str,
        Annotated[s.Output | s.Objectively | s.Gradient | s.Sufficient | s.Grid, Field(discriminator="kind")],
    ]
    privacy: s.Privacy
    federation: s.Federation
    study: s.Study

    def conflicts(self) -> list[Finding]:
        """Returns the mistakes between the sections, each of which is valid by itself."""
        return rules.findings({name: getattr(self, name) for name in (*KINDS, "approaches")})

    @classmethod
    def inspect(cls, tables: Tables) -> Inspection:
        """Returns the valid parts of the tables of a file, and every mistake in them."""
        reader = SectionReader(cls.section_kinds)
        reader.read_head(tables)
        reader.read_sections(tables, KINDS)
        kinds = ", ".join(map(literal, APPROACH.variants))
        absent = Finding(("approaches",), "no approach", f"Add [approaches.NAME] with kind = one of {kinds}.")
        reader.read_named(tables, "approaches", APPROACH, absent)
        return Inspection(reader.parts, [*reader.findings, *rules.findings(reader.parts)])

    @property
    def population(self) -> int:
        """The number of records."""
        count = records_of(self.data)
        assert count is not None  # a valid scenario has some
        return count

    def summary(self, *, compared: bool = False) -> str:
        """Describes the data and the approaches, from the settings alone."""
        records = f"{data_label(self.data.model_dump())}{records_label(self.data)}"
        return f"Private estimates from {records}, by {', '.join(self.approaches)}."

    def tables(self) -> dict[str, Any]:
        """The scenario as plain tables, in the order of a file."""
        tables: dict[str, Any] = self.model_dump(mode="json", exclude_none=True)
        tables["data"] = KINDS["data"].tag_first(tables["data"])
        tables["approaches"] = {
            name: APPROACH.tag_first(table) for name, table in tables["approaches"].items()
        }
        return {key: tables[key] for key in [*HEAD.keys(), *self.section_kinds]}
