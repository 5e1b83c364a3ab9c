"""Groups with budgets that differ on the server: draws, bounds of replies, denominator, and audits through the apps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from clients.fleet import Fleet
from fedprivacy.attacks.repeated_run_epsilon import gaussian_bound, threshold_bound
from fedprivacy.guarantees.statement import group_guarantees
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.randomness.streams import Streams
from fedprivacy.sampling.groups import members
from server.reply_validation import longest
from tests.canary import CANARY, Worlds, along, canaries

CONFIDENCE = 0.999
WEIGHTED = ("privacy.epsilon=6.0", "privacy.groups.light={share=0.5, epsilon=3.0}")
NOISY = ("privacy.trust=local", "privacy.epsilon=8.0", "privacy.groups.careful={share=0.5, epsilon=5.0}")
SAMPLED = CANARY.replace("rounds = 2", "rounds = 1").replace('"all"', '"poisson"\nrate = 0.8')
SAMPLED = SAMPLED.replace("delta = 1e-2", "delta = 0.1")
RARE = ("privacy.epsilon=6.0", "privacy.groups.rare={share=0.5, epsilon=3.0, through='rate'}")


def scores(make_scenario, trial, make_people, *changes: str, text: str = CANARY, trials: int = 240):
    """Scores of canaries of each group with a record, and with its worst replacement, and the epsilon of each."""
    base = make_scenario(*changes, text=text)
    x, _ = canaries(base.population, 0)
    plan = Fleet.of(base, make_people(x, canaries(base.population, 0)[1])).plan
    places = members(plan.groups, plan.population)
    worlds = [Worlds() for _ in plan.groups.names]
    for first in (0, 1):
        x, labels = canaries(base.population, first)
        people = make_people(x, labels)
        fleet = Fleet.of(base, people, plan)
        for seed in range(-(-2 * trials // base.population)):
            streams = Streams(seed + 1_000_000 * first)
            audited = trial(base, people, fleet=replace(fleet, streams=streams))
            audited.federation.streams = streams
            moved = along(audited.play(), base.population)
            for place, world in enumerate(worlds):
                world.add(moved[places == place], labels[places == place])
    stated = group_guarantees(audited.ledger.to_json())
    claimed = {name: {g.observer: g.epsilon for g in listed} for name, listed in stated.items()}
    return {
        name: (*world.both(), claimed[name]) for name, world in zip(plan.groups.names, worlds, strict=True)
    }


def test_an_audit_of_each_group_proves_no_more_than_its_claim_and_has_teeth_under_central_trust(
    make_scenario, trial, make_people
) -> None:
    for name, (absent, present, claimed) in scores(make_scenario, trial, make_people, *WEIGHTED).items():
        proved = gaussian_bound(absent, present, 1e-2, CONFIDENCE).epsilon
        assert claimed["outsider"] == pytest.approx({"light": 3.0, "others": 6.0}[name], rel=1e-3)
        assert claimed["outsider"] / 2 <= proved <= claimed["outsider"], name


@pytest.mark.exhaustive
def test_an_audit_of_each_group_proves_no_more_than_its_claim_under_local_trust(
    make_scenario, trial, make_people
) -> None:
    """Of the sum, which an outsider sees; the noise of others is what hides most of it."""
    found = scores(make_scenario, trial, make_people, *NOISY, trials=800)
    for name, (absent, present, claimed) in found.items():
        proved = gaussian_bound(absent, present, 1e-2, CONFIDENCE).epsilon
        assert claimed["outsider"] / 4 <= proved <= claimed["outsider"], name


@pytest.mark.exhaustive
def test_an_audit_of_each_rate_proves_no_more_than_its_claim(make_scenario, trial, make_people) -> None:
    found = scores(make_scenario, trial, make_people, *RARE, text=SAMPLED, trials=600)
    for name, (absent, present, claimed) in found.items():
        proved = threshold_bound(absent, present, 0.1, 0.95).epsilon
        assert claimed["outsider"] / 3 <= proved <= claimed["outsider"], name


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize(("changes", "broken"), [(WEIGHTED, "weights"), (NOISY, "noise")])
def test_a_group_with_the_settings_of_the_others_is_exposed(
    make_scenario, trial, make_people, monkeypatch, changes: tuple[str, ...], broken: str
) -> None:
    """Broken on purpose: no client is weighted, or each has the noise of the others."""
    if broken == "weights":
        monkeypatch.setattr(Plan, "weights_of", lambda plan, clients: None)
    else:
        plain = Plan.randomiser.fget
        monkeypatch.setattr(
            Plan, "randomisers", lambda plan, clients: [(np.ones(len(clients), bool), plain(plan))]
        )
        # All of a sum's noise is the clients': without the others' it is that of a single message.
        monkeypatch.setattr(Gaussian, "standard_deviation", property(lambda mechanism: 0.25))
    found = scores(make_scenario, trial, make_people, *changes)
    absent, present, claimed = found[next(iter(found))]
    assert gaussian_bound(absent, present, 1e-2, CONFIDENCE).epsilon > claimed["outsider"]


def test_the_server_draws_each_group_at_its_own_rate(make_scenario) -> None:
    """Each client within 5 standard deviations of its rate in 3,000 rounds (false alarms below 1e-5)."""
    plan = Fleet.of(make_scenario(*RARE, text=SAMPLED)).plan
    counts = np.zeros(plan.population)
    for round in range(3000):
        counts[plan.draw_cohort(Streams(7).cohort(round), round)] += 1
    rates = plan.groups.values("rate", 0.8, plan.population)
    assert len(set(rates.tolist())) == 2
    assert (abs(counts / 3000 - rates) < 5 * np.sqrt(rates * (1 - rates) / 3000)).all()


def test_the_sum_is_divided_by_the_expected_weight(make_scenario, trial) -> None:
    group = "privacy.groups.light={share=0.25, weight=0.5}"
    run = trial(make_scenario(group))
    assert run.federation.denominator == pytest.approx(9 + 3 * 0.5)
    assert trial(make_scenario()).federation.denominator == 12


def test_a_reply_that_is_longer_than_the_weight_of_its_clients_is_refused(
    make_scenario, trial, monkeypatch
) -> None:
    """A node that clips and forgets the weight: each of its messages has a client that moves the sum by C."""
    group = "privacy.groups.light={share=0.5, weight=0.5}"
    asked = make_scenario(group, "federation.observe=each", "training.learning_rate=1000.0")
    run = trial(asked)
    assert run.federation.total(0, np.arange(12)).failed == 0
    wanted = Plan.weights_of
    monkeypatch.setattr(
        Plan,
        "weights_of",
        lambda plan, clients: wanted(plan, clients) if len(clients) == plan.population else None,
    )
    total = run.federation.total(0, np.arange(12))
    assert total.faults["reply_too_large"] == 12


def test_a_server_that_clips_bounds_each_update_by_the_weight_of_its_group(
    make_scenario, trial, monkeypatch
) -> None:
    """Whatever its node sent: a node that forgets the weight moves the sum by w C all the same."""
    group = "privacy.groups.light={share=0.5, weight=0.5}"
    asked = make_scenario(
        group, "federation.observe=each", "server.clips=true", "training.learning_rate=1000.0"
    )
    run = trial(asked)
    honest = run.federation.total(0, np.arange(12)).updates
    wanted = Plan.weights_of
    monkeypatch.setattr(
        Plan,
        "weights_of",
        lambda plan, clients: wanted(plan, clients) if len(clients) == plan.population else None,
    )
    assert run.federation.total(0, np.arange(12)).updates == pytest.approx(honest, rel=1e-5, abs=1e-6)


def test_the_bound_of_replies_covers_the_noisiest_group(make_scenario) -> None:
    quiet = Fleet.of(make_scenario("privacy.trust=local")).plan
    noisy = Fleet.of(
        make_scenario("privacy.trust=local", "privacy.groups.a={share=0.25, noise_multiplier=50.0}")
    ).plan
    assert longest(noisy, 100) > 20 * longest(quiet, 100)
