"""The result document of a study of private estimates."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from fedprivacy.report.documents import Document
from fedprivacy.report.parts import Figures, Guarantee, Part

Finite = Annotated[float, Field(allow_inf_nan=False)]
Numbers = Annotated[tuple[Finite, ...], Field(max_length=10_000)]


class Coefficient(Figures):
    """One coordinate of the estimates of a cell: its mean over noise, and where the middle 95 % lie."""

    name: str


class EstimatesCell(Part):
    """One approach at one epsilon and number of records."""

    approach: str
    kind: str
    epsilon: float = Field(gt=0)
    records: int = Field(gt=0)
    silos: int = 1
    trust: str = "central"
    refused: str | None = None
    delta: float | None = None
    noise: str | None = None
    excess: Figures = Figures()
    bound: float | None = None
    theta: tuple[Coefficient, ...] = ()
    guarantees: tuple[Guarantee, ...] = ()


class Slope(Part):
    """A fitted exponent of the mean excess."""

    approach: str
    over: str
    at: float
    slope: float


class Value(Part):
    """One coordinate of the exact minimum."""

    name: str
    value: float


class Exact(Part):
    """The minimum over so many records."""

    records: int
    theta: tuple[Value, ...] = ()


class Surface(Part):
    """The objective over the plane of two coordinates, and a private path over it."""

    names: Annotated[tuple[str, ...], Field(min_length=2, max_length=2)]
    approach: str
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

    cells: tuple[EstimatesCell, ...] = ()
    exact: tuple[Exact, ...] = ()
    slopes: tuple[Slope, ...] = ()
    surface: Surface | None = None
    finding: str | None = None

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
        """The cells whose conditions hold."""
        return [cell for cell in self.cells if cell.refused is None]
