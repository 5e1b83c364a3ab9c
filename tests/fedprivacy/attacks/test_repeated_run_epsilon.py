"""The claim, audited through the real apps: canary clients of known update, many seeded runs.

The audit holds the empirical epsilon against the printed one, and must itself have teeth: it reaches
at least half of what is claimed, and it exposes noise that is half of what is stated.
False-alarm rate of each bound: 1e-3 (where cohorts are drawn 0.05), with fixed seeds.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from clients.fleet import Fleet
from fedprivacy.accounting.gaussian import gaussian_epsilon
from fedprivacy.attacks.repeated_run_epsilon import gaussian_bound, threshold_bound
from fedprivacy.guarantees.statement import guarantees
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.randomness.streams import Streams
from fedprivacy.sampling.cohorts import PoissonSampling
from tests.canary import CANARY, Worlds, along, canaries

CONFIDENCE = 0.999
TRIALS = 280


def scores(make_scenario, trial, make_people, *overrides: str, text: str = CANARY, trials: int = TRIALS):
    """One score a canary, with its record and with its worst replacement (the other label).

    Each client is a canary, along a direction of its own. The score is the component along it of all that the model
    moved by: the sufficient statistic of both worlds.

    Returns:
        The scores of both worlds, shape (trials,) or a few more each, and the claimed epsilon of each observer.
    """
    base = make_scenario(*overrides, text=text)
    worlds = Worlds()
    for first in (0, 1):
        x, labels = canaries(base.population, first)
        people = make_people(x, labels)
        fleet = Fleet.of(base, people)
        for seed in range(-(-trials // base.population)):
            streams = Streams(seed + 1_000_000 * first)
            played = trial(base, people, fleet=replace(fleet, streams=streams))
            played.federation.streams = streams
            worlds.add(along(played.play(), base.population), labels)
    claimed = {g.observer: g.epsilon for g in guarantees(played.ledger.to_json())}
    return *worlds.both(), claimed


@pytest.fixture
def half_noise(monkeypatch) -> None:
    """Breaks the mechanism on purpose: it states the noise that it should and draws half of it."""
    half = property(lambda self: self.noise_multiplier * self.clipping_norm / 2)
    monkeypatch.setattr(Gaussian, "standard_deviation", half)


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("trust", ["central", "local"])
def test_unsampled_gaussian_noise_keeps_its_claim_and_the_audit_has_teeth(
    make_scenario, trial, make_people, trust: str
) -> None:
    trials = TRIALS if trust == "central" else 800  # the noise of all clients hides more
    present, absent, claimed = scores(
        make_scenario, trial, make_people, f"privacy.trust={trust}", trials=trials
    )
    proved = gaussian_bound(present, absent, 1e-2, CONFIDENCE).epsilon
    assert claimed["outsider"] / 2 <= proved <= claimed["outsider"]


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("trust", ["central", "local"])
def test_half_the_noise_breaks_the_claim(make_scenario, trial, make_people, half_noise, trust: str) -> None:
    present, absent, claimed = scores(make_scenario, trial, make_people, f"privacy.trust={trust}", trials=240)
    assert gaussian_bound(present, absent, 1e-2, CONFIDENCE).epsilon > claimed["outsider"]


@pytest.mark.exhaustive
def test_a_single_local_message_keeps_the_claim_against_the_server(make_scenario, trial, make_people) -> None:
    # A population of one: the sum that the model shows is the message that the server sees.
    one = ["privacy.trust=local", "data.records=1"]
    present, absent, claimed = scores(make_scenario, trial, make_people, *one, trials=140)
    proved = gaussian_bound(present, absent, 1e-2, CONFIDENCE).epsilon
    assert claimed["server"] / 2 <= proved <= claimed["server"]


SAMPLED = CANARY.replace("rounds = 2", "rounds = 1").replace('"all"', '"poisson"\nrate = 0.8')
SAMPLED = SAMPLED.replace("delta = 1e-2", "delta = 0.1").replace("records = 6", "records = 4")


def test_poisson_sampled_noise_keeps_its_amplified_claim(make_scenario, trial, make_people) -> None:
    present, absent, claimed = scores(make_scenario, trial, make_people, text=SAMPLED, trials=600)
    proved = threshold_bound(present, absent, 0.1, 0.95).epsilon
    assert claimed["outsider"] / 2 <= proved <= claimed["outsider"]


FIXED = CANARY.replace("rounds = 2", "rounds = 1").replace('"all"', '"fixed"\ncohort = 5')
FIXED = FIXED.replace("delta = 1e-2", "delta = 0.1")


@pytest.mark.exhaustive
def test_a_cohort_of_fixed_size_keeps_its_claim_where_another_takes_the_canarys_place(
    make_scenario, trial, make_people
) -> None:
    """The worst neighbours: a cohort without the canary has a client in its place whose update is 2C away.

    Where all others are on one side, the other order of the same neighbours proves less. Each round begins with the
    same model, and is a trial of its own: cohort and noise are keyed by its number.
    """
    base, worlds = make_scenario(text=FIXED), Worlds()
    x = np.zeros((6, 6))
    x[:, 0] = 1e4
    for label in (0, 1):
        played = trial(base, make_people(x, np.array([label, 1, 1, 1, 1, 1])))
        federation, weights = played.federation, played.federation.weights.copy()
        federation.streams = Streams(1 + label)
        for number in range(700):
            federation.weights = weights.copy()
            federation.round(number)
            worlds.add(along(federation.weights, 1), np.array([label]))
            if not number:
                claimed = {g.observer: g.epsilon for g in guarantees(played.ledger.to_json())}
    present, absent = worlds.both()
    assert (
        claimed["outsider"] / 3 <= threshold_bound(present, absent, 0.1, 0.95).epsilon <= claimed["outsider"]
    )
    assert 0 < threshold_bound(-absent, -present, 0.1, 0.95).epsilon <= claimed["outsider"]


@pytest.mark.exhaustive
def test_sampling_everybody_breaks_a_claim_of_rate_one_tenth(
    make_scenario, trial, make_people, monkeypatch
) -> None:
    honest = PoissonSampling.draw
    monkeypatch.setattr(
        PoissonSampling, "draw", lambda self, n, *draw: honest(replace(self, rate=1.0), n, *draw)
    )
    text = SAMPLED.replace("rate = 0.8", "rate = 0.1").replace("epsilon = 3.0", "epsilon = 0.5")
    present, absent, claimed = scores(make_scenario, trial, make_people, text=text, trials=120)
    assert threshold_bound(present, absent, 0.1, CONFIDENCE).epsilon > claimed["outsider"]


def test_the_bounds_hold_for_known_distributions() -> None:
    """Normal scores of known mu: proved values stay below the truth, and approach it."""
    rng = np.random.default_rng(0)
    for mu in (0.0, 1.0, 3.0):
        present, absent = rng.normal(mu, 1, 5000), rng.normal(0, 1, 5000)
        truth = gaussian_epsilon(1e-5, mu) if mu else 0.0
        normal = gaussian_bound(present, absent, 1e-5, CONFIDENCE)
        threshold = threshold_bound(present, absent, 1e-5, CONFIDENCE)
        assert 0.85 * truth <= normal.epsilon <= truth
        assert threshold.epsilon <= min(truth, threshold.ceiling)
    assert threshold.epsilon > 3


def test_a_ceiling_is_what_perfect_separation_proves() -> None:
    present, absent = np.ones(1000), np.zeros(1000)
    bound = threshold_bound(present, absent, 1e-5, 0.95)
    assert bound.epsilon == pytest.approx(bound.ceiling)
    assert 4.5 < bound.ceiling < 5.5
