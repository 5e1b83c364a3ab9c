"""The cost of local answers behind a shuffler: an optional accounting, with its assumptions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from fedprivacy.accounting.shuffle import ASSUMPTIONS, shuffled_epsilon
from fedprivacy.accounting.shuffled_event import MAX_LOCAL
from fedprivacy.guarantees.statement import NEIGHBOURS, printed
from fedprivacy.statistics.assumptions import StatisticsAssumption
from fedprivacy.statistics.plan import StatisticsPlan

OBSERVER = "whoever sees the answers of all clients in random order, and no more"


def amplified(epsilons: Sequence[float], clients: int, delta: float) -> float:
    """Epsilon of all queries' answers behind a shuffler, by the clone bound (Feldman et al. 2021).

    The answers of one client are taken as one message of the summed budget, so that it does not matter
    whether a shuffler keeps them together or shuffles each query on its own: the latter can be made of the
    former.

    Args:
        epsilons: The local budget of each query.
        clients: How many answer, each query once.
        delta: Of the guarantee, above 0.

    Raises:
        InputError: there are too many clients, or delta is too small for the bound.
    """
    whole = math.fsum(epsilons)
    return whole if whole > MAX_LOCAL else shuffled_epsilon(whole, clients, delta)


def shuffled(plan: StatisticsPlan) -> dict[str, Any]:
    """The record's entry for a local run that requests it (`amplified`).

    Args:
        plan: A local plan with a delta above 0.

    Raises:
        InputError: there are too many clients, or delta is too small for the bound.
    """
    epsilons = [ask.mechanism.epsilon for ask in plan.asks if ask.mechanism is not None]
    spent = amplified(epsilons, plan.population, plan.delta)
    assumptions = [*ASSUMPTIONS, str(StatisticsAssumption.TRUTH_HIDDEN)]
    words = (
        f"If answers were shuffled: against {OBSERVER}, at most epsilon = {printed(spent)} at delta = "
        f"{plan.delta:g}, for {NEIGHBOURS[plan.unit, plan.adjacency]} (unit {plan.unit}, {plan.adjacency}), "
        f"trust local, accountant numerical clone bound; provided that {'; '.join(assumptions)}. "
        "This run has no shuffler: it is what one would add, and no guarantee against its server."
    )
    return {
        "observer": OBSERVER,
        "epsilon": spent,
        "delta": plan.delta,
        "unit": plan.unit,
        "adjacency": plan.adjacency,
        "accountant": "numerical clone bound",
        "assumptions": assumptions,
        "words": words,
    }
