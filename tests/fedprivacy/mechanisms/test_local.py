"""The local randomisers of updates, besides what `test_claims.py` holds every mechanism to."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from fedprivacy.accounting.epsilon import epsilon
from fedprivacy.mechanisms.privunit import PrivUnitG, best_cap
from fedprivacy.mechanisms.signs import SignBits
from fedprivacy.mechanisms.sqkr import SQKR, hadamard
from fedprivacy.seeds import Streams


@pytest.mark.parametrize("target", [1.0, 6.0])
def test_lifting_a_direction_costs_little_for_a_full_update(target: float) -> None:
    lifted, normalised = (PrivUnitG(2.0, target, each).error(24) for each in ("lifted", "normalised"))
    assert lifted < 1.1 * normalised


@pytest.mark.parametrize("target", [0.01, 1.0, 8.0, 25.0])
def test_privunit_spends_exactly_its_epsilon(target: float) -> None:
    """The density of one output under two directions differs by the odds of cap and rest at most."""
    cap = best_cap(target, 1000)
    tail = stats.norm.sf(cap.threshold)
    ratio = (cap.probability / tail) / ((1 - cap.probability) / (1 - tail))
    assert math.log(ratio) == pytest.approx(target, rel=1e-9)


@pytest.mark.parametrize("size", [1, 2, 8, 64, 1024])
def test_the_hadamard_transform_is_an_orthonormal_involution_that_spreads(size: int) -> None:
    vector = np.random.default_rng(1).normal(size=size)
    turned = hadamard(vector)
    assert np.allclose(hadamard(turned), vector)
    assert np.linalg.norm(turned) == pytest.approx(np.linalg.norm(vector))
    assert np.allclose(np.abs(hadamard(np.eye(size)[0])), 1 / math.sqrt(size))


def test_sign_bits_refuse_an_update_that_they_are_not_accounted_for() -> None:
    with pytest.raises(ValueError, match="accounted for 4"):
        SignBits(1.0, 1.5, 4).randomise(np.zeros(5), Streams(1).stream("x"))


def test_what_a_message_costs() -> None:
    cost = {
        mechanism.name: epsilon(mechanism.event(), 1e-9, "replace-one").epsilon
        for mechanism in (PrivUnitG(1.0, 2.0), SQKR(1.0, 2.0), SignBits(1.0, 0.5, 3))
    }
    assert cost == pytest.approx({"privunit": 2.0, "sqkr": 2.0, "sign-bits": 1.5}, rel=1e-6)
