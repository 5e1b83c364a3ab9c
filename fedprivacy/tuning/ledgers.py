"""Ledgers of a choice of hyperparameters: of the private choice, and of the naive one."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dp_accounting import dp_event as dp

from fedprivacy.accounting.events import from_json, to_json
from fedprivacy.guarantees.ledger import Ledger
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.scenario.tune.sections import SHAPES, ExponentialTune, StoppingTune, Tune
from fedprivacy.tuning.assumptions import TuningAssumption
from fedprivacy.tuning.repetitions import Repetitions
from fedprivacy.tuning.scores import NoisyScore, by_clients
from fedprivacy.tuning.selection import PrivateSelection

_ONCE = Repetitions(1.0, 1.0)


def law_of(tune: StoppingTune) -> Repetitions:
    """The law of the number of tries."""
    return Repetitions(tune.tries, SHAPES[tune.law])


def chosen_ledger(
    tune: Tune, plans: Sequence[Plan], chosen: int | None, *, tested: bool = False
) -> dict[str, Any]:
    """The ledger of the choice by its method, training included.

    Args:
        tune: The method of the choice.
        plans: Of each candidate.
        chosen: The candidate trained on the clients; None if no try was drawn: all cost the same.
        tested: Whether held-out records belong to clients.

    Raises:
        InputError: where clients' records choose, the candidates do not cost the same.
    """
    base = Ledger(plans[chosen or 0], tested=tested).in_advance().to_json()
    selection = PrivateSelection(len(plans), law_of(tune) if isinstance(tune, StoppingTune) else _ONCE)
    if isinstance(tune, StoppingTune):
        event = selection.event([_scored(plan, tune) for plan in plans], base["adjacency"])
        ledger = _changed(base, lambda _: event, [TuningAssumption.BEST_ALONE, TuningAssumption.FAILS_LAST])
        # Clients are sent the models of every try, so the theorem about the best one covers no participant.
        for claim in ledger["claims"]:
            if claim["observer"] == "participant":
                claim |= {"event": None, "assumptions": [str(TuningAssumption.SENT_ALL)]}
        return ledger
    if isinstance(tune, ExponentialTune):
        selection.event(
            [plan.event() for plan in plans], base["adjacency"]
        )  # raises if the candidates differ in cost
        choice = by_clients(tune.epsilon, base["adjacency"]).event()
        return _changed(
            base,
            lambda event: dp.ComposedDpEvent([choice, event]),
            [TuningAssumption.CHOICE_ALONE, TuningAssumption.PUBLIC_CANDIDATES],
        )
    return _changed(base, lambda event: event, [TuningAssumption.PUBLIC_CHOICE])


def naive_ledger(
    tune: Tune, plans: Sequence[Plan], chosen: int | None, *, tested: bool = False
) -> dict[str, Any]:
    """The ledger of the naive way: all candidates run on the clients, and all results shown.

    Args:
        tune: How the choice is made instead.
        plans: Of each candidate.
        chosen: The candidate trained on the clients; None if no try was drawn: all cost the same.
        tested: Whether held-out records belong to clients.
    """
    base = Ledger(plans[chosen or 0], tested=tested).in_advance().to_json()
    if isinstance(tune, ExponentialTune):
        score = by_clients(tune.epsilon, base["adjacency"]).event()
        each = [dp.ComposedDpEvent([score, plan.event()]) for plan in plans]
    elif isinstance(tune, StoppingTune):
        each = [_scored(plan, tune) for plan in plans]
    else:
        each = [plan.event() for plan in plans]
    return _changed(base, lambda _: dp.ComposedDpEvent(each), [TuningAssumption.ALL_SHOWN])


def _scored(plan: Plan, tune: StoppingTune) -> dp.DpEvent:
    return dp.ComposedDpEvent([plan.event(), NoisyScore(tune.score_noise).event()])


def _changed(
    base: Mapping[str, Any], event_of: Callable[[dp.DpEvent], dp.DpEvent], assumptions: Sequence[str]
) -> dict[str, Any]:
    """A copy of a training's ledger with another event and more assumptions in each claim."""
    ledger = copy.deepcopy(dict(base))
    for claim in ledger["claims"]:
        if claim["event"] is not None:
            claim["event"] = to_json(event_of(from_json(claim["event"])))
            claim["assumptions"] = [*claim["assumptions"], *map(str, assumptions)]
    return ledger
