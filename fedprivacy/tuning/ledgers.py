"""What a choice of hyperparameters released to whom, as ledgers: as it was made, and the naive way."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dp_accounting import dp_event as dp

from fedprivacy.accounting.events import from_json, to_json
from fedprivacy.guarantees.ledger import Ledger
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.scenario.tune.sections import SHAPES, ExponentialTune, StoppingTune, Tune
from fedprivacy.tuning.repetitions import Repetitions
from fedprivacy.tuning.scores import NoisyScore, by_clients
from fedprivacy.tuning.selection import PrivateSelection

SENT_ALL = (
    "each client that takes part is sent the models of all tries, and how many there are is drawn: there is "
    "no bound on what it sees"
)
BEST_ALONE = (
    "only the best try is shown, with its score: neither another one nor how many there were (but that there "
    "was none, where none was), which how long it took gives away too"
)
FAILS_LAST = (
    "a try in which all clients failed in some round is the worst of all, and whether all do tells nothing"
)
CHOICE_ALONE = "of the clients' scores of the candidates only the choice is shown"
PUBLIC_SPLIT = "the public split is nobody's, and the choice was made on it alone"
PUBLIC_SPLIT_IS = "the public split, on which the candidates were trained, is nobody's"
ALL_TOLD = "every candidate is run once and shown with its score"
_ONCE = Repetitions(1.0, 1.0)


def law_of(tune: StoppingTune) -> Repetitions:
    """The law of the number of tries."""
    return Repetitions(tune.tries, SHAPES[tune.law])


def chosen_ledger(
    tune: Tune, plans: Sequence[Plan], chosen: int | None, *, tested: bool = False
) -> dict[str, Any]:
    """The ledger of the choice as it is made, its training included.

    Args:
        tune: How it is made.
        plans: Of each candidate.
        chosen: Which is trained on the clients; None where no try was drawn: all cost the same.
        tested: Whether held-out records belong to clients.

    Raises:
        InputError: where clients' records choose, the candidates do not cost the same.
    """
    base = Ledger(plans[chosen or 0], tested=tested).in_advance().to_json()
    selection = PrivateSelection(len(plans), law_of(tune) if isinstance(tune, StoppingTune) else _ONCE)
    if isinstance(tune, StoppingTune):
        event = selection.event([_scored(plan, tune) for plan in plans], base["adjacency"])
        ledger = _changed(base, lambda _: event, [BEST_ALONE, FAILS_LAST])
        for claim in ledger["claims"]:
            if claim["observer"] == "participant":
                claim |= {"event": None, "assumptions": [SENT_ALL]}
        return ledger
    if isinstance(tune, ExponentialTune):
        selection.event([plan.event() for plan in plans], base["adjacency"])  # which refuses what differs
        choice = by_clients(tune.epsilon, base["adjacency"]).event()
        return _changed(
            base, lambda event: dp.ComposedDpEvent([choice, event]), [CHOICE_ALONE, PUBLIC_SPLIT_IS]
        )
    return _changed(base, lambda event: event, [PUBLIC_SPLIT])


def naive_ledger(
    tune: Tune, plans: Sequence[Plan], chosen: int | None, *, tested: bool = False
) -> dict[str, Any]:
    """The ledger of the naive way: all candidates run on the clients, and told.

    Args:
        tune: How the choice is made instead.
        plans: Of each candidate.
        chosen: Which is trained on the clients; None where no try was drawn: all cost the same.
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
    return _changed(base, lambda _: dp.ComposedDpEvent(each), [ALL_TOLD])


def _scored(plan: Plan, tune: StoppingTune) -> dp.DpEvent:
    return dp.ComposedDpEvent([plan.event(), NoisyScore(tune.score_noise).event()])


def _changed(
    base: Mapping[str, Any], event_of: Callable[[dp.DpEvent], dp.DpEvent], assumptions: Sequence[str]
) -> dict[str, Any]:
    """A ledger of one training with another event, and more assumptions, where there is a claim."""
    ledger = copy.deepcopy(dict(base))
    for claim in ledger["claims"]:
        if claim["event"] is not None:
            claim["event"] = to_json(event_of(from_json(claim["event"])))
            claim["assumptions"] = [*claim["assumptions"], *assumptions]
    return ledger
