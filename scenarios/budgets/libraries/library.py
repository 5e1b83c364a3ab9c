"""The pattern of every library: settings that are read and checked together, and what they cost.

FILE and KEY=VALUE -> one flat table -> a section, by the rules of scenario files -> releases as events of
the ledger -> the accountants -> a guarantee for each observer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from fedprivacy.documents.envelope import SCHEMA
from fedprivacy.errors import Finding, KeyPath, Problem, ScenarioError
from fedprivacy.scenario.base import Section
from fedprivacy.scenario.kinds import Kind
from fedprivacy.scenario.validation import validate
from scenarios.budgets.libraries.cost import Cost
from scenarios.budgets.libraries.reading import Settings, read
from scenarios.budgets.question import ADJACENCIES

# A mistake of local mechanisms: what and remedy.
ALWAYS_SENT = (
    "clients send a message whatever their records are, so that none is added or removed",
    "Give --adjacency replace-one or zero-out.",
)


def _without_value(finding: Finding) -> Finding:
    return Finding(finding.path, "has no value", "Give it one, or remove it.")


class Library(ABC):
    """A library's settings: where its files have them, which they are, and their cost.

    Attributes:
        name: The name of the command.
        title: The library and the version whose source the cost was read from.
        kind: The settings of each mechanism, and the key that names it.
        adjacency: The adjacency that its figures are stated for by default.
        aliases: Other names of keys.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    kind: ClassVar[Kind]
    adjacency: ClassVar[str]
    aliases: ClassVar[dict[str, str]] = {}

    def document(self, words: Sequence[str], adjacency: str | None = None) -> dict[str, Any]:
        """Returns the cost of settings as a result document.

        Args:
            words: At most one file, and any number of KEY=VALUE, which replace keys of the file.
            adjacency: "replace-one", "add-remove" or "zero-out"; None for the library's own.

        Raises:
            ScenarioError: With every mistake of the settings, and its line or argument.
        """
        related = self.adjacency if adjacency is None else adjacency
        known = self.kind.keys()
        settings = read(words, known, self.locate, self.aliases)
        table = dict(settings.table)
        tag = self.kind.tag
        if tag and tag not in table and (named := self.infer(table)) is not None:
            table[tag] = named
        part, _, findings = validate((), self.kind, table, {})
        if part is not None:
            findings = self.findings(part, related)
        empty = {key for key, value in table.items() if value is None}
        findings = [_without_value(each) if {*each.path[:1]} & empty else each for each in findings]
        problems = [settings.problem(finding) for finding in findings]
        if related not in ADJACENCIES:
            problems.append(Problem(f"--adjacency {related}", f"must be one of {', '.join(ADJACENCIES)}"))
        if problems or part is None:
            raise ScenarioError(problems)
        return self._document(settings, part, self.cost(part, related), related)

    def _document(self, settings: Settings, part: Section, cost: Cost, adjacency: str) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "kind": "budget",
            "mechanism": self.name,
            "library": self.title,
            "settings": part.model_dump(mode="json"),
            "unread": sorted(settings.unread),
            **cost.fields(adjacency),
        }

    def locate(self, document: dict[str, Any]) -> tuple[KeyPath, dict[str, Any]]:
        """Returns the path of the table that has the settings in a file, and settings that its place implies.

        Raises:
            InputError: The file has none.
        """
        return (), {}

    def infer(self, table: dict[str, Any]) -> str | None:
        """Returns the mechanism that the other keys show, where none is named."""
        return None

    def findings(self, part: Section, adjacency: str) -> list[Finding]:
        """Returns the mistakes between keys that are valid by themselves, and with the adjacency."""
        return []

    @abstractmethod
    def cost(self, part: Section, adjacency: str) -> Cost:
        """Returns the releases of valid settings, and the guarantee against each observer."""
