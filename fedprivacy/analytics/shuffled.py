"""What local answers would cost behind a shuffler: an optional accounting, with its assumptions."""

from __future__ import annotations

import math
from typing import Any

from fedprivacy.accounting.shuffle import ASSUMPTIONS, shuffled_epsilon
from fedprivacy.accounting.statement import NEIGHBOURS, printed
from fedprivacy.analytics.ledger import TRUTH_HIDDEN
from fedprivacy.analytics.plan import StatisticsPlan

OBSERVER = "whoever sees the answers of all clients in random order, and no more"


def shuffled(plan: StatisticsPlan) -> dict[str, Any]:
    """The amplified epsilon of all queries, by the clone bound of Feldman, McMillan and Talwar 2021.

    Each query has its share of delta, and their epsilons add up.

    Args:
        plan: A local plan with a delta above 0.

    Raises:
        InputError: there are too many clients, or delta is too small for the bound.
    """
    share = plan.delta / len(plan.asks)
    each = [
        shuffled_epsilon(ask.mechanism.epsilon, plan.population, share)
        for ask in plan.asks
        if ask.mechanism is not None
    ]
    spent = math.fsum(each)
    assumptions = [*ASSUMPTIONS, TRUTH_HIDDEN]
    words = (
        f"If answers were shuffled: against {OBSERVER}, at most epsilon = {printed(spent)} at delta = "
        f"{plan.delta:g}, for {NEIGHBOURS[plan.adjacency]} (unit {plan.unit}, {plan.adjacency}), trust "
        f"local, accountant numerical clone bound; provided that {'; '.join(assumptions)}. "
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
