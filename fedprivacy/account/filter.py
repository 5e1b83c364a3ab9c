"""The filter of an account: which adaptively chosen plans may still be run under one (epsilon, delta).

The user of an account chooses each plan after seeing the results of earlier ones. Composition of plans that
were fixed beforehand does not cover that: the epsilon of "all so far", taken at a number of runs that depends
on results, is no guarantee. A filter is: its limit is fixed before the first plan.

**Theorem** (Feldman and Zrnic 2021, "Individual privacy accounting via a Renyi filter", Theorem 4.3; for zCDP
Whitehouse, Ramdas, Rogers and Wu 2023). Fix an order alpha > 1 and a budget B. Let mechanism t be chosen
by all earlier outputs, and let rho_t bound the Renyi divergence of order alpha of its output between
neighbouring data sets, in both directions, given these outputs. If a mechanism runs only while
rho_1 + ... + rho_t <= B, then all outputs together have a divergence of at most B, however many ran.

The order has to be one, and fixed: the best order for the plans that ran depends on their outputs. Here it
follows from the policy alone. B is the largest divergence of this order that converts to the policy's
epsilon at its delta, by the conversion of `accounting.renyi`. So the claim is the policy's (epsilon, delta),
also while little is spent, and never the epsilon of what is spent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from dp_accounting import dp_event as dp

from fedprivacy.errors import InputError

LEAST_BUDGET = 1e-6  # of divergence: an order with less admits nothing that anybody would run


@dataclass(frozen=True)
class RenyiFilter:
    """Admits adaptively chosen releases while their divergences at one order stay within a budget.

    Args:
        epsilon: Of the policy, above 0.
        delta: Of the policy, in (0, 1).
        order: The order of the divergence, fixed before the first release; one of `renyi.ORDERS`.
    """

    epsilon: float
    delta: float
    order: float

    @classmethod
    def of_policy(cls, epsilon: float, delta: float, order: float | None = None) -> RenyiFilter:
        """Makes the filter of a policy.

        Args:
            epsilon: Above 0.
            delta: In (0, 1).
            order: The order; None: the one at which the most Gaussian releases fit, whatever their noise.

        Raises:
            InputError: a number is out of range, or at the order nothing fits.
        """
        if not 0 < epsilon < math.inf:
            raise InputError(f"--epsilon {epsilon:g}: must be a finite number above 0.")
        if not 0 < delta < 1:
            raise InputError(
                f"--delta {delta:g}: must be above 0 and below 1, since an account of adaptively chosen "
                "runs has no pure epsilon. 1e-5 is usual."
            )
        from fedprivacy.accounting.renyi import ORDERS

        if order is None:
            # The divergence of a Gaussian release is proportional to the order.
            filters = (cls(epsilon, delta, each) for each in ORDERS)
            best = max(filters, key=lambda each: each.budget / each.order)
        elif order in ORDERS:
            best = cls(epsilon, delta, order)
        else:
            near = sorted(ORDERS, key=lambda each: abs(each - order) if math.isfinite(order) else each)[:2]
            raise InputError(
                f"--order {order:g}: not among the orders that are computed. Leave it out, or take one "
                f"nearby: {' or '.join(f'{each:g}' for each in sorted(near))}."
            )
        if best.budget < LEAST_BUDGET and order is None:
            raise InputError(
                f"--epsilon {epsilon:g} with --delta {delta:g}: nothing fits at any order. Choose more."
            )
        if best.budget < LEAST_BUDGET:
            raise InputError(
                f"--order {best.order:g}: at this order nothing fits epsilon = {epsilon:g} at delta = "
                f"{delta:g}. Leave it out, and the best one is chosen."
            )
        return best

    @cached_property
    def budget(self) -> float:
        """The largest divergence at the order that converts to the policy's epsilon, rounded down."""
        from fedprivacy.accounting.renyi import renyi_epsilon_at

        low, high = 0.0, 1.0
        while renyi_epsilon_at(self.order, high, self.delta) <= self.epsilon:
            low, high = high, 2 * high
        while (middle := (low + high) / 2) not in (low, high):
            if renyi_epsilon_at(self.order, middle, self.delta) <= self.epsilon:
                low = middle
            else:
                high = middle
        return low

    def cost(self, events: Sequence[dp.DpEvent], adjacency: str) -> float:
        """Bounds the divergence, at the order, of a release that is one of several, unknown which.

        Args:
            events: The releases that it may be.
            adjacency: "replace-one", "add-remove" or "zero-out".

        Returns:
            The largest bound; infinite where one of them has no privacy.

        Raises:
            UnsupportedEvent: no bound is known for one of them.
        """
        from fedprivacy.accounting.renyi import renyi_divergence

        return max(renyi_divergence(event, self.order, adjacency) for event in events)

    def admits(self, costs: Iterable[float]) -> bool:
        """Whether releases of these divergences, in whatever way they are chosen, stay within the budget."""
        return math.fsum(costs) <= self.budget
