"""The ledger of a statistics run: the releases to each observer, from which guarantees are computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dp_accounting import dp_event as dp

from fedprivacy.accounting.events import to_json
from fedprivacy.guarantees.assumptions import Assumption, TrainingAssumption
from fedprivacy.guarantees.observers import ANALYST, OBSERVERS
from fedprivacy.guarantees.remote_nodes import SIMULATION, Stated
from fedprivacy.statistics.assumptions import StatisticsAssumption
from fedprivacy.statistics.plan import StatisticsPlan
from fedprivacy.statistics.shuffling import shuffled_event

SAMPLING = "every client asked each query once"


@dataclass(frozen=True)
class StatisticsLedger:
    """The releases of a run, and those of its whole plan (`guarantees.charge`).

    Args:
        plan: The run's plan.
        charged: How many of its queries are charged, in their order.
        held: Whether the clients hold a plan of their own, and not the one that came with the run.
        stated: The submitter's statements about remote nodes.
        broken_off: Whether a fault ended the run, which the observer must not learn.
    """

    plan: StatisticsPlan
    charged: int
    held: bool
    stated: Stated = SIMULATION
    broken_off: bool = False

    def in_advance(self, *, broken_off: bool = False) -> StatisticsLedger:
        """The ledger of all queries."""
        return StatisticsLedger(self.plan, len(self.plan.asks), self.held, self.stated, broken_off)

    def to_json(self) -> dict[str, Any]:
        """The ledger as a JSON object."""
        return ledger(self.plan, self.charged, held=self.held, stated=self.stated, broken_off=self.broken_off)


def ledger(
    plan: StatisticsPlan,
    participants: int,
    *,
    held: bool,
    stated: Stated = SIMULATION,
    broken_off: bool = False,
) -> dict[str, Any]:
    """The ledger of a run as a JSON object; `statement.guarantees` accounts for it.

    Args:
        plan: The run's plan.
        participants: How many of its queries have been sent, in their order.
        held: Whether the clients hold a plan of their own, and not the one that came with the run.
        stated: The submitter's statements about remote nodes.
        broken_off: Whether a fault ended the run, which the observer must not learn.
    """
    event = dp.ComposedDpEvent([ask.event(plan.adjacency) for ask in plan.asks[:participants]])
    return {
        "of": "statistics",
        "trust": plan.trust,
        "unit": plan.unit,
        "adjacency": plan.adjacency,
        "delta": plan.delta,
        "population": plan.population,
        "sampling": SAMPLING,
        "rounds": participants,
        "held": held,
        "claims": [
            _claim(plan, observer, _seen(plan, observer, event), held, stated, broken_off)
            for observer in observers_of(plan.trust)
        ],
    }


def observers_of(trust: str) -> tuple[str, ...]:
    """The observers of statistics: with a shuffler, which the server is, also the analyst behind it."""
    return (OBSERVERS[0], ANALYST, *OBSERVERS[1:]) if trust == "shuffled" else OBSERVERS


def _seen(plan: StatisticsPlan, observer: str, event: dp.ComposedDpEvent) -> dp.DpEvent:
    """The event that bounds the view of an observer."""
    if plan.trust != "shuffled" or observer == "server":
        return event
    # A participant knows its own randomness, and so hides nobody from itself.
    return shuffled_event(event.events, plan.population - (observer == "participant"))


def _claim(
    plan: StatisticsPlan,
    observer: str,
    event: dp.DpEvent,
    held: bool,
    stated: Stated,
    broken_off: bool,
) -> dict[str, Any]:
    if plan.trust == "none":
        return _no_claim(observer, TrainingAssumption.NO_NOISE)
    if plan.trust == "central" and observer == "server":
        return _no_claim(observer, StatisticsAssumption.SERVER_SEES_TOTALS)
    if stated.reads and observer == "server":
        return _no_claim(observer, TrainingAssumption.SERVER_READS)
    pinned = TrainingAssumption.ANSWERS_PINNED if stated.pinned else StatisticsAssumption.HANDED
    holder = StatisticsAssumption.ENFORCED if held else pinned
    by_whom = StatisticsAssumption.TRUSTED if plan.trust == "central" else holder
    randomness = stated.randomness(server=plan.trust == "central", nodes=plan.clients_randomise)
    if plan.adjacency == "replace-one":
        local = plan.clients_randomise
        size = [StatisticsAssumption.PUBLIC_ANSWERS if local else StatisticsAssumption.PUBLIC_SIZE]
        if plan.trust == "shuffled" and observer != "server":
            inside = observer == "participant"
            size += [StatisticsAssumption.SHUFFLER, StatisticsAssumption.ALL_ANSWER]
            size += [StatisticsAssumption.OTHERS_SECRET if inside else StatisticsAssumption.ALL_SECRET]
    else:
        size = [StatisticsAssumption.PUBLIC, StatisticsAssumption.PRIVATE_SIZE]
    sometimes = [TrainingAssumption.BROKEN_OFF] * broken_off + [TrainingAssumption.FILE_READ] * stated.reads
    assumptions = [by_whom, *size, StatisticsAssumption.TRUTH_HIDDEN, *sometimes, randomness]
    return {"observer": observer, "event": to_json(event), "assumptions": [str(each) for each in assumptions]}


def _no_claim(observer: str, reason: Assumption) -> dict[str, Any]:
    return {"observer": observer, "event": None, "assumptions": [str(reason)]}
