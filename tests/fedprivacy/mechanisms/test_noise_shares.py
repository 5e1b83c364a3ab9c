"""Noise in shares, from updates to the decoded sum. That the mechanisms keep their claims is `test_claims.py`.

Statistical tests have fixed seeds and a false-alarm rate of 1e-6, audits of 1e-3.
"""

from __future__ import annotations

import doctest
import math
from dataclasses import replace

import numpy as np
import pytest
from claims.checks import moments
from dp_accounting import dp_event as dp
from generators.noise_shares import CASES, calibrated, central_variance
from scipy import stats

from fedprivacy.accounting.epsilon import epsilon
from fedprivacy.accounting.integer_sums import DiscreteGaussianSumDpEvent
from fedprivacy.attacks.repeated_run_epsilon import threshold_bound
from fedprivacy.errors import InputError, UnsupportedEvent
from fedprivacy.mechanisms import skellam
from fedprivacy.mechanisms.discrete_gaussian import DiscreteGaussian
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.mechanisms.modular import centre, modular_sum, reduce
from fedprivacy.mechanisms.noise_shares import NoiseShares
from fedprivacy.mechanisms.rotation import random_signs, rotate_back
from fedprivacy.mechanisms.rounding import squared_norm
from fedprivacy.mechanisms.skellam import Skellam
from fedprivacy.randomness.streams import Streams
from fedprivacy.randomness.system import SystemStreams

DELTA = 1e-5
KINDS = (Skellam, DiscreteGaussian)
STREAMS = Streams(1)


def decoded(
    mechanism: NoiseShares,
    updates: np.ndarray,
    number: int = 0,
    streams: Streams = STREAMS,
    known: int = 0,
) -> np.ndarray:
    """The sum of a round as the server has it, less the noise of so many colluders, who come last."""
    signs = random_signs(mechanism.dimension, streams.stream("rotation", round=number))
    messages = []
    for client, update in enumerate(updates):
        rounding, noise = (
            streams.noise(each, round=number, member=client) for each in ("rounding", "shares")
        )
        encoded = mechanism.encode(update, signs, rounding)
        honest = client < len(updates) - known
        messages.append(mechanism.message(encoded, noise) if honest else reduce(encoded, mechanism.bits))
    return mechanism.decode(modular_sum(messages, mechanism.padded, mechanism.bits), signs)


def directions(count: int, dimension: int, purpose: str = "updates") -> np.ndarray:
    """Random updates of norm 1, shape (count, dimension)."""
    updates = STREAMS.stream(purpose).standard_normal((count, dimension))
    return updates / np.linalg.norm(updates, axis=1, keepdims=True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("streams", [STREAMS, SystemStreams(1)], ids=["seeded", "system"])
def test_the_decoded_sum_is_that_of_the_clipped_updates(kind: type[NoiseShares], streams: Streams) -> None:
    """Each coordinate within six deviations, whatever the streams."""
    mechanism = kind(2.0, 0.5, 100, 20, 20, 20)
    updates = 2 * directions(20, 100)
    updates[0] *= 5  # clipped
    updates[1, 3], updates[2, 4] = math.nan, math.inf  # become zero
    expected = np.array([updates[0] / 5, *updates[3:]]).sum(axis=0)
    error = decoded(mechanism, updates, streams=streams) - expected
    assert np.abs(error).max() < 6 * 2.0 * math.sqrt(mechanism.error)
    assert error.std() == pytest.approx(1.0, rel=0.4)


def test_a_client_needs_its_stream_alone() -> None:
    mechanism, updates = Skellam(1.0, 0.5, 100, 20, 20, 20), directions(3, 100)
    signs = random_signs(100, STREAMS.stream("rotation"))
    once, again = (
        mechanism.message(mechanism.encode(updates[1], signs, stream), noise)
        for stream, noise in (
            (STREAMS.noise("rounding", member=1), STREAMS.noise("shares", member=1)) for _ in range(2)
        )
    )
    assert np.array_equal(once, again)
    assert (once >= 0).all()
    assert (once < 2**20).all()


@pytest.mark.parametrize("norm", [1.0, 1e-3, 50.0])
def test_integers_of_a_client_keep_to_the_norm_that_the_event_states(norm: float) -> None:
    mechanism = Skellam(1.0, 2.0, 60, 12, 50, 50)
    event = mechanism.event()
    for number, update in enumerate(norm * directions(200, 60)):
        signs = random_signs(60, STREAMS.stream("rotation", round=number))
        encoded = mechanism.encode(update, signs, STREAMS.stream("rounding", round=number))
        assert squared_norm(encoded) <= event.squared_norm
        assert len(encoded) == event.dimension == 64


# The variance of the sum over that of central Gaussian noise whose epsilon comes from the same orders.
EXPECTED = (1.027, 1.004, 1.001, 1.272, 1.023, 1.003, 1.222, 1.017, 1.069, 1.004)
PUBLISHED = [(*case, expected) for case, expected in zip(CASES, EXPECTED, strict=True)]


@pytest.mark.parametrize(("clients", "dimension", "target", "bits", "expected"), PUBLISHED)
def test_variance_over_that_of_central_noise(
    clients: int, dimension: int, target: float, bits: int, expected: float
) -> None:
    mechanism = calibrated(clients, dimension, target, bits)
    assert mechanism.error / central_variance(target) == pytest.approx(expected, abs=0.003)
    # Renyi divergences cost 15 to 18 % beside the exact account of Gaussian noise.
    exact = Gaussian.calibrated(target, DELTA, "zero-out").noise_multiplier ** 2
    assert 1.12 < central_variance(target) / exact < 1.18
    room = 4 * math.sqrt(
        (mechanism.scale * clients) ** 2 / dimension + clients / 4 + clients * mechanism.share_variance
    )
    assert room == pytest.approx(2 ** (bits - 1))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("adjacency", ["zero-out", "replace-one"])
def test_calibrated_noise_is_the_least_for_the_budget(kind: type[NoiseShares], adjacency: str) -> None:
    mechanism = kind(1.0, 0.0, 300, 16, 80, 60, 5).calibrated(3.0, DELTA, adjacency, rounds=7)

    def spent(noise_multiplier: float) -> float:
        event = mechanism.with_noise(noise_multiplier).event()
        return epsilon(dp.SelfComposedDpEvent(event, 7), DELTA, adjacency).epsilon

    assert spent(0.999 * mechanism.noise_multiplier) > 3.0 >= spent(mechanism.noise_multiplier)


@pytest.mark.parametrize("kind", KINDS)
def test_bits_that_are_too_few_for_a_budget_are_refused_with_the_least_epsilon(
    kind: type[NoiseShares],
) -> None:
    mechanism = kind(1.0, 0.0, 2**16, 10, 100, 100)
    with pytest.raises(InputError, match=r"^bits = 10: .* epsilon = .* only, not 1\. Use more bits\.$"):
        mechanism.calibrated(1.0, DELTA, "zero-out", rounds=20)
    with pytest.raises(InputError, match="epsilon = nan"):
        mechanism.calibrated(math.nan, DELTA, "zero-out")
    with pytest.raises(UnsupportedEvent, match="takes its share of the noise along"):
        mechanism.calibrated(1.0, DELTA, "add-remove")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_simulated_variance_is_that_of_the_formula(kind: type[NoiseShares]) -> None:
    """Within 1 %, where updates end in a half after scaling: rounding then has its largest variance, 4.6 % here.

    The standard error of the measured variance is 0.33 %.
    """
    mechanism, rounds = kind(1.0, 1.2, 1024, 9, 100, 100), 180
    signs = random_signs(1024, STREAMS.stream("rotation"))
    update = rotate_back(signs / 2, signs, 1024) / mechanism.scale
    assert np.linalg.norm(update) <= 1
    stream = STREAMS.stream("simulated")
    sums = []
    for _ in range(rounds):
        rounded = sum(mechanism.encode(update, signs, stream) for _ in range(100))
        sums.append(rounded + mechanism.draw(1024, stream, shares=100))
    variance = np.var(sums, axis=0, ddof=1).mean() / mechanism.scale**2
    assert variance == pytest.approx(mechanism.error, rel=0.01)
    unrounded = mechanism.honest * mechanism.share_variance / mechanism.scale**2
    assert variance > 1.03 * unrounded


def test_survivors_add_noise_that_was_fixed_before() -> None:
    """Shares do not depend on who comes; every sum of n_min clients has the noise that its event states."""
    mechanism = Skellam(1.0, 2.0, 64, 16, 10, 7, 2)
    assert mechanism.honest == 5
    unit = (mechanism.scale * mechanism.clipping_norm) ** 2
    assert mechanism.event().variance == pytest.approx(4.0 * unit)
    for survivors in (7, 10):
        total = sum(
            mechanism.draw(60_000, STREAMS.noise(f"{survivors} survive", member=client))
            for client in range(survivors)
        )
        moments(total.astype(float), 0.0, survivors / 5 * 4.0 * unit)
    assert (10 / 5 * 4.0) * unit > mechanism.event().variance  # more noise than claimed


def test_each_observer_faces_the_shares_that_it_does_not_know() -> None:
    for colluders, server, participant in ((0, 7, 6), (1, 6, 6), (3, 4, 4)):
        mechanism = Skellam(1.0, 2.0, 64, 16, 10, 7, colluders)
        assert mechanism.shares_against("server") == mechanism.shares_against("outsider") == server
        assert mechanism.shares_against("participant") == participant
        event = mechanism.event("participant")
        assert event.variance == pytest.approx(participant * mechanism.share_variance)
    gaussian = DiscreteGaussian(1.0, 2.0, 64, 16, 10, 7, 3)
    assert gaussian.event() == DiscreteGaussianSumDpEvent(
        gaussian.share_variance, 4, gaussian.squared_norm, 64
    )
    alone = Skellam(1.0, 2.0, 64, 16, 10, 1)
    assert alone.event("outsider").variance > 0
    with pytest.raises(InputError, match=r"^survivors = 1: .* Use at least 2 survivors\.$"):
        alone.event("participant")


def test_noise_before_calibration_has_no_privacy() -> None:
    for kind in KINDS:
        assert epsilon(kind(1.0, 0.0, 8, 12, 5, 5).event(), DELTA, "zero-out").epsilon == math.inf


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"clipping_norm": 0.0}, "clipping norm = 0"),
        ({"noise_multiplier": -1.0}, "noise multiplier = -1"),
        ({"dimension": 0}, "dimension = 0"),
        ({"clients": 0}, "clients = 0"),
        ({"survivors": 0}, "survivors = 0: must be from 1 to clients = 10"),
        ({"survivors": 11}, "survivors = 11"),
        ({"colluders": 8}, "colluders = 8: must be from 0 to survivors - 1 = 7"),
        ({"colluders": -1}, "colluders = -1"),
        ({"bits": 1}, "bits = 1: must be from 2 to 28"),
        ({"bits": 29}, "bits = 29"),
        ({"bits": 4, "clients": 100}, "bits = 4: the rounding .* Use at least 6 bits"),
    ],
)
def test_what_cannot_be_is_refused(changed: dict[str, float], words: str) -> None:
    with pytest.raises(InputError, match=words):
        replace(Skellam(1.0, 1.0, 8, 12, 10, 8), **changed)


def test_the_scale_ends_where_norms_stop_being_exact() -> None:
    mechanism = Skellam(3.0, 0.0, 2**20, 28, 1, 1)
    assert mechanism.scale * 3.0 == pytest.approx(2**31)
    assert mechanism.event().squared_norm < 2**63
    signs = random_signs(2**20, STREAMS.stream("rotation"))
    update = rotate_back(np.eye(1, 2**20)[0], signs, 2**20) * 3  # one coordinate has all of the norm
    encoded = mechanism.encode(update, signs, STREAMS.stream("rounding"))
    assert 2**61 < squared_norm(encoded) <= mechanism.squared_norm


def test_the_proposed_bits_are_the_least() -> None:
    for clients in (1, 3, 16, 100, 1000):
        least = next(bits for bits in range(2, 20) if 2 ** (bits - 1) / 4 > math.sqrt(clients / 4))
        Skellam(1.0, 1.0, 8, least, clients, clients)
        with pytest.raises(InputError, match=f"Use at least {least} bits|from 2 to 28"):
            Skellam(1.0, 1.0, 8, least - 1, clients, clients)


def wraps(mechanism: NoiseShares, updates: np.ndarray, number: int) -> int:
    """How many coordinates of a sum exceed the modulus."""
    signs = random_signs(mechanism.dimension, STREAMS.stream("rotation", round=number))
    encoded = sum(
        mechanism.encode(update, signs, STREAMS.stream("rounding", round=number, member=client))
        for client, update in enumerate(updates)
    )
    noise = mechanism.draw(mechanism.padded, STREAMS.stream("wraps", round=number), shares=len(updates))
    total = encoded + noise
    return int((centre(reduce(total, mechanism.bits), mechanism.bits) != total).sum())


def test_where_noise_fills_the_modulus_as_much_wraps_as_of_a_normal_variable_and_less_than_the_bound() -> (
    None
):
    """4 deviations are exceeded by 63 of 10^6 coordinates. Poisson, false-alarm rate 1e-6."""
    mechanism = Skellam(1.0, 1.16, 2**20, 16, 10, 10)
    count = wraps(mechanism, directions(10, 2**20), 1)
    expected = 2**20 * 2 * stats.norm.sf(4)
    assert stats.poisson(expected).cdf(count) > 1e-6
    assert stats.poisson(expected).sf(count) > 1e-6
    assert count <= mechanism.wrap_chance * 2**20


def test_the_bound_on_wraps_is_a_bound_of_chernoff() -> None:
    for kind in KINDS:
        mechanism = kind(1.0, 1.0, 64, 12, 20, 20)
        z = mechanism.draw(200_000, STREAMS.stream("tail"), shares=20)
        for t in (0.5, 2.0):
            t /= math.sqrt(20 * mechanism.share_variance)
            assert math.log(np.exp(t * z).mean()) == pytest.approx(mechanism.log_moment(t, 20), abs=0.05)
    assert Skellam(1.0, 1.0, 64, 8, 1000, 1000).wrap_chance == 1.0


def test_bits_of_a_message_count_the_padding() -> None:
    assert Skellam(1.0, 1.0, 650, 16, 10, 10).bits_per_message == 16 * 1024


def test_an_audit_of_whole_messages_proves_less_than_the_claim() -> None:
    """The sum of a canary's messages and others', projected on the canary, over 1,000 rounds a world.

    Of 4 survivors, the fewest, one colludes and takes its noise off.
    """
    mechanism = Skellam(1.0, 0.0, 4, 10, 5, 4, 1).calibrated(2.0, 1e-2, "zero-out")
    others = directions(3, 4, "others")
    canary = np.array([1.0, 0.0, 0.0, 0.0])
    seen = [
        np.array(
            [
                decoded(mechanism, np.vstack([update, others]), 2 * number + world, known=1)
                for number in range(1000)
            ]
        )
        for world, update in enumerate((canary, np.zeros(4)))
    ]
    present, absent = (each @ canary for each in seen)
    proved = threshold_bound(present, absent, 1e-2, 0.999).epsilon
    assert 0.5 < proved <= 2.0


def test_examples() -> None:
    assert doctest.testmod(skellam).failed == 0
