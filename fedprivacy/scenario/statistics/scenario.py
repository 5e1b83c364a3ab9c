"""A statistics scenario: queries to clients, from a TOML file and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from fedprivacy.errors import Finding, ScenarioError
from fedprivacy.io.toml_text import literal
from fedprivacy.scenario import summary
from fedprivacy.scenario.changes import Tables, lay
from fedprivacy.scenario.kinds import HEAD, Kind
from fedprivacy.scenario.scenario import BaseScenario
from fedprivacy.scenario.statistics import rules
from fedprivacy.scenario.statistics.data import Data
from fedprivacy.scenario.statistics.facts import columns_of, number_of_clients
from fedprivacy.scenario.statistics.queries import QUERIES, Query
from fedprivacy.scenario.statistics.sections import KINDS, Compare, Federation, Privacy, Trust
from fedprivacy.scenario.validation import Inspection, SectionReader

QUERY = Kind(QUERIES, "kind", "kind of query")
NOT_LOCAL = ("add-remove", "zero-out")  # the server sees the participating clients


class Statistics(BaseScenario):
    """A complete, frozen statistics scenario that is valid as a whole."""

    kind: ClassVar[str] = "statistics"
    revealed_by: ClassVar[tuple[str, ...]] = ("queries",)
    section_kinds: ClassVar[Mapping[str, Kind]] = {
        "data": KINDS["data"],
        "queries": QUERY,
        **{name: kind for name, kind in KINDS.items() if name != "data"},
    }
    named_sections: ClassVar[tuple[str, ...]] = ("queries",)
    data: Data
    queries: dict[str, Query]
    privacy: Privacy
    federation: Federation
    compare: Compare

    def conflicts(self) -> Iterator[Finding]:
        """Returns the mistakes between the sections, each of which is valid by itself."""
        parts = {name: getattr(self, name) for name in ("data", "queries", "privacy", "compare")}
        return rules.findings(parts, columns_of(self.data), number_of_clients(self.data))

    @classmethod
    def inspect(cls, tables: Tables) -> Inspection:
        """Returns the valid parts of the tables of a file, and every mistake in them."""
        reader = SectionReader(cls.section_kinds)
        reader.read_head(tables)
        reader.read_sections(_with_defaults(tables), KINDS)
        kinds = ", ".join(map(literal, QUERIES))
        absent = Finding(("queries",), "no query", f"Add [queries.NAME] with kind = one of {kinds}.")
        reader.read_named(tables, "queries", QUERY, absent)
        columns, clients, wrong = None, None, []
        if "data" in reader.parts:
            data = reader.parts["data"]
            try:
                columns, clients = columns_of(data), number_of_clients(data)
            except ScenarioError as error:
                wrong = [
                    Finding(("data", "path"), problem.what, problem.remedy) for problem in error.problems
                ]
        between = rules.findings(reader.parts, columns, clients)
        return Inspection(reader.parts, [*reader.findings, *wrong, *between])

    @property
    def population(self) -> int:
        """The number of clients."""
        count = number_of_clients(self.data)
        assert count is not None  # a valid scenario has some
        return count

    def summary(self, *, compared: bool = False) -> str:
        """Describes the clients, the queries, the data and their protection, from the settings alone."""
        # With other adjacencies the number of clients is itself protected.
        known = self.privacy.adjacency == "replace-one"
        who = summary.clients_label(self) if known else "Clients"
        what = f"{who} answer {', '.join(self.queries)} from {summary.data_label(self.data.model_dump())}"
        return summary.sentence(what, self.privacy, self.compare.trusts if compared else None)

    def tables(self) -> dict[str, Any]:
        """The scenario as plain tables, in the order of a file."""
        tables: dict[str, Any] = self.model_dump(mode="json", exclude_none=True)
        for section, kind in KINDS.items():
            tables[section] = kind.tag_first(tables[section])
        tables["queries"] = {name: QUERY.tag_first(query) for name, query in tables["queries"].items()}
        tables["compare"] = {key: value for key, value in tables["compare"].items() if value != []}
        return {key: tables[key] for key in [*HEAD.keys(), *self.section_kinds]}

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
            ScenarioError: the scenario is invalid with these settings.
            ValueError: An epsilon for trust "none", or none for another.
        """
        tables = self.cell_tables(trust, epsilon, seed, clients, mechanism)
        return Statistics.from_tables(tables, f'trust "{trust}"')

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
        without["shuffled"] = without["central"]
        for key in without.get(trust, ()):
            tables["privacy"].pop(key, None)
        return lay(tables, changes)


def _with_defaults(tables: Tables) -> Tables:
    """The tables with those defaults that depend on another key: local trust goes with one adjacency only."""
    privacy, compare = tables.get("privacy"), tables.get("compare", {})
    if isinstance(compare, dict) and isinstance(privacy, dict) and privacy.get("adjacency") in NOT_LOCAL:
        return {**tables, "compare": {"trusts": ["none", "central"], **compare}}
    return tables
