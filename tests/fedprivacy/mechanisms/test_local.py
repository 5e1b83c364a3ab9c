"""The local randomisers: their distribution, their error against published figures, their privacy."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from fedprivacy.accounting.epsilon import epsilon
from fedprivacy.audit import threshold_bound
from fedprivacy.mechanisms.catalogue import MECHANISMS
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.mechanisms.privunit import PrivUnitG, best_cap
from fedprivacy.mechanisms.signs import RANGE, SignBits
from fedprivacy.mechanisms.sqkr import SQKR, hadamard
from fedprivacy.seeds import Streams

DIMENSION = 24
FALSE_ALARM = 1e-6  # of each test of a distribution, with fixed seeds

LOCAL = [
    Gaussian(2.0, 1.5),
    PrivUnitG(2.0, 1.0),
    PrivUnitG(2.0, 6.0),
    PrivUnitG(2.0, 3.0, "normalised"),
    SQKR(2.0, 1.0),
    SQKR(2.0, 5.0),
    SignBits(2.0, 1.0, DIMENSION),
]


def direction(seed: int = 0, norm: float = 2.0) -> np.ndarray:
    update = np.random.default_rng(seed).normal(size=DIMENSION)
    return norm * update / np.linalg.norm(update)


def messages(mechanism, update: np.ndarray, count: int, purpose: str = "test") -> np.ndarray:
    streams = Streams(9)
    return np.stack([mechanism.randomise(update, streams.stream(purpose, member=m)) for m in range(count)])


@pytest.mark.parametrize("mechanism", LOCAL, ids=repr)
@pytest.mark.parametrize("norm", [2.0, 0.5, 0.0])
def test_messages_are_unbiased(mechanism, norm: float) -> None:
    update = direction(norm=norm)
    drawn = messages(mechanism, update, 4000)
    if isinstance(mechanism, PrivUnitG) and mechanism.direction == "normalised" and norm:
        update = direction()
    if isinstance(mechanism, SignBits):  # a coordinate beyond the range is cut
        bound = RANGE * 2.0 / math.sqrt(DIMENSION)
        update = np.clip(update, -bound, bound)
    errors = drawn.mean(axis=0) - update
    z = errors / (drawn.std(axis=0, ddof=1) / math.sqrt(len(drawn)))
    # SQKR is unbiased over rotations up to what cutting takes, some 1e-3 of the norm
    assert np.abs(z).max() < stats.norm.isf(FALSE_ALARM / 2 / DIMENSION)


@pytest.mark.parametrize("mechanism", LOCAL, ids=repr)
def test_the_predicted_error_is_the_measured_one(mechanism) -> None:
    squared = [
        np.mean((messages(mechanism, direction(seed), 40, f"{seed}") - direction(seed)) ** 2)
        for seed in range(100)
    ]
    if isinstance(mechanism, PrivUnitG) and mechanism.direction == "lifted":
        assert mechanism.error(DIMENSION) < 1.1 * replace(mechanism, direction="normalised").error(DIMENSION)
    mean, spread = np.mean(squared), np.std(squared) / 10
    assert abs(mean - 4.0 * mechanism.error(DIMENSION)) < 5 * spread + 1e-2 * mean


@pytest.mark.parametrize(
    ("target", "privunit", "signs"),
    [(1, 6.33, 64000), (2, 1.62, 16000), (4, 0.435, 4000), (8, 0.133, 1000), (16, 0.048, 250)],
)
def test_errors_are_those_of_independent_implementations(
    target: float, privunit: float, signs: float
) -> None:
    """Mean squared error per coordinate of unit vectors in 1000 dimensions, from other people's code."""
    assert PrivUnitG(1.0, target, "normalised").error(1000) == pytest.approx(privunit, rel=5e-3)
    assert SignBits(1.0, target / 1000, 1000).error(1000) == pytest.approx(signs, rel=5e-3)


@pytest.mark.parametrize("target", [0.1, 1.0, 4.0, 12.0])
def test_privunit_lies_in_its_cap_as_often_as_it_says_and_is_truncated_normal(target: float) -> None:
    mechanism, update = PrivUnitG(2.0, target, "normalised"), direction()
    cap = best_cap(target, DIMENSION)
    along = messages(mechanism, update, 5000) @ update / 2.0 * cap.mean / 2.0
    inside = along[along >= cap.threshold]
    tail = stats.norm.sf(cap.threshold)
    assert stats.binomtest(len(inside), 5000, cap.probability).pvalue > FALSE_ALARM
    if len(inside):
        assert stats.kstest(stats.norm.sf(inside) / tail, "uniform").pvalue > FALSE_ALARM
    outside = along[along < cap.threshold]
    if len(outside):
        assert stats.kstest(stats.norm.cdf(outside) / (1 - tail), "uniform").pvalue > FALSE_ALARM


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


def test_sign_bits_are_told_as_often_as_randomised_response_says() -> None:
    mechanism = SignBits(1.0, 1.5, 4)
    update = np.array([2.0, -2.0, 0.0, 0.0])  # certain plus, certain minus, either
    signs = np.sign(messages(mechanism, update, 4000))
    told = math.exp(1.5) / (1 + math.exp(1.5))
    for column, chance in enumerate((told, 1 - told, 0.5, 0.5)):
        assert stats.binomtest(int((signs[:, column] > 0).sum()), 4000, chance).pvalue > FALSE_ALARM
    with pytest.raises(ValueError, match="accounted for 4"):
        mechanism.randomise(np.zeros(5), Streams(1).stream("x"))


def test_what_a_message_costs() -> None:
    cost = {
        mechanism.name: epsilon(mechanism.event(), 1e-9, "replace-one").epsilon
        for mechanism in (PrivUnitG(1.0, 2.0), SQKR(1.0, 2.0), SignBits(1.0, 0.5, 3))
    }
    assert cost == pytest.approx({"privunit": 2.0, "sqkr": 2.0, "sign-bits": 1.5}, rel=1e-6)


AUDITED = [
    PrivUnitG(1.0, 2.0),
    PrivUnitG(1.0, 2.0, "normalised"),
    SQKR(1.0, 2.0),
    SignBits(1.0, 0.3, DIMENSION),
]


def scores_of(mechanism, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The sharpest statistic of a message for an update or its opposite: the part along the update."""
    update = direction(norm=1.0)
    present, absent = (
        messages(mechanism, update, count, "present"),
        messages(mechanism, -update, count, "absent"),
    )
    return present @ update, absent @ update


@pytest.mark.parametrize("mechanism", AUDITED, ids=repr)
def test_the_empirical_epsilon_does_not_exceed_the_claimed_one(mechanism) -> None:
    claimed = epsilon(mechanism.event(), 1e-3, "replace-one").epsilon
    proved = threshold_bound(*scores_of(mechanism, 6000), 1e-3, 0.999).epsilon
    assert proved <= claimed
    if isinstance(mechanism, PrivUnitG):  # whose likelihood ratio is a threshold on that score: it has teeth
        assert proved >= claimed / 2


def test_the_audit_exposes_a_cap_that_is_hit_too_often(monkeypatch) -> None:
    honest = PrivUnitG(1.0, 2.0)
    claimed = epsilon(honest.event(), 1e-3, "replace-one").epsilon
    proved = threshold_bound(*scores_of(replace(honest, epsilon=4.0), 6000), 1e-3, 0.999).epsilon
    assert proved > claimed


def test_every_mechanism_has_its_name_in_the_catalogue() -> None:
    for name, kind in MECHANISMS.items():
        assert kind.name == name
