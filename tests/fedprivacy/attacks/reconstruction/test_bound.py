"""The bound on reconstruction against its closed form, printed figures, and a prior's exact optimum."""

from __future__ import annotations

import numpy as np
import pytest
from dp_accounting import dp_event as dp
from scipy.stats import norm

from fedprivacy.accounting.events import to_json
from fedprivacy.accounting.gaussian import gaussian_epsilon
from fedprivacy.attacks.reconstruction.bound import bound_of_ledger, mass_of_guesses, success_bound
from fedprivacy.attacks.tradeoff import GaussianCurve, from_event, from_pairs
from fedprivacy.errors import InputError
from fedprivacy.mechanisms.gaussian import Gaussian

EPSILONS = (1, 2, 4, 8, 16)
BOUNDS = {0.1: (0.155, 0.218, 0.361, 0.650, 0.948), 0.01: (0.020, 0.034, 0.081, 0.255, 0.719)}


def ledger(event: dp.DpEvent | None, unit: str = "client", adjacency: str = "zero-out") -> dict:
    claim = {
        "observer": "server",
        "event": None if event is None else to_json(event),
        "assumptions": ["no noise"],
    }
    return {"unit": unit, "adjacency": adjacency, "delta": 1e-5, "claims": [claim]}


@pytest.mark.parametrize("adjacency", ["zero-out", "add-remove", "replace-one"])
@pytest.mark.parametrize("prior", BOUNDS)
def test_the_bound_at_five_epsilons_is_the_same_under_each_adjacency(prior: float, adjacency: str) -> None:
    for epsilon, expected in zip(EPSILONS, BOUNDS[prior], strict=True):
        mechanism = Gaussian.calibrated(epsilon, 1e-5, adjacency)
        bound = bound_of_ledger(ledger(mechanism.event(), "client", adjacency), "server", prior)
        exact = norm.cdf(norm.ppf(prior) + mechanism.mu(adjacency))
        assert bound.success == pytest.approx(exact, abs=1e-12)
        assert bound.success == pytest.approx(expected, abs=6e-4)


def test_sampled_noise_takes_the_worse_direction() -> None:
    """With the event (1-q) N(0, s^2) + q N(1, s^2) against N(0, s^2): each as the reference, exactly."""
    q, sigma, prior = 0.3, 0.5, 0.02
    event = dp.PoissonSampledDpEvent(q, dp.GaussianDpEvent(sigma))
    bound = success_bound(from_event(event, "add-remove"), prior)
    at = norm.isf(prior) * sigma
    with_record = (1 - q) * norm.sf(at / sigma) + q * norm.sf((at - 1) / sigma)
    # The other way round the least of the outputs are those of no record.
    grid = np.linspace(-6, 6, 240001)
    mixed = (1 - q) * norm.cdf(grid / sigma) + q * norm.cdf((grid - 1) / sigma)
    without_record = np.interp(prior, mixed, norm.cdf(grid / sigma))
    assert max(with_record, without_record) <= bound <= max(with_record, without_record) + 0.005
    assert with_record - without_record > 0.1


def test_the_polygon_of_pairs_is_close_to_the_closed_form() -> None:
    pairs = [(gaussian_epsilon(delta, 1.0), delta) for delta in np.geomspace(1e-9, 0.38, 60)]
    curve = from_pairs(pairs, "pairs")
    for prior in BOUNDS:
        exact = float(GaussianCurve(1.0).tpr(prior))
        assert exact <= success_bound(curve, prior) <= exact + 0.006


def test_no_noise_and_a_damaged_ledger() -> None:
    bound = bound_of_ledger(ledger(None), "server", 0.1)
    assert bound.success is None
    assert bound.assumptions[0] == "no noise"
    with pytest.raises(InputError, match="damaged"):
        bound_of_ledger({**ledger(dp.GaussianDpEvent(1.0)), "unit": "phone"}, "server", 0.1)
    held = bound_of_ledger(ledger(dp.GaussianDpEvent(2.0)), "server", 0.1)
    assert "one step" in held.assumptions[0]
    assert "mu = 0.5" in held.basis


@pytest.mark.parametrize("prior", [0.0, -0.1, 1.1, float("nan")])
def test_a_prior_that_is_no_probability_is_refused(prior: float) -> None:
    with pytest.raises(InputError, match="above 0 and at most 1"):
        success_bound(GaussianCurve(1.0), prior)


def test_several_guesses_have_the_mass_of_as_many_pictures() -> None:
    assert mass_of_guesses(128, 2000) == 0.064
    assert mass_of_guesses(128, 64) == 1.0
    assert success_bound(GaussianCurve(0.3), 1.0) == 1.0
