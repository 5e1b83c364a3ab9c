"""The result documents of statistics: one run, and a comparison."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from fedprivacy.documents.answers import Query, Repeats, Slope, StatisticsCell
from fedprivacy.documents.envelope import STATUS, TABLE, TRUST_ORDER, Arm, Document, Performance
from fedprivacy.documents.guarantee import Completed, Guarantees, Terms
from fedprivacy.documents.ledger import StatisticsLedger
from fedprivacy.documents.redaction import SEEDS
from fedprivacy.guarantees.statement import Guarantee
from fedprivacy.io.document_part import CHECKED, IF_THERE, Checked, Number, Raw
from fedprivacy.io.validation import Fields


class StatisticsPlan(Fields):
    """The request, as far as it is verified before its scenario."""

    population: Annotated[int, Field(ge=1)]


class StatisticsPrivacy(Terms):
    """The guarantees, and those that a hypothetical shuffler would give."""

    epsilon: Annotated[float | None, Checked(Number | None)] = None
    shuffled: Guarantee | None = None
    guarantees: Guarantees = ()
    completed: Annotated[Completed | None, IF_THERE] = None


class StatisticsDocument(Document):
    """The document of a statistics run."""

    KIND = "statistics"
    OPERATOR_ONLY = (
        *(f"queries[].{key}" for key in ("answered", "refusals", "failures", "first_failure", "seconds")),
        "performance.seconds",
        "error",
        "dealing",
        *SEEDS,
    )
    # Where a client may be there or not, how many there are is itself private.
    SIZES: ClassVar[tuple[str, ...]] = (
        *("privacy.population", "ledger.population", "plan.population", "scenario.data.clients"),
        *("scenario.compare.clients", "performance.peak_memory_mb"),
    )
    SIMULATION_ONLY: ClassVar = tuple(f"queries[].{key}" for key in ("true", "error", "score", "best"))

    status: Annotated[str, STATUS] = "finished"
    error: Annotated[str | None, CHECKED] = None
    noise_key: str | None = None
    randomness: Annotated[dict[str, str], TABLE] = Field(default_factory=dict)
    plan: Annotated[Raw, Checked(StatisticsPlan)] = None
    dealing: Raw = None
    queries: Annotated[
        tuple[Query, ...], Checked(Annotated[list[dict[str, Any]], Field(max_length=10_000)])
    ] = ()
    privacy: Annotated[StatisticsPrivacy, CHECKED] = StatisticsPrivacy()
    ledger: Annotated[Raw, Checked(StatisticsLedger)] = None
    operator_only: Raw = None
    simulation_only: Raw = None
    notes: tuple[str, ...] = ()
    performance: Performance | None = None

    @property
    def trust(self) -> str:
        """The trust model."""
        return self.privacy.trust or str(self.setting("privacy", "trust") or "none")

    @property
    def unanswered(self) -> str | None:
        """The query that is charged without an answer, since the run ended during it; None without one."""
        queries, answered = self.scenario.get("queries"), len(self.queries)
        charged = self.privacy.completed.rounds if self.privacy.completed else 0
        names = list(map(str, queries)) if isinstance(queries, Mapping) else []
        return names[answered] if answered < min(charged, len(names)) else None


class StatisticsComparison(Document):
    """Queries under each trust model, mechanism, epsilon and number of clients, repeated."""

    KIND = "compare-statistics"
    OPERATOR_ONLY = ("cells[].seconds", "performance.seconds", "error", *SEEDS)
    # Fields that reveal the number of clients, which add-remove protects.
    SIZES: ClassVar[tuple[str, ...]] = (
        *(
            "scenario.data.clients",
            "scenario.compare.clients",
            "cells[].clients",
            "cells[].ledger.population",
        ),
        "performance.peak_memory_mb",
    )
    # Errors against the true values, figures computed from them, and answers, which are exact without noise.
    SIMULATION_ONLY: ClassVar = (
        *(
            f"cells[].queries[].{key}"
            for key in (
                *("error", "rmse", "told", "covered", "within_bound", "right", "score", "best", "answer"),
            )
        ),
        *("finding", "slope", "slopes"),
    )

    status: Annotated[str, STATUS] = "finished"
    error: Annotated[str | None, CHECKED] = None
    cells: Annotated[
        tuple[StatisticsCell, ...], Checked(Annotated[list[StatisticsCell], Field(max_length=10_000)])
    ] = ()
    slope: Raw = None
    slopes: tuple[Slope, ...] = ()
    finding: str | None = None
    interval: str | None = None
    operator_only: Raw = None
    simulation_only: Raw = None
    notes: tuple[str, ...] = ()
    performance: Performance | None = None

    @property
    def arms(self) -> list[Arm]:
        """The trust models, from the one that protects from fewest observers on, each by its mechanisms."""
        pairs = list(dict.fromkeys((cell.trust, cell.asked) for cell in self.cells))
        arms: list[Arm] = []
        for trust in self.trusts:
            mechanisms = (mechanism for name, mechanism in pairs if name == trust)
            arms += [Arm(trust, mechanism, place) for place, mechanism in enumerate(mechanisms)]
        return arms

    @property
    def trusts(self) -> list[str]:
        """The trust models of the cells, in their order."""
        trusts = dict.fromkeys(cell.trust for cell in self.cells)
        return sorted(trusts, key=lambda name: TRUST_ORDER.index(name) if name in TRUST_ORDER else 9)

    @property
    def epsilons(self) -> list[float]:
        """All budgets, from the strictest on."""
        return sorted({cell.epsilon for cell in self.cells if cell.epsilon is not None})

    @property
    def sizes(self) -> list[int]:
        """All numbers of clients, rising."""
        return sorted({cell.clients for cell in self.cells if cell.clients is not None})

    @property
    def questions(self) -> list[Repeats]:
        """Each query once, as some cell has it."""
        queries: dict[str, Repeats] = {}
        for cell in self.cells:
            for query in cell.queries:
                queries.setdefault(query.name, query)
        return list(queries.values())

    def of(
        self, arm: Arm, *, epsilon: float | None = None, clients: int | None = None
    ) -> list[StatisticsCell]:
        """The cells of an arm, by epsilon, then number of clients.

        Args:
            arm: The trust model and the requested mechanism.
            epsilon: Only those of this budget; trust "none" has none and stays.
            clients: Only those of so many clients.
        """
        cells = [
            cell
            for cell in self.cells
            if (cell.trust, cell.asked) == (arm.trust, arm.mechanism)
            and (epsilon is None or cell.epsilon in (None, epsilon))
            and (clients is None or cell.clients in (None, clients))
        ]
        return sorted(cells, key=lambda cell: (cell.epsilon or 0.0, cell.clients or 0))

    def guarantees(self, arm: Arm | None = None) -> list[Guarantee]:
        """The guarantees of one arm, or of all."""
        return [g for cell in (self.cells if arm is None else self.of(arm)) for g in cell.guarantees]

    def guarantees_under(self, trust: str) -> list[Guarantee]:
        """The guarantees of all arms of a trust model."""
        return [g for cell in self.cells if cell.trust == trust for g in cell.guarantees]
