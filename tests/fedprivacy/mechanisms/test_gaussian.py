"""Gaussian noise, besides what `test_claims.py` holds every mechanism to. False-alarm rates below 1e-6."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fedprivacy.mechanisms.catalogue import ClipOnly
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.seeds import Streams


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
