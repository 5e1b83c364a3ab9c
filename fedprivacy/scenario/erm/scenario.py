"""A scenario of private empirical risk minimisation, from a TOML file and back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, Self

import tomli_w
from pydantic import Field, model_validator

from fedprivacy.errors import Finding, Problem, ScenarioError
from fedprivacy.io.toml_text import literal
from fedprivacy.scenario import reading
from fedprivacy.scenario.changes import Tables
from fedprivacy.scenario.erm import checks
from fedprivacy.scenario.erm import sections as s
from fedprivacy.scenario.erm.sections import APPROACH, KINDS
from fedprivacy.scenario.findings import Places, wrong_type
from fedprivacy.scenario.inspection import missing_section, validate
from fedprivacy.scenario.kinds import HEAD
from fedprivacy.scenario.sections import NAME, Head

_SECTIONS = {**KINDS, "approaches": APPROACH}
_NAME = re.compile(NAME)


class ErmScenario(Head):
    """Which estimates are fitted to what, by which approaches: frozen, complete, and valid as a whole.

    Make one with `from_text`, which explains mistakes with their lines.
    """

    data: Annotated[s.LogisticModel | s.NpzRecords, Field(discriminator="name")]
    objective: s.Objective
    approaches: dict[
        str,
        Annotated[s.Output | s.Objectively | s.Gradient | s.Sufficient | s.Grid, Field(discriminator="kind")],
    ]
    privacy: s.Privacy
    federation: s.Federation
    study: s.Study

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        parts = {name: getattr(self, name) for name in (*KINDS, "approaches")}
        _refuse([Places().problem(finding) for finding in checks.findings(parts)])
        return self

    @classmethod
    def from_text(cls, text: str, file: str = "scenario", overrides: Sequence[str] = ()) -> ErmScenario:
        """Reads the text of such a scenario; `file` is its name in messages.

        Raises:
            ScenarioError: With every mistake of the text and the overrides.
        """
        tables, places, problems = reading.parse(text, file, overrides)
        parts, found = _inspect(tables)
        _refuse([*problems, *map(places.problem, found)])
        return cls(**parts)

    @property
    def population(self) -> int:
        """The number of records."""
        count = checks.records_of(self.data)
        assert count is not None  # a valid scenario has some
        return count

    def tables(self) -> dict[str, Any]:
        """The scenario as plain tables, in the order of a file."""
        tables: dict[str, Any] = self.model_dump(mode="json", exclude_none=True)
        tables["data"] = {"name": tables["data"]["name"], **tables["data"]}
        tables["approaches"] = {
            name: {"kind": table["kind"], **table} for name, table in tables["approaches"].items()
        }
        order = ("data", "objective", "approaches", "privacy", "federation", "study")
        return {key: tables[key] for key in [*HEAD.keys(), *order]}

    def to_toml(self, *, compare: bool = True) -> str:
        """The complete scenario as TOML; reading it gives an equal scenario.

        Args:
            compare: As other scenarios have it; here there is no section to leave out.
        """
        return tomli_w.dumps(self.tables())


def _inspect(tables: Tables) -> tuple[dict[str, Any], list[Finding]]:
    """The valid sections, and all mistakes."""
    above = {key: value for key, value in tables.items() if key not in _SECTIONS}
    head, _, found = validate((), HEAD, above, _SECTIONS)
    parts: dict[str, Any] = {} if head is None else dict(head)
    for section, kind in KINDS.items():
        table = tables.get(section, {})
        if not isinstance(table, dict):
            found.append(_no_section((section,), table))
        elif section not in tables and kind.required:
            found.append(missing_section(section, kind) if kind.tag else _missing(section))
        else:
            part, _, wrong = validate((section,), kind, table, _SECTIONS)
            found += wrong
            if part is not None:
                parts[section] = part
    approaches, parts["approaches"] = tables.get("approaches"), {}
    if not isinstance(approaches, dict) or not approaches:
        kinds = ", ".join(map(literal, APPROACH.variants))
        found.append(
            Finding(("approaches",), "no approach", f"Add [approaches.NAME] with kind = one of {kinds}.")
        )
        approaches = {}
    for name, table in approaches.items():
        if not _NAME.fullmatch(name):
            found.append(Finding(("approaches", name), "must be letters, digits and hyphens, at most 64"))
        elif not isinstance(table, dict):
            found.append(_no_section(("approaches", name), table))
        else:
            part, _, wrong = validate(("approaches", name), APPROACH, table, _SECTIONS)
            found += wrong
            if part is not None:
                parts["approaches"][name] = part
    return parts, [*found, *checks.findings(parts)]


def _missing(section: str) -> Finding:
    return Finding((section,), "the section is missing", f"Add [{section}] with regularisation = 0.01.")


def _no_section(path: tuple[str, ...], value: Any) -> Finding:
    return wrong_type(path, value, "a section", f"Write [{'.'.join(path)}] on a line of its own.")


def _refuse(problems: Sequence[Problem]) -> None:
    if problems:
        raise ScenarioError(problems)
