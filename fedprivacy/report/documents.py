"""The result documents that a report is made from (`reading` reads them).

Only what the report prints is named here; everything else in a document is ignored, and everything
that a run may lack (it was interrupted, it had no privacy) is optional.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from pydantic import Field

from fedprivacy.report.parts import (
    Cell,
    Final,
    Guarantee,
    Option,
    Part,
    Performance,
    Privacy,
    Round,
    Variation,
)

TRUST_ORDER = ("none", "central", "distributed", "local")


class Document(Part):
    """The fields of every kind of document."""

    name: str = "unnamed"
    path: str | None = None
    status: str = "finished"
    error: str | None = None
    started: str | None = None
    versions: dict[str, Any] = Field(default_factory=dict)
    scenario: dict[str, Any] = Field(default_factory=dict)
    notes: tuple[str, ...] = ()
    performance: Performance | None = None
    randomness: dict[str, str] = Field(default_factory=dict)

    @property
    def drawn(self) -> str:
        """Where noise came from, at the server and at the clients; empty in an older record."""
        return "; ".join(f"{who}: {what}" for who, what in self.randomness.items())

    def setting(self, section: str, key: str) -> Any:
        """One setting of the scenario, or None."""
        part = self.scenario.get(section)
        return part.get(key) if isinstance(part, Mapping) else None

    @property
    def evaluated_on(self) -> str:
        """`test` or `public`: where accuracy and loss were measured."""
        return str(self.setting("evaluation", "on") or "test")


class RunDocument(Document):
    """A federated run."""

    rounds: tuple[Round, ...] = ()
    final: Final | None = None
    privacy: Privacy = Privacy()


@dataclass(frozen=True)
class Arm:
    """One arm of a comparison.

    Args:
        trust: The trust model.
        mechanism: The local mechanism of the arm, where several are compared; else None.
        place: 0 for the first arm of a trust model; the others are counted on, so that each looks otherwise.
        unit: The unit of privacy, where several are compared; else None.
    """

    trust: str
    mechanism: str | None = None
    place: int = 0
    unit: str | None = None


class CompareDocument(Document):
    """Trust models against each other, over epsilons and seeds."""

    cells: tuple[Cell, ...] = ()
    variations: tuple[Variation, ...] = ()
    options: tuple[Option, ...] = ()
    finding: str | None = None
    interval: str | None = None

    @property
    def trusts(self) -> list[str]:
        """The requested or existing trust models, from the fewest protected observers on."""
        names = dict.fromkeys([*map(str, self._requested("trusts")), *(cell.trust for cell in self.cells)])
        return sorted(names, key=lambda name: TRUST_ORDER.index(name) if name in TRUST_ORDER else 9)

    @property
    def arms(self) -> list[Arm]:
        """The arms: the trust models in their order, each with its units and mechanisms."""
        arms: list[Arm] = []
        others = count(1)
        for trust in self.trusts:
            pairs = [
                (unit, mechanism)
                for unit in self._units_of(trust)
                for mechanism in self._mechanisms(trust, unit)
            ]
            arms += [
                Arm(trust, mechanism, next(others) if at else 0, unit)
                for at, (unit, mechanism) in enumerate(pairs)
            ]
        return arms

    @property
    def units(self) -> list[str]:
        """The requested or existing units of privacy with noise."""
        ran = (cell.unit for cell in self.cells if cell.trust != "none" and cell.unit)
        return list(dict.fromkeys([*map(str, self._requested("units")), *ran]))

    def _units_of(self, trust: str) -> list[str] | list[None]:
        """The units that distinguish the arms of a trust model."""
        return self.units if len(self.units) > 1 and trust != "none" else [None]

    def _mechanisms(self, trust: str, unit: str | None) -> list[str | None]:
        """The requested or existing local mechanisms; those of messages protect clients alone."""
        of_messages = trust == "local" and unit in (None, "client")
        named = map(str, self._requested("mechanisms")) if of_messages else ()
        ran = (cell.asked for cell in self.cells if cell.trust == trust and unit in (None, cell.unit))
        return list(dict.fromkeys([*named, *ran])) or [None]

    @property
    def averaged(self) -> str:
        """The kind of each accuracy: a mean over seeds, or that of the only seed."""
        several = any(len(cell.accuracies) > 1 for cell in self.cells)
        return "mean over the seeds" if several else "of one seed"

    def targets(self, arm: Arm) -> list[float | None]:
        """The target epsilons; trust none has the one target None."""
        if arm.trust == "none":
            return [None]
        return [float(e) for e in self._requested("epsilons") if isinstance(e, (int, float))]

    def of(self, arm: Arm) -> list[Cell]:
        """The cells of an arm, from the strictest epsilon on."""
        candidates = (c for c in self.cells if (c.trust, c.asked) == (arm.trust, arm.mechanism))
        cells = (cell for cell in candidates if arm.unit in (None, cell.unit))
        return sorted(cells, key=lambda cell: cell.epsilon or 0.0)

    def widest(self) -> list[Cell]:
        """The cell of each arm at its largest epsilon: where the noise disturbs least."""
        return [cells[-1] for arm in self.arms if (cells := self.of(arm))]

    def guarantees(self, arm: Arm | None = None) -> list[Guarantee]:
        """The guarantees of one arm, or of all."""
        return [g for cell in (self.cells if arm is None else self.of(arm)) for g in cell.guarantees]

    def guarantees_under(self, trust: str) -> list[Guarantee]:
        """The guarantees of all arms of a trust model."""
        return [g for cell in self.cells if cell.trust == trust for g in cell.guarantees]

    def _requested(self, key: str) -> list[Any]:
        value = self.setting("compare", key)
        return value if isinstance(value, list) else []
