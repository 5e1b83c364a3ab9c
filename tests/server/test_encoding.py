"""Encoded updates through the real apps: what clients answer, who refuses, what is refused, and the claim, audited.

False-alarm rate of the audits: 1e-3, with fixed seeds.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from clients.fleet import Fleet
from clients.training_handler import answer
from fedprivacy.attacks.repeated_run_epsilon import threshold_bound
from fedprivacy.errors import InputError, Refusal
from fedprivacy.mechanisms.encoded import EncodedGaussian, EncodedStudent
from fedprivacy.messages.protocol import TrainRequest
from fedprivacy.plan.from_scenario import plan_of
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.randomness.streams import Streams
from fedprivacy.records.run_directory import RunDirectory
from fedprivacy.verification.verify import checked_document
from scenarios.engines.launch import Engine
from scenarios.runner import run
from tests.canary import CANARY

SIGNS, STUDENT = ("privacy.encoding=signs",), ("privacy.encoding=signs", "privacy.mechanism=student-t")
TOP = ("privacy.encoding=top-k", "privacy.encoding_share=0.3")
LEVELS = ("privacy.encoding=levels", "privacy.encoding_levels=4")


def asked_of(fleet: Fleet, observe: str = "sum") -> TrainRequest:
    weights = np.zeros(fleet.parameters, np.float32)
    return TrainRequest(0, 0, 0, np.arange(12), weights, fleet.plan, observe)


@pytest.mark.parametrize("changes", [SIGNS, TOP, LEVELS])
def test_clients_answer_with_codes_and_the_sum_is_that_of_codes(make_scenario, trial, changes) -> None:
    plain, fleet = trial(make_scenario()).fleet, trial(make_scenario(*changes)).fleet
    clipped, _ = answer(plain, None, asked_of(plain, "each"))
    each, _ = answer(fleet, None, asked_of(fleet, "each"))
    made = fleet.plan.encoder
    for code, update in zip(each.updates, clipped.updates, strict=True):
        assert not np.array_equal(code, update)
        assert np.linalg.norm(code) <= 1.0 + 1e-12
        assert code @ update > 0
        if made.ternary:
            assert set(np.abs(code).tolist()) <= {0.0, made.size}
            assert np.count_nonzero(code) <= made.coordinates
    total, _ = answer(fleet, None, asked_of(fleet))
    assert np.allclose(total.updates, each.updates.sum(axis=0), atol=1e-12)


def test_under_local_trust_a_client_encodes_before_its_own_noise(make_scenario, trial) -> None:
    local = ("privacy.trust=local", "privacy.noise_multiplier=0.0001", "privacy.max_participations=3")
    central, fleet = trial(make_scenario(*SIGNS)).fleet, trial(make_scenario(*local, *SIGNS)).fleet
    codes, _ = answer(central, None, asked_of(central, "each"))
    noisy, _ = answer(fleet, None, asked_of(fleet, "each"))
    assert isinstance(fleet.plan.mechanism, EncodedGaussian)
    assert np.abs(noisy.updates - codes.updates).max() < 1e-3
    assert np.abs(noisy.updates - codes.updates).min() > 0


def test_clients_that_agreed_to_another_code_refuse(make_scenario, trial) -> None:
    plain, fleet = trial(make_scenario()).fleet, trial(make_scenario(*TOP)).fleet
    more = trial(make_scenario(*TOP[:1], "privacy.encoding_share=0.5")).fleet
    for who, asked in ((plain, fleet), (fleet, plain), (fleet, more)):
        with pytest.raises(Refusal, match="another plan"):
            answer(who, None, asked_of(asked))


@pytest.mark.parametrize("changes", [SIGNS, TOP, LEVELS, STUDENT])
def test_plans_survive_their_journey(make_scenario, changes) -> None:
    plan = plan_of(make_scenario(*changes))
    assert Plan.from_json(json.loads(json.dumps(plan.to_json()))) == plan
    data = plan.to_json()
    data["mechanism"]["coordinates"] = 10**6
    with pytest.raises(InputError, match="coordinates"):
        Plan.from_json(data)


@pytest.mark.parametrize("changes", [TOP, STUDENT])
def test_any_number_of_workers_finds_the_same_and_the_record_is_accounted_for_again(
    make_scenario, tmp_path: Path, changes
) -> None:
    asked = make_scenario(*changes, "federation.hosts=2", "federation.chunk_size=3")
    found = [run(asked, tmp_path / str(n), report=False, engine=Engine(workers=n)) for n in (1, 2)]
    ends = [RunDirectory(Path(one["path"])).load_checkpoint().tensors["weights"] for one in found]
    assert np.array_equal(*ends)
    where = Path(found[0]["path"])
    assert checked_document(where)["privacy"]["mechanism"].startswith("encoded-")
    text = (where / "run.json").read_text()
    cheaper = text.replace('"noise_multiplier": 2.0', '"noise_multiplier": 2.5')
    assert cheaper != text
    (where / "run.json").write_text(cheaper)
    with pytest.raises(InputError, match="changed"):
        checked_document(where)


def test_the_server_adds_the_noise_that_the_ledger_states(make_scenario, trial) -> None:
    played = trial(make_scenario(*STUDENT))
    federation, weights = played.federation, played.federation.weights.copy()
    reply, _ = answer(played.fleet, None, replace(asked_of(played.fleet), weights=federation.model))
    federation.round(0)
    noise = Streams.noise(federation.streams, "central", round=0).standard_t(9.0, len(weights))
    released = reply.updates + noise * 2.0 * math.sqrt(7 / 9)
    assert np.allclose(federation.weights, weights + released / 12)
    claims = played.ledger.to_json()["claims"]
    event = next(claim["event"] for claim in claims if claim["observer"] == "outsider")
    assert event["event"] == {
        "type": "EncodedStudentDpEvent",
        "noise_multiplier": 2.0,
        "degrees": 9.0,
        "coordinates": len(weights),
        "dimension": len(weights),
    }


def test_a_budget_is_met(make_scenario) -> None:
    asked = make_scenario(*STUDENT, "privacy.noise_multiplier=4.0")
    plan = plan_of(asked).calibrate(3.0)
    assert isinstance(plan.mechanism, EncodedStudent)
    assert 2.99 <= plan.spent().epsilon <= 3.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["privacy.encoding_share=0.1"], "no effect without encoding = .top-k."),
        (["privacy.encoding=signs", "privacy.encoding_levels=3"], "no effect without encoding = .levels."),
        (["privacy.degrees=9"], "no effect without mechanism = .student-t."),
        (["privacy.encoding=stars"], "encoding"),
        ([*SIGNS, "privacy.unit=example", "data.records=600"], "unit = .client. alone"),
        ([*SIGNS, "privacy.clipping_quantile=0.5"], "a clipping norm that stays"),
        (["privacy.mechanism=student-t"], "codes of few cases"),
        ([*LEVELS, "privacy.mechanism=student-t"], "codes of few cases"),
        ([*STUDENT, "sampling={name='fixed', cohort=5}"], "cohorts of fixed size"),
        ([*STUDENT, "server.denoise=james-stein"], "knows Gaussian noise alone"),
        ([*STUDENT, "privacy.degrees=2"], "degrees"),
        ([*SIGNS, "privacy.trust=local", "privacy.mechanism=sqkr"], "an encoding of its own"),
        ([*SIGNS, "privacy.trust=local", "privacy.mechanism=auto"], "an encoding of its own"),
    ],
)
def test_what_cannot_be_encoded_is_refused(make_scenario, changes: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_scenario(*changes)


def test_a_plan_for_records_or_local_student_noise_is_refused(make_scenario) -> None:
    plan = plan_of(make_scenario(*STUDENT))
    with pytest.raises(InputError, match=r"for trust .central. alone"):
        replace(plan, trust="local")
    plan = plan_of(make_scenario("privacy.trust=central", "privacy.unit=example", "data.records=600"))
    with pytest.raises(InputError, match="updates are encoded, and not gradients of records"):
        replace(plan, mechanism=EncodedGaussian(1.0, 2.0, "signs", 10, 10))


ENCODED = (
    "server.rounds=1", "privacy.encoding=signs", "privacy.mechanism=student-t", "privacy.degrees=5.0",
)  # fmt: skip


def scores(
    make_scenario, trial, make_people, epsilon: float, trials: int
) -> tuple[np.ndarray, np.ndarray, float]:
    """The likelihood ratio of a round's sum between the canary's code and its opposite, by the noise it has.

    The canary's record is far out, of one class or the other; the other clients are the same in both worlds.
    Each round begins with the same model, and is a trial of its own: its noise is keyed by its number.
    """
    base = make_scenario(*ENCODED, "data.features=1", f"privacy.epsilon={epsilon}", text=CANARY)
    worlds, codes = [], []
    for label in (0, 1):
        x, y = np.zeros((base.population, 1)), np.zeros(base.population)
        x[0], y[0] = 1e4, label
        fleet = Fleet.of(base, make_people(x, y))
        weights = np.zeros(fleet.parameters, np.float32)
        request = TrainRequest(0, 0, 0, np.arange(6), weights, fleet.plan, "each")
        codes.append(answer(fleet, None, request)[0].updates)
        federation, found = trial(base, fleet.people, fleet=fleet).federation, []
        federation.streams = Streams(1 + label)
        for number in range(trials):
            federation.weights = np.zeros(fleet.parameters)
            federation.round(number)
            found.append(federation.weights * 6 / 1e-6)
        worlds.append(np.array(found))
    assert np.array_equal(codes[0][1:], codes[1][1:])
    assert np.allclose(codes[0][0], -codes[1][0])  # a code and its opposite: the worst that there is
    assert np.linalg.norm(codes[0][0]) == pytest.approx(1.0)
    law = stats.t(5.0, scale=fleet.plan.mechanism.scale)
    ends = [each.sum(axis=0) for each in codes]
    ratio = [(law.logpdf(seen - ends[0]) - law.logpdf(seen - ends[1])).sum(axis=1) for seen in worlds]
    return ratio[0], ratio[1], fleet.plan.spent().epsilon


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize(("trials", "teeth"), [(150, 0.0), (700, 0.25)])
def test_the_audit_keeps_the_claim_and_has_teeth(
    make_scenario, trial, make_people, trials: int, teeth: float
) -> None:
    present, absent, claimed = scores(make_scenario, trial, make_people, 3.0, trials)
    assert claimed * teeth <= threshold_bound(present, absent, 1e-2, 0.999).epsilon <= claimed


@pytest.mark.exhaustive
def test_a_quarter_of_the_noise_breaks_the_claim(make_scenario, trial, make_people, monkeypatch) -> None:
    whole = EncodedStudent.draw
    monkeypatch.setattr(EncodedStudent, "draw", lambda self, *args: whole(self, *args) / 4)
    present, absent, claimed = scores(make_scenario, trial, make_people, 1.0, 250)
    assert threshold_bound(present, absent, 1e-2, 0.999).epsilon > claimed
