"""Flower's grid as our rounds use one: lazy, bounded, deaf to strangers."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable

import numpy as np
import pytest
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.clientapp import ClientApp

import server.deployment_grid
from clients.app import make_app
from clients.fleet import Fleet
from fedprivacy.guarantees.ledger import Ledger
from fedprivacy.population.clients import population
from scenarios.engines.embedded import EmbeddedGrid
from server.aggregation import by_turn
from server.app import federation_of
from server.deployment_grid import AT_ONCE, PollingGrid


class Slow(EmbeddedGrid):
    """A grid whose replies come a while after they are asked for, in any order, and one of them never.

    Like Flower's `HttpGrid` it goes over the messages of a push twice.
    """

    strangers: tuple[Message, ...] = ()
    lost: str | None = None
    nameless = False
    most = 0  # messages of one node under way at once
    under_way: dict[str, int]

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        count = sum(1 for _ in messages)
        nodes = [message.metadata.dst_node_id for message in messages]
        ids = super().push_messages(messages)
        assert len(ids) == count
        self.under_way |= zip(ids, nodes, strict=True)
        self.most = max(self.most, *Counter(self.under_way.values()).values())
        return ids

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        came = [
            one for one in super().pull_messages(message_ids) if one.metadata.reply_to_message_id != self.lost
        ]
        if self.nameless:
            for reply in came:
                reply.metadata.group_id = ""
        for one in came:
            self.under_way.pop(one.metadata.reply_to_message_id, None)
        return [*self.strangers, *came[::-1]]


@pytest.fixture
def slow(monkeypatch) -> Slow:
    monkeypatch.setattr(server.deployment_grid, "POLL", 0.01)
    app = ClientApp()

    @app.query()
    def echo(message: Message, context) -> Message:
        return Message(RecordDict({"node": ConfigRecord({"id": context.node_id})}), reply_to=message)

    grid = Slow(app, [{}, {}, {}])
    grid.under_way = {}
    return grid


def questions(count: int, taken: list[int] | None = None) -> Iterable[Message]:
    for number in range(count):
        if taken is not None:
            taken.append(number)
        yield Message(RecordDict(), number % 3 + 1, "query", group_id=f"0/{number}")


def test_a_generator_is_sent_whole_and_every_reply_comes_once(slow: Slow) -> None:
    replies = list(PollingGrid(slow).send_and_receive(questions(100), timeout=30))
    assert sorted(int(one.metadata.group_id[2:]) for one in replies) == list(range(100))
    assert [number for number, _ in by_turn(replies)] == list(range(100))
    assert slow.most == 1  # each starts a process on its node


def test_messages_are_taken_as_replies_are_used(slow: Slow) -> None:
    taken: list[int] = []
    replies = PollingGrid(slow).send_and_receive(questions(200, taken), timeout=30)
    next(iter(replies))
    assert len(taken) == AT_ONCE


def test_what_does_not_answer_in_time_is_not_waited_for(slow: Slow) -> None:
    slow.lost = "2"
    began = time.monotonic()
    replies = list(PollingGrid(slow).send_and_receive(questions(4), timeout=0.5))
    assert 0.4 < time.monotonic() - began < 20
    assert sorted(one.metadata.group_id for one in replies) == ["0/0", "0/2", "0/3"]


def test_strangers_are_not_heard(slow: Slow) -> None:
    other = next(iter(EmbeddedGrid(slow._client_app, [{}]).send_and_receive(questions(1))))
    other.metadata.__dict__["_reply_to_message_id"] = "of another run"
    slow.strangers = (other,)
    replies = list(PollingGrid(slow).send_and_receive(questions(3), timeout=30))
    assert sorted(one.metadata.group_id for one in replies) == ["0/0", "0/1", "0/2"]


def test_an_error_of_flowers_own_belongs_to_what_it_answers(slow: Slow) -> None:
    """Where a reply's parts are lost, Flower hands on an error without the group that it answers."""
    slow.nameless = True
    replies = list(PollingGrid(slow).send_and_receive(questions(3), timeout=30))
    assert sorted(number for number, _ in by_turn(replies)) == [0, 1, 2]


def test_replies_of_no_request_are_left_out_of_a_round(slow: Slow) -> None:
    replies = list(PollingGrid(slow).send_and_receive(questions(3), timeout=30))
    replies[0].metadata.group_id = "0/x"
    again = [*replies, *replies]
    assert len(list(by_turn(again))) == 2


def test_the_same_model_as_without_it(trial, make_scenario) -> None:
    asked = make_scenario("federation.chunk_size=2")
    assert np.array_equal(trial(asked, wrap=PollingGrid).play(), trial(asked).play())


def test_all_nodes_have_work_from_the_beginning(make_scenario, monkeypatch) -> None:
    """Chunks come host by host: in that order the second node would wait for all of the first."""
    sent: list[int] = []

    class Noting(EmbeddedGrid):
        def push_messages(self, messages: Iterable[Message]) -> list[str]:
            sent.extend(message.metadata.dst_node_id for message in messages)
            return super().push_messages(messages)

    asked = make_scenario("federation.chunk_size=1", "federation.hosts=3")
    people = population(asked.data)
    fleet = Fleet.of(asked, people)
    grid = Noting(make_app(fleet), [{"partition-id": n, "num-partitions": 3} for n in range(3)])
    federation, _ = federation_of(PollingGrid(grid), asked, Ledger(fleet.plan), people, fleet.model)
    sent.clear()
    monkeypatch.setattr(server.deployment_grid, "AT_ONCE", 3)
    federation.round(0)
    assert sorted(sent[:3]) == [1, 2, 3]
    assert len(sent) == 12
