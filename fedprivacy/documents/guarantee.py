"""The guarantees of a result: an epsilon for each observer, and for the records of single clients."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from fedprivacy.guarantees.statement import Guarantee
from fedprivacy.io.document_part import CHECKED, IF_THERE, Checked, Count, Number, Part

GUARANTEES = Checked(Annotated[list[Guarantee], Field(max_length=12)])
Guarantees = Annotated[tuple[Guarantee, ...], GUARANTEES]


class Records(Part):
    """The record counts of clients, which are public if the unit is a record."""

    smallest: Annotated[int, Checked(int)] = Field(ge=1)
    median: Annotated[int, Checked(int)] = Field(ge=1)
    largest: Annotated[int, Checked(int)] = Field(ge=1)

    @property
    def named(self) -> dict[str, int]:
        """The three numbers by the client that has them."""
        return {
            "Smallest client": self.smallest,
            "Median client": self.median,
            "Largest client": self.largest,
        }


class ClientGroup(Part):
    """Clients whose records cost the same."""

    epsilon: Annotated[float, Checked(Number)] = Field(ge=0)
    clients: Annotated[int, Checked(int)] = Field(ge=1)
    answers: Annotated[int | None, Checked(int)] = None
    records: Annotated[int | None, CHECKED] = None


class PerClient(Part):
    """The costs for the records of single clients."""

    largest: Annotated[float, Checked(Number)] = Field(ge=0)
    median: Annotated[float, Checked(Number)] = Field(ge=0)
    groups: Annotated[
        tuple[ClientGroup, ...], Checked(Annotated[list[ClientGroup], Field(max_length=64)])
    ] = ()


class Candidate(Part):
    """A mechanism that was considered; its errors are per coordinate of one client's message."""

    mechanism: Annotated[str, CHECKED]
    noise: Annotated[str | None, CHECKED] = None
    predicted_error: float | None = None
    measured_error: float | None = None
    chosen: Annotated[bool, CHECKED] = False
    reason: str | None = None


CANDIDATES = Annotated[list[Candidate], Field(max_length=20)] | None


class Completed(Part):
    """The cost of a stopped run's completed rounds (or queries), with one more assumption."""

    rounds: Annotated[int, Checked(Count)] = Field(ge=0)
    guarantees: Guarantees = ()


class BudgetGroup(Part):
    """A group of clients with a budget of its own, by what it differs from the others, and its guarantees."""

    name: Annotated[str, CHECKED]
    clients: Annotated[int, Checked(int)] = Field(ge=1)
    noise_multiplier: Annotated[float | None, Checked(Number | None)] = None
    rate: Annotated[float | None, Checked(Number | None)] = None
    weight: Annotated[float | None, Checked(Number | None)] = None
    guarantees: Guarantees = ()


BUDGET_GROUPS = Annotated[list[BudgetGroup], Field(max_length=21)] | None


class Terms(Part):
    """The terms of every epsilon of a result."""

    trust: str | None = None
    unit: str | None = None
    adjacency: str | None = None
    delta: float | None = None
    population: int | None = None


class Privacy(Terms):
    """The plan of a training, and its guarantees."""

    mechanism: str | None = None
    clipping_norm: float | None = None
    noise_multiplier: float | None = None
    noise: str | None = None
    candidates: Annotated[tuple[Candidate, ...] | None, Checked(CANDIDATES, optional=True)] = None
    sampling: Any = None
    max_participations: int | None = None
    batches: dict[str, Any] | None = None
    records_per_client: Annotated[Records | None, IF_THERE] = None
    guarantees: Guarantees = ()
    groups: Annotated[tuple[BudgetGroup, ...] | None, Checked(BUDGET_GROUPS, optional=True)] = None
    completed: Annotated[Completed | None, IF_THERE] = None
    per_client: Annotated[PerClient | None, IF_THERE] = None
