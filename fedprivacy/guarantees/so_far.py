"""The epsilon so far: the cost of the first rounds of a plan, for each observer.

It bounds the releases up to a round that was chosen beforehand. A user who stops a run after a look at it has
chosen the round by the data, and the whole plan is charged (`fedprivacy.guarantees.charge`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from fedprivacy.guarantees.ledger import Ledger
from fedprivacy.guarantees.remote_nodes import SIMULATION, Stated
from fedprivacy.guarantees.statement import guarantees, printed
from fedprivacy.plan.privacy_plan import Plan

Epsilons = Mapping[str, float | None]
OnRound = Callable[[dict[str, Any]], None]
SO_FAR = "epsilon_so_far"  # the key of an `EpsilonSoFar` in the events for displays
GROWTH = 1.25  # from one accounted number of rounds to the next
SHARE = 0.1  # of the time of training, that accounting may take


def epsilons_after(
    plan: Plan,
    rounds: int,
    *,
    held: bool = True,
    stated: Stated = SIMULATION,
    least_shares: int | None = None,
) -> dict[str, float | None]:
    """Returns the epsilon of the first rounds against each observer, None where there is none.

    Args:
        plan: The plan of the run.
        rounds: How many of its rounds.
        held: Whether the clients hold a plan of their own (`Ledger`).
        stated: The submitter's statements about remote nodes.
        least_shares: The least number of noise shares in a sum of them, where it is known.
    """
    counts = {min(rounds, plan.answers): plan.population} if plan.distrusts_server else None
    ledger = Ledger(plan, held=held, stated=stated, counts=counts)
    ledger.rounds, ledger.least_shares = rounds, least_shares
    return {each.observer: each.epsilon for each in guarantees(ledger.to_json())}


class EpsilonSoFar:
    """Bounds the epsilon so far while a run trains, for displays.

    Args:
        plan: The plan of the run.
        whole: Whether the whole plan is charged from the first round on, as with early stopping.
        remote: Of a run on remote nodes, its submitter's statements; None: a simulation.
    """

    def __init__(self, plan: Plan, *, whole: bool = False, remote: Stated | None = None) -> None:
        self._plan, self._whole, self._remote = plan, whole, remote
        self._began, self._accounting = time.perf_counter(), 0.0
        self._to, self._epsilons = 0, dict[str, float | None]()

    def after(self, rounds: int) -> Epsilons | None:
        """Returns a bound for each observer, that of some more rounds; None where none is known in time.

        After the first bound, accounting begins only while it has taken at most a tenth of the time.
        """
        if rounds > self._to:
            start = time.perf_counter()
            if self._accounting > SHARE * (start - self._began):
                return None
            self._to = self._plan.rounds if self._whole else min(self._plan.rounds, int(GROWTH * rounds) + 1)
            held, stated = self._remote is None, self._remote or SIMULATION
            self._epsilons = epsilons_after(self._plan, self._to, held=held, stated=stated)
            self._accounting += time.perf_counter() - start
        return self._epsilons

    @property
    def terms(self) -> str:
        """The terms of each epsilon, as "delta 1e-05, client, replace-one"."""
        return f"delta {self._plan.delta:g}, {self._plan.unit}, {self._plan.adjacency}"


def with_epsilon(
    on_round: OnRound | None, plan: Plan, *, whole: bool, remote: Stated | None = None
) -> OnRound | None:
    """Returns a display of rounds whose events have an `EpsilonSoFar` too, which accounts only if asked.

    Args:
        on_round: Called with each round's event; None: nothing is.
        plan: As of `EpsilonSoFar`.
        whole: As of `EpsilonSoFar`.
        remote: As of `EpsilonSoFar`.
    """
    if on_round is None:
        return None
    so_far = EpsilonSoFar(plan, whole=whole, remote=remote)
    return lambda event: on_round({**event, SO_FAR: so_far})


def message(event: Mapping[str, Any]) -> str:
    """Words the epsilon so far of a round's event, with its observers and terms; empty without one."""
    so_far: EpsilonSoFar | None = event.get(SO_FAR)
    epsilons = None if so_far is None else so_far.after(event["round"] + 1)
    if so_far is None or not epsilons or all(value is None for value in epsilons.values()):
        return ""
    against: dict[str, list[str]] = {}
    for observer, value in epsilons.items():
        bound = "no guarantee" if value is None else f"epsilon at most {printed(value, 3)}"
        against.setdefault(bound, []).append(observer)
    bounds = "; ".join(f"{', '.join(observers)}: {bound}" for bound, observers in against.items())
    return f"so far, for rounds fixed beforehand: {bounds} ({so_far.terms})"


def rounds_within(plan: Plan, epsilon: float) -> int:
    """Returns the most rounds of a plan that cost each observer with a guarantee at most this epsilon.

    Args:
        plan: The plan of all rounds.
        epsilon: The limit, positive.

    Returns:
        Between 0, where a single round costs more, and the plan's own number.
    """

    def fits(rounds: int) -> bool:
        spent = [value for value in epsilons_after(plan, rounds).values() if value is not None]
        return max(spent, default=0.0) <= epsilon

    if fits(plan.rounds):
        return plan.rounds
    fit, too_many = 0, plan.rounds
    while too_many - fit > 1:
        middle = (fit + too_many) // 2
        fit, too_many = (middle, too_many) if fits(middle) else (fit, middle)
    return fit
