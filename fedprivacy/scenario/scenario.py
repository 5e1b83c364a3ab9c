"""A scenario: everything that determines a run, from a TOML file and back."""

from __future__ import annotations

from typing import Any, Literal

from fedprivacy.errors import Finding
from fedprivacy.scenario import ablations, cells, inspection, variations
from fedprivacy.scenario.base_scenario import BaseScenario
from fedprivacy.scenario.changes import Tables
from fedprivacy.scenario.kinds import HEAD, KINDS
from fedprivacy.scenario.model import Model
from fedprivacy.scenario.rules import training
from fedprivacy.scenario.sections import (
    Compare,
    Data,
    Evaluation,
    Federation,
    Privacy,
    Sampling,
    Server,
)
from fedprivacy.scenario.training import Training
from fedprivacy.scenario.validation import Inspection
from fedprivacy.scenario.values import Values


class Scenario(BaseScenario):
    """Everything that determines a run: frozen, complete, and valid as a whole."""

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
        whole = inspection.inspect(tables)
        between = [
            *cells.inspect_cells(tables, whole),
            *variations.inspect_variations(tables, whole),
            *ablations.inspect_ablations(tables, whole),
        ]
        return Inspection(whole.parts, whole.findings + between)

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
        default = self.compare == Scenario.default_compare(self.seed)
        return super().to_toml(compare=compare or not default)

    def tables(self) -> dict[str, Any]:
        """The scenario as plain tables, as `to_toml` writes them, `[compare]` included."""
        tables: dict[str, Any] = self.model_dump(mode="json", exclude_none=True)
        for section, kind in KINDS.items():
            tables[section] = kind.tag_first(tables[section])
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
        """The scenario with one possible limit removed (`ablations`), with the default `[compare]`.

        Args:
            corner: The cell of the ablation.
            seed: The seed of the run.

        Raises:
            ScenarioError: The scenario cannot have it.
        """
        tables = ablations.ablated(self.tables(), corner, self.privacy.epsilon, seed)
        return Scenario.from_tables(tables, f'limits "{corner.ablation}"')
