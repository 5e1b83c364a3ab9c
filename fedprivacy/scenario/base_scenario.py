"""The base of every kind of scenario: it is read from TOML, and written as TOML that reads the same."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self

import tomli_w
from pydantic import model_validator

from fedprivacy.errors import Finding
from fedprivacy.scenario import reading
from fedprivacy.scenario.changes import Tables
from fedprivacy.scenario.findings import Places, refuse
from fedprivacy.scenario.sections import Head
from fedprivacy.scenario.validation import Inspection


class BaseScenario(Head):
    """A scenario of any kind: frozen, complete, and valid as a whole.

    Make one with `read` or `from_text`, which explain mistakes with their lines.
    """

    @classmethod
    def read(cls, source: str | Path, overrides: Sequence[str] = ()) -> Self:
        """Reads a scenario file.

        Args:
            source: The path of a TOML file.
            overrides: `a.b=value` settings, laid over the file; a value is TOML, or else plain text.
                One that changes the kind of a section (`sampling.name=all`) takes along the keys
                that only the file's kind had.

        Raises:
            ScenarioError: With every mistake of the file and the overrides.
        """
        return cls.from_text(reading.read_text(source), str(source), overrides)

    @classmethod
    def from_text(cls, text: str, file: str = "scenario", overrides: Sequence[str] = ()) -> Self:
        """Reads the text of a scenario; `file` is its name in messages.

        Raises:
            ScenarioError: With every mistake of the text and the overrides.
        """
        tables, places, problems = reading.parse(text, file, overrides)
        whole = cls.inspect(cls.without_stale_keys(tables, overrides))
        refuse(whole.findings, places, problems)
        return cls(**whole.parts)

    @classmethod
    def from_tables(cls, tables: Tables, where: str) -> Self:
        """Returns the scenario of tables that the program made; `where` names them in messages.

        Raises:
            ScenarioError: With every mistake in them.
        """
        whole = cls.inspect(tables)
        refuse(whole.findings, Places(where))
        return cls(**whole.parts)

    @classmethod
    @abstractmethod
    def inspect(cls, tables: Tables) -> Inspection:
        """Returns the valid parts of the tables of a file, and every mistake in them."""

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        refuse(self.conflicts(), Places())
        return self

    @abstractmethod
    def conflicts(self) -> Iterable[Finding]:
        """Returns the mistakes between the sections, each of which is valid by itself."""

    @classmethod
    def without_stale_keys(cls, tables: Tables, overrides: Sequence[str]) -> Tables:
        """Returns the tables without keys that the overrides leave without effect."""
        return tables

    @abstractmethod
    def tables(self) -> dict[str, Any]:
        """Returns the scenario as plain tables, in the order of a file."""

    @property
    def label(self) -> str:
        """The name with trust model and epsilon, for run directories: "digits-central-eps2"."""
        privacy = getattr(self, "privacy", None)
        trust, epsilon = getattr(privacy, "trust", None), getattr(privacy, "epsilon", None)
        parts = [self.name, trust, None if epsilon is None else f"eps{epsilon:g}"]
        return "-".join(part for part in parts if part)

    def to_toml(self, *, compare: bool = True) -> str:
        """Returns the complete scenario as TOML; reading it gives an equal scenario.

        Args:
            compare: Whether to write `[compare]`, where the kind has it.
        """
        tables = self.tables()
        if not compare:
            tables.pop("compare", None)
        return tomli_w.dumps(tables)
