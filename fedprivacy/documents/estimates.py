"""The result document of a study of private estimates."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from fedprivacy.documents.answers import Mean
from fedprivacy.documents.cell import Figures
from fedprivacy.documents.envelope import STATUS, TABLE, Document, Performance
from fedprivacy.guarantees.statement import Guarantee
from fedprivacy.io.document_part import CHECKED, IF_THERE, Checked, Count, Number, Part, Raw

Positive = Annotated[int, Field(ge=1)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Numbers = Annotated[tuple[Finite, ...], Field(max_length=10_000)]


CURATOR_TRUSTED = "the curator is trusted: it sees all records, and adds the noise"


class Coefficient(Figures):
    """One coordinate of the estimates of a cell: its mean over noise, and where the middle 95 % lie."""

    name: str


class HeldOutErrors(Part):
    """The errors of a regression on test records: means over noise with their intervals.

    Args:
        records: How many there are.
        rmse: The root mean squared error, in the unit of the target.
        r2: The share of the targets' variance that is explained; below 0 where the mean explains more.
    """

    records: Count
    rmse: Figures
    r2: Figures | None = None


class EstimatesCell(Part):
    """One approach at one epsilon and number of records."""

    approach: Annotated[str, CHECKED]
    kind: str
    epsilon: Annotated[float, Checked(Number)] = Field(gt=0)
    records: Annotated[int, Checked(Positive)] = Field(gt=0)
    silos: int = 1
    trust: str = "central"
    refused: Annotated[str | None, CHECKED] = None
    delta: float | None = None
    noise: str | None = None
    guarantees: tuple[Guarantee, ...] = ()
    claims: Raw = None
    excess: Annotated[Figures, Checked(Mean | None, optional=True)] = Figures()
    bound: float | None = None
    held_out: HeldOutErrors | None = None
    theta: tuple[Coefficient, ...] = ()
    present: Annotated[int | None, Checked(Positive | None, optional=True)] = None
    absent: Annotated[int | None, Checked(Count | None, optional=True)] = None
    first_absence: Annotated[str | None, IF_THERE] = None

    @property
    def against_all(self) -> tuple[Guarantee, ...]:
        """The guarantees, with none against a curator, of whom an approach without silos states nothing."""
        if self.trust != "central" or not self.guarantees:
            return self.guarantees
        if any(guarantee.observer == "server" for guarantee in self.guarantees):
            return self.guarantees
        bare = {"epsilon": None, "delta": None, "accountant": None, "words": None}
        curator = {"observer": "server", "assumptions": (CURATOR_TRUSTED,), **bare}
        return (self.guarantees[0].model_copy(update=curator), *self.guarantees)


class Slope(Part):
    """A fitted exponent of the mean excess."""

    approach: str
    over: str
    at: float
    slope: float


class Value(Part):
    """One coordinate of the exact minimum."""

    name: str
    value: Annotated[float, Checked(Number)]


class Exact(Part):
    """The minimum over the given number of records."""

    records: Annotated[int, Checked(Positive)]
    value: Raw = None
    theta: Annotated[tuple[Value, ...], Checked(Annotated[list[Value], Field(max_length=1000)])] = ()


class Surface(Part):
    """The objective over the plane of two coordinates, and a private path over it."""

    names: Annotated[tuple[str, ...], Field(min_length=2, max_length=2)]
    approach: Annotated[str, CHECKED]
    epsilon: float
    guarantee: Guarantee
    axis: Annotated[Numbers, Field(min_length=2)]
    values: Annotated[tuple[Numbers, ...], Field(max_length=1000)]
    minimum: Annotated[Numbers, Field(min_length=2, max_length=2)]
    path: Annotated[
        tuple[Annotated[Numbers, Field(min_length=2, max_length=2)], ...], Field(max_length=10**6)
    ]
    estimate: Annotated[Numbers, Field(min_length=2, max_length=2)]


class EstimatesDocument(Document):
    """A study: each approach at each epsilon and number of records."""

    KIND = "erm"
    OPERATOR_ONLY = (
        *("performance.seconds", "error", "seed", "scenario.seed", "scenario.data.seed"),
        *("cells[].present", "cells[].absent", "cells[].first_absence", "dealing"),
    )
    SIMULATION_ONLY: ClassVar = ("cells[].excess", "cells[].theta", "exact", "slopes", "surface", "finding")

    status: Annotated[str, STATUS] = "finished"
    error: Annotated[str | None, CHECKED] = None
    dealing: Raw = None
    cells: Annotated[
        tuple[EstimatesCell, ...], Checked(Annotated[list[EstimatesCell], Field(max_length=10_000)])
    ] = ()
    exact: Annotated[tuple[Exact, ...], Checked(Annotated[list[Exact], Field(max_length=10_000)])] = ()
    surface: Annotated[Surface | None, IF_THERE] = None
    slopes: tuple[Slope, ...] = ()
    finding: str | None = None
    randomness: Annotated[dict[str, str], TABLE] = Field(default_factory=dict)
    operator_only: Raw = None
    simulation_only: Raw = None
    notes: tuple[str, ...] = ()
    performance: Performance | None = None

    @property
    def approaches(self) -> list[str]:
        """The names of the approaches, in the order of the scenario."""
        return list(dict.fromkeys(cell.approach for cell in self.cells))

    @property
    def sizes(self) -> list[int]:
        """All numbers of records, rising."""
        return sorted({cell.records for cell in self.cells})

    @property
    def epsilons(self) -> list[float]:
        """All budgets, from the strictest on."""
        return sorted({cell.epsilon for cell in self.cells})

    @property
    def fitted_cells(self) -> list[EstimatesCell]:
        """The cells whose conditions are met."""
        return [cell for cell in self.cells if cell.refused is None]
