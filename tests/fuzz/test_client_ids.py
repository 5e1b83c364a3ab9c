"""Ids that a message names: millions of them, at the ends of 64 bits, sorted only where differences wrap around."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from breaking import fuzz
from flwr.app import Message, RecordDict
from hypothesis import given
from hypothesis import strategies as some

from clients.app import reply_to
from clients.erm import Silos
from clients.fleet import Fleet
from clients.request_validation import vet, vet_query
from clients.statistics import StatisticsClients
from clients.training_handler import answer
from fedprivacy.erm.protocol import SiloReply, SiloRequest
from fedprivacy.errors import FedPrivacyError, Refusal
from fedprivacy.messages.protocol import (
    QueryRequest,
    TrainReply,
    TrainRequest,
    check_clients,
    parts_of,
    sorted_once,
)
from scenarios.engines.flower_internals import join_run
from server.reply_validation import Rejected, accepted
from tests.clients.test_erm import made as study_of_silos

MANY = 1_000_000
ENDS = [-(2**63), -(2**62), -1, 0, 1, 2, 3, 2**31, 2**62, 2**63 - 1]


def wrapping(client: int, times: int) -> np.ndarray:
    """The ids of a request that names a client so many times, between ids whose differences are all positive.

    Four steps of 2^62 are a whole turn of 64 bits.
    """
    steps = (np.arange(4 * (times - 1) + 1, dtype=np.uint64) << np.uint64(62)).view(np.int64)
    ids = steps + np.int64(client)
    assert (np.diff(ids) > 0).all()
    assert (ids == client).sum() == times
    return ids


@pytest.fixture(scope="module", autouse=True)
def run() -> None:
    join_run()


@pytest.mark.parametrize("times", [2, 3, 200])
def test_a_client_that_is_named_often_between_ids_that_wrap_around_is_refused(
    make_scenario, make_statistics, times: int
) -> None:
    fleet = Fleet.of(make_scenario("privacy.trust=local", "privacy.noise_multiplier=2.0"))
    weights, ids = np.zeros(fleet.parameters, np.float32), wrapping(3, times)
    request = TrainRequest(0, 0, 0, ids, weights, fleet.plan, "sum")
    who, silos = StatisticsClients.of(make_statistics()), Silos.of(study_of_silos())
    asked, marks = QueryRequest(0, 0, ids, who.plan.to_json()), who.fresh()
    step = SiloRequest(0, 0, 0, ids, np.zeros((3, 2)), silos.study.plan(silos.study.lots[0]))
    for serve in (
        lambda: answer(fleet, None, request),
        lambda: vet(fleet, request, [0], "sum"),
        lambda: who.answer(asked, marks, [0]),
        lambda: vet_query(who, asked, [0]),
        lambda: silos.answer(step, silos.fresh(), [0]),
    ):
        with pytest.raises(Refusal) as refused:
            serve()
        assert refused.value.kind == "clients"
    assert not marks.any()


@fuzz(300)
@given(
    some.lists(some.sampled_from(ENDS) | some.integers(0, 11), max_size=14),
    some.booleans(),
    some.sampled_from([(0, 1), (1, 3)]),
)
def test_just_those_lists_pass_that_name_clients_of_the_host_once_and_sorted(
    ids: list[int], rising: bool, living: tuple[int, int]
) -> None:
    host, hosts = living
    ids = sorted(ids) if rising else ids
    honest = ids == sorted(set(ids)) and all(0 <= one < 12 and one % hosts == host for one in ids)
    array = np.array(ids, dtype=np.int64)
    assert sorted_once(array) == (ids == sorted(set(ids)))
    if honest:
        check_clients(array, host, [host], hosts, 12)
        return
    with pytest.raises(Refusal) as refused:
        check_clients(array, host, [host], hosts, 12)
    assert refused.value.kind == "clients"


def test_a_reply_of_silos_that_names_one_often_is_refused() -> None:
    ids = wrapping(3, 2)
    arrays, values = SiloReply(np.zeros((len(ids), 1, 1)), ids).parts()
    with pytest.raises(FedPrivacyError, match="or one twice"):
        SiloReply.of(arrays, values, requested=np.arange(12), shape=(1, 1))


def room(read: Any) -> int:
    """How many bytes reading takes beside what was there before."""
    tracemalloc.start()
    try:
        read()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def of_clients(ids: np.ndarray) -> Message:
    request = Message(RecordDict(), 1, "train", group_id="0/0")
    return reply_to(request, *TrainReply(np.zeros(4), ids).parts())


def of_clients_refused(message: Message) -> None:
    with pytest.raises(Rejected, match="names 1000000 clients, the request 5") as rejected:
        accepted(message, np.arange(5), 4, "sum", None)
    assert rejected.value.kind == "reply_clients"


def of_silos_refused(message: Message) -> None:
    with pytest.raises(FedPrivacyError, match="names silos that were not requested"):
        SiloReply.of(*parts_of(message), requested=np.arange(5), shape=(1, 4))


@pytest.mark.parametrize(
    "ids", [np.arange(MANY), np.random.default_rng(1).integers(0, 5, MANY)], ids=["rising", "few"]
)
def test_a_reply_that_names_a_million_is_refused_before_they_are_looked_at(ids: np.ndarray) -> None:
    """Reading it copies the array once; whoever sorts or compares it takes as much room again."""
    message = of_clients(ids)
    assert room(lambda: of_clients_refused(message)) < 1.2 * ids.nbytes
    rows = reply_to(Message(RecordDict(), 1, "query.estimate"), *SiloReply(np.zeros((0, 1, 4)), ids).parts())
    assert room(lambda: of_silos_refused(rows)) < 1.2 * ids.nbytes


def test_a_request_that_names_a_million_is_refused_before_they_are_looked_at(make_scenario) -> None:
    fleet = Fleet.of(make_scenario())
    request = TrainRequest(0, 0, 0, np.arange(5), np.zeros(fleet.parameters, np.float32), fleet.plan, "sum")
    many = replace(request, clients=np.arange(MANY))

    def refused() -> None:
        with pytest.raises(Refusal, match="request for 1000000 clients, there are 12"):
            answer(fleet, None, many)

    assert room(refused) < 0.1 * many.clients.nbytes
