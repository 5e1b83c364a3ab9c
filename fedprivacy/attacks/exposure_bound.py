"""The exposure of a secret among its candidates, and the most of it that a guarantee allows.

A secret s, drawn uniformly from a set R, is in the text of one client. An attacker who knows all but s orders
R by the model, the most likely first; the exposure is log2 |R| - log2 rank(s), from 0 to log2 |R| bits.

The bound. Let M(s) be the model if s is in the client's text, and s' another uniform draw. Texts with s and
with s' are neighbours: one client's records are changed. "The rank of s is at most k" is a test of M(s)
against M(s'), and with T the trade-off curve of these neighbours (the largest TPR at an FPR, 1 - f of Dong,
Roth and Su 2022)

    P[rank of s in M(s) <= k]  <=  T(P[rank of s in M(s') <= k])    for each s and s'
                               <=  T(k / |R|)                       on average over s and s',

the second since T is concave (Jensen) and M(s') does not depend on s, which then has each rank with the
probability 1 / |R|; candidates as likely as s count as before it, so ties only help. The mean exposure is a
sum by parts,

    E[log2 |R| - log2 rank]  =  sum over k < |R| of P[rank <= k] log2((k + 1) / k)
                             <=  sum over k < |R| of T(k / |R|) log2((k + 1) / k).

Without any training on s, T(x) = x, and the sum is 1 / ln 2 = 1.44 bits for large R; the median is 1 bit.
The bound holds for any order of R, however often s is in the client's text, and for the mean over secrets of
different clients, since it holds for each of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedprivacy.attacks.bounds import STEPS, curves_of_ledger
from fedprivacy.attacks.tradeoff import TradeOff
from fedprivacy.documents.quality import ExposureBound

OBSERVER = "outsider"  # who sees the final model alone, as the ranking of secrets does


def exposure(likely: NDArray[np.float64], secret: int) -> float:
    """The exposure of a secret: log2 of all candidates less log2 of its rank, in bits.

    Args:
        likely: The log-likelihood of each candidate, shape (candidates,).
        secret: The secret's place among them. Those as likely as it, or that are no number, are before it.
    """
    rank = len(likely) - int((likely < likely[secret]).sum())
    return math.log2(len(likely)) - math.log2(rank)


def mean_exposure_bound(curve: TradeOff | None, candidates: int) -> float:
    """The largest mean exposure of a secret that neighbours' trade-off curve allows, in bits.

    Args:
        curve: Between texts with one secret and with another; None: anything is possible.
        candidates: |R|.
    """
    if curve is None:
        return math.log2(candidates)
    ranks = np.arange(1, candidates)
    return float(np.minimum(curve.tpr(ranks / candidates), 1.0) @ np.log2((ranks + 1) / ranks))


def chance_exposure(candidates: int) -> float:
    """The mean exposure of a secret that the model has not seen, in bits: 1.44 for many candidates."""
    ranks = np.arange(1, candidates)
    return float(ranks / candidates @ np.log2((ranks + 1) / ranks))


def bound_of_ledger(ledger: Mapping[str, Any], candidates: int) -> ExposureBound | None:
    """The largest mean exposure that a run's ledger allows whoever sees the final model alone.

    Args:
        ledger: As `Ledger.to_json` wrote it, from a live or a stored run.
        candidates: |R|.

    Returns:
        The tightest of the ledger's claims, with its assumptions; None where the run guarantees nothing for
        a whole client: a secret is in several records.
    """
    if ledger["unit"] != "client":
        return None
    steps = STEPS["client", ledger["adjacency"]]  # two: the client is taken away and put back changed
    bounds = []
    for neighbours, assumptions in curves_of_ledger(ledger, OBSERVER):
        if neighbours is not None:
            curve = neighbours.twice() if steps == 2 else neighbours
            bound = ExposureBound(
                bits=mean_exposure_bound(curve, candidates),
                observer=OBSERVER,
                adjacency=ledger["adjacency"],
                steps=steps,
                basis=neighbours.basis,
                assumptions=assumptions,
            )
            bounds.append(bound)
    return min(bounds, key=lambda bound: bound.bits, default=None)
