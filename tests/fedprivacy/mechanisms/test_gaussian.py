"""Gaussian noise, besides what `test_claims.py` holds every mechanism to. False-alarm rates below 1e-6."""

from __future__ import annotations

import warnings

import dp_accounting
import numpy as np
import pytest
from scipy import integrate, stats

from fedprivacy.accounting.epsilon import epsilon
from fedprivacy.accounting.gaussian import gaussian_epsilon
from fedprivacy.errors import InputError
from fedprivacy.mechanisms.catalogue import ClipOnly
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.randomness.streams import Streams


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


# --- from a budget, and its other parameters ------------------------------------------------------

ADJACENCIES = ("replace-one", "add-remove", "zero-out")


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(
    ("target", "delta"), [(0.1, 1e-5), (1.0, 1e-5), (1.0, 1e-9), (8.0, 1e-3), (50.0, 1e-6)]
)
def test_calibrated_noise_is_the_least_that_dp_accounting_finds(
    target: float, delta: float, adjacency: str
) -> None:
    mechanism = Gaussian.calibrated(target, delta, adjacency, clipping_norm=0.5)
    sensitivity = 2 if adjacency == "replace-one" else 1
    assert mechanism.noise_multiplier / sensitivity == pytest.approx(
        dp_accounting.get_sigma_gaussian(target, delta), rel=1e-5
    )
    assert mechanism.standard_deviation == 0.5 * mechanism.noise_multiplier
    assert epsilon(mechanism.event(), delta, adjacency).epsilon <= target


def test_opacus_finds_the_same_epsilon() -> None:
    mechanism = Gaussian.calibrated(2.0, 1e-5, "add-remove")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from opacus.accountants import PRVAccountant

        oracle = PRVAccountant()
        oracle.history = [(mechanism.noise_multiplier, 1.0, 1)]
        assert oracle.get_epsilon(delta=1e-5) == pytest.approx(2.0, rel=0.01)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_lectures_noise_is_more_than_is_needed_up_to_epsilon_1_and_refused_beyond(adjacency: str) -> None:
    for target in (0.01, 0.3, 1.0):
        lectures = Gaussian.lectures(target, 1e-5, adjacency, 3.0)
        assert epsilon(lectures.event(), 1e-5, adjacency).epsilon < target
        assert lectures.noise_multiplier > Gaussian.calibrated(target, 1e-5, adjacency).noise_multiplier
        assert lectures.clipping_norm == 3.0
    with pytest.raises(InputError, match="proved for 0 < epsilon <= 1"):
        Gaussian.lectures(1.01, 1e-5, adjacency)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_mu_and_rho_say_what_the_event_says(adjacency: str) -> None:
    mechanism = Gaussian(3.0, 2.5)
    mu = (2 if adjacency == "replace-one" else 1) / 2.5
    assert mechanism.mu(adjacency) == mu
    assert mechanism.rho(adjacency) == mu**2 / 2
    spent = epsilon(mechanism.event(), 1e-5, adjacency).epsilon
    assert gaussian_epsilon(1e-5, mechanism.mu(adjacency)) == pytest.approx(spent)
    # Bun and Steinke 2016, Proposition 1.3: rho-zCDP costs at most rho + 2 sqrt(rho ln(1/delta)).
    rho = mechanism.rho(adjacency)
    assert spent <= rho + 2 * np.sqrt(rho * np.log(1e5))
    # The Renyi divergence of order a between the two Gaussians is rho a.
    p, q = stats.norm(0, 2.5), stats.norm(mu * 2.5, 2.5)
    moment, _ = integrate.quad(lambda x: p.pdf(x) ** 3 / q.pdf(x) ** 2, -40, 40)
    assert np.log(moment) / 2 == pytest.approx(rho * 3, rel=1e-6)
    assert Gaussian(1.0, 0.0).mu(adjacency) == np.inf
    with pytest.raises(InputError, match="adjacency"):
        mechanism.mu("swap")


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf, -np.inf])
def test_noise_and_norms_that_are_none_are_refused(bad: float) -> None:
    with pytest.raises(InputError, match=r"noise multiplier = .*: must be a finite number of at least 0"):
        Gaussian(1.0, bad)
    with pytest.raises(InputError, match=r"noise multiplier = .*"):
        Gaussian(1.0, 1.0).with_noise(bad)
    for norm in (bad, 0.0):
        with pytest.raises(InputError, match=r"clipping norm = .*: must be a finite number above 0"):
            Gaussian(norm, 1.0)
    assert Gaussian(1.0, 0.0).event().noise_multiplier == 0  # still to be calibrated
