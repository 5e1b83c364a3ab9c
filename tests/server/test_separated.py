"""Clients that come back only after so many rounds, and noise that is correlated over these, through the real apps.

False-alarm rate of the audits: 1e-3, with fixed seeds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from clients.fleet import Fleet
from fedprivacy.attacks.repeated_run_epsilon import gaussian_bound
from fedprivacy.errors import InputError, RunError
from fedprivacy.guarantees.ledger import Ledger
from fedprivacy.guarantees.per_client import per_client
from fedprivacy.guarantees.statement import guarantees
from fedprivacy.mechanisms.banded import BandedGaussian
from fedprivacy.plan.from_scenario import plan_of
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.randomness.streams import Streams
from fedprivacy.records.run_directory import RunDirectory
from fedprivacy.report import write
from fedprivacy.sampling.cohorts import SeparatedSampling
from fedprivacy.verification.verify import checked_document
from scenarios.engines.launch import Engine
from scenarios.runner import resume, run
from server.sampling import draw_cohort
from tests.canary import CANARY, Worlds, along, canaries

SEPARATED = ("sampling={name='separated', cohort=3, separation=4}", "server.rounds=10")
BANDED = (*SEPARATED, "privacy.bands=4")


def cohorts(plan: Plan, rounds: int, seed: int = 1) -> Iterator[np.ndarray]:
    ledger = Ledger(plan)
    for number in range(rounds):
        cohort = draw_cohort(plan, ledger, Streams(seed), number)
        ledger.request(cohort)
        ledger.release(cohort, len(cohort))
        yield cohort


@pytest.mark.parametrize(("cohort", "separation"), [(3, 4), (2, 4), (1, 4), (2, 6), (12, 1)])
def test_nobody_is_asked_twice_in_so_many_rounds_and_everybody_comes(
    make_scenario, cohort, separation
) -> None:
    asked = make_scenario(f"sampling={{name='separated', cohort={cohort}, separation={separation}}}")
    last, seen = np.full(12, -separation), np.zeros(12, dtype=int)
    for number, ids in enumerate(cohorts(plan_of(asked), 60)):
        assert len(ids) == len(set(ids)) == cohort
        assert (number - last[ids] >= separation).all()
        last[ids] = number
        seen[ids] += 1
    assert seen.sum() == 60 * cohort
    assert seen.min() > 0
    assert seen.max() <= -(-60 // separation)


def test_who_comes_is_another_order_with_another_seed(make_scenario) -> None:
    plan = plan_of(make_scenario(*SEPARATED))
    one, again, other = ([ids.tolist() for ids in cohorts(plan, 8, seed)] for seed in (1, 1, 2))
    assert one == again != other


def test_a_server_that_would_ask_too_early_does_not(make_scenario, trial) -> None:
    played = trial(make_scenario(*BANDED))
    cohort, _ = played.federation.round(0)
    asked = played.ledger._last_rounds.copy()
    with pytest.raises(
        RunError, match=rf"round 1: client {cohort[0]} participated in round 0.*one participation in 4 rounds"
    ):
        played.ledger.request(cohort[:1])
    assert np.array_equal(played.ledger._last_rounds, asked)
    played.ledger.eligible = lambda: None  # a sampler that forgets
    with pytest.raises(RunError, match="one participation in 4 rounds"):
        played.play()


def test_the_server_adds_the_noise_of_the_plan(make_scenario, trial) -> None:
    """Round by round, through the apps: with nearly none of it the same sums, to which this noise was added."""
    rate = "server.learning_rate=1e-6"  # what is released moves no client
    loud = trial(make_scenario(*BANDED, rate))
    quiet = trial(make_scenario(*BANDED, rate, "privacy.noise_multiplier=0.0001"))
    quiet.federation.streams = loud.federation.streams
    moved = [[], []]
    for number in range(10):
        for found, played in zip(moved, (loud, quiet), strict=True):
            before = played.federation.weights.copy()
            played.federation.round(number)
            found.append((played.federation.weights - before) * 3 / 1e-6)
    mechanism = loud.fleet.plan.banded
    white = np.array(
        [loud.federation.streams.noise("central", round=n).standard_normal(len(before)) for n in range(10)]
    )
    expected = np.linalg.inv(mechanism.strategy.matrix()) @ white * (2.0 - 1e-4)
    assert np.allclose(np.array(moved[0]) - np.array(moved[1]), expected, atol=1e-3)


def test_a_run_costs_the_answers_that_a_client_may_have_given(make_scenario, trial) -> None:
    claims = {}
    for name, changes in {"independent": SEPARATED, "banded": BANDED}.items():
        played = trial(make_scenario(*changes))
        claims[name] = []
        for number in range(10):
            played.federation.round(number)
            stated = {one.observer: one for one in guarantees(played.ledger.to_json())}
            claims[name].append(stated["participant"].epsilon)
            assert not any(
                "cohort of each round stays secret" in text for text in stated["outsider"].assumptions
            )
    once = [
        replace(plan_of(make_scenario("privacy.noise_multiplier=2.0")), rounds=answers).spent().epsilon
        for answers in (1, 2, 3)
    ]
    assert claims["banded"] == pytest.approx([once[number // 4] for number in range(10)])
    assert claims["independent"] == claims["banded"]
    assert "banded matrix factorisation, 4 bands" in played.fleet.plan.noise_words
    assert "each asked at most once in 4 rounds, so at most 3 times in all" in stated["participant"].words
    assert any("noise of past rounds" in text for text in stated["participant"].assumptions)


def test_calibration_keeps_within_epsilon_and_needs_no_more_noise_for_more_bands(make_scenario) -> None:
    noise = {}
    for bands in (1, 2, 4):
        plan = plan_of(make_scenario(*SEPARATED, f"privacy.bands={bands}", "privacy.epsilon=2"))
        assert plan.spent().epsilon == pytest.approx(2, abs=1e-6)
        assert plan.answers == 3
        noise[bands] = plan.noise_multiplier
    assert len(set(noise.values())) == 1
    everybody = plan_of(make_scenario("server.rounds=10", "privacy.epsilon=2"))
    assert noise[1] == pytest.approx(everybody.noise_multiplier * np.sqrt(3 / 10), rel=1e-6)


def test_plans_survive_their_journey_and_are_compared_whole(make_scenario) -> None:
    plan = plan_of(make_scenario(*BANDED))
    assert Plan.from_json(json.loads(json.dumps(plan.to_json()))) == plan
    wider = replace(plan, sampler=SeparatedSampling(2, 6), mechanism=replace(plan.mechanism, bands=5))
    assert "bands" in str(plan.refusal(wider))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            {"sampler": SeparatedSampling(3, 5)},
            "separation = 5: 5 cohorts of 3 are 15 clients, and there are 12",
        ),
        ({"sampler": SeparatedSampling(4, 3)}, "bands = 4: larger than separation = 3: two answers"),
        ({"sampler": SeparatedSampling(0, 3)}, "at least 1"),
        ({"rounds": 11}, "no more rounds"),
        ({"trust": "none"}, "under trust .central. alone"),
        ({"adjacency": "add-remove"}, "zero-out"),
    ],
)
def test_a_plan_that_could_not_keep_its_word_is_none(make_scenario, change: dict, says: str) -> None:
    with pytest.raises(InputError, match=says):
        replace(plan_of(make_scenario(*BANDED)), **change)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (["sampling.separation=5"], r"sampling.separation=5: 5 cohorts of 3 are 15 clients.*At most 4, or cohorts of at most 2"),
        (["sampling.cohort=13"], "larger than the population"),
        (["privacy.bands=5"], r"larger than sampling.separation = 4.*At most 4"),
        (["sampling.name=all"], "sampling .all. does not keep to that"),
        (["sampling={name='poisson', rate=0.5}"], "does not keep to that"),
        (["privacy.adjacency=add-remove"], "zero-out"),
        (["privacy.unit=example", "data.records=600"], "unit = .client. alone"),
        (["privacy.clipping_quantile=0.5"], "one clipping norm"),
        (["server.denoise=student-t"], "take out what later rounds take back"),
        (["privacy.trust=local"], "has no effect with trust"),
        (["privacy.bands=0"], "must be at least 1"),
        (
            ["sampling={name='separated', cohort=1, separation=12}", "privacy.bands=12", "server.rounds=1000", "data.features=50000", "model={name='mlp', hidden=[2000]}"],
            "keeps the noise of 11 rounds, of 100,006,002 parameters each: 9 GB",
        ),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_refused(make_scenario, changes: list[str], says: str) -> None:
    with pytest.raises(InputError, match=says):
        make_scenario(*BANDED, *changes)


def test_another_sampler_takes_the_bands_along(make_scenario, base_text) -> None:
    text = make_scenario(*BANDED, text=base_text).to_toml()
    assert make_scenario("sampling.name=all", text=text).privacy.bands is None
    assert make_scenario("sampling={name='all'}", text=text).privacy.bands is None
    assert make_scenario("sampling.cohort=2", text=text).privacy.bands == 4
    records = make_scenario("privacy.unit=example", text=text)
    assert (records.privacy.bands, records.sampling.name) == (None, "separated")


def test_equal_epsilon_is_for_as_many_answers_under_every_trust_model(make_scenario, trial) -> None:
    """Ten rounds in which nobody comes twice in four are three answers, whoever adds the noise."""
    keys = (*SEPARATED, "privacy.epsilon=4.0")
    central, local = (plan_of(make_scenario(*keys, f"privacy.trust={one}")) for one in ("central", "local"))
    assert central.answers == local.answers == 3
    assert central.noise_multiplier == local.noise_multiplier
    played = trial(make_scenario(*keys, "privacy.trust=local"))
    played.play()
    stated = [one.epsilon for one in guarantees(played.ledger.to_json()) if one.observer == "server"]
    assert stated == [pytest.approx(4.0, rel=1e-3)]


def test_other_trust_models_ask_by_the_same_rule(make_scenario, trial) -> None:
    """Without noise, and where each client adds its own and is charged for its answers, as ever."""
    alone = trial(make_scenario(*SEPARATED, "privacy={trust='none'}"))
    assert alone.play().any()
    local = trial(make_scenario(*SEPARATED, "privacy.trust=local", "privacy.max_participations=2"))
    total = 0
    for number in range(10):
        cohort, counted = local.federation.round(number)
        total += len(cohort)
        assert (counted.answered, counted.refused) == (len(cohort), 0)
    assert total == 24  # all that twelve clients may answer, and then nobody is asked


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("workers", [1, 2])
def test_a_resumed_run_asks_and_draws_as_if_it_had_never_stopped(
    make_scenario, tmp_path: Path, workers: int
) -> None:
    asked = make_scenario(*BANDED, "sampling.cohort=2", "federation.hosts=2")
    whole = run(asked, tmp_path, report=False)

    def stop(event: dict) -> None:
        if event["round"] == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(asked, tmp_path / "broken", on_round=stop)
    (path,) = (tmp_path / "broken").iterdir()
    broken = json.loads((path / "run.json").read_text())
    assert broken["ledger"]["claims"][1]["event"]["count"] == 3  # of all ten rounds
    released = broken["ledger"]["completed"]
    assert released["claims"][1]["event"]["count"] == 2  # six rounds of four: two answers
    kept = RunDirectory(path).load_checkpoint().tensors
    assert set(kept) == {"weights", "ledger/asked", "node/index"}  # of the noise nothing is on disk
    resumed = resume(path, engine=Engine(workers=workers))
    ends = [RunDirectory(Path(one["path"])).load_checkpoint().tensors for one in (whole, resumed)]
    for name in kept:
        assert np.array_equal(ends[0][name], ends[1][name])
    assert resumed["ledger"] == whole["ledger"]
    assert checked_document(path)["privacy"]["mechanism"] == "banded-gaussian"
    page = write(resumed, path).read_text()
    assert "banded matrix factorisation, 4 bands" in page
    assert "each at most once in 4 rounds" in page


def test_a_checkpoint_that_forgot_who_was_asked_is_refused(make_scenario, trial) -> None:
    played = trial(make_scenario(*BANDED))
    played.federation.round(0)
    arrays, facts = played.ledger.state()
    again = Ledger(played.fleet.plan)
    with pytest.raises(InputError, match="ledger/asked"):
        again.restore({}, facts)
    again.restore(arrays, facts)
    assert again.eligible().tolist() == played.ledger.eligible().tolist()


def test_clients_that_fail_add_nothing_and_wait_as_long(make_scenario, trial, make_people) -> None:
    """Who fails may depend on its data, and must not come back sooner for it."""
    rng = np.random.default_rng(0)
    people = make_people(rng.standard_normal((12, 4)), np.array([0, 1] * 5 + [0, 7]))
    played = trial(make_scenario(*BANDED), people)
    failed = [number for number in range(10) if played.federation.round(number)[1].failed]
    assert failed
    assert (np.diff(failed) >= 4).all()


APART = (
    "server.rounds=5", "sampling={name='separated', cohort=2, separation=3}", "privacy.bands=3",
)  # fmt: skip


def scores(
    make_scenario, trial, make_people, trials: int, answers: int = 2
) -> tuple[np.ndarray, np.ndarray, float]:
    """One likelihood ratio a canary, of all that five rounds released, with its record or its worst one.

    Each client is a canary: its update is +C u or -C u for a known u of its own. Whoever attacks knows in which rounds
    it was asked, and the strategy.
    """
    base, worlds = make_scenario(*APART, text=CANARY), Worlds()
    for first in (0, 1):
        x, labels = canaries(base.population, first)
        people = make_people(x, labels)
        fleet = Fleet.of(base, people)
        for seed in range(trials // base.population):
            streams = Streams(seed + 1_000_000 * first)
            played = trial(base, people, fleet=replace(fleet, streams=streams))
            federation = played.federation
            federation.streams = streams
            asked, moved = np.zeros((2, 5, base.population))
            for number in range(5):
                before = federation.weights.copy()
                cohort, _ = federation.round(number)
                asked[number, cohort] = 1
                moved[number] = along(federation.weights - before, base.population)
            charged = asked.sum(axis=0) == answers  # two are charged for
            matrix = fleet.plan.banded.strategy.matrix()
            ratios = ((matrix @ asked) * (matrix @ moved)).sum(axis=0)
            worlds.add(ratios[charged], labels[charged])
    claimed = {one.observer: one.epsilon for one in guarantees(played.ledger.to_json())}
    return *worlds.both(), claimed["outsider"]


def test_the_audit_keeps_the_claim_and_has_teeth(make_scenario, trial, make_people) -> None:
    present, absent, claimed = scores(make_scenario, trial, make_people, 350)
    assert min(len(present), len(absent)) > 100
    assert claimed / 2 <= gaussian_bound(present, absent, 1e-2, 0.999).epsilon <= claimed


@pytest.mark.exhaustive
def test_half_the_noise_breaks_the_claim(make_scenario, trial, make_people, monkeypatch) -> None:
    half = property(lambda self: self.noise_multiplier * self.clipping_norm / 2)
    monkeypatch.setattr(BandedGaussian, "standard_deviation", half)
    present, absent, claimed = scores(make_scenario, trial, make_people, 200)
    assert gaussian_bound(present, absent, 1e-2, 0.999).epsilon > claimed


@pytest.mark.exhaustive
def test_a_client_that_comes_back_too_early_breaks_the_claim(
    make_scenario, trial, make_people, monkeypatch
) -> None:
    """What the separation is for: asked in each round, against noise that was made for two answers."""
    monkeypatch.setattr(Ledger, "eligible", lambda self: None)
    monkeypatch.setattr(Ledger, "request", lambda self, cohort: None)
    everybody = lambda self, population, stream, round: np.arange(population)  # noqa: E731
    monkeypatch.setattr(SeparatedSampling, "draw", everybody)
    present, absent, claimed = scores(make_scenario, trial, make_people, 150, answers=5)
    assert gaussian_bound(present, absent, 1e-2, 0.999).epsilon > claimed


def test_records_of_clients_that_come_apart_are_charged_for_as_many_answers(make_scenario, trial) -> None:
    records = ("privacy.unit=example", "data.records=600", "training.learning_rate=0.1")
    batches = "training={batches='poisson', steps=1, rate=0.5, learning_rate=0.1}"
    claimed = {}
    for name, sampling in {"apart": SEPARATED, "everybody": ("server.rounds=3",)}.items():
        asked = make_scenario(*records, *sampling, batches)
        played = trial(asked)
        played.ledger.sizes = played.people.partition.sizes
        played.play()
        data = played.ledger.to_json()
        claimed[name] = guarantees(data)[1].epsilon
        assert per_client(data)["largest"] == pytest.approx(claimed[name])
    assert claimed["apart"] == pytest.approx(claimed["everybody"])
