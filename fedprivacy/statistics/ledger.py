"""What a statistics run released to whom, in the form from which guarantees are computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import dp_accounting

from fedprivacy.accounting.events import to_json
from fedprivacy.guarantees.deployment import ANSWERS_PINNED, FILE_READ, SERVER_READS, SIMULATION, Stated
from fedprivacy.guarantees.ledger import BROKEN_OFF, OBSERVERS
from fedprivacy.statistics.plan import StatisticsPlan

PUBLIC = "the queries with their bounds, grids and categories are public knowledge"
PUBLIC_SIZE = "and so is the number of clients"
PUBLIC_ANSWERS = "and so are the number of clients and how many of them answered"
PRIVATE_SIZE = (
    "the observer is not told how many clients there are or have answered (operator-only in the record)"
)
ENFORCED = "each client randomises its own answers, and answers each query once, whatever the server asks for"
HANDED = (
    "whoever submits the run is honest about the plan: each client randomises its own answers, and answers "
    "each query once, but by the plan that came with the run"
)
TRUSTED = "the server is honest: it sees exact totals, adds the noise or chooses, and releases nothing else"
TRUTH_HIDDEN = (
    "the true values and errors, which only the simulation knows, and the fields marked operator-only are "
    "not shown to the observer"
)
SAMPLING = "every client asked each query once"


@dataclass(frozen=True)
class StatisticsLedger:
    """What a run has released, and what its whole plan releases (`accounting.charge`).

    Args:
        plan: What the run follows.
        asked: How many of its queries have been asked, in their order.
        held: Whether the clients hold a plan of their own, and not the one that came with the run.
        stated: What whoever submitted the run states of nodes that are not our own.
        broken_off: Whether a fault ended the run, which the observer must not be told.
    """

    plan: StatisticsPlan
    asked: int
    held: bool
    stated: Stated = SIMULATION
    broken_off: bool = False

    def in_advance(self, *, broken_off: bool = False) -> StatisticsLedger:
        """The ledger of all queries."""
        return StatisticsLedger(self.plan, len(self.plan.asks), self.held, self.stated, broken_off)

    def to_json(self) -> dict[str, Any]:
        """The ledger as a JSON object."""
        return ledger(self.plan, self.asked, held=self.held, stated=self.stated, broken_off=self.broken_off)


def ledger(
    plan: StatisticsPlan,
    asked: int,
    *,
    held: bool,
    stated: Stated = SIMULATION,
    broken_off: bool = False,
) -> dict[str, Any]:
    """The ledger of a run as a JSON object; `statement.guarantees` accounts for it.

    Args:
        plan: What the run follows.
        asked: How many of its queries have been asked, in their order.
        held: Whether the clients hold a plan of their own, and not the one that came with the run.
        stated: What whoever submitted the run states of nodes that are not our own.
        broken_off: Whether a fault ended the run, which the observer must not be told.
    """
    event = dp_accounting.ComposedDpEvent([ask.event(plan.adjacency) for ask in plan.asks[:asked]])
    return {
        "of": "statistics",
        "trust": plan.trust,
        "unit": plan.unit,
        "adjacency": plan.adjacency,
        "delta": plan.delta,
        "population": plan.population,
        "sampling": SAMPLING,
        "rounds": asked,
        "held": held,
        "claims": [_claim(plan, observer, event, held, stated, broken_off) for observer in OBSERVERS],
    }


def _claim(
    plan: StatisticsPlan,
    observer: str,
    event: dp_accounting.DpEvent,
    held: bool,
    stated: Stated,
    broken_off: bool,
) -> dict[str, Any]:
    if plan.trust == "none":
        return {"observer": observer, "event": None, "assumptions": ["nobody adds noise"]}
    if plan.trust == "central" and observer == "server":
        reason = "the server is trusted: it sees exact totals"
        return {"observer": observer, "event": None, "assumptions": [reason]}
    if stated.reads and observer == "server":
        return {"observer": observer, "event": None, "assumptions": [SERVER_READS]}
    told = ENFORCED if held else ANSWERS_PINNED if stated.pinned else HANDED
    by_whom = TRUSTED if plan.trust == "central" else told
    randomness = stated.randomness(server=plan.trust == "central", nodes=plan.trust == "local")
    known = PUBLIC_ANSWERS if plan.trust == "local" else PUBLIC_SIZE
    size = [f"{PUBLIC}, {known}"] if plan.adjacency == "replace-one" else [PUBLIC, PRIVATE_SIZE]
    sometimes = [BROKEN_OFF] * broken_off + [FILE_READ] * stated.reads
    assumptions = [by_whom, *size, TRUTH_HIDDEN, *sometimes, randomness]
    return {"observer": observer, "event": to_json(event), "assumptions": assumptions}
