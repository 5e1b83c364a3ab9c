"""A client's side of the wall, through the real ClientApp and grid."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, RecordDict
from scipy import stats

from clients.app import app as flower_app
from clients.app import faults_of, make_app
from clients.chunk_training import client_chunks
from clients.fleet import Budgets, Fleet
from clients.privacy import privatise, sum_noise
from clients.training_handler import answer
from fedprivacy.errors import Refusal
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.messages.faults import Faults
from fedprivacy.messages.protocol import TrainReply, TrainRequest
from fedprivacy.plan.from_scenario import plan_of
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.population.clients import population
from fedprivacy.randomness.streams import Streams
from fedprivacy.sampling.cohorts import AllSampling
from fedprivacy.training.updates import Stack
from scenarios.engines.embedded import EmbeddedGrid
from server.adversary import Interposed

LOCAL = Plan("local", "client", "replace-one", 12, 3, AllSampling(), Gaussian(1.0, 5.0), 1e-3, 2, "client")


@pytest.fixture
def fleet(make_scenario) -> Fleet:
    asked = make_scenario()
    return Fleet.of(asked, population(asked.data), LOCAL)


def request(plan: Plan = LOCAL, round: int = 0, clients=range(12), observe: str = "each") -> TrainRequest:
    return TrainRequest(
        round, 0, 0, np.array(clients, np.int64), np.zeros(10, np.float32), plan, observe
    )  # fmt: skip


def budgets() -> Budgets:
    return Budgets.fresh(12, 2)


def replied(*args, **options) -> TrainReply:
    """What a node says to the server."""
    return answer(*args, **options)[0]


def test_each_client_answers_with_its_own_clipped_and_noised_update(fleet: Fleet) -> None:
    reply = replied(fleet, budgets(), request())
    quiet = replied(
        replace(fleet, plan=replace(LOCAL, trust="central", max_participations=None, noise_draw=None)),
        None,
        request(replace(LOCAL, trust="central", max_participations=None, noise_draw=None)),
    )
    assert (np.linalg.norm(quiet.updates, axis=1) <= 1 + 1e-12).all()
    noise = reply.updates - quiet.updates
    assert stats.kstest(noise.reshape(-1), "norm", args=(0, 5.0)).pvalue > 1e-6
    assert np.abs(np.corrcoef(noise)[np.triu_indices(12, 1)]).max() < 0.99


@pytest.mark.parametrize(
    "asked",
    [
        replace(LOCAL, mechanism=Gaussian(10.0, 5.0)),
        replace(LOCAL, mechanism=Gaussian(1.0, 0.0)),
        replace(LOCAL, max_participations=3),
        replace(LOCAL, trust="none", mechanism=None, max_participations=None, noise_draw=None),
    ],
)
def test_a_server_that_asks_for_less_privacy_is_refused_and_nothing_is_spent(
    fleet: Fleet, asked: Plan
) -> None:
    left = budgets()
    with pytest.raises(Refusal, match="requested"):
        replied(fleet, left, request(asked))
    assert not left.counts.any()


def test_a_spent_client_refuses_whoever_asks(fleet: Fleet) -> None:
    left = budgets()
    assert len(replied(fleet, left, request(round=0)).clients) == 12
    assert replied(fleet, left, request(round=1, clients=[0, 1])).refused == 0
    reply = replied(fleet, left, request(round=2))
    assert reply.refused == 2
    assert reply.clients.tolist() == list(range(2, 12))


def test_a_round_is_answered_once_so_that_its_noise_is_never_reused(fleet: Fleet) -> None:
    left = budgets()
    replied(fleet, left, request(round=1))
    for round in (1, 0):
        reply = replied(fleet, left, request(round=round))
        assert (reply.refused, len(reply.clients), reply.updates.shape) == (12, 0, (0, 10))


def test_single_messages_are_refused_where_noise_is_drawn_for_sums(fleet: Fleet) -> None:
    plan = replace(LOCAL, noise_draw="sum")
    with pytest.raises(Refusal, match="sums only"):
        replied(replace(fleet, plan=plan), budgets(), request(plan))


@pytest.mark.parametrize("clients", [[0, 12], [-1, 0], [3, 3], [4, 2]])
def test_unknown_or_repeated_clients_are_refused(fleet: Fleet, clients: list[int]) -> None:
    with pytest.raises(Refusal, match="client") as refused:
        replied(fleet, budgets(), request(clients=clients))
    assert refused.value.kind == "clients"


def test_a_client_answers_only_where_it_lives(fleet: Fleet) -> None:
    """Asked through another node, a client would be counted there by nobody and reuse its noise."""
    spread = replace(fleet, hosts=3)
    living = request(clients=[1, 4, 7])
    on_host = replace(living, host=1)
    assert len(replied(spread, budgets(), on_host, hosts=[1]).clients) == 3
    for asked, hosts in ((on_host, [0]), (on_host, [2]), (replace(living, host=0), [0, 1])):
        left = budgets()
        with pytest.raises(Refusal, match="host"):
            replied(spread, left, asked, hosts=hosts)
        assert not left.counts.any()


def test_a_malicious_server_cannot_ask_a_client_through_a_second_node(make_scenario) -> None:
    asked = make_scenario("privacy.trust=local", "federation.hosts=2")
    fleet = Fleet.of(asked)
    nodes = [{"partition-id": i, "num-partitions": 2} for i in range(2)]
    grid = EmbeddedGrid(make_app(fleet), nodes)
    replies = []
    for node in (1, 2):
        arrays, values = replace(request(fleet.plan, clients=[4]), host=0).parts()
        content = RecordDict(
            {
                "arrays": ArrayRecord({name: Array(array) for name, array in arrays.items()}),
                "values": ConfigRecord(values),
            }
        )
        replies += grid.send_and_receive([Message(content, dst_node_id=node, message_type="train")])
    assert [reply.has_error() for reply in replies] == [False, True]
    assert "this node has hosts [1]" in replies[1].error.reason


def with_broken(fleet: Fleet, client: int) -> Fleet:
    """The fleet, one client of which has a label that the model does not have."""
    people = fleet.people
    y = people.dataset.y.copy()
    y[people.partition.records(client)] = 99
    return replace(fleet, people=replace(people, dataset=replace(people.dataset, y=y)))


def test_one_broken_client_does_not_take_its_chunk_along(fleet: Fleet) -> None:
    central = replace(LOCAL, trust="central", max_participations=None, noise_draw=None)
    reply, untold = answer(with_broken(replace(fleet, plan=central), 4), None, request(central))
    assert reply.clients.tolist() == [0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11]
    assert untold == Faults()
    assert reply.faults.by_kind == {"raised": 1}
    assert "client 4" in reply.faults.first


@pytest.mark.parametrize("observe", ["sum", "each"])
def test_a_failing_client_of_a_call_of_its_own_takes_nobody_along(make_scenario, observe: str) -> None:
    """Also where clients have weights, of which there are none in a call of clients that all failed."""
    weighted = "privacy.groups.light={share=0.25, weight=0.5}"
    fleet = Fleet.of(make_scenario("data.clients=257", "data.records=514", weighted))
    weights = np.zeros(10, np.float32)
    asked = TrainRequest(0, 0, 0, np.arange(257), weights, fleet.plan, observe)
    assert [len(call) for call in client_chunks(fleet, asked.clients, observe)] == [256, 1]
    broken = with_broken(fleet, 256)
    reply, others = (
        answer(broken, None, asked)[0],
        replied(fleet, None, replace(asked, clients=np.arange(256))),
    )
    assert reply.clients.tolist() == list(range(256))
    assert reply.faults.by_kind == {"raised": 1}
    assert np.array_equal(reply.updates, others.updates)
    alone = replied(broken, None, replace(asked, clients=np.array([256])))
    assert (len(alone.clients), alone.faults.by_kind) == (0, {"raised": 1})
    assert alone.updates.shape == ((10,) if observe == "sum" else (0, 10))
    assert not alone.updates.any()


@pytest.mark.parametrize("draw", ["client", "sum"])
def test_under_local_trust_a_failing_client_answers_like_any_other(fleet: Fleet, draw: str) -> None:
    """Who fails may depend on its data, and a share of noise that is missing would be missed."""
    plan = replace(LOCAL, noise_draw=draw)
    asked = request(plan, observe="each" if draw == "client" else "sum")
    healthy = replied(replace(fleet, plan=plan), budgets(), asked)
    reply, faults = answer(with_broken(replace(fleet, plan=plan), 4), budgets(), asked)
    assert faults.failed == 1
    assert reply.parts()[1] == healthy.parts()[1]
    assert reply.faults == Faults()
    assert np.array_equal(reply.clients, healthy.clients)
    difference = reply.updates - healthy.updates
    if draw == "client":
        assert np.flatnonzero(difference.any(axis=1)).tolist() == [4]
        difference = difference[4]
    assert 0 < np.linalg.norm(difference) <= 1 + 1e-6  # its clipped update, and not its noise, is missing


def test_under_local_trust_nothing_but_the_noisy_update_tells_of_an_overflow(fleet: Fleet) -> None:
    """A model near the largest float32 overflows on some records and not on others."""
    huge = replace(request(), weights=np.full(10, 3.4e38, np.float32))
    reply, faults = answer(fleet, budgets(), huge)
    assert faults.zeroed > 0
    assert reply.faults == Faults()
    assert len(reply.clients) == 12
    assert np.linalg.norm(reply.updates, axis=1).max() < 5 * 10


def test_what_local_trust_hides_from_the_server_can_be_looked_up_on_the_node(make_scenario, trial) -> None:
    spied: list[Message] = []

    class Spy(Interposed):
        def send_and_receive(self, messages, *, timeout=None):
            for reply in super().send_and_receive(messages, timeout=timeout):
                spied.append(reply)
                yield reply

    class Passive:
        def act(self, request):
            return request

        def observe(self, reply):
            return reply

    asked = make_scenario("privacy.trust=local")
    fleet = with_broken(Fleet.of(asked), 4)
    played = trial(asked, fleet=fleet, wrap=lambda grid: Spy(grid, Passive()))
    played.play(2)
    faults = faults_of(played.grid.states.values(), round=1)
    assert (faults.failed, faults.zeroed) == (1, 0)
    assert "client 4" in faults.first
    assert faults_of(played.grid.states.values(), round=0) == Faults()
    replies = [dict(message.content["values"]) for message in spied if "values" in message.content]
    assert len(replies) == 6
    assert all(values == {"refused": 0, **Faults().values()} for values in replies)


def test_a_client_with_an_update_that_is_not_finite_still_adds_its_noise() -> None:
    updates = torch.zeros(400, 10)
    updates[:] = float("nan")
    private, zeroed = privatise(Stack(updates), np.arange(400), LOCAL, Streams(1), round=0, observe="each")
    assert zeroed.sum() == 400
    assert stats.kstest(private.reshape(-1), "norm", args=(0, 5.0)).pvalue > 1e-6


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("threads", [1, 3])
def test_each_of_many_clients_draws_from_its_own_stream(threads: int) -> None:
    """However many of them are randomised at once: more than fit into a cache here."""
    updates, clients = torch.zeros(30, 10_000), np.arange(5, 95, 3)
    private, _ = privatise(
        Stack(updates), clients, LOCAL, Streams(1), round=2, observe="each", threads=threads
    )
    for row, client in zip(private, clients, strict=True):
        stream = Streams(1).noise("local", round=2, member=int(client))
        assert row == pytest.approx(5.0 * stream.standard_normal(10_000))


def test_the_sum_is_the_sum_of_the_single_messages_bit_for_bit(fleet: Fleet) -> None:
    each = replied(fleet, budgets(), request(observe="each")).updates
    total = replied(fleet, budgets(), request(observe="sum")).updates
    calls = np.cumsum([len(piece) for piece in client_chunks(fleet, request().clients, "sum")])
    parts = [torch.from_numpy(part).sum(dim=0).numpy() for part in np.split(each, calls[:-1])]
    assert np.array_equal(sum(parts, np.zeros(each.shape[1])), total)


def test_one_draw_for_a_sum_has_the_distribution_of_the_sum_of_draws() -> None:
    plan = replace(LOCAL, noise_draw="sum")
    draws = np.concatenate([noise_of(plan, "sum", round, size=64) for round in range(100)])
    assert stats.kstest(draws, "norm", args=(0, 5.0 * 8)).pvalue > 1e-6


def test_a_malicious_participant_is_a_flower_mod_that_honest_code_does_not_know(make_scenario, trial) -> None:
    def shout(message, context, call_next):
        reply = call_next(message, context)
        if message.metadata.message_type == "train" and 4 in message.content["arrays"]["clients"].numpy():
            seen.append(reply.content["arrays"]["updates"].numpy())
        return reply

    seen: list[np.ndarray] = []
    spied, plain = trial(make_scenario(), mods=[shout]), trial(make_scenario())
    assert np.array_equal(spied.play(), plain.play())
    assert len(seen) == 3


def noise_of(plan: Plan, observe: str, round: int = 0, first: int = 0, size: int = 4) -> np.ndarray:
    """What a chunk of clients whose updates are zero replies with: noise alone."""
    clients, updates = np.arange(first, first + size), Stack(torch.zeros(size, 50))
    private, _ = privatise(updates, clients, plan, Streams(1), round=round, observe=observe)
    return private + sum_noise(50, clients, plan, Streams(1), round=round)


@pytest.mark.parametrize("draw", ["client", "sum"])
def test_no_two_rounds_and_no_two_chunks_share_their_noise(draw: str) -> None:
    """A server that subtracts two messages with the same noise sees the updates behind it."""
    plan = replace(LOCAL, noise_draw=draw)
    draws = [noise_of(plan, "sum", round, first) for round in range(5) for first in (0, 4, 8)]
    distances = [np.abs(a - b).max() for i, a in enumerate(draws) for b in draws[:i]]
    assert min(distances) > 1


def test_a_zeroed_client_has_its_share_in_the_one_draw_for_a_sum() -> None:
    plan, clients = replace(LOCAL, noise_draw="sum"), np.arange(64)
    updates = Stack(torch.full((64, 5000), float("nan")))
    private, zeroed = privatise(updates, clients, plan, Streams(1), round=0, observe="sum")
    noise = private + sum_noise(5000, clients, plan, Streams(1), round=0)
    assert zeroed.sum() == 64
    assert stats.kstest(noise, "norm", args=(0, 5.0 * 8)).pvalue > 1e-6


def test_a_node_with_a_scenario_of_its_own_follows_no_other(make_scenario, tmp_path) -> None:
    """Under `flwr run` the run config comes from the submitter of the run."""
    own = make_scenario("privacy.trust=local")
    other = make_scenario("privacy.trust=local", "privacy.noise_multiplier=0.01")
    node = {"partition-id": 0, "num-partitions": 1, "scenario": own.to_toml(), "home": str(tmp_path)}
    grid = EmbeddedGrid(flower_app, [node], run_config={"scenario": other.to_toml()})
    for scenario, refused in ((own, False), (other, True)):
        arrays, values = request(plan_of(scenario), observe="sum", clients=[1]).parts()
        content = RecordDict(
            {
                "arrays": ArrayRecord({name: Array(array) for name, array in arrays.items()}),
                "values": ConfigRecord(values),
            }
        )
        (reply,) = grid.send_and_receive([Message(content, dst_node_id=1, message_type="train")])
        assert reply.has_error() == refused
