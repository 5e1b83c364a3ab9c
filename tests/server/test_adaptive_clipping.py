"""Adaptive clipping through the real apps: who clips by what, what goes on after a stop, and the claim, audited.

False-alarm rate of the audits: 1e-3, with fixed seeds.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from flwr.app import Array, Context, Message
from flwr.clientapp.typing import ClientAppCallable

from clients.fleet import Fleet
from clients.training_handler import answer
from fedprivacy.attacks.repeated_run_epsilon import gaussian_bound
from fedprivacy.errors import InputError, RunError
from fedprivacy.guarantees.statement import guarantees
from fedprivacy.mechanisms.adaptive import AdaptiveGaussian
from fedprivacy.messages.protocol import TrainRequest
from fedprivacy.plan.from_scenario import plan_of
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.randomness.streams import Streams
from fedprivacy.records.run_directory import RunDirectory
from scenarios.engines.launch import Engine
from scenarios.runner import resume, run
from tests.canary import CANARY, Worlds, along, canaries

ADAPTIVE = ("privacy.clipping_quantile=0.5", "privacy.clipping_count_noise=3.0")
QUIET = (*ADAPTIVE, "privacy.noise_multiplier=0.0001", "privacy.clipping_count_noise=0.0002")


def asked_of(fleet: Fleet, norm: float | None, observe: str = "sum") -> TrainRequest:
    weights = np.zeros(fleet.parameters, np.float32)
    return TrainRequest(0, 0, 0, np.arange(12), weights, fleet.plan, observe, norm)


def test_clients_clip_by_the_norm_of_the_round_and_count_what_keeps_within_it(make_scenario, trial) -> None:
    fleet = trial(make_scenario(*ADAPTIVE)).fleet
    free, _ = answer(fleet, None, asked_of(fleet, 1e6, "each"))
    norms = np.linalg.norm(free.updates[:, :-1], axis=1)
    assert (free.updates[:, -1] == 0.5).all()
    norm = float(np.median(norms))
    each, _ = answer(fleet, None, asked_of(fleet, norm, "each"))
    assert np.allclose(np.linalg.norm(each.updates[:, :-1], axis=1), np.minimum(norms, norm))
    assert np.array_equal(each.updates[:, -1], np.where(norms <= norm, 0.5, -0.5))
    total, _ = answer(fleet, None, asked_of(fleet, norm))
    assert np.allclose(total.updates, each.updates.sum(axis=0))


def test_a_norm_is_asked_for_where_the_plan_has_it_change_and_nowhere_else(make_scenario, trial) -> None:
    fleet, plain = trial(make_scenario(*ADAPTIVE)).fleet, trial(make_scenario()).fleet
    for who, norm in ((fleet, None), (plain, 2.0)):
        with pytest.raises(InputError, match="clipping norm"):
            answer(who, None, asked_of(who, norm))
    for norm in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(InputError, match="clipping norm"):
            answer(fleet, None, asked_of(fleet, norm))
    # A node with a plan of its own that has one norm refuses a server whose plan has it change.
    assert "AdaptiveGaussian" in str(plain.plan.refusal(fleet.plan))


def test_requests_and_plans_survive_their_journey(make_scenario) -> None:
    plan = plan_of(make_scenario(*ADAPTIVE))
    assert Plan.from_json(json.loads(json.dumps(plan.to_json()))) == plan
    request = TrainRequest(0, 0, 0, np.arange(2), np.zeros(3, np.float32), plan, "sum", 0.25)
    assert TrainRequest.of(*request.parts()).clipping_norm == 0.25
    assert "clipping_norm" not in replace(request, clipping_norm=None).parts()[1]


def test_the_norm_follows_its_rule_and_the_noise_is_of_the_norm_that_clipped(make_scenario, trial) -> None:
    played = trial(make_scenario(*ADAPTIVE))
    federation = played.federation
    norm, weights = federation.clipping_norm, federation.weights.copy()
    assert norm == 1.0
    reply, _ = answer(played.fleet, None, replace(asked_of(played.fleet, norm), weights=federation.model))
    federation.round(0)
    noise = Streams.noise(federation.streams, "central", round=0).standard_normal(len(weights) + 1)
    spread = (2.0**-2 - (2 * 3.0) ** -2) ** -0.5 * norm
    released = reply.updates + noise * np.array([*[spread] * len(weights), 3.0])
    assert np.allclose(federation.weights, weights + released[:-1] / 12)
    assert federation.clipping_norm == pytest.approx(norm * math.exp(-0.2 * (released[-1] / 12 + 0.5 - 0.5)))


@pytest.mark.parametrize(("place", "value"), [(0, 20.0), (-1, 7.0)])
def test_a_node_puts_no_more_into_the_update_or_the_count_than_its_clients_can(
    make_scenario, trial, place: int, value: float
) -> None:
    """Twelve clients whose norm is 1, and whose bits are halves: what one has left over is not the other's."""

    def lies(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
        reply = call_next(message, context)
        if message.metadata.message_type != "train":
            return reply
        sums = reply.content.array_records["arrays"]["updates"].numpy().copy()
        sums[place] = value
        reply.content.array_records["arrays"]["updates"] = Array(sums)
        return reply

    played = trial(make_scenario(*ADAPTIVE, "federation.chunk_size=12"), mods=(lies,))
    with pytest.raises(RunError, match=r"norm 2|counts more clients"):
        played.federation.round(0)


def test_what_is_denoised_has_the_noise_of_the_norm_that_clipped_in_every_round(make_scenario, trial) -> None:
    """James-Stein shortens by the noise of its own round, which changes with the norm."""
    played = trial(make_scenario(*ADAPTIVE, "privacy.noise_multiplier=0.05", "server.denoise=james-stein"))
    federation = played.federation
    for round_number in range(3):
        norm, before = federation.clipping_norm, federation.weights.copy()
        request = replace(asked_of(played.fleet, norm), weights=federation.model, round=round_number)
        reply, _ = answer(played.fleet, None, request)
        federation.round(round_number)
        stream = Streams.noise(federation.streams, "central", round=round_number)
        drawn = stream.standard_normal(len(before))
        spread = (0.05**-2 - (2 * 3.0) ** -2) ** -0.5 * norm
        noisy = (reply.updates[:-1] + spread * drawn) / 12
        factor = 1 - (len(noisy) - 2) * (spread / 12) ** 2 / float(noisy @ noisy)
        assert 0.9 < factor < 0.9999
        assert np.allclose(federation.weights - before, factor * noisy, rtol=1e-6)
        assert federation.clipping_norm != norm


def test_the_claim_is_that_of_a_norm_that_stays(make_scenario, trial) -> None:
    fixed, adaptive = trial(make_scenario()), trial(make_scenario(*ADAPTIVE))
    for one in (fixed, adaptive):
        one.play()
    said = [[one.epsilon for one in guarantees(played.ledger.to_json())] for played in (fixed, adaptive)]
    assert said[0] == said[1]
    assert adaptive.fleet.plan.adaptive.update_noise > fixed.fleet.plan.noise_multiplier


@pytest.mark.exhaustive
def test_without_noise_to_speak_of_half_of_the_updates_are_clipped(make_scenario, trial) -> None:
    played = trial(make_scenario(*QUIET, "privacy.clipping_norm=0.001", "server.rounds=80"))
    played.play()
    request = asked_of(played.fleet, 1e6, "each")
    free, _ = answer(played.fleet, None, replace(request, weights=played.federation.model))
    norms = np.sort(np.linalg.norm(free.updates[:, :-1], axis=1))
    assert norms[3] <= played.federation.clipping_norm <= norms[8]


def test_the_share_is_reckoned_over_who_is_expected_and_not_over_who_came(
    make_scenario, trial, monkeypatch
) -> None:
    """A denominator that followed the cohort would break the claim; one that forgot dropouts the quantile."""
    told, after = [], AdaptiveGaussian.after
    monkeypatch.setattr(AdaptiveGaussian, "after", lambda *args: told.append(args[2]) or after(*args))
    coins = ("sampling={name='poisson', rate=0.5}", "federation.dropout=0.25", "server.rounds=4")
    played = trial(make_scenario(*ADAPTIVE, *coins))
    played.play()
    assert told == [12 * 0.5 * 0.75] * 4


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("workers", [1, 2])
def test_a_resumed_run_goes_on_with_its_norm(make_scenario, tmp_path: Path, workers: int) -> None:
    asked = make_scenario(*ADAPTIVE, "server.rounds=4", "federation.hosts=2")
    whole = run(asked, tmp_path, report=False)
    norms = [event["clipping_norm"] for event in whole["rounds"]]
    assert norms[0] == 1.0
    assert len(set(norms)) == 4

    def stop(event: dict) -> None:
        if event["round"] == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(asked, tmp_path / "broken", on_round=stop)
    (path,) = (tmp_path / "broken").iterdir()
    assert RunDirectory(path).load_checkpoint().tensors["clipping_norm"] == norms[2]
    resumed = resume(path, engine=Engine(workers=workers))
    assert [event["clipping_norm"] for event in resumed["rounds"]] == norms
    ends = [RunDirectory(Path(one["path"])).load_checkpoint().tensors["weights"] for one in (whole, resumed)]
    assert np.array_equal(*ends)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["privacy.clipping_count_noise=3.0"], "no effect without clipping_quantile"),
        (
            ["privacy.clipping_quantile=0.5", "privacy.unit=example", "data.records=600"],
            "unit = .client. alone",
        ),
        (["privacy.clipping_quantile=1.5"], "must be above 0 and below 1"),
        (["privacy.clipping_quantile=0.5", "privacy.trust=local"], "has no effect with trust"),
    ],
)
def test_what_cannot_be_adapted_is_refused(make_scenario, changes: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_scenario(*changes)


def test_a_count_that_costs_more_than_the_run_is_refused(make_scenario) -> None:
    with pytest.raises(InputError, match=r"privacy\.clipping_count_noise = 0\.6.*above half.*4 leaves"):
        plan_of(make_scenario("privacy.clipping_quantile=0.5", "privacy.clipping_count_noise=0.6"))


@pytest.mark.parametrize("epsilon", [0.1, 3.0, 1000.0])
def test_a_count_noise_that_nobody_chose_has_room_at_any_epsilon(make_scenario, epsilon: float) -> None:
    """A twentieth of 12 clients, 0.6, is enough at the last of them alone."""
    quantile = "privacy.clipping_quantile=0.5"
    plan = plan_of(make_scenario(quantile, f"privacy.epsilon={epsilon}"))
    assert plan.adaptive is not None
    z = plan.adaptive.noise_multiplier
    assert plan.adaptive.count_noise == max(0.6, z)
    assert (z < 0.6) == (epsilon == 1000.0)
    assert z < plan.adaptive.update_noise <= 1.1548 * z
    assert z == plan_of(make_scenario(f"privacy.epsilon={epsilon}")).noise_multiplier
    assert plan.spent().epsilon <= epsilon
    given = [f"privacy.noise_multiplier={z!r}", quantile]
    assert plan_of(make_scenario(*given)).adaptive == plan.adaptive


ADAPTIVE_CANARY = (
    "privacy.clipping_quantile=0.5", "privacy.clipping_count_noise=4.0", "privacy.clipping_learning_rate=0.5",
)  # fmt: skip


def scores(make_scenario, trial, make_people, trials: int) -> tuple[np.ndarray, np.ndarray, float]:
    """What two rounds release along the canary's direction, each in units of the norm that clipped in it.

    Each client is a canary, with a direction of its own. Its update is far too long, one way or the other, so that
    its bit is the same in both worlds; update and bit together are audited with the mechanism.
    """
    base, worlds = make_scenario(*ADAPTIVE_CANARY, text=CANARY), Worlds()
    for first in (0, 1):
        x, labels = canaries(base.population, first)
        people = make_people(x, labels)
        fleet = Fleet.of(base, people)
        for seed in range(trials // base.population):
            streams = Streams(seed + 1_000_000 * first)
            played = trial(base, people, fleet=replace(fleet, streams=streams))
            federation = played.federation
            federation.streams, found = streams, np.zeros(base.population)
            for number in range(2):
                before, norm = federation.weights.copy(), federation.clipping_norm
                federation.round(number)
                # In units of the norm that clipped.
                found += along(federation.weights - before, base.population) / norm
            worlds.add(found, labels)
    claimed = {one.observer: one.epsilon for one in guarantees(played.ledger.to_json())}
    return *worlds.both(), claimed["outsider"]


def test_the_audit_keeps_the_claim_and_has_teeth(make_scenario, trial, make_people) -> None:
    present, absent, claimed = scores(make_scenario, trial, make_people, 300)
    assert claimed / 2 <= gaussian_bound(present, absent, 1e-2, 0.999).epsilon <= claimed


@pytest.mark.exhaustive
def test_half_the_noise_breaks_the_claim(make_scenario, trial, make_people, monkeypatch) -> None:
    half = property(lambda self: self.update_noise * self.clipping_norm / 2)
    monkeypatch.setattr(AdaptiveGaussian, "standard_deviation", half)
    present, absent, claimed = scores(make_scenario, trial, make_people, 150)
    assert gaussian_bound(present, absent, 1e-2, 0.999).epsilon > claimed
