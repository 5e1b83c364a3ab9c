"""A tuning scenario, from a TOML file and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field

from fedprivacy.errors import Finding
from fedprivacy.io.rule_table import broken_rules
from fedprivacy.scenario import changes
from fedprivacy.scenario.changes import Tables
from fedprivacy.scenario.extended_scenario import TRAINING_SECTIONS, ExtendedScenario
from fedprivacy.scenario.kinds import Kind
from fedprivacy.scenario.scenario import Scenario
from fedprivacy.scenario.tune.grid import Settings, combinations, with_settings, words_of
from fedprivacy.scenario.tune.rules import TUNE_RULES, TuneValues
from fedprivacy.scenario.tune.sections import TUNE, Tune
from fedprivacy.scenario.validation import SectionReader


class TuneScenario(ExtendedScenario):
    """A run, and which of its settings are chosen how: frozen, complete, and valid as a whole."""

    kind: ClassVar[str] = "tune"
    revealed_by: ClassVar[tuple[str, ...]] = ("tune",)
    extra: ClassVar[Mapping[str, Kind]] = {"tune": TUNE}
    section_kinds: ClassVar[Mapping[str, Kind]] = {**TRAINING_SECTIONS, **extra}
    tune: Annotated[Tune, Field(discriminator="method")]

    @classmethod
    def read_extra(cls, reader: SectionReader, tables: Tables) -> None:
        """Reads `[tune]`."""
        reader.read_sections({"tune": {}, **tables}, {"tune": TUNE})

    @classmethod
    def between(cls, training: Tables, run: Scenario, parts: Mapping[str, Any]) -> Iterator[Finding]:
        """Returns the mistakes between `[tune]` and the rest."""
        return broken_rules(TUNE_RULES, TuneValues(training, run, parts["tune"]))

    @classmethod
    def without_stale_keys(cls, tables: Tables, overrides: Sequence[str]) -> Tables:
        """Returns the tables without keys of other methods, where an override changes the method."""
        laid = {change.path for change in changes.parse_overrides(overrides)[0]}
        table = tables.get("tune")
        if ("tune", "method") not in laid or not isinstance(table, dict):
            return tables
        known = TUNE.keys(TUNE.variant(table))
        current = {key: change for key, change in table.items() if key in known or ("tune", key) in laid}
        return {**tables, "tune": current}

    @property
    def training_summary(self) -> str:
        """The clients, their records, the model that they train, and the choice of its settings."""
        return f"{super().training_summary}, whose settings are chosen from a grid"

    @property
    def settings(self) -> list[Settings]:
        """The candidates: every combination of the grid's values, the last key varying fastest."""
        return combinations(self.tune.grid)

    def candidate(self, number: int, seed: int | None = None) -> Scenario:
        """The scenario with the settings of one candidate.

        Args:
            number: Its place in `settings`.
            seed: The seed; None keeps the scenario's.

        Raises:
            ScenarioError: The scenario cannot have them.
        """
        return Scenario.from_tables(self.candidate_tables(number, seed), words_of(self.settings[number]))

    def candidate_tables(self, number: int, seed: int | None = None) -> dict[str, Any]:
        """The tables of `candidate`, before they are checked."""
        return with_settings(self.tables(), self.settings[number], self.seed if seed is None else seed)

    def extra_tables(self) -> dict[str, Any]:
        """Returns `[tune]` as a plain table."""
        return {"tune": TUNE.tag_first(self.model_dump(mode="json", exclude_none=True)["tune"])}
