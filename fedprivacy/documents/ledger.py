"""The ledger of a result: the releases to each observer, from which its epsilons are recomputed.

No page shows it, so its pieces are strict `Fields` alone.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from fedprivacy.documents.guarantee import Records
from fedprivacy.io.document_part import Count, Number, Texts, strict
from fedprivacy.io.validation import Fields

Sizes: Any = strict(Records)


class Claim(Fields):
    """The releases to one observer; null where nothing protects from it."""

    observer: str
    event: dict[str, Any] | None
    assumptions: Texts


class Group(Fields):
    """Clients whose records have cost the same."""

    clients: Count
    answers: int
    records: int | None
    event: dict[str, Any]


class Ledger(Fields):
    """The releases to each observer (`guarantees.ledger`)."""

    trust: str
    unit: str
    adjacency: str
    delta: Number | None
    population: Count
    sampling: str
    rounds: Count
    claims: Annotated[list[Claim], Field(max_length=12)]
    clients: Annotated[list[Group], Field(max_length=64)] | None = None
    of: str = "training"
    completed: Ledger | None = None


class StatisticsLedger(Ledger):
    """The ledger of queries, which states whether the clients have a plan of their own."""

    held: bool


Participations = dict[Annotated[str, Field(pattern="^[0-9]{1,9}$")], int]


class BudgetGroup(Fields):
    """The releases of one group of clients with a budget of its own."""

    name: str
    clients: Count
    sampling: str
    claims: Annotated[list[Claim], Field(max_length=12)]
    participations: Participations = Field(default_factory=dict)


class TrainingLedger(Ledger):
    """The ledger of a run that trains, with all that it takes to resume the run."""

    held: bool
    records_per_client: Sizes | None = None
    least_shares: Count | None
    participations: Participations = Field(default_factory=dict)
    groups: Annotated[list[BudgetGroup], Field(max_length=21)] | None = None
    completed: TrainingLedger | None = None
