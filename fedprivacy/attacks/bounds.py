"""The bound that a guarantee puts on any attacker at a seat, shown with each attack's result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedprivacy.accounting.events import from_json
from fedprivacy.attacks.tradeoff import TradeOff, from_event, from_pairs
from fedprivacy.documents.roc import Curve
from fedprivacy.errors import InputError
from fedprivacy.guarantees.assumptions import TrainingAssumption
from fedprivacy.guarantees.statement import SEES

RATES = (0.1, 0.01, 0.001)  # the false positive rates at which attacks are reported

# The coin of the membership game includes or excludes one record of a client. Under each unit and adjacency
# this is a number of steps between neighbouring data sets; two steps cost group privacy of two. With unit
# "client" any other change of one client's records, or of its update, is as many.
STEPS = {
    ("client", "replace-one"): 1,
    ("client", "add-remove"): 2,
    ("client", "zero-out"): 2,
    ("example", "replace-one"): 1,
    ("example", "add-remove"): 1,
    ("example", "zero-out"): 1,
}
_WHY = {
    ("client", "replace-one"): (
        "a record in or out is a change of its client's records, which replace-one covers at the same epsilon"
    ),
    ("client", "add-remove"): (
        "a record in or out is two steps under add-remove, its client taken away and put back changed: the "
        "bound is that of two steps (group privacy)"
    ),
    ("client", "zero-out"): (
        "a record in or out is two steps under zero-out, its client's update zeroed and put back changed: "
        "the bound is that of two steps (group privacy)"
    ),
    ("example", "replace-one"): (
        "a record that is out is as one whose gradients are zero, which replace-one covers at that epsilon"
    ),
    ("example", "add-remove"): "a record in or out is one step",
    ("example", "zero-out"): "a record that is out counts as zero in every sum",
}


@dataclass(frozen=True)
class Bound:
    """The most that any attack at one seat can reach.

    Args:
        seat: "server", "participant" or "outsider".
        curve: The largest TPR at each FPR; None where nothing is guaranteed.
        assumptions: Those of the bound; where nothing is guaranteed, the reason.
    """

    seat: str
    curve: TradeOff | None
    assumptions: tuple[str, ...]

    @property
    def words(self) -> str:
        """The bound as one plain sentence."""
        if self.curve is None:
            return f"No guarantee against {SEES[self.seat]}: {self.assumptions[0]}."
        return (
            f"Whatever {SEES[self.seat]}, does with it: AUC at most {_up(self.curve.auc)}, balanced accuracy "
            f"at most {_up((1 + self.curve.advantage) / 2)}, TPR at 1 % FPR at most "
            f"{_up(float(self.curve.tpr(0.01)))}; provided that {'; '.join(self.assumptions)}."
        )

    def to_json(self) -> dict[str, Any]:
        """The bound as a JSON object, with points of its curve to be drawn; null without a guarantee."""
        curve = self.curve
        return {
            "advantage": None if curve is None else curve.advantage,
            "balanced_accuracy": None if curve is None else (1 + curve.advantage) / 2,
            "auc": None if curve is None else curve.auc,
            "tpr_at_fpr": None if curve is None else {f"{r:g}": float(curve.tpr(r)) for r in RATES},
            "curve": None if curve is None else _points(curve).to_json(),
            "basis": None if curve is None else curve.basis,
            "assumptions": list(self.assumptions),
            "words": self.words,
        }


def bound_of_pair(epsilon: float, delta: float, unit: str, adjacency: str, seat: str) -> Bound:
    """Bounds an attack by one (epsilon, delta): TPR <= e^epsilon FPR + delta, and its mirror image.

    Args:
        epsilon: At least 0.
        delta: In [0, 1].
        unit: "client" or "example".
        adjacency: "replace-one", "add-remove" or "zero-out".
        seat: "server", "participant" or "outsider".

    Raises:
        InputError: a value is out of range.
    """
    _check(seat, SEES, "seat")
    curve = from_pairs([(epsilon, delta)], f"epsilon = {epsilon:.4g} at delta = {delta:g}")
    return Bound(seat, *_for_a_record(curve, unit, adjacency))


def bound_of_ledger(ledger: Mapping[str, Any], seat: str) -> Bound:
    """The bound that a run's ledger implies for one seat; the tightest of its claims.

    Args:
        ledger: The JSON object that `Ledger.to_json` wrote, from a live or a stored run.
        seat: "server", "participant" or "outsider".

    Raises:
        InputError: no such seat, or the ledger is damaged.
        UnsupportedEvent: no accountant answers for one of its events.
    """
    try:
        unit, adjacency = ledger["unit"], ledger["adjacency"]
    except KeyError as error:
        raise InputError(f"the ledger is damaged: KeyError: {error}") from error
    bounds = [
        Bound(seat, None, assumptions)
        if curve is None
        else _of_a_record(seat, curve, assumptions, unit, adjacency)
        for curve, assumptions in curves_of_ledger(ledger, seat)
    ]
    return min(bounds, key=lambda bound: 2.0 if bound.curve is None else bound.curve.auc)


def curves_of_ledger(ledger: Mapping[str, Any], seat: str) -> list[tuple[TradeOff | None, tuple[str, ...]]]:
    """The curve between neighbours of each claim of a run's ledger for one seat, with its assumptions.

    Where a claim guarantees nothing the curve is None, and the first assumption is the reason.

    Args:
        ledger: The JSON object that `Ledger.to_json` wrote, from a live or a stored run.
        seat: "server", "participant" or "outsider".

    Raises:
        InputError: no such seat, or the ledger is damaged.
        UnsupportedEvent: no accountant answers for one of its events.
    """
    _check(seat, SEES, "seat")
    try:
        claims = [claim for claim in ledger["claims"] if claim["observer"] == seat]
        curves = [_curve(claim, ledger["adjacency"]) for claim in claims]
    except (KeyError, TypeError) as error:
        raise InputError(f"the ledger is damaged: {type(error).__name__}: {error}") from error
    if not curves:
        raise InputError(f"the ledger is damaged: it says nothing of the {seat}.")
    return curves


def _curve(claim: Mapping[str, Any], adjacency: str) -> tuple[TradeOff | None, tuple[str, ...]]:
    assumptions: Sequence[str] = claim["assumptions"]
    curve = None
    if claim["event"] is not None:
        curve = from_event(from_json(claim["event"]), adjacency)
        if curve is None:
            assumptions = (str(TrainingAssumption.NOISE_IS_ZERO), *assumptions)
    return curve, tuple(assumptions)


def _of_a_record(
    seat: str, curve: TradeOff | None, assumptions: tuple[str, ...], unit: str, adjacency: str
) -> Bound:
    if curve is None:
        return Bound(seat, None, assumptions)
    curve, steps = _for_a_record(curve, unit, adjacency)
    return Bound(seat, curve, (*steps, *assumptions))


def _for_a_record(curve: TradeOff, unit: str, adjacency: str) -> tuple[TradeOff, tuple[str, ...]]:
    """The curve for one record's membership, and how it follows from that of neighbours."""
    _check((unit, adjacency), STEPS, "(unit, adjacency)")
    steps = STEPS[unit, adjacency]
    return (curve.twice() if steps == 2 else curve), (_WHY[unit, adjacency],)


def _check(value: object, known: Mapping[Any, Any], name: str) -> None:
    if value not in known:
        raise InputError(f"{name} = {value!r}: must be one of {', '.join(map(str, known))}.")


def _points(curve: TradeOff) -> Curve:
    """Points for linear and logarithmic axes, from FPR 0 to 1."""
    fpr = np.unique(np.concatenate([[0.0], np.geomspace(1e-4, 1.0, 61), np.linspace(0.0, 1.0, 41)]))
    # Rounding may leave the TPR at a corner an ulp below, or above 1; a curve that falls is refused.
    tpr = np.maximum.accumulate(np.minimum(curve.tpr(fpr), 1.0))
    return Curve(fpr=tuple(fpr.tolist()), tpr=tuple(tpr.tolist()))


def _up(rate: float) -> str:
    """A rate rounded up to three places, so that the print does not promise too much."""
    return f"{min(1.0, np.ceil(rate * 1000 - 1e-6) / 1000):.3f}"
