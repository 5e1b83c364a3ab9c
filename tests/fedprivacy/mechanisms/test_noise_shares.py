"""Noise in shares, from updates to the decoded sum. That the mechanisms keep their claims is `test_claims.py`.

Statistical tests have fixed seeds and a false-alarm rate of 1e-6, audits of 1e-3.
"""

from __future__ import annotations

import doctest
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from claims.checks import moments
from dp_accounting import dp_event as dp
from generators.noise_shares import CASES, calibrated, central_variance
from scipy import stats

from benchmarks.noise_shares import half_integer_vector
from fedprivacy.accounting.epsilon import epsilon
from fedprivacy.accounting.integer_sums import DiscreteGaussianSumDpEvent
from fedprivacy.attacks.repeated_run_epsilon import threshold_bound
from fedprivacy.errors import InputError, RunError, UnsupportedEvent
from fedprivacy.mechanisms import skellam
from fedprivacy.mechanisms.discrete_gaussian import DiscreteGaussian
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.mechanisms.modular import centre, reduce_modulo
from fedprivacy.mechanisms.noise_shares import LEAST_SCALE, NoiseShares
from fedprivacy.mechanisms.rotation import random_signs, rotate, rotate_back
from fedprivacy.mechanisms.rounding import largest_squared_norm, round_within, squared_norm
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
        messages.append(
            mechanism.message(encoded, noise) if honest else reduce_modulo(encoded, mechanism.bits)
        )
    total = reduce_modulo(np.sum(messages, axis=0), mechanism.bits)
    return mechanism.decode(total, signs, len(messages))


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
    assert np.abs(error).max() < 6 * 2.0 * math.sqrt(mechanism.variance(20))
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


@pytest.mark.exhaustive(every=5)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bits", [16, 28])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_every_update_has_integers_within_the_norm(
    kind: type[NoiseShares], bits: int, dtype: type[np.floating]
) -> None:
    """Also where a float32 norm is above the true one, and where squares overflow: no update is an error."""
    mechanism = kind(1.0, 0.0, 4, bits, 1, 1)
    signs = random_signs(4, STREAMS.stream("rotation"))
    stream = STREAMS.stream("rounding")
    norm = mechanism.scale
    for update in directions(300, 4, "small updates").astype(dtype):
        encoded = mechanism.encode(update, signs, stream)
        assert squared_norm(encoded) <= mechanism.squared_norm
        assert math.sqrt(squared_norm(encoded)) == pytest.approx(norm, rel=2e-3)
    largest = float(np.finfo(dtype).max)
    for update in np.diag([largest] * 4).astype(dtype):
        encoded = mechanism.encode(update, signs, stream)
        assert squared_norm(encoded) <= mechanism.squared_norm
        assert math.sqrt(squared_norm(encoded)) == pytest.approx(norm, rel=1e-3)
    for wrong in (math.nan, math.inf):
        assert not mechanism.encode(np.array([wrong, 1, 1, 1], dtype=dtype), signs, stream).any()


def test_arrays_of_another_shape_are_refused() -> None:
    mechanism, stream = Skellam(1.0, 0.5, 5, 20, 2, 1), STREAMS.stream("rounding")
    signs = random_signs(5, stream)
    for update in (np.zeros(4), np.zeros(8), np.zeros((5, 1))):
        with pytest.raises(InputError, match=r"^update: has the shape .* must have \(5,\)"):
            mechanism.encode(update, signs, stream)
    with pytest.raises(InputError, match=r"^signs: "):
        mechanism.encode(np.zeros(5), signs[:5], stream)
    total = np.zeros(8, dtype=np.int64)
    with pytest.raises(InputError, match=r"^total: "):
        mechanism.decode(total[:5], signs, 1)
    with pytest.raises(InputError, match=r"^signs: "):
        mechanism.decode(total, signs[:5], 1)


def test_a_sum_of_too_few_clients_is_not_opened() -> None:
    mechanism = Skellam(1.0, 2.0, 8, 16, 10, 7)
    message = np.zeros(8, dtype=np.int64)
    signs = random_signs(8, STREAMS.stream("rotation"))
    for survivors in (0, 6):
        for refused in (
            lambda: mechanism.decode(message, signs, survivors),  # noqa: B023
            lambda: mechanism.variance(survivors),  # noqa: B023
        ):
            with pytest.raises(RunError, match=rf"^survivors = {survivors}: fewer than min_survivors = 7"):
                refused()
    with pytest.raises(InputError, match=r"^survivors = 11: must be at most clients = 10"):
        mechanism.decode(message, signs, 11)
    with pytest.raises(InputError, match=r"^survivors = 7\.5"):
        mechanism.decode(message, signs, 7.5)
    assert not mechanism.decode(message, signs, 7).any()


def test_the_variance_counts_the_survivors_that_there_are() -> None:
    mechanism = Skellam(1.0, 2.0, 64, 10, 10, 6, 2)
    rounding = 1 / (4 * mechanism.scale**2)
    assert mechanism.variance(6) == pytest.approx(6 / 4 * 4.0 + 6 * rounding)
    assert mechanism.variance(10) == pytest.approx(10 / 4 * 4.0 + 10 * rounding)


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
EXPECTED = (1.027, 1.004, 1.001, 1.272, 1.023, 1.003, 1.222, 1.017, 1.069, 1.004, 173.19)
TABLE = [(*case, expected) for case, expected in zip(CASES, EXPECTED, strict=True)]


@pytest.mark.parametrize(("clients", "dimension", "target", "bits", "expected"), TABLE)
def test_variance_over_that_of_central_noise(
    clients: int, dimension: int, target: float, bits: int, expected: float
) -> None:
    mechanism = calibrated(clients, dimension, target, bits)
    assert mechanism.variance(clients) / central_variance(target) == pytest.approx(
        expected, abs=0.003, rel=1e-4
    )
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
    with pytest.raises(
        InputError, match=r"^bits = 10: .* epsilon = .* only, not 0\.5\. Use more bits\.$"
    ) as why:
        mechanism.calibrated(0.5, DELTA, "zero-out", rounds=20)
    least = float(re.search(r"epsilon = (\S+) only", str(why.value))[1])
    possible = mechanism.calibrated(1.01 * least, DELTA, "zero-out", rounds=20)
    assert possible.scale >= LEAST_SCALE
    with pytest.raises(InputError, match="too few: "):
        mechanism.calibrated(0.99 * least, DELTA, "zero-out", rounds=20)
    with pytest.raises(InputError, match=r"^bits = 6: too few for 10 clients"):
        kind(1.0, 0.0, 1, 6, 10, 10)


@pytest.mark.parametrize("kind", KINDS)
def test_budgets_without_an_answer_are_refused_in_words_of_the_caller(kind: type[NoiseShares]) -> None:
    mechanism = kind(1.0, 0.0, 64, 16, 100, 100)
    for epsilon_, rounds, words in (
        (math.nan, 1, "^epsilon = nan"),
        (0.0, 1, "^epsilon = 0"),
        (1e15, 1, r"^epsilon = 1000000000000000"),
        (1.0, 10**12, r"^rounds = 1000000000000: must be at most"),
        (1.0, 0, "^rounds = 0: must be a whole number of at least 1"),
        (1.0, -1, "^rounds = -1"),
        (1.0, 1.5, "^rounds = 1.5"),
    ):
        with pytest.raises(InputError, match=words):
            mechanism.calibrated(epsilon_, DELTA, "zero-out", rounds=rounds)
    with pytest.raises(UnsupportedEvent, match="takes its share of the noise along"):
        mechanism.calibrated(1.0, DELTA, "add-remove")
    huge = mechanism.calibrated(1e4, DELTA, "zero-out")
    assert epsilon(huge.event(), DELTA, "zero-out").epsilon <= 1e4


def test_shares_without_an_account_are_named() -> None:
    """The modulus has no room for a share of 1/4 of each of 10 clients; Skellam shares may be smaller."""
    arguments = (1.0, 0.0, 2**20, 4, 10, 10)
    with pytest.raises(InputError, match=r"^bits = 4: too few .* shares of a variance of 0\.25"):
        DiscreteGaussian(*arguments).calibrated(1.0, DELTA, "zero-out")
    with pytest.raises(InputError, match=r"^bits = 4: too few: .* noise down to epsilon = "):
        Skellam(*arguments).calibrated(1.0, DELTA, "zero-out")


@pytest.mark.exhaustive
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
    vector, largest = rotate(update, signs) * mechanism.scale, mechanism.squared_norm
    # An encoded update is this vector, rounded: clipped and rotated once here, not 18,000 times.
    for seed in range(5):
        encoded, rounded = (STREAMS.stream("rounding", member=seed) for _ in range(2))
        assert np.array_equal(
            mechanism.encode(update, signs, encoded), round_within(vector, largest, rounded)
        )
    stream = STREAMS.stream("simulated")
    sums = []
    for _ in range(rounds):
        total = sum(round_within(vector, largest, stream) for _ in range(100))
        sums.append(total + mechanism.draw(1024, stream, shares=100))
    variance = np.var(sums, axis=0, ddof=1).mean() / mechanism.scale**2
    assert variance == pytest.approx(mechanism.variance(100), rel=0.01)
    unrounded = mechanism.honest * mechanism.share_variance / mechanism.scale**2
    assert variance > 1.03 * unrounded


@pytest.mark.exhaustive
@pytest.mark.slow
def test_the_simulated_variance_is_that_of_a_row_of_the_table() -> None:
    """Within 1 %, where updates end in a half; rounding is 0.6 % of it. The standard error is 0.28 %."""
    mechanism, rounds = calibrated(100, 256, 4.0, 12), 1000
    assert (100, 256, 4.0, 12) in CASES
    vector = half_integer_vector(mechanism)
    stream, sums = STREAMS.stream("simulated row"), []
    for _ in range(rounds):
        rounded = sum(round_within(vector, mechanism.squared_norm, stream) for _ in range(100))
        sums.append(rounded + mechanism.draw(256, stream, shares=100))
    variance = np.var(sums, axis=0, ddof=1).mean() / mechanism.scale**2
    assert variance == pytest.approx(mechanism.variance(100), rel=0.01)
    assert variance / central_variance(4.0) == pytest.approx(1.027, rel=0.01)


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
    for observer in ("Participant", "client", ""):
        with pytest.raises(InputError, match=r"^observer = .*: must be one of server, participant, outsider"):
            gaussian.event(observer)
    alone = Skellam(1.0, 2.0, 64, 16, 10, 1)
    assert alone.event("outsider").variance > 0
    with pytest.raises(InputError, match=r"^min_survivors = 1: .* Use at least 2\.$"):
        alone.event("participant")


def test_noise_without_an_account_has_no_privacy() -> None:
    """Before calibration, or with less noise than any accountant reads."""
    for kind in KINDS:
        for noise_multiplier in (0.0, 1e-9, 1e-5):
            event = kind(1.0, noise_multiplier, 8, 12, 5, 5).event()
            assert event == dp.NonPrivateDpEvent()
            assert epsilon(event, DELTA, "zero-out").epsilon == math.inf


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"clipping_norm": 0.0}, "clipping norm = 0"),
        ({"noise_multiplier": -1.0}, "noise multiplier = -1"),
        ({"dimension": 0}, "dimension = 0"),
        ({"clients": 0}, "clients = 0"),
        ({"min_survivors": 0}, "min_survivors = 0: must be a whole number of at least 1"),
        ({"min_survivors": 11}, "min_survivors = 11: must be from 1 to clients = 10"),
        ({"colluders": 8}, "colluders = 8: must be from 0 to min_survivors - 1 = 7"),
        ({"colluders": -1}, "colluders = -1"),
        ({"bits": 1}, "bits = 1: must be from 2 to 28"),
        ({"bits": 29}, "bits = 29"),
        ({"bits": 4, "clients": 100}, "^bits = 4: too few for 100 clients .* Use at least 11 bits"),
        ({"bits": 28, "clients": 10**9}, "^bits = 28: too few .* Use fewer clients or less noise"),
        *(
            ({name: value}, f"{name} = {value}: must be a whole number")
            for name in ("dimension", "bits", "clients", "min_survivors", "colluders")
            for value in (7.5, 12.5, 8.0, math.nan, math.inf)
        ),
    ],
)
def test_what_cannot_be_is_refused(changed: dict[str, float], words: str) -> None:
    with pytest.raises(InputError, match=words):
        replace(Skellam(1.0, 1.0, 8, 12, 10, 8), **changed)


def test_the_scale_ends_where_norms_stop_being_exact() -> None:
    mechanism = Skellam(3.0, 0.0, 2**20, 28, 1, 1)
    assert mechanism.scale * 3.0 == pytest.approx(2**31)
    assert mechanism.squared_norm < 2**63
    signs = random_signs(2**20, STREAMS.stream("rotation"))
    update = rotate_back(np.eye(1, 2**20)[0], signs, 2**20) * 3  # one coordinate has all of the norm
    encoded = mechanism.encode(update, signs, STREAMS.stream("rounding"))
    assert 2**61 < squared_norm(encoded) <= mechanism.squared_norm


@pytest.mark.parametrize("noise_multiplier", [0.0, 1.0, 30.0])
def test_the_proposed_bits_are_the_least(noise_multiplier: float) -> None:
    for clients in (1, 3, 16, 100, 1000):
        with pytest.raises(InputError, match="too few") as refusal:
            Skellam(1.0, noise_multiplier, 8, 2, clients, clients)
        least = int(str(refusal.value).split()[-2])
        mechanism = Skellam(1.0, noise_multiplier, 8, least, clients, clients)
        assert 4 <= mechanism.scale < 10
        with pytest.raises(InputError, match=f"Use at least {least} bits"):
            Skellam(1.0, noise_multiplier, 8, least - 1, clients, clients)


@pytest.mark.parametrize("clients", [1, 10, 1000])
def test_the_largest_noise_leaves_the_least_scale(clients: int) -> None:
    mechanism = Skellam(2.0, 1.0, 64, 16, clients, max(1, clients // 2))
    most = mechanism.with_noise(mechanism.largest_noise)
    assert most.scale * 2.0 == pytest.approx(4)
    with pytest.raises(InputError, match="too few"):
        mechanism.with_noise(mechanism.largest_noise * 1.001)


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("dimension", [1, 2, 4, 64, 1024])
def test_at_the_least_scale_the_bias_is_at_most_an_eighth(dimension: int) -> None:
    """The part of its length that an update of norm C loses; 1,000 roundings each, standard error 0.4 %.

    At a scale of 1/C one coordinate of almost 1 would lose all.
    """
    stream = STREAMS.stream("bias")
    spread = stream.standard_normal(dimension)
    flat = np.ones(dimension)
    alone = np.eye(1, dimension)[0]
    for direction in (spread, flat, alone, np.where(np.arange(dimension) < 49, 1.0, 0.0)):
        for norm in LEAST_SCALE + np.array([0, 0.25, 0.49]):
            bound = largest_squared_norm(norm, dimension)
            vector = direction * (norm / np.linalg.norm(direction))
            along = [round_within(vector, bound, stream) @ vector for _ in range(1000)]
            assert 1 - np.mean(along) / norm**2 < 0.125


def wraps(mechanism: NoiseShares, updates: np.ndarray, number: int) -> int:
    """How many coordinates of a sum exceed the modulus."""
    signs = random_signs(mechanism.dimension, STREAMS.stream("rotation", round=number))
    encoded = sum(
        mechanism.encode(update, signs, STREAMS.stream("rounding", round=number, member=client))
        for client, update in enumerate(updates)
    )
    noise = mechanism.draw(mechanism.padded, STREAMS.stream("wraps", round=number), shares=len(updates))
    total = encoded + noise
    return int((centre(reduce_modulo(total, mechanism.bits), mechanism.bits) != total).sum())


@pytest.mark.exhaustive
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
    assert Skellam(1.0, 1.0, 2**20, 11, 2000, 2000).wrap_chance == 1.0


def test_bits_of_a_message_count_the_padding() -> None:
    assert Skellam(1.0, 1.0, 650, 16, 10, 10).bits_per_message == 16 * 1024


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize(("rounds", "least"), [(400, 0.0), (1000, 0.5)])
def test_an_audit_of_whole_messages_proves_less_than_the_claim(rounds: int, least: float) -> None:
    """The sum of a canary's messages and others', projected on the canary, over many rounds a world.

    Of 4 survivors, the fewest, one colludes and takes its noise off.
    """
    mechanism = Skellam(1.0, 0.0, 4, 10, 5, 4, 1).calibrated(2.0, 1e-2, "zero-out")
    others = directions(3, 4, "others")
    canary = np.array([1.0, 0.0, 0.0, 0.0])
    seen = [
        np.array(
            [
                decoded(mechanism, np.vstack([update, others]), 2 * number + world, known=1)
                for number in range(rounds)
            ]
        )
        for world, update in enumerate((canary, np.zeros(4)))
    ]
    present, absent = (each @ canary for each in seen)
    proved = threshold_bound(present, absent, 1e-2, 0.999).epsilon
    assert least < proved <= 2.0


def test_examples() -> None:
    assert doctest.testmod(skellam).failed == 0
