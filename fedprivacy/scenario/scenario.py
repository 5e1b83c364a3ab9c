"""A scenario, from a TOML file and back: the base of every kind, and the scenario that trains a model."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import tomli_w
from pydantic import model_validator

from fedprivacy.errors import Finding
from fedprivacy.mechanisms.central import mechanisms_by_key
from fedprivacy.scenario import cells, limit_ablations, reading, summary, validation, variations
from fedprivacy.scenario.changes import Tables
from fedprivacy.scenario.derived_values import Values
from fedprivacy.scenario.findings import Places, refuse
from fedprivacy.scenario.kinds import HEAD, KINDS, Kind
from fedprivacy.scenario.model import Model
from fedprivacy.scenario.rules import training
from fedprivacy.scenario.sections import (
    Compare,
    Data,
    Evaluation,
    Federation,
    Head,
    Privacy,
    Sampling,
    Server,
    Trust,
)
from fedprivacy.scenario.training import Training
from fedprivacy.scenario.validation import Inspection


class BaseScenario(Head):
    """A scenario of any kind: frozen, complete, and valid as a whole.

    Make one with `read` or `from_text`, which explain mistakes with their lines.

    Attributes:
        kind: Its name, by which every layer finds its part of the kind; also that of its result document.
        revealed_by: The sections that only files of this kind have; empty for a training.
        section_kinds: Name of each section -> its variants, in the order of a file; without the head.
        named_sections: Those of which a file has several, each with a name, as `[queries.NAME]`.
    """

    kind: ClassVar[str]
    revealed_by: ClassVar[tuple[str, ...]] = ()
    section_kinds: ClassVar[Mapping[str, Kind]]
    named_sections: ClassVar[tuple[str, ...]] = ()

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

    @property
    def sections(self) -> dict[tuple[str, ...], Kind]:
        """The place of each section -> its variants, in the order of a file; the head is ()."""
        sections: dict[tuple[str, ...], Kind] = {(): HEAD}
        for section, kind in self.section_kinds.items():
            names = [(name,) for name in getattr(self, section)] if section in self.named_sections else [()]
            sections |= {(section, *name): kind for name in names}
        return sections

    @abstractmethod
    def summary(self, *, compared: bool = False) -> str:
        """Describes who has which data, what is made of it, and who adds noise, from the settings alone.

        1,437 clients, each with one record of digits (1,437 records), train a logistic model together; the
        server adds noise (trust central); epsilon 2, delta 1e-05, unit client, adjacency replace-one.

        Args:
            compared: Whether it is run under every trust model of its comparison.
        """

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


class Scenario(BaseScenario):
    """Everything that determines a run: frozen, complete, and valid as a whole."""

    kind: ClassVar[str] = "run"
    section_kinds: ClassVar[Mapping[str, Kind]] = KINDS
    data: Data
    model: Model
    training: Training
    server: Server
    sampling: Sampling
    privacy: Privacy
    federation: Federation
    evaluation: Evaluation
    compare: Compare

    def conflicts(self) -> list[Finding]:
        """Returns the mistakes between the sections, each of which is valid by itself."""
        valid = {
            f"{section}.{key}": value
            for section in KINDS
            for key, value in dict(getattr(self, section)).items()
            if value is not None
        }
        return training.findings(Values(valid))

    @classmethod
    def inspect(cls, tables: Tables) -> Inspection:
        """Returns the valid parts of the tables of a file, and every mistake in them."""
        whole = validation.inspect(tables)
        between = [
            *cells.inspect_cells(tables, whole),
            *variations.inspect_variations(tables, whole),
            *limit_ablations.inspect_ablations(tables, whole),
        ]
        return Inspection(whole.parts, whole.findings + between)

    @property
    def population(self) -> int:
        """The number of clients, from the settings alone: no data is loaded."""
        return self.data.population

    def summary(self, *, compared: bool = False) -> str:
        """Describes the clients, their records, the training and its protection, from the settings alone."""
        return summary.sentence(
            self.training_summary, self.privacy, self.compare.trusts if compared else None
        )

    @property
    def training_summary(self) -> str:
        """The clients, their records, and the model that they train."""
        dealt = summary.DEALT.get(getattr(self.data, "partition", ""), "who have")
        records = f"{summary.data_label(self.data.model_dump())}{summary.records_label(self.data)}"
        return f"{summary.clients_label(self)}, {dealt} {records}, train a {self.model.name} model together"

    def to_toml(self, *, compare: bool = False) -> str:
        """The complete scenario as TOML: every key that has an effect, also the defaults.

        Reading it gives an equal scenario.

        Args:
            compare: Write `[compare]` even if it is the one that a file without it gets.
        """
        default = self.compare == Scenario.default_compare(self.seed)
        return super().to_toml(compare=compare or not default)

    def tables(self) -> dict[str, Any]:
        """The scenario as plain tables, as `to_toml` writes them, `[compare]` included."""
        tables: dict[str, Any] = self.model_dump(mode="json", exclude_none=True)
        for section, kind in KINDS.items():
            tables[section] = kind.tag_first(tables[section])
        mechanism = tables["privacy"].get("mechanism")
        for key, mechanisms in mechanisms_by_key().items():
            if mechanism not in mechanisms:  # which has no effect, and at most its default
                tables["privacy"].pop(key, None)
        tables["compare"] = {key: value for key, value in tables["compare"].items() if value not in ({}, [])}
        return {key: tables[key] for key in [*HEAD.keys(), *KINDS]}

    @staticmethod
    def default_compare(seed: int) -> Compare:
        """The comparison of a scenario whose file has no `[compare]`."""
        return Compare.model_validate(validation.with_defaults({"seed": seed})["compare"])

    def cell(
        self,
        trust: Trust,
        epsilon: float | None,
        seed: int,
        mechanism: str | None = None,
        unit: Literal["client", "example"] | None = None,
        *,
        clipped: bool = False,
        option: str | None = None,
    ) -> Scenario:
        """One cell of a comparison, as a scenario of its own with the default `[compare]`.

        Lays `[compare.<trust>]` and the overlays of the unit, mechanism and option over the scenario, sets
        trust, unit, epsilon and seed, and drops keys without effect, with trust "none" also the
        scenario's clipping norm.
        A `max_participations` equal to the rounds means every round: it follows the cell's rounds.

        Args:
            trust: The trust model.
            epsilon: The privacy budget; None for trust "none".
            seed: The seed of the run.
            mechanism: The local mechanism; None for the scenario's own.
            unit: The unit of privacy; None for the scenario's own.
            clipped: Whether trust "none" keeps the scenario's clipping norm: clipping alone, a heuristic.
            option: The `[compare.option.NAME]` that is laid over it; None for none.

        Raises:
            ScenarioError: The scenario lacks a key that this trust model requires.
            ValueError: An epsilon for trust "none", or none for another.
        """
        if (epsilon is None) != (trust == "none"):
            raise ValueError('trust "none" has no epsilon, the others need one')
        corner = cells.Corner(trust, unit, mechanism, clipped, option)
        return Scenario.from_tables(cells.cell(self.tables(), corner, epsilon, seed), corner.words)

    def varied(self, variation: variations.Variation, seed: int) -> Scenario:
        """The scenario with one setting varied, with the default `[compare]`.

        Args:
            variation: The varied setting and its value.
            seed: The seed of the run.

        Raises:
            ScenarioError: The scenario cannot have this value.
        """
        tables = variations.varied(self.tables(), variation, seed)
        return Scenario.from_tables(tables, f"{variation.name} = {variation.value}")

    def ablated(self, corner: cells.Corner, seed: int) -> Scenario:
        """The scenario with one possible limit removed (`limit_ablations`), with the default `[compare]`.

        Args:
            corner: The cell of the ablation.
            seed: The seed of the run.

        Raises:
            ScenarioError: The scenario cannot have it.
        """
        tables = limit_ablations.ablated(self.tables(), corner, self.privacy.epsilon, seed)
        return Scenario.from_tables(tables, f'limits "{corner.ablation}"')
