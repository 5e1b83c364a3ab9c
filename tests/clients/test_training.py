"""A client's side of the wall, through the real ClientApp and grid."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, RecordDict
from scipy import stats

from clients.app import make_app
from clients.fleet import Budgets, Fleet
from clients.privacy import privatise
from clients.training import answer
from fedprivacy.data.population import population
from fedprivacy.errors import InputError, Refusal
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.plan import Plan
from fedprivacy.protocol import TrainRequest
from fedprivacy.sampling import AllSampling
from fedprivacy.seeds import Streams
from scenarios.engines.embedded import EmbeddedGrid

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


def test_each_client_answers_with_its_own_clipped_and_noised_update(fleet: Fleet) -> None:
    reply = answer(fleet, budgets(), request())
    quiet = answer(
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
        replace(LOCAL, trust="none", mechanism=None),
    ],
)
def test_a_server_that_asks_for_less_privacy_is_refused_and_nothing_is_spent(
    fleet: Fleet, asked: Plan
) -> None:
    left = budgets()
    with pytest.raises(Refusal, match="asked"):
        answer(fleet, left, request(asked))
    assert not left.counts.any()


def test_a_spent_client_refuses_whoever_asks(fleet: Fleet) -> None:
    left = budgets()
    assert len(answer(fleet, left, request(round=0)).clients) == 12
    assert answer(fleet, left, request(round=1, clients=[0, 1])).refused == 0
    reply = answer(fleet, left, request(round=2))
    assert reply.refused == 2
    assert reply.clients.tolist() == list(range(2, 12))


def test_a_round_is_answered_once_so_that_its_noise_is_never_reused(fleet: Fleet) -> None:
    left = budgets()
    answer(fleet, left, request(round=1))
    for round in (1, 0):
        reply = answer(fleet, left, request(round=round))
        assert (reply.refused, len(reply.clients), reply.updates.shape) == (12, 0, (0, 10))


def test_single_messages_are_refused_where_noise_is_drawn_for_sums(fleet: Fleet) -> None:
    plan = replace(LOCAL, noise_draw="sum")
    with pytest.raises(Refusal, match="sums only"):
        answer(replace(fleet, plan=plan), budgets(), request(plan))


@pytest.mark.parametrize("clients", [[0, 12], [-1, 0], [3, 3], [4, 2]])
def test_unknown_or_repeated_clients_are_refused(fleet: Fleet, clients: list[int]) -> None:
    with pytest.raises(InputError, match="client"):
        answer(fleet, budgets(), request(clients=clients))


def test_a_client_answers_only_where_it_lives(fleet: Fleet) -> None:
    """Asked through another node, a client would be counted there by nobody and reuse its noise."""
    spread = replace(fleet, hosts=3)
    living = request(clients=[1, 4, 7])
    on_host = replace(living, host=1)
    assert len(answer(spread, budgets(), on_host, hosts=[1]).clients) == 3
    for asked, hosts in ((on_host, [0]), (on_host, [2]), (replace(living, host=0), [0, 1])):
        left = budgets()
        with pytest.raises(InputError, match="host"):
            answer(spread, left, asked, hosts=hosts)
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
    assert "here live hosts [1]" in replies[1].error.reason


def test_one_broken_client_does_not_take_its_chunk_along(fleet: Fleet) -> None:
    people = fleet.people
    y = people.dataset.y.copy()
    y[people.partition.records(4)] = 99  # a label that the model does not have
    broken = replace(fleet, people=replace(people, dataset=replace(people.dataset, y=y)))
    reply = answer(broken, budgets(), request())
    assert reply.clients.tolist() == [0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11]
    assert len(reply.failures) == 1
    assert "client 4" in reply.failures[0]


def test_a_client_with_an_update_that_is_not_finite_still_adds_its_noise() -> None:
    updates = torch.zeros(400, 10)
    updates[:] = float("nan")
    private, zeroed = privatise(updates, np.arange(400), LOCAL, Streams(1), round=0, observe="each")
    assert zeroed == 400
    assert stats.kstest(private.reshape(-1), "norm", args=(0, 5.0)).pvalue > 1e-6


def test_the_sum_is_the_sum_of_the_single_messages_bit_for_bit(fleet: Fleet) -> None:
    each = answer(fleet, budgets(), request(observe="each")).updates
    total = answer(fleet, budgets(), request(observe="sum")).updates
    assert np.array_equal(torch.from_numpy(each).sum(dim=0).numpy(), total)


def test_one_draw_for_a_sum_has_the_distribution_of_the_sum_of_draws() -> None:
    plan, clients = replace(LOCAL, noise_draw="sum"), np.arange(64)
    draws = np.concatenate(
        [
            privatise(torch.zeros(64, 500), clients, plan, Streams(1), round=r, observe="sum")[0]
            for r in range(10)
        ]
    )
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
    clients = np.arange(first, first + size)
    return privatise(torch.zeros(size, 50), clients, plan, Streams(1), round=round, observe=observe)[0]


@pytest.mark.parametrize("draw", ["client", "sum"])
def test_no_two_rounds_and_no_two_chunks_share_their_noise(draw: str) -> None:
    """A server that subtracts two messages with the same noise sees the updates behind it."""
    plan = replace(LOCAL, noise_draw=draw)
    draws = [noise_of(plan, "sum", round, first) for round in range(5) for first in (0, 4, 8)]
    distances = [np.abs(a - b).max() for i, a in enumerate(draws) for b in draws[:i]]
    assert min(distances) > 1


def test_a_zeroed_client_has_its_share_in_the_one_draw_for_a_sum() -> None:
    plan, clients = replace(LOCAL, noise_draw="sum"), np.arange(64)
    updates = torch.full((64, 5000), float("nan"))
    noise, zeroed = privatise(updates, clients, plan, Streams(1), round=0, observe="sum")
    assert zeroed == 64
    assert stats.kstest(noise, "norm", args=(0, 5.0 * 8)).pvalue > 1e-6
