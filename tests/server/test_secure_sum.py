"""The secure sum between clients and server: sums alone pass, of enough clients, each counted once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, Message
from flwr.serverapp import Grid

from clients.privacy import shared_sum
from fedprivacy.errors import InputError, RunError
from fedprivacy.guarantees.remote_nodes import Stated
from fedprivacy.mechanisms.modular import reduce_modulo
from fedprivacy.mechanisms.rotation import random_signs
from fedprivacy.messages.faults import KINDS
from fedprivacy.messages.protocol import SumReply, TrainReply, TrainRequest, parts_of
from fedprivacy.training.updates import Stack
from scenarios.engines.embedded import EmbeddedGrid
from server.adversary import Interposed
from server.app import SERVED, Submitted
from server.messages import request_to
from server.record_upload import LogUpload
from server.secure_sum import SecureSum, secured

SHARED = ("privacy.trust=distributed",)
ROUND = (*SHARED, "server.rounds=1")


class Watcher:
    """An adversary at the server that notes all it sees."""

    def __init__(self) -> None:
        self.replies: list[Message] = []

    def act(self, request: Message) -> Message:
        return request

    def observe(self, reply: Message) -> Message:
        if "arrays" in reply.content:
            self.replies.append(reply)
        return reply


class Meddler(Grid):
    """A grid whose nodes' replies are changed on their way, or come twice."""

    def __init__(
        self, grid: EmbeddedGrid, change, again: bool = False, at_once: list[int] | None = None
    ) -> None:
        self.grid, self.change, self.again, self.at_once = grid, change, again, at_once

    def __getattr__(self, name: str):
        return getattr(self.grid, name)

    create_message = get_node_ids = pull_messages = push_messages = run = set_run = None  # of the real grid

    def send_and_receive(self, messages: Iterable[Message], *, timeout=None) -> Iterator[Message]:
        sent = list(messages)
        if self.at_once is not None:
            self.at_once.append(len(sent))
        for reply in self.grid.send_and_receive(iter(sent), timeout=timeout):
            arrays, values = parts_of(reply)
            arrays, values = self.change({k: a.copy() for k, a in arrays.items()}, dict(values))
            reply.content["arrays"] = ArrayRecord({name: Array(array) for name, array in arrays.items()})
            yield reply
            if self.again:
                yield reply


def requests(played, chunks: list[list[int]], observe: str = "sum") -> list[Message]:
    plan = played.fleet.plan
    return [
        request_to(
            1,
            "train",
            f"0/{number}",
            *TrainRequest(0, 0, number, np.array(ids), played.federation.model, plan, observe).parts(),
        )
        for number, ids in enumerate(chunks)
    ]


def reply_of(grid: Grid, messages: list[Message]) -> SumReply:
    [reply] = grid.send_and_receive(iter(messages))
    return SumReply.of(*parts_of(reply))


@pytest.mark.parametrize("mechanism", ["skellam", "discrete-gaussian"])
@pytest.mark.parametrize("chunk", [1, 5, 12])
def test_the_server_sees_the_modular_sum_and_counts_alone(
    make_scenario, trial, mechanism: str, chunk: int
) -> None:
    watcher = Watcher()
    asked = make_scenario(*ROUND, f"privacy.mechanism={mechanism}", f"federation.chunk_size={chunk}")
    played = trial(asked, wrap=lambda grid: Interposed(grid, watcher))
    before = played.federation.model
    played.play()
    [seen] = watcher.replies
    arrays, values = parts_of(seen)
    assert list(arrays) == ["total"]
    assert set(values) == {*KINDS, "survivors", "refused", "first", "reason"}
    assert (values["survivors"], values["refused"]) == (12, 0)
    # Each client's message again, from its own update and its own streams: their sum is all that passed.
    fleet, shares = played.fleet, played.fleet.plan.shares
    plain = trial(make_scenario("privacy={trust='none'}", "server.rounds=1", "federation.observe=each"))
    rows: dict[int, np.ndarray] = {}
    plain.federation.weights = before.astype(np.float64)
    plain.federation.grid = Interposed(plain.grid, noting := Watcher())
    plain.federation.total(0, np.arange(12))
    for reply in noting.replies:
        answer = TrainReply.of(*parts_of(reply), parameters=len(before), observe="each")
        rows |= dict(zip(answer.clients.tolist(), answer.updates, strict=True))
    messages = [
        shared_sum(Stack(_row(rows[client])), np.array([client]), fleet.plan, fleet.streams, round=0)[0]
        for client in range(12)
    ]
    assert np.array_equal(arrays["total"], reduce_modulo(np.sum(messages, axis=0), shares.bits))
    signs = random_signs(shares.dimension, fleet.streams.stream("rotation", round=0))
    released = shares.decode(arrays["total"], signs, 12) / 12
    assert np.allclose(played.federation.weights - before, released, atol=1e-6)


def _row(update: np.ndarray):
    import torch

    return torch.from_numpy(update)[None]


def test_too_few_survivors_make_a_round_void_that_moves_nothing_and_stays_charged(
    make_scenario, trial
) -> None:
    asked = make_scenario(
        *SHARED,
        "server={rounds=40, optimizer='momentum'}",
        "federation.dropout=0.4",
        "privacy.min_survivors=8",
    )
    watcher = Watcher()
    played = trial(asked, wrap=lambda grid: Interposed(grid, watcher))
    void = 0
    for number in range(40):
        before, state = played.federation.weights.copy(), dict(played.federation.optimizer.state)
        _, total = played.federation.round(number)
        survivors = 12 - total.faults["dropped"]
        assert total.answered == survivors
        assert total.void == (survivors < 8)
        assert total.contributed == (0 if total.void else survivors)
        assert np.array_equal(played.federation.weights, before) == total.void
        least = f"{survivors} survivors, fewer than min_survivors = 8"
        assert total.void_reason == (least if total.void else None)
        if total.void:
            assert all(
                np.array_equal(state[key], at) for key, at in played.federation.optimizer.state.items()
            )
            assert not total.updates.any()
            assert list(parts_of(watcher.replies[-1])[0]) == []  # not even an adversary gets the sum
        void += total.void
    assert 5 < void < 35  # 56 % of rounds: outside with a probability below 1e-6
    assert played.ledger.to_json()["participations"] == {"40": 12}


def test_the_bits_do_not_depend_on_chunks_hosts_or_processes(make_scenario, trial, tmp_path) -> None:
    def weights(*overrides: str) -> np.ndarray:
        return trial(make_scenario(*SHARED, *overrides)).play()

    first = weights()
    assert np.array_equal(first, weights("federation.chunk_size=1"))
    assert np.array_equal(first, weights("federation.chunk_size=12", "federation.hosts=1"))


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda arrays, values: ({**arrays, "updates": arrays["updates"] + 2**18}, values), "reply_shape"),
        (lambda arrays, values: ({**arrays, "updates": arrays["updates"] - 2**18}, values), "reply_shape"),
        (
            lambda arrays, values: ({**arrays, "updates": arrays["updates"].astype(np.float64)}, values),
            "reply_shape",
        ),
        (lambda arrays, values: ({**arrays, "updates": arrays["updates"][1:]}, values), "reply_shape"),
        (lambda arrays, values: ({**arrays, "clients": arrays["clients"] + 1}, values), "reply_clients"),
        (lambda arrays, values: ({**arrays, "clients": arrays["clients"][[0, 0]]}, values), "reply_clients"),
    ],
)
def test_a_reply_that_no_honest_node_sends_is_left_out(make_scenario, trial, change, kind: str) -> None:
    played = trial(make_scenario(*ROUND))
    grid = SecureSum(Meddler(played.grid, change), played.fleet.plan.shares)
    reply = reply_of(grid, requests(played, [[0, 1, 2], [5, 6]]))
    assert (reply.total, reply.survivors) == (None, 0)
    assert reply.faults.by_kind == {kind: 5}


def test_a_client_counts_once_however_often_its_node_answers(make_scenario, trial) -> None:
    asked = make_scenario(*ROUND, "privacy.min_survivors=4")
    honest, twice = trial(asked), trial(asked)
    once = reply_of(secured(honest.grid, honest.fleet.plan), requests(honest, [[0, 1, 2], [3, 4]]))
    grid = SecureSum(
        Meddler(twice.grid, lambda arrays, values: (arrays, values), again=True), twice.fleet.plan.shares
    )
    again = reply_of(grid, requests(twice, [[0, 1, 2], [3, 4]]))
    assert again.survivors == once.survivors == 5
    assert np.array_equal(again.total, once.total)
    # The clients themselves refuse a second request of the same round, which would be a second sum with them.
    more = reply_of(secured(honest.grid, honest.fleet.plan), requests(honest, [[0, 1, 2, 3, 4]]))
    assert (more.total, more.survivors, more.refused) == (None, 0, 5)


def test_clients_send_no_single_messages_and_the_seam_lets_none_by(make_scenario, trial) -> None:
    played = trial(make_scenario(*ROUND))
    grid = secured(played.grid, played.fleet.plan)
    reply = reply_of(grid, requests(played, [[0, 1]], observe="each"))
    assert (reply.survivors, reply.faults.by_kind) == (0, {"node_error": 2})
    assert "secure sums only" in reply.faults.first
    with pytest.raises(RunError, match="passes by the secure sum"):
        list(grid.push_messages(requests(played, [[0, 1]])))
    # Flower routes these to the same handler.
    named = request_to(1, "train.default", "0/0", *parts_of(requests(played, [[3]])[0]))
    with pytest.raises(RunError, match=r"a message of type train\.default passes by the secure sum"):
        list(grid.send_and_receive(iter([named])))
    with pytest.raises(RunError, match="passes by the secure sum"):
        list(grid.push_messages([named]))
    with pytest.raises(RunError, match="has no sum"):
        list(grid.send_and_receive(iter([*requests(played, [[0, 1]]), named])))
    # One client alone is no sum, whatever the server asks for.
    assert reply_of(grid, requests(played, [[3]])).total is None


def test_a_late_reply_to_a_request_for_training_is_not_handed_out(make_scenario, trial) -> None:
    played = trial(make_scenario(*ROUND))
    grid, [request] = secured(played.grid, played.fleet.plan), requests(played, [[0, 1]])
    [late] = played.grid.push_messages([request])  # as the secure sum does, and then its time is over
    assert list(grid.pull_messages([late])) == []
    [pushed] = grid.push_messages([request_to(1, "query", "hosts", {}, {})])
    assert len(list(grid.pull_messages([pushed]))) == 1


def test_a_round_without_time_for_any_request_is_void(make_scenario, trial) -> None:
    played = trial(make_scenario(*ROUND))

    class Late(Meddler):
        def send_and_receive(self, messages, *, timeout=None):
            return iter(())

    grid = SecureSum(Late(played.grid, None), played.fleet.plan.shares)
    assert reply_of(grid, requests(played, [[0, 1]])).total is None


def test_a_server_without_the_secure_sum_ends_instead_of_reading_messages(make_scenario, trial) -> None:
    played = trial(make_scenario(*ROUND))
    played.federation.grid = played.grid
    with pytest.raises(RunError, match="single messages"):
        played.federation.round(0)
    alone = trial(make_scenario(*ROUND, "federation.chunk_size=12"))
    alone.federation.grid = alone.grid
    with pytest.raises(RunError, match="not the reply of a secure sum"):
        alone.federation.round(0)


def test_a_node_has_one_message_at_a_time_where_its_state_would_be_lost(make_scenario, trial) -> None:
    played, at_once = trial(make_scenario(*ROUND, "privacy.min_survivors=4")), []
    meddler = Meddler(played.grid, lambda arrays, values: (arrays, values), at_once=at_once)
    reply = reply_of(SecureSum(meddler, played.fleet.plan.shares), requests(played, [[0, 1], [2, 3], [4, 5]]))
    assert (reply.survivors, at_once) == (6, [1, 1, 1])


def test_a_submitter_who_states_pinned_nodes_gets_no_sum_that_is_simulated(make_scenario) -> None:
    stated = Submitted(lambda text: pytest.fail("began"), Stated(pinned=True), LogUpload, False)
    with pytest.raises(InputError, match="sum under masks, for which the server needs their public keys"):
        SERVED["run"](None, make_scenario(*SHARED), stated)


@pytest.mark.exhaustive
def test_shares_may_be_drawn_for_a_chunk_with_the_same_distribution(make_scenario, trial) -> None:
    """The variance of the sum, of rounds of which the model hardly moves; about 1 % is its standard error."""
    variances = []
    for draw in ("client", "sum"):
        asked = make_scenario(
            *SHARED,
            "server.rounds=20",
            "data.features=300",
            "server.learning_rate=1e-9",
            f"privacy.noise_draw={draw}",
        )
        played = trial(asked)
        shares = played.fleet.plan.shares
        sums = [played.federation.round(number)[1].updates for number in range(20)]
        variances.append(np.var(np.diff(sums, axis=0)) / 2 / shares.variance(12))
    assert variances == pytest.approx([1.0, 1.0], abs=0.08)
