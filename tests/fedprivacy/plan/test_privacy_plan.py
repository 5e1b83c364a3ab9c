from __future__ import annotations

import json
from dataclasses import replace

import pytest
from scipy import stats

from fedprivacy.errors import InputError, UnsupportedEvent
from fedprivacy.mechanisms.catalogue import ClipOnly
from fedprivacy.mechanisms.discrete_gaussian import DiscreteGaussian
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.mechanisms.privunit import PrivUnitG
from fedprivacy.mechanisms.skellam import Skellam
from fedprivacy.plan.from_scenario import plan_of
from fedprivacy.plan.mechanism_search import best, calibrated
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.randomness.streams import Streams
from fedprivacy.sampling.cohorts import AllSampling, FixedSampling, PoissonSampling

CENTRAL = Plan(
    "central", "client", "replace-one", 1000, 100, PoissonSampling(0.1), Gaussian(0.5, 4.0), delta=1e-5
)
LOCAL = Plan(
    "local", "client", "replace-one", 1000, 100, AllSampling(), Gaussian(0.5, 40.0), 1e-5, 10, "client"
)
SHARES = Plan(
    "distributed",
    "client",
    "replace-one",
    100,
    10,
    AllSampling(),
    Skellam(0.5, 2.0, 300, 18, 100, 70, 5),
    1e-5,
    4,
)
NONE = """
name = "none"
[data]
name = "digits"
[model]
name = "logistic"
[server]
rounds = 1
[sampling]
name = "all"
[privacy]
trust = "none"
clipping_norm = 3.0
"""


def test_central_states_a_sampled_release_and_local_an_unsampled_one() -> None:
    assert CENTRAL.release_event().sampling_probability == 0.1
    assert CENTRAL.release_event().event.noise_multiplier == 4.0
    assert CENTRAL.event().count == 100
    assert replace(LOCAL, sampler=PoissonSampling(0.1)).release_event() == Gaussian(0.5, 40.0).event()
    assert LOCAL.event().count == 10


@pytest.mark.parametrize(
    ("plan", "epsilon", "noise"),
    [
        (CENTRAL, 2.0, 3.982),
        (replace(CENTRAL, adjacency="add-remove"), 2.0, 2.248),
        (replace(CENTRAL, sampler=FixedSampling(100)), 4.0, 2.947),
        (replace(CENTRAL, sampler=AllSampling(), adjacency="add-remove"), 8.0, 6.00),
        (LOCAL, 8.0, 3.796),
        (replace(LOCAL, max_participations=100), 1.0, 74.6),
    ],
)
def test_calibrate_finds_the_reference_noise_and_keeps_within_epsilon(
    plan: Plan, epsilon: float, noise: float
) -> None:
    calibrated = plan.calibrate(epsilon)
    assert calibrated.noise_multiplier == pytest.approx(noise, rel=1e-3)
    assert calibrated.spent().epsilon <= epsilon
    assert calibrated.clipping_norm == plan.clipping_norm


def test_what_the_calibrated_plan_draws_is_what_its_event_states() -> None:
    """Fails if the noise is halved or the cohort drawn at twice the rate; false alarms below 1e-6."""
    plan = CENTRAL.calibrate(4.0)
    event = plan.release_event()
    noise = plan.mechanism.draw(20_000, Streams(1).stream("noise"))
    stated = event.event.noise_multiplier * plan.clipping_norm
    assert stats.kstest(noise, "norm", args=(0, stated)).pvalue > 1e-6
    drawn = sum(
        len(plan.sampler.draw(plan.population, Streams(1).stream("cohort", round=r))) for r in range(200)
    )
    assert stats.binomtest(drawn, 200 * plan.population, event.sampling_probability).pvalue > 1e-6


def test_no_accountant_means_no_plan() -> None:
    with pytest.raises(UnsupportedEvent, match="replace-one"):
        replace(CENTRAL, sampler=FixedSampling(100), adjacency="add-remove").calibrate(1.0)
    with pytest.raises(InputError, match="calibrated"):
        replace(CENTRAL, mechanism=ClipOnly(1.0)).calibrate(1.0)


@pytest.mark.parametrize(
    "plan", [CENTRAL, LOCAL, SHARES, Plan("none", "client", "zero-out", 5, 2, FixedSampling(3), None)]
)
def test_json_round_trip(plan: Plan) -> None:
    assert Plan.from_json(json.loads(json.dumps(plan.to_json()))) == plan


@pytest.mark.parametrize(
    "change",
    [
        {"sampler": {"name": "lottery"}},
        {"mechanism": {"name": "gaussian"}},
        {"mechanism": {"name": "gaussian", "clipping_norm": 1, "noise_multiplier": 1, "x": 1}},
        {"sampler": None},
        {"surprise": 1},
        {"population": 10**400},
    ],
)
def test_damaged_plans_are_input_errors(change: dict) -> None:
    with pytest.raises(InputError, match="not a privacy plan"):
        Plan.from_json({**CENTRAL.to_json(), **change})


@pytest.mark.parametrize("key", ["scale", "squared_norm", "share_variance"])
@pytest.mark.parametrize(
    "damage", [lambda stated: 1.001 * stated, lambda stated: -stated, str, lambda stated: None]
)
def test_values_that_follow_from_a_plan_are_stated_and_checked(key: str, damage) -> None:
    stored = json.loads(json.dumps(SHARES.to_json()))
    assert stored["mechanism"][key] == getattr(SHARES.shares, key)
    stored["mechanism"][key] = damage(stored["mechanism"][key])
    with pytest.raises(InputError, match="not a privacy plan"):
        Plan.from_json(stored)


@pytest.mark.parametrize(
    "change",
    [{"clients": 90}, {"min_survivors": 0}, {"colluders": 70}, {"bits": 4}, {"bits": 18.5}, {"dimension": 0}],
)
def test_damaged_shares_are_refused(change: dict) -> None:
    stored = json.loads(json.dumps(SHARES.to_json()))
    stored["mechanism"] |= change
    with pytest.raises(InputError):
        Plan.from_json(stored)


@pytest.mark.parametrize("kind", [Skellam, DiscreteGaussian])
@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
def test_shares_are_calibrated_for_the_participations_of_a_client_without_amplification(
    kind, adjacency
) -> None:
    plan = replace(SHARES, adjacency=adjacency, mechanism=kind(0.5, 0.0, 300, 18, 100, 70, 5))
    calibrated = plan.calibrate(4.0)
    assert calibrated.spent().epsilon <= 4.0
    assert calibrated.spent().epsilon == pytest.approx(4.0, rel=1e-3)
    assert calibrated.event().count == 4
    fewer = replace(
        calibrated, sampler=FixedSampling(80), mechanism=replace(calibrated.mechanism, clients=80)
    )
    assert fewer.event().event.dimension == 512  # no sampled event: a small cohort amplifies nothing
    assert calibrated.shares.shares_against("server") == 65
    once = replace(plan, max_participations=1).calibrate(4.0)
    assert once.noise_multiplier < calibrated.noise_multiplier


@pytest.mark.parametrize(
    "asked",
    [
        replace(LOCAL, mechanism=Gaussian(0.5, 0.0)),
        replace(LOCAL, mechanism=Gaussian(10.0, 40.0)),
        replace(LOCAL, max_participations=100),
        replace(LOCAL, trust="none", max_participations=None, noise_draw=None),
        replace(LOCAL, rounds=1000),
        replace(LOCAL, mechanism=None),
    ],
)
def test_a_client_refuses_every_other_plan_and_says_why(asked: Plan) -> None:
    assert LOCAL.refusal(LOCAL) is None
    assert "requested" in LOCAL.refusal(asked)


def test_the_plan_of_a_scenario(make_scenario) -> None:
    plan = plan_of(make_scenario())
    assert (plan.trust, plan.population, plan.rounds) == ("central", 12, 3)
    assert (plan.clipping_norm, plan.noise_multiplier, plan.max_participations) == (1.0, 2.0, None)
    clipped = plan_of(make_scenario(text=NONE))
    assert (clipped.mechanism, clipped.delta, clipped.noise_multiplier) == (ClipOnly(3.0), None, None)


def test_the_plan_of_a_scenario_with_an_epsilon_is_calibrated(make_scenario, base_text: str) -> None:
    plan = plan_of(make_scenario(text=base_text.replace("noise_multiplier = 2.0", "epsilon = 1.5")))
    assert 1.49 < plan.spent().epsilon <= 1.5


@pytest.mark.parametrize(("answers", "epsilon"), [(1, 24.9), (1, 25.1), (1, 60.0), (2, 51.0)])
def test_more_budget_than_a_message_can_spend_still_gives_its_mechanism(answers: int, epsilon: float) -> None:
    plan = Plan(
        trust="local", unit="client", adjacency="replace-one", population=100, rounds=answers,
        sampler=AllSampling(), mechanism=PrivUnitG(1.0, 1.0), delta=1e-5, max_participations=answers,
        noise_draw="client",
    )  # fmt: skip
    found = plan.calibrate(epsilon)
    assert 0.98 * min(epsilon, 25 * answers) < found.spent().epsilon <= epsilon
    chosen = best(calibrated(plan, epsilon, 650, "lifted"), 650)
    assert isinstance(chosen.mechanism, PrivUnitG)


def test_only_clients_keep_a_cap_on_their_answers() -> None:
    with pytest.raises(InputError, match="max_participations"):
        replace(LOCAL, trust="central")
