"""The noise that is drawn is the noise that the event states. False-alarm rates below 1e-6."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fedprivacy.mechanisms.catalogue import ClipOnly
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.seeds import Streams


@pytest.mark.parametrize(("norm", "multiplier", "shares"), [(1.0, 2.0, 1), (0.25, 3.0, 1), (2.0, 0.5, 100)])
def test_the_draw_is_normal_with_the_deviation_of_the_event(
    norm: float, multiplier: float, shares: int
) -> None:
    mechanism = Gaussian(norm, multiplier)
    noise = mechanism.draw(20_000, Streams(5).stream("noise"), shares=shares)
    stated = mechanism.event().noise_multiplier * norm * np.sqrt(shares)
    assert stats.kstest(noise, "norm", args=(0, stated)).pvalue > 1e-6
    assert stats.kstest(noise, "norm", args=(0, stated / 2)).pvalue < 1e-12
    # The variance alone would show a factor of 1.05.
    assert noise.std() == pytest.approx(stated, rel=0.025)


def test_coordinates_and_streams_are_independent() -> None:
    mechanism = Gaussian(1.0, 1.0)
    draws = np.stack([mechanism.draw(50, Streams(5).stream("noise", member=m)) for m in range(2000)])
    correlations = np.corrcoef(draws.T)[np.triu_indices(50, 1)]
    assert np.abs(correlations).max() < 6 / np.sqrt(2000)


def test_one_draw_of_many_shares_is_distributed_as_their_sum() -> None:
    mechanism, shares = Gaussian(1.5, 2.0), 16
    one = mechanism.draw(5000, Streams(1).stream("sum"), shares=shares)
    each = sum(mechanism.draw(5000, Streams(2).stream("each", member=m)) for m in range(shares))
    assert stats.ks_2samp(one, each).pvalue > 1e-6
    assert mechanism.summed_event(shares).noise_multiplier * 1.5 == pytest.approx(one.std(), rel=0.05)


def test_clipping_alone_states_that_it_is_not_private() -> None:
    assert type(ClipOnly(1.0).event()).__name__ == "NonPrivateDpEvent"
