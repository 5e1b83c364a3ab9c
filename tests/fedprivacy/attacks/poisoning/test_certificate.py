"""The certificate against its oracles: closed forms, and a client that does its worst against the real noise."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from dp_accounting import dp_event as dp
from scipy import stats

from fedprivacy.attacks.poisoning.certificate import (
    NOT_BY_COHORT,
    Certificate,
    certificate,
)
from fedprivacy.attacks.tradeoff import GaussianCurve, from_event, from_pairs
from fedprivacy.errors import InputError
from fedprivacy.guarantees.ledger import Ledger
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.sampling.cohorts import AllSampling, PoissonSampling

PLAN = Plan("central", "client", "replace-one", 50, 4, AllSampling(), Gaussian(1.0, 4.0), 1e-3)
RATES = np.linspace(0.001, 0.999, 23)


def of(plan: Plan, clients: int = 1, rounds: int = 4, clips: bool = True) -> Certificate:
    return certificate(Ledger(plan).in_advance().to_json(), clips=clips, clients=clients, rounds=rounds)


@pytest.mark.parametrize("clients", [1, 2, 5])
def test_gaussian_noise_has_mu_times_k(clients: int) -> None:
    mu = clients * math.sqrt(4) * 2 / 4.0  # replaced: twice the norm, over the noise of four rounds
    for honest in RATES:
        assert of(PLAN, clients).most(honest) == pytest.approx(stats.norm.cdf(stats.norm.ppf(honest) + mu))
        assert of(PLAN, clients).least(honest) == pytest.approx(stats.norm.cdf(stats.norm.ppf(honest) - mu))


@pytest.mark.parametrize("adjacency", ["zero-out", "add-remove"])
def test_replacing_an_update_is_two_steps_of_taking_it_away(adjacency: str) -> None:
    other = of(replace(PLAN, adjacency=adjacency), 2)
    assert other.steps == 4
    assert [other.most(p) for p in RATES] == pytest.approx([of(PLAN, 2).most(p) for p in RATES])


def test_only_the_attacked_rounds_count() -> None:
    assert of(PLAN, rounds=1).most(0.1) == pytest.approx(stats.norm.cdf(stats.norm.ppf(0.1) + 0.5))
    assert of(PLAN, rounds=9).most(0.1) == of(PLAN, rounds=4).most(0.1)


def test_a_pair_is_group_privacy() -> None:
    eps, delta = 0.7, 1e-3
    pair = Certificate(3, from_pairs([(eps, delta)], "pair"), 3, ())
    group = from_pairs([(3 * eps, delta * sum(math.exp(eps * step) for step in range(3)))], "group")
    assert all(pair.most(honest) <= group.tpr(honest) + 1e-12 for honest in RATES)
    assert pair.most(0.01) == pytest.approx(float(group.tpr(0.01)))


def test_sampling_amplifies_and_asks_that_clients_do_not_look_at_each_others_draws() -> None:
    sampled = replace(PLAN, sampler=PoissonSampling(0.2))
    assert of(sampled, 2).most(0.1) < of(PLAN, 2).most(0.1)
    assert NOT_BY_COHORT in of(sampled, 2).assumptions
    assert NOT_BY_COHORT not in of(sampled, 1).assumptions
    assert NOT_BY_COHORT not in of(PLAN, 2).assumptions


def test_a_certificate_never_falls_below_the_honest_run_and_rises_with_clients() -> None:
    for plan in (PLAN, replace(PLAN, sampler=PoissonSampling(0.2))):
        values = np.array([[of(plan, clients).most(p) for p in RATES] for clients in (1, 2, 4)])
        assert (values >= RATES - 1e-9).all()
        assert (np.diff(values, axis=0) >= -1e-12).all()
        assert (values <= 1).all()
    assert of(PLAN, 50).most(0.1) > 1 - 1e-9


def test_the_worst_client_reaches_the_gaussian_certificate_and_no_more() -> None:
    """The event "the released sum lies beyond t", with a client that goes from -C to +C. 4 sigma."""
    rng, trials = np.random.default_rng(0), 200_000
    for cut in (0.0, 2.0, 6.0):
        noise = rng.normal(scale=4.0, size=(2, trials))
        honest, poisoned = (np.mean(noise[0] - 1.0 > cut), np.mean(noise[1] + 1.0 > cut))
        most = certificate_of_one_round().most(float(honest))
        assert poisoned == pytest.approx(most, abs=4 * math.sqrt(2 * 0.25 / trials) * 1.5)


def certificate_of_one_round() -> Certificate:
    return of(replace(PLAN, rounds=1), rounds=1)


def test_means_obey_the_certificate_of_events() -> None:
    """Values in [0, 1] whose level sets all obey the curve: their means do too (Jensen)."""
    curve = GaussianCurve(0.8)
    rng = np.random.default_rng(0)
    z = rng.standard_normal(100_000)
    values = [1 / (1 + np.exp(-(z + shift))) for shift in (-0.4, 0.4)]
    assert values[1].mean() <= Certificate(1, curve, 1, ()).most(float(values[0].mean())) + 0.01


@pytest.mark.parametrize(
    ("plan", "clips", "reason"),
    [
        (replace(PLAN, trust="none", mechanism=None, delta=None), True, "nobody adds noise"),
        (
            replace(PLAN, trust="local", max_participations=4, noise_draw="client"),
            True,
            "uploads what it likes",
        ),
        (PLAN, False, "nodes clip"),
    ],
)
def test_no_certificate_where_nobody_bounds_a_malicious_client(plan: Plan, clips: bool, reason: str) -> None:
    absent = of(plan, clips=clips)
    assert reason in absent.assumptions[0]
    assert len(absent.assumptions) == 1
    assert (absent.most(0.2), absent.least(0.2), absent.basis) == (1.0, 0.0, "")


@pytest.mark.parametrize("honest", [-0.1, 1.1, math.nan])
def test_what_is_no_probability_is_refused(honest: float) -> None:
    with pytest.raises(InputError, match=r"it must lie in \[0, 1\]"):
        of(PLAN).most(honest)


def test_a_damaged_ledger_is_refused() -> None:
    with pytest.raises(InputError, match="the ledger is damaged"):
        certificate({"trust": "central"}, clips=True, clients=1, rounds=1)


def test_a_sampled_certificate_is_the_curve_k_times() -> None:
    sampled = replace(PLAN, sampler=PoissonSampling(0.2))
    event = dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(0.2, dp.GaussianDpEvent(4.0)), 4)
    curve = from_event(event, "replace-one")
    assert of(sampled, 3).most(0.05) == pytest.approx(float(curve.tpr(curve.tpr(curve.tpr(0.05)))))
