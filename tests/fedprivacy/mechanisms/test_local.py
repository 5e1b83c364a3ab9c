"""The local randomisers of updates, besides what `test_claims.py` holds every mechanism to."""

from __future__ import annotations

import math

import numpy as np
import pytest
from claims import CLAIMS
from scipy import stats

from fedprivacy.accounting.epsilon import epsilon
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.mechanisms.local import LOCAL, LocalMechanism, local_class
from fedprivacy.mechanisms.privunit import PrivUnitG, best_cap
from fedprivacy.mechanisms.rotation import hadamard
from fedprivacy.mechanisms.signs import SignBits
from fedprivacy.mechanisms.sqkr import SQKR
from fedprivacy.randomness.streams import Streams

MECHANISMS = [  # `test_claims` names a mechanism that has no entry there
    each for kind in map(local_class, LOCAL) if kind.name in CLAIMS for each in CLAIMS[kind.name].instances
]


def clipped(clipping_norm: float, dimension: int) -> np.ndarray:
    """Updates of norms 0, C, C by rounding, and in between, and one whose norm is 0 by underflow."""
    rows = np.random.default_rng(3).normal(size=(40, dimension))
    rows *= np.linspace(0.0, clipping_norm, 40)[:, None] / np.linalg.norm(rows, axis=1, keepdims=True)
    rows[1], rows[2], rows[3] = 0.0, 1e-200, 0.0
    rows[3, -1] = clipping_norm
    return rows


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


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_messages_of_a_chunk_are_those_of_its_clients_alone(mechanism: LocalMechanism) -> None:
    dimension = CLAIMS[mechanism.name].dimension(mechanism)
    updates = clipped(mechanism.clipping_norm, dimension)
    together = mechanism.randomise_all(updates, Streams(1).streams("x", range(40)))
    alone = [mechanism.randomise(row, Streams(1).stream("x", member=m)) for m, row in enumerate(updates)]
    assert np.isfinite(together).all()
    assert together == pytest.approx(np.stack(alone), rel=1e-9, abs=1e-9)
    assert mechanism.randomise_all(updates[:0], iter(())).shape == (0, dimension)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_each_client_of_a_chunk_needs_a_stream(mechanism: LocalMechanism) -> None:
    dimension = CLAIMS[mechanism.name].dimension(mechanism)
    with pytest.raises(ValueError, match="shorter"):
        mechanism.randomise_all(np.zeros((3, dimension)), Streams(1).streams("x", range(2)))


@pytest.mark.parametrize("direction", ["lifted", "normalised"])
def test_privunit_is_the_algorithm_of_its_paper(direction: str) -> None:
    """Client by client, with another library's inverse of the truncated normal distribution."""
    mechanism = PrivUnitG(2.0, 3.0, direction)
    updates = clipped(2.0, 24)
    messages = mechanism.randomise_all(updates, Streams(1).streams("x", range(40)))
    for number, (update, message) in enumerate(zip(updates, messages, strict=True)):
        stream, unit = Streams(1).stream("x", member=number), update / 2.0
        if direction == "lifted":
            unit = np.append(unit, math.sqrt(max(0.0, 1.0 - unit @ unit)))
        elif unit @ unit == 0:
            unit = stream.standard_normal(24)
        unit = unit / np.linalg.norm(unit)
        cap = best_cap(3.0, len(unit))
        ends = (cap.threshold, math.inf) if stream.random() < cap.probability else (-math.inf, cap.threshold)
        level = 1.0 - stream.random()
        along = stats.truncnorm(*ends).isf(level) if ends[0] > 0 else stats.truncnorm(*ends).ppf(level)
        across = stream.standard_normal(len(unit))
        output = across - (across @ unit) * unit + along * unit
        assert message == pytest.approx(output[:24] * 2.0 / cap.mean, rel=1e-7, abs=1e-7)


def test_zero_updates_of_normalised_privunit_have_directions_of_their_own() -> None:
    """Messages of clients without a direction are uncorrelated with zero mean, as those of no one client are.

    The largest of 780 correlations of 5000 normal numbers: a false alarm in one of a million seeds.
    """
    messages = PrivUnitG(1.0, 12.0, "normalised").randomise_all(
        np.zeros((40, 5000)), Streams(1).streams("x", range(40))
    )
    correlations = np.corrcoef(messages)[np.triu_indices(40, 1)]
    assert np.abs(correlations).max() * math.sqrt(5000) < stats.norm.isf(1e-6 / 2 / 780)


def test_gaussian_messages_of_a_chunk_have_its_deviation() -> None:
    """A false alarm in one of a million seeds."""
    noise = Gaussian(2.0, 1.5).randomise_all(np.zeros((100, 300)), Streams(1).streams("x", range(100)))
    assert stats.kstest(noise.reshape(-1), "norm", args=(0, 3.0)).pvalue > 1e-6
