"""The bound on reconstruction: how often any attacker picks the right record, by the ledger's curve.

Reconstruction robustness (Balle, Cherubini and Hayes 2022, "Reconstructing training data with informed
adversaries"; as a trade-off curve Hayes, Mahloujifar and Balle 2023, "Bounding training data
reconstruction in DP-SGD"). A record z is drawn from a prior, the attacker knows everything else and
succeeds if its guess lies in the ball of z that counts as success. Write kappa for the largest prior mass of
the records whose balls hold any one guess. Without the record the attacker succeeds with at most kappa,
since its guess does not depend on z then; so with it, as the largest TPR is a concave function of the FPR,

    P(success) <= T(kappa) = 1 - f(kappa),    for Gaussian DP  Phi(Phi^-1(kappa) + mu).

The reference is a neighbour of the data by the guarantee itself: the record, or its client, away, zeroed or
replaced by a fixed one. That is one step under every unit and adjacency, while membership of a record may be
two. Curves of sampled mechanisms differ by direction; those of `tradeoff` are of the worse one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedprivacy.attacks.bounds import curves_of_ledger
from fedprivacy.attacks.tradeoff import TradeOff
from fedprivacy.attacks.trials import Ceiling
from fedprivacy.errors import InputError

_WHY = {
    "client": "the attacker knows all but one record, whose client is one step from a reference without it",
    "example": "the attacker knows all but one record, which is one step from a reference without it",
}


def success_bound(curve: TradeOff, prior: float) -> float:
    """The largest probability of a success that has probability `prior` at most without the record.

    Args:
        curve: The largest TPR at each FPR, between neighbours.
        prior: kappa, in (0, 1].

    Raises:
        InputError: the prior is out of range.
    """
    if not 0 < prior <= 1:
        raise InputError(f"prior = {prior}: must be above 0 and at most 1. It is the largest mass of a ball.")
    return min(1.0, float(curve.tpr(prior)))


def bound_of_ledger(ledger: Mapping[str, Any], seat: str, prior: float) -> Ceiling:
    """The bound that a run's ledger implies for one seat; the tightest of its claims.

    Args:
        ledger: The JSON object that `Ledger.to_json` wrote, from a live or a stored run.
        seat: "server", "participant" or "outsider".
        prior: kappa, in (0, 1].

    Raises:
        InputError: no such seat, a prior out of range, or the ledger is damaged.
        UnsupportedEvent: no accountant answers for one of its events.
    """
    curves = curves_of_ledger(ledger, seat)
    if ledger.get("unit") not in _WHY:
        raise InputError(f"the ledger is damaged: unit = {ledger.get('unit')!r}.")
    why = _WHY[ledger["unit"]]
    bounds = [
        Ceiling(None, assumptions)
        if curve is None
        else Ceiling(success_bound(curve, prior), (why, *assumptions), curve.basis)
        for curve, assumptions in curves
    ]
    return min(bounds, key=lambda bound: 2.0 if bound.success is None else bound.success)


def mass_of_guesses(guesses: int, pictures: int) -> float:
    """kappa of a uniform prior over pictures, where one of several guesses has to be right.

    Args:
        guesses: The number of pictures that the attacker rebuilds, each in the ball of one picture at most.
        pictures: The number of pictures that the prior draws from.
    """
    return min(1.0, guesses / pictures)
