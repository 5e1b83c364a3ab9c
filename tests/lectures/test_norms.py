"""The lectures on noise in L1, L2 and other norms, statement by statement."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.mechanisms.laplace import Laplace
from fedprivacy.mechanisms.norm import NormMechanism
from fedprivacy.randomness.streams import Streams


@pytest.mark.parametrize("order", [1, 2, math.inf])
def test_the_norm_mechanism_with_density_exp_of_minus_epsilon_norm_over_sensitivity_is_tight(
    order: float,
) -> None:
    """The lecture's exp(-epsilon ||z||/(2 GS)) is safe, but spends half of epsilon and adds twice the noise."""
    epsilon, sensitivity, d = 1.5, 2.0, 3
    tight = NormMechanism(epsilon, sensitivity, d, order)
    lectures = NormMechanism(epsilon / 2, sensitivity, d, order)
    step = np.full(d, sensitivity) if order == math.inf else sensitivity * np.eye(d)[0]
    assert np.linalg.norm(step, order) == sensitivity
    for mechanism, spent in ((tight, epsilon), (lectures, epsilon / 2)):
        outputs = mechanism.draw(np.zeros((20_000, d)), Streams(1).stream("norm"))
        outputs = np.concatenate([outputs, [2 * step, -step]])
        # The logarithm of the ratio of the two neighbours' densities at each output.
        near, far = (np.linalg.norm(outputs - at, order, axis=1) for at in (np.zeros(d), step))
        assert np.abs((far - near) / mechanism.scale).max() == pytest.approx(spent)
    assert lectures.expected_norm == 2 * tight.expected_norm
    assert lectures.variance == 4 * tight.variance


def test_the_error_of_a_mean_vector_is_d_over_n_with_laplace_and_root_d_over_n_with_gaussian_noise() -> None:
    """n vectors in [0, 1]^d, one replaced: the mean moves by d/n in L1, by sqrt(d)/n in L2.

    The noise of a coordinate is S1/epsilon against S2 sqrt(2 ln(1.25/delta))/epsilon (one page of the lectures
    prints S1 there; it is S2).
    """
    n, epsilon, delta = 1000, 1.0, 1e-5

    def errors(d: int) -> tuple[float, float]:
        laplace = Laplace(epsilon, d / n).scale
        # Vectors are at most sqrt(d)/2 from the middle of the cube: replacing one moves their sum by twice that.
        gaussian = Gaussian.lectures(epsilon, delta, "replace-one", clipping_norm=math.sqrt(d) / 2 / n)
        return laplace, gaussian.standard_deviation

    for d in (1, 100, 10_000):
        laplace, gaussian = errors(d)
        assert laplace == pytest.approx(d / n / epsilon)
        assert gaussian == pytest.approx(math.sqrt(d) / n * math.sqrt(2 * math.log(1.25 / delta)) / epsilon)
    few, many = errors(4), errors(400)
    assert few[0] < few[1]  # for a few numbers Laplace noise is less, and needs no delta
    assert many[0] > many[1]
    assert (many[0] / few[0], many[1] / few[1]) == pytest.approx((100, 10))
    drawn = Gaussian.lectures(epsilon, delta, "replace-one", math.sqrt(400) / 2 / n)
    noise = drawn.draw(400 * 50, Streams(1).stream("vector"))
    assert noise.std() == pytest.approx(many[1], rel=0.03)
