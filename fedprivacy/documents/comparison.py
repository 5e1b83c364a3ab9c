"""The document of a comparison of trust models."""

from __future__ import annotations

from itertools import count
from typing import Annotated, Any

from pydantic import Field

from fedprivacy.documents.cell import Ablated, Cell, Gap
from fedprivacy.documents.envelope import CLOSED, TRUST_ORDER, Arm, Document, Performance
from fedprivacy.documents.redaction import SEEDS
from fedprivacy.documents.run import RunDocument
from fedprivacy.guarantees.statement import Guarantee
from fedprivacy.io.document_part import CHECKED, Checked, Part, Raw

PARTS = ("cells", "baselines", "options", "variations", "limits")  # the lists of cells
CELLS = Checked(Annotated[list[Cell], Field(max_length=10_000)])
MORE_CELLS = Checked(CELLS.kind, optional=True)


class Varied(Part):
    """A setting, and its value."""

    key: str
    value: bool | int | float | str


class Variation(Cell):
    """The scenario's own privacy with one setting changed."""

    varied: Varied


class Option(Cell):
    """The scenario with an option, and how it compares with the cell without it."""

    option: str
    difference: Gap | None = None


class CompareDocument(Document):
    """Trust models against each other, over epsilons and seeds."""

    KIND = "compare"
    OPERATOR_ONLY = (
        *(f"runs: {path}" for path in RunDocument.OPERATOR_ONLY),
        *(f"{part}[].{key}" for part in PARTS for key in ("seeds", "seconds")),
        "performance.clients_per_second",
        "performance.seconds",
        "error",
        *SEEDS,
    )

    name: Annotated[str, CHECKED] = "unnamed"
    path: Annotated[str | None, Checked(str)] = None
    status: Annotated[str, CLOSED] = "finished"
    error: Annotated[str | None, CHECKED] = None
    scenario_digest: Annotated[str | None, Checked(str)] = None
    cells: Annotated[tuple[Cell, ...], CELLS] = ()
    variations: Annotated[tuple[Variation, ...], MORE_CELLS] = ()
    options: Annotated[tuple[Option, ...], MORE_CELLS] = ()
    baselines: Annotated[tuple[Cell, ...], MORE_CELLS] = ()
    limits: Annotated[tuple[Ablated, ...], MORE_CELLS] = ()
    finding: Annotated[str | None, Checked(str)] = None
    limiting: Annotated[str | None, Checked(str | None, optional=True)] = None
    interval: str | None = None
    operator_only: Raw = None
    notes: tuple[str, ...] = ()
    performance: Annotated[Performance | None, Checked(Performance)] = None

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
    def planned(self) -> Cell | None:
        """The cell with the scenario's own trust model, epsilon and unit, which ablations change."""
        wanted = tuple(self.setting("privacy", key) for key in ("trust", "epsilon", "unit"))
        return next((c for c in self.cells if (c.trust, c.epsilon, c.unit) == wanted), None)

    @property
    def clipped(self) -> Cell | None:
        """Clipping alone, the planned training without its noise, if it was trained."""
        ablated = [cell for cell in self.limits if cell.ablation == "no-noise"]
        return next(iter([*self.baselines, *ablated]), None)

    @property
    def averaged(self) -> str:
        """The kind of each accuracy: a mean over seeds, or that of the only seed."""
        several = any(max(len(cell.accuracies), len(cell.rounds_played)) > 1 for cell in self.cells)
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
