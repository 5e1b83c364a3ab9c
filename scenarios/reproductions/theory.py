"""Rows on theorems: composition, randomized response, and the variance of noise on integers."""

from __future__ import annotations

import math
from typing import Any

from dp_accounting import dp_event as dp

from fedprivacy.accounting.composition import advanced, basic, optimal
from fedprivacy.accounting.epsilon import epsilon, noise_multiplier
from fedprivacy.accounting.integer_sums import SkellamDpEvent
from fedprivacy.accounting.optimal_composition import PureDpEvent
from fedprivacy.mechanisms.bits import RandomizedResponse
from fedprivacy.mechanisms.skellam import Skellam
from scenarios.reproductions.row import Measured, Place, Row

DELTA, ADJACENCY = 1e-5, "zero-out"
_STEPS = 10**12


def central_variance(target: float) -> float:
    """Returns the variance of central Gaussian noise, in units of C^2, by Renyi divergences.

    At integer orders it is the limit of Skellam noise on integers so large that neither rounding nor their
    gaps matter.
    """

    def released(noise: float) -> SkellamDpEvent:
        return SkellamDpEvent(noise**2 * _STEPS, _STEPS, 1)

    return noise_multiplier(released, target, DELTA, ADJACENCY) ** 2


def calibrated(clients: int, dimension: int, epsilon: float, bits: int) -> Skellam:
    """Returns the noise of one release with no dropouts and no colluders."""
    return Skellam(1.0, 0.0, dimension, bits, clients, clients).calibrated(epsilon, DELTA, ADJACENCY)


def _skellam(place: Place) -> Measured:
    mechanism = calibrated(100, 256, 4.0, 16)
    ratio = mechanism.variance(100) / central_variance(4.0)
    return Measured(ratio, _cost(mechanism.event("server"), DELTA, ADJACENCY))


def _cost(event: dp.DpEvent, delta: float, adjacency: str = "replace-one") -> dict[str, Any]:
    """The epsilon that the ledger states for the setting, which may be less than a theorem's."""
    spent = epsilon(event, delta, adjacency)
    return {
        "observer": "server",
        "epsilon": spent.epsilon,
        "delta": delta,
        "unit": "client",
        "adjacency": adjacency,
        "accountant": spent.accountant,
    }


def _hundred(bound: float, delta: float) -> Measured:
    """A theorem's bound on 100 releases of epsilon 0.1."""
    return Measured(bound, _cost(dp.SelfComposedDpEvent(PureDpEvent(0.1), 100), delta))


def _truthful(place: Place) -> Measured:
    mechanism = RandomizedResponse.from_gamma(0.25)
    return Measured(mechanism.epsilon, _cost(mechanism.event(), 0.0))


ROWS = (
    Row(
        "lectures-randomized-response",
        "A bit that is true three times in four is ln 3-private",
        "Warner 1965, in the lectures' form",
        "epsilon",
        math.log(3),
        math.log(3),
        1e-9,
        1,
        _truthful,
    ),
    Row(
        "lectures-basic-composition",
        "100 releases of epsilon 0.1: epsilons add up",
        "Dwork and Roth 2014, Theorem 3.16",
        "epsilon",
        10.0,
        10.0,
        1e-9,
        1,
        lambda place: _hundred(*basic(0.1, 0.0, 100)),
    ),
    Row(
        "lectures-advanced-composition",
        "100 releases of epsilon 0.1, at delta 1e-5",
        "Dwork, Rothblum and Vadhan 2010",
        "epsilon",
        5.85,
        5.85,
        0.005,
        1,
        lambda place: _hundred(*advanced(0.1, 0.0, 100, DELTA)),
    ),
    Row(
        "optimal-composition",
        "100 releases of epsilon 0.1, at delta 1e-5, by the optimal theorem",
        "Kairouz, Oh and Viswanath 2015, Theorem 3.3",
        "epsilon",
        4.31,
        4.31,
        0.005,
        1,
        lambda place: _hundred(optimal(0.1, 0.0, 100, DELTA), DELTA),
    ),
    Row(
        "skellam-variance",
        "Skellam noise of 100 clients, 256 coordinates, 16 bits, epsilon 4: as little as central noise",
        "Agarwal, Kairouz and Liu 2021",
        "variance / central variance",
        1.0,
        1.0,
        0.005,
        5,
        _skellam,
    ),
)
