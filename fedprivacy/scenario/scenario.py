"""A scenario: everything that determines a run, from a TOML file and back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Self

import tomli_w
from pydantic import model_validator

from fedprivacy.errors import Problem, ScenarioError
from fedprivacy.scenario import cells, checks, inspection, reading, variations
from fedprivacy.scenario.findings import Places
from fedprivacy.scenario.kinds import HEAD, KINDS
from fedprivacy.scenario.model import Model
from fedprivacy.scenario.sections import (
    Compare,
    Data,
    Evaluation,
    Federation,
    Head,
    Privacy,
    Sampling,
    Server,
)
from fedprivacy.scenario.training import Training
from fedprivacy.scenario.values import Values


class Scenario(Head):
    """Everything that determines a run: frozen, complete, and valid as a whole.

    Make one with `read` or `from_text`, which explain mistakes with their lines.
    """

    data: Data
    model: Model
    training: Training
    server: Server
    sampling: Sampling
    privacy: Privacy
    federation: Federation
    evaluation: Evaluation
    compare: Compare

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        valid = {
            f"{section}.{key}": value
            for section in KINDS
            for key, value in dict(getattr(self, section)).items()
            if value is not None
        }
        _refuse([Places().problem(finding) for finding in checks.findings(Values(valid))])
        return self

    @classmethod
    def read(cls, source: str | Path, overrides: Sequence[str] = ()) -> Scenario:
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
    def from_text(cls, text: str, file: str = "scenario", overrides: Sequence[str] = ()) -> Scenario:
        """Reads the text of a scenario file; `file` is its name in messages.

        Raises:
            ScenarioError: With every mistake of the text and the overrides.
        """
        tables, places, problems = reading.parse(text, file, overrides)
        whole = inspection.inspect(tables)
        findings = whole.findings + cells.inspect_cells(tables, whole)
        findings += variations.inspect_variations(tables, whole)
        _refuse([*problems, *map(places.problem, findings)])
        return cls(**whole.parts)

    @property
    def population(self) -> int:
        """The number of clients, from the settings alone: no data is loaded."""
        return self.data.population

    def to_toml(self, *, compare: bool = False) -> str:
        """The complete scenario as TOML: every key that has an effect, also the defaults.

        Reading it gives an equal scenario.

        Args:
            compare: Write `[compare]` even if it is the one that a file without it gets.
        """
        tables = self.tables()
        if not compare and self.compare == Scenario.default_compare(self.seed):
            del tables["compare"]
        return tomli_w.dumps(tables)

    def tables(self) -> dict[str, Any]:
        """The scenario as plain tables, as `to_toml` writes them, `[compare]` included."""
        tables: dict[str, Any] = self.model_dump(mode="json", exclude_none=True)
        for section, kind in KINDS.items():
            if kind.tag:  # first what the section is, then its settings
                tables[section] = {kind.tag: tables[section][kind.tag], **tables[section]}
        tables["compare"] = {key: value for key, value in tables["compare"].items() if value not in ({}, [])}
        return {key: tables[key] for key in [*HEAD.keys(), *KINDS]}

    @staticmethod
    def default_compare(seed: int) -> Compare:
        """The comparison of a scenario whose file has no `[compare]`."""
        return Compare.model_validate(inspection.with_defaults({"seed": seed})["compare"])

    def cell(
        self,
        trust: Literal["none", "central", "local"],
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
        trust, unit, epsilon and seed, and drops what has no effect then, with trust "none" also the
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
            ScenarioError: The scenario lacks what this trust model needs.
            ValueError: An epsilon for trust "none", or none for another.
        """
        if (epsilon is None) != (trust == "none"):
            raise ValueError('trust "none" has no epsilon, the others need one')
        corner = cells.Corner(trust, unit, mechanism, clipped, option)
        whole = inspection.inspect(cells.cell(self.tables(), corner, epsilon, seed))
        places = Places(corner.words)
        _refuse([places.problem(finding) for finding in whole.findings])
        return Scenario(**whole.parts)

    def varied(self, one: variations.Variation, seed: int) -> Scenario:
        """The scenario with one setting varied, with the default `[compare]`.

        Args:
            one: What is varied.
            seed: The seed of the run.

        Raises:
            ScenarioError: The scenario cannot have this value.
        """
        whole = inspection.inspect(variations.varied(self.tables(), one, seed))
        _refuse([Places(f"{one.name} = {one.value}").problem(finding) for finding in whole.findings])
        return Scenario(**whole.parts)


def _refuse(problems: Sequence[Problem]) -> None:
    if problems:
        raise ScenarioError(problems)
