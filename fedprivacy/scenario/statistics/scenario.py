"""A statistics scenario: queries to clients, from a TOML file and back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Self

import tomli_w
from pydantic import model_validator

from fedprivacy.errors import Finding, Problem, ScenarioError
from fedprivacy.io.toml_text import literal
from fedprivacy.scenario import reading
from fedprivacy.scenario.changes import Tables, lay
from fedprivacy.scenario.findings import Places, wrong_type
from fedprivacy.scenario.inspection import missing_section, validate
from fedprivacy.scenario.kinds import HEAD, Kind
from fedprivacy.scenario.sections import NAME, Head, Trust
from fedprivacy.scenario.statistics import checks
from fedprivacy.scenario.statistics.data import Data
from fedprivacy.scenario.statistics.facts import columns_of, number_of_clients
from fedprivacy.scenario.statistics.queries import QUERIES, Query
from fedprivacy.scenario.statistics.sections import KINDS, Compare, Federation, Privacy

QUERY = Kind(QUERIES, "kind", "kind of query")
_SECTIONS = {**KINDS, "queries": QUERY}
NOT_LOCAL = ("add-remove", "zero-out")  # the server sees who answers
_NAME = re.compile(NAME)


class Statistics(Head):
    """What is asked of whom, under which privacy: frozen, complete, and valid as a whole.

    Make one with `from_text`, which explains mistakes with their lines.
    """

    data: Data
    queries: dict[str, Query]
    privacy: Privacy
    federation: Federation
    compare: Compare

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        parts = {name: getattr(self, name) for name in ("data", "queries", "privacy", "compare")}
        found = checks.findings(parts, columns_of(self.data), number_of_clients(self.data))
        _refuse([Places().problem(finding) for finding in found])
        return self

    @classmethod
    def from_text(cls, text: str, file: str = "scenario", overrides: Sequence[str] = ()) -> Statistics:
        """Reads the text of a statistics scenario; `file` is its name in messages.

        Raises:
            ScenarioError: With every mistake of the text and the overrides.
        """
        tables, places, problems = reading.parse(text, file, overrides)
        parts, found = _inspect(tables)
        _refuse([*problems, *map(places.problem, found)])
        return cls(**parts)

    @property
    def population(self) -> int:
        """The number of clients."""
        count = number_of_clients(self.data)
        assert count is not None  # a valid scenario has some
        return count

    def tables(self) -> dict[str, Any]:
        """The scenario as plain tables, in the order of a file."""
        tables: dict[str, Any] = self.model_dump(mode="json", exclude_none=True)
        for section, kind in KINDS.items():
            if kind.tag:  # first what the section is, then its settings
                tables[section] = {kind.tag: tables[section][kind.tag], **tables[section]}
        tables["queries"] = {
            name: {"kind": query["kind"], **query} for name, query in tables["queries"].items()
        }
        tables["compare"] = {key: value for key, value in tables["compare"].items() if value != []}
        return {key: tables[key] for key in [*HEAD.keys(), "data", "queries", *list(KINDS)[1:]]}

    def to_toml(self, *, compare: bool = True) -> str:
        """The complete scenario as TOML; reading it gives an equal scenario.

        Args:
            compare: Whether with what it is compared with.
        """
        tables = self.tables()
        if not compare:
            del tables["compare"]
        return tomli_w.dumps(tables)

    def cell(
        self,
        trust: Trust,
        epsilon: float | None,
        seed: int,
        clients: int | None = None,
        mechanism: str | None = None,
    ) -> Statistics:
        """One cell of a comparison, as a scenario of its own with the default comparison.

        Args:
            trust: The trust model.
            epsilon: The budget; None for trust "none".
            seed: The seed of the run.
            clients: The number of clients; None for the scenario's own.
            mechanism: That of all queries under this trust model; None for each query's own.

        Raises:
            ScenarioError: the scenario cannot be played so.
            ValueError: An epsilon for trust "none", or none for another.
        """
        tables = self.cell_tables(trust, epsilon, seed, clients, mechanism)
        parts, found = _inspect(tables)
        _refuse([Places(f'trust "{trust}"').problem(finding) for finding in found])
        return Statistics(**parts)

    def cell_tables(
        self, trust: Trust, epsilon: float | None, seed: int, clients: int | None, mechanism: str | None
    ) -> Tables:
        """The tables of a cell, before they are checked; see `cell`."""
        if (epsilon is None) != (trust == "none"):
            raise ValueError('trust "none" has no epsilon, the others need one')
        changes: dict[Any, Any] = {("privacy", "trust"): trust, ("seed",): seed}
        if epsilon is not None:
            changes["privacy", "epsilon"] = epsilon
        if clients is not None:
            changes["data", "clients"] = clients
        if mechanism is not None:
            changes |= {("queries", name, trust): mechanism for name in self.queries}
        tables = {key: value for key, value in self.tables().items() if key != "compare"}
        without = {"none": ("epsilon", "delta", "shuffled"), "central": ("shuffled",)}
        for key in without.get(trust, ()):
            tables["privacy"].pop(key, None)
        return lay(tables, changes)


def _inspect(tables: Tables) -> tuple[dict[str, Any], list[Finding]]:
    """The valid sections, and all mistakes."""
    above = {key: value for key, value in tables.items() if key not in _SECTIONS}
    head, _, found = validate((), HEAD, above, _SECTIONS)
    parts: dict[str, Any] = {} if head is None else dict(head)
    privacy = tables.get("privacy")
    compare = tables.get("compare", {})
    if isinstance(compare, dict) and isinstance(privacy, dict) and privacy.get("adjacency") in NOT_LOCAL:
        tables = {**tables, "compare": {"trusts": ["none", "central"], **compare}}
    for section, kind in KINDS.items():
        table = tables.get(section, {})
        if not isinstance(table, dict):
            found.append(_no_section((section,), table))
        elif section not in tables and kind.required:
            found.append(missing_section(section, kind))
        else:
            part, _, wrong = validate((section,), kind, table, _SECTIONS)
            found += wrong
            if part is not None:
                parts[section] = part
    queries = tables.get("queries")
    parts["queries"] = {}
    if not isinstance(queries, dict) or not queries:
        kinds = ", ".join(map(literal, QUERIES))
        found.append(Finding(("queries",), "no query", f"Add [queries.NAME] with kind = one of {kinds}."))
        queries = {}
    for name, table in queries.items():
        if not _NAME.fullmatch(name):
            found.append(Finding(("queries", name), "must be letters, digits and hyphens, at most 64"))
        elif not isinstance(table, dict):
            found.append(_no_section(("queries", name), table))
        else:
            part, _, wrong = validate(("queries", name), QUERY, table, _SECTIONS)
            found += wrong
            if part is not None:
                parts["queries"][name] = part
    columns, clients, wrong = None, None, []
    if "data" in parts:
        try:
            columns, clients = columns_of(parts["data"]), number_of_clients(parts["data"])
        except ScenarioError as error:
            wrong = [Finding(("data", "path"), one.what, one.remedy) for one in error.problems]
    return parts, [*found, *wrong, *checks.findings(parts, columns, clients)]


def _no_section(path: tuple[str, ...], value: Any) -> Finding:
    return wrong_type(path, value, "a section", f"Write [{'.'.join(path)}] on a line of its own.")


def _refuse(problems: Sequence[Problem]) -> None:
    if problems:
        raise ScenarioError(problems)
