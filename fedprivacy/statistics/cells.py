"""The cells of a comparison of statistics: their list, guarantees and joint result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedprivacy.documents.statistics import StatisticsComparison
from fedprivacy.errors import InputError
from fedprivacy.guarantees.charge import under_way
from fedprivacy.guarantees.statement import guarantees
from fedprivacy.scenario.statistics import Statistics
from fedprivacy.scenario.statistics.sections import Trust
from fedprivacy.statistics.comparison import INTERVAL, finding, slope_by_trust, slopes
from fedprivacy.statistics.ledger import ledger
from fedprivacy.statistics.plan import StatisticsPlan
from fedprivacy.statistics.record import SIZES_NOTE, TRUTH_NOTE
from fedprivacy.statistics.shuffled import shuffled

ONE_RUN_ALONE = (
    "Each epsilon is that of one run alone: who sees the results of several cells or repeats has seen "
    "several releases about the same people, which cost the sum of their epsilons at most."
)


@dataclass(frozen=True)
class Corner:
    """One point of a comparison.

    Args:
        trust: The trust model.
        mechanism: The mechanism, where several are compared, else None.
        epsilon: The budget; None for trust "none".
        clients: The number of clients, where several are compared, else None.
    """

    trust: Trust
    mechanism: str | None
    epsilon: float | None
    clients: int | None

    @property
    def label(self) -> str:
        """A name for progress."""
        parts = [self.trust, self.mechanism, self.epsilon and f"epsilon {self.epsilon:g}"]
        parts.append(self.clients and f"{self.clients:,} clients")
        return ", ".join(str(part) for part in parts if part)


def corners_of(scenario: Statistics) -> Iterator[Corner]:
    """The corners of a comparison, in their order.

    Raises:
        InputError: the scenario itself has no privacy to compare.
    """
    settings = scenario.compare
    if scenario.privacy.trust == "none" and set(settings.trusts) != {"none"}:
        raise InputError(
            'privacy.trust = "none": a comparison takes delta from the scenario itself. '
            'Set privacy.trust = "central"; trust "none" is one of the cells all the same.'
        )
    for trust in settings.trusts:
        mechanisms: tuple[str, ...] = {"local": settings.local, "central": settings.central}.get(trust, ())
        for mechanism in mechanisms or (None,):
            for epsilon in (None,) if trust == "none" else settings.epsilons:
                for clients in settings.clients or (None,):
                    yield Corner(trust, mechanism, epsilon, clients)


def claims_of_cell(corner: Corner, scenario: Statistics, plan: StatisticsPlan) -> dict[str, Any]:
    """The entries of a comparison's document for a cell, without its repeats and their results.

    Args:
        corner: Which cell.
        scenario: The scenario of the cell.
        plan: Its plan.
    """
    charged = ledger(plan, len(plan.asks), held=True)
    return {
        "trust": corner.trust,
        "asked": corner.mechanism,
        "epsilon": corner.epsilon,
        "clients": plan.population,
        "guarantees": [guarantee.to_json() for guarantee in guarantees(charged)],
        "shuffled": shuffled(plan) if scenario.privacy.shuffled else None,
        "ledger": charged,
    }


def closing(scenario: Statistics, cells: Sequence[Mapping[str, Any]], status: str) -> dict[str, Any]:
    """Summarises the cells of a comparison for its document.

    Args:
        scenario: The scenario with its `compare` section.
        cells: As the document has them.
        status: As the document has it.
    """
    slope_rows = slopes(cells)
    private_size = scenario.privacy.adjacency != "replace-one"
    return {
        "slope": slope_by_trust(slope_rows),
        "slopes": slope_rows,
        "finding": finding(cells, slope_rows, scenario.tables()["privacy"]) if cells else None,
        "interval": INTERVAL,
        "operator_only": list(StatisticsComparison.OPERATOR_ONLY),
        "simulation_only": [
            *StatisticsComparison.SIMULATION_ONLY,
            *(StatisticsComparison.SIZES if private_size else ()),
        ],
        "notes": [
            TRUTH_NOTE,
            ONE_RUN_ALONE,
            *under_way(status),
            *([SIZES_NOTE] if private_size else []),
        ],
    }
