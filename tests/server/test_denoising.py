"""Noise taken out of the mean update: less error on known signals, known formulas, and no claim changed.

Seeds are fixed; the margins below are at least six standard errors of what is compared.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate

from fedprivacy.errors import InputError
from fedprivacy.guarantees.statement import guarantees
from server.denoising import DEGREES, denoised, james_stein, student_t

DIMENSION = 2000


def signal(kind: str, rng: np.random.Generator) -> np.ndarray:
    """A true update whose coordinates have a mean square of about 1."""
    if kind == "normal":
        return rng.standard_normal(DIMENSION)
    if kind == "heavy":
        return rng.standard_t(DEGREES, DIMENSION) / np.sqrt(DEGREES)
    one = np.zeros(DIMENSION)
    one[: DIMENSION // 100] = 10.0
    return one


def error(how: str, kind: str, deviation: float) -> float:
    """Mean squared error per coordinate over 20 draws, in units of the noise's variance."""
    found = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        truth = signal(kind, rng)
        noisy = truth + deviation * rng.standard_normal(DIMENSION)
        found.append(np.mean((denoised(noisy, deviation, how) - truth) ** 2) / deviation**2)
    return float(np.mean(found))


@pytest.mark.parametrize("deviation", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("kind", ["normal", "heavy", "sparse"])
def test_the_error_falls_on_every_signal(kind: str, deviation: float) -> None:
    plain = error("none", kind, deviation)
    assert plain == pytest.approx(1.0, abs=0.05)
    assert error("james-stein", kind, deviation) < 0.95 * plain
    assert error("student-t", kind, deviation) < 0.95 * plain


def test_james_stein_reaches_what_bayes_would_with_a_normal_signal() -> None:
    # The posterior mean of N(0, 1) under noise 2 has the error 1/(1 + 4) of the noise's variance.
    assert error("james-stein", "normal", 2.0) == pytest.approx(0.2, abs=0.02)


def test_student_t_wins_where_few_coordinates_matter() -> None:
    assert error("student-t", "sparse", 1.0) < 0.5 * error("james-stein", "sparse", 1.0)
    assert error("student-t", "heavy", 1.0) < error("james-stein", "heavy", 1.0)


def test_james_stein_is_its_formula_and_never_turns_a_vector_round() -> None:
    noisy = np.array([3.0, 4.0, 0.0, 0.0, 0.0])
    assert np.allclose(james_stein(noisy, 2.0), noisy * (1 - 3 * 4 / 25))
    assert not james_stein(noisy, 3.0).any()  # 1 - 27/25 < 0
    assert np.array_equal(james_stein(noisy[:2], 3.0), noisy[:2])


def test_student_t_is_the_posterior_mean_by_numerical_integration() -> None:
    rng = np.random.default_rng(5)
    noisy = np.array([*rng.standard_normal(30), 0.0, 7.0, -40.0])
    deviation = 0.8
    scale = np.sqrt((np.mean(noisy**2) - deviation**2) * (DEGREES - 2) / DEGREES)

    def moment(y: float, power: int) -> float:
        def density(x: float) -> float:
            return (
                x**power
                * (1 + (x / scale) ** 2 / DEGREES) ** (-(DEGREES + 1) / 2)
                * math.exp(-(((y - x) / deviation) ** 2) / 2)
            )

        around = sorted({-50.0, 0.0, y - 1, y, y + 1, 50.0})
        return integrate.quad(density, -60, 60, points=around, limit=500, epsabs=1e-13)[0]

    expected = [moment(y, 1) / moment(y, 0) for y in noisy]
    assert np.allclose(student_t(noisy, deviation), expected, rtol=1e-5, atol=1e-6)


def test_large_coordinates_are_kept_and_what_is_noise_alone_goes() -> None:
    far = np.array([1e6, *np.zeros(99)])
    assert student_t(far, 1.0)[0] == pytest.approx(1e6, rel=1e-6)
    rng = np.random.default_rng(1)
    noise = rng.standard_normal(DIMENSION)
    for how in ("james-stein", "student-t"):
        assert np.linalg.norm(denoised(noise, 1.0, how)) < 0.25 * np.linalg.norm(noise)
        assert not denoised(noise, 1.5, how).any()


def test_extremes_are_finite() -> None:
    for how in ("james-stein", "student-t"):
        for noisy in (np.zeros(5), np.full(5, 1e100), np.full(5, 1e-100), np.zeros(0)):
            for deviation in (0.0, 1e-100, 1.0, 1e100):
                assert np.isfinite(denoised(noisy, deviation, how)).all()


@pytest.mark.parametrize("how", ["james-stein", "student-t"])
@pytest.mark.parametrize("trust", ["central", "local"])
def test_a_round_moves_the_model_by_the_denoised_mean(make_scenario, trial, how: str, trust: str) -> None:
    asked = [f"privacy.trust={trust}", "server.rounds=1"]
    plain = trial(make_scenario(*asked))
    before = plain.federation.weights.copy()
    noisy = plain.play() - before
    other = trial(make_scenario(*asked))
    other.federation.denoise = how  # same scenario, same streams
    moved = other.play() - before
    # Twelve clients, clipping norm 1, noise multiplier 2; local noise is there once for each client.
    deviation = 2.0 / 12 if trust == "central" else 2.0 * np.sqrt(12) / 12
    assert np.allclose(moved, denoised(noisy, deviation, how), rtol=1e-12)
    assert not np.array_equal(moved, noisy)
    assert guarantees(plain.ledger.to_json()) == guarantees(other.ledger.to_json())


def test_the_scenario_reaches_the_server(make_scenario, trial) -> None:
    assert trial(make_scenario("server.denoise=student-t")).federation.denoise == "student-t"
    assert trial(make_scenario()).federation.denoise == "none"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["privacy.trust=none"], "there is no noise"),
        (["privacy.trust=local", "privacy.unit=example", "data.records=600"], "in the steps of each client"),
        (["privacy.trust=local", "privacy.mechanism=privunit", "privacy.epsilon=2.0"], "no Gaussian noise"),
        (["privacy.trust=local", "privacy.mechanism=auto", "privacy.epsilon=2.0"], "no Gaussian noise"),
    ],
)
def test_denoising_is_refused_where_the_noise_is_not_known(
    make_scenario, base_text: str, changes: list[str], message: str
) -> None:
    text = base_text
    if any("epsilon" in change for change in changes):
        text = text.replace("noise_multiplier = 2.0\n", "")
    with pytest.raises(InputError, match=rf"server\.denoise.*{message}"):
        make_scenario("server.denoise=james-stein", *changes, text=text)
    make_scenario(*changes, text=text)


def test_an_unknown_way_is_told(make_scenario) -> None:
    with pytest.raises(InputError, match=r"unknown way to take out noise.*james-stein"):
        make_scenario("server.denoise=jame-stein")
