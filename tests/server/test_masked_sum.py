"""A server drives secure sums over pinned nodes: with dropouts in each phase, replays, and a server that lies."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from flwr.app import Message

from clients import secure_sum as clients_module
from clients.app import app
from clients.error_filter import KINDS
from clients.participation_ledger import Account, StoredBudgets
from clients.training_handler import answer
from fedprivacy.messages.protocol import parts_of
from fedprivacy.messages.secure_sum import StepReply, SumRequest, new_run, round_name
from fedprivacy.secure_sum.encoding import decoded, encoded
from fedprivacy.secure_sum.messages import DeliveredShares, KeyList, MaskedInput, OpenedShares, Survivors
from fedprivacy.secure_sum.packing import unpack
from fedprivacy.secure_sum.transcript import Phase
from scenarios.engines.embedded import EmbeddedGrid
from server.masked_sum import Total
from server.messages import request_to
from tests.server.masked import CLIENTS, TEXT, MaskedNodes, Wire, with_values

LAST = Phase.OPENING
ON_NODES = 'name = "on-nodes"\nfeatures = 4\nclasses = 2'
SYNTHETIC = 'name = "synthetic"\nrecords = 60\ntest_records = 20\nfeatures = 4\npartition = "iid"'


@pytest.fixture
def nodes(tmp_path: Path) -> MaskedNodes:
    return MaskedNodes(tmp_path)


def lost(at: Phase, clients: Collection[int]):  # type: ignore[no-untyped-def]
    """Messages of some clients from a phase on are lost."""
    return lambda phase, client, message: None if phase >= at and client in clients else message


def test_the_sum_is_that_of_the_survivors_and_no_single_message_leaves(nodes: MaskedNodes) -> None:
    wire = Wire(nodes, noise="seeded")
    total = nodes.round(grid=wire)
    assert (total.survivors, total.faults.by_kind, total.reason) == ((0, 1, 2, 3, 4), {}, None)
    inputs = [nodes.integers(client) for client in range(CLIENTS)]
    assert total.integers is not None
    np.testing.assert_array_equal(total.integers, sum(inputs) % 2**16)
    shares = nodes.shares
    for phase, client, reply in wire.replies:
        if phase is Phase.INPUTS:
            message = decoded(MaskedInput, StepReply.of(*parts_of(reply)).message)
            assert (unpack(message.packed, shares.padded, shares.bits) != inputs[client]).any()
    with pytest.raises(StopIteration):  # nobody has secrets, so that nobody is sent the end
        next(phase for phase, _, _ in wire.requests if phase is Phase.ENDED)


def test_noise_comes_from_the_system_and_the_sum_is_near_that_without(nodes: MaskedNodes) -> None:
    first, second = nodes.round(0), MaskedNodes(_folder(nodes, "again")).round(0)
    assert first.integers is not None
    assert second.integers is not None
    assert (first.integers != second.integers).any()


def _folder(nodes: MaskedNodes, name: str) -> Path:
    folder = nodes.folder / name
    folder.mkdir()
    return folder


@pytest.mark.exhaustive(every=4)
@pytest.mark.parametrize("phase", list(Phase)[:5])
@pytest.mark.parametrize("of", ["request", "reply"])
def test_one_client_may_drop_out_in_any_phase(nodes: MaskedNodes, phase: Phase, of: str) -> None:
    """An input that arrived is in the sum whatever its client does later."""
    total = nodes.round(grid=Wire(nodes, noise="seeded", **{of: lost(phase, [1])}))
    there = [client for client in range(CLIENTS) if client != 1 or phase > Phase.INPUTS]
    assert total.survivors == tuple(there)
    assert total.integers is not None
    np.testing.assert_array_equal(total.integers, sum(nodes.integers(client) for client in there) % 2**16)
    assert total.faults.by_kind == ({"no_answer": 1} if phase <= Phase.INPUTS else {})


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("phase", list(Phase)[:5])
def test_with_too_few_clients_a_round_is_void_and_the_next_one_works(
    nodes: MaskedNodes, phase: Phase
) -> None:
    gone = [1, 2] if phase <= Phase.INPUTS else [1, 2, 3]
    total = nodes.round(grid=Wire(nodes, request=lost(phase, gone)))
    assert total.integers is None
    assert total.reason is not None
    assert "fewer than" in total.reason
    # Clients that answer still have removed their secrets; those that opened have none.
    there = [client for client in range(CLIENTS) if client not in gone and phase < LAST]
    assert not [client for client in there if nodes.round_file(client).exists()]
    assert nodes.round(1).integers is not None


@pytest.mark.exhaustive
def test_a_client_counts_its_participations_and_refuses_a_second_run(nodes: MaskedNodes) -> None:
    assert nodes.round(0).integers is not None
    again = nodes.round(0, run=new_run())
    assert (again.integers, again.refused, again.faults.by_kind) == (None, CLIENTS, {})
    assert json.loads(account_of(nodes, 0).read_text())["answers"] == {"0": [1, 0]}


def fewer_shares(phase: Phase, client: int, message: Message) -> Message:
    """The server delivers the shares of two peers alone."""
    if phase is not Phase.INPUTS:
        return message
    shares = decoded(DeliveredShares, SumRequest.of(*parts_of(message)).message)
    sealed = dict(list(shares.sealed.items())[:2])
    return with_values(message, message=encoded(replace(shares, sealed=sealed)))


def other_shares(phase: Phase, client: int, message: Message) -> Message:
    """The server delivers to client 0 shares that nobody sealed for it."""
    if (phase, client) != (Phase.INPUTS, 0):
        return message
    shares = decoded(DeliveredShares, SumRequest.of(*parts_of(message)).message)
    return with_values(message, message=encoded(replace(shares, sealed={**shares.sealed, 1: bytes(82)})))


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize(
    ("request_of", "idle"),
    [(lost(Phase.SHARES, [1, 2]), CLIENTS), (fewer_shares, CLIENTS), (other_shares, 1)],
)
def test_a_round_that_cannot_be_opened_costs_a_node_no_training_and_no_participation(
    nodes: MaskedNodes, request_of, idle: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained: list[int] = []
    monkeypatch.setattr(
        clients_module,
        "answer",
        lambda *arguments: trained.append(int(arguments[2].clients[0])) or answer(*arguments),
    )
    nodes.round(0, grid=Wire(nodes, request=request_of))
    idle_nodes = list(range(idle))
    assert sorted(trained) == list(range(idle, CLIENTS))
    assert not [client for client in idle_nodes if account_of(nodes, client).exists()]
    assert nodes.round(1).integers is not None
    for client in range(CLIENTS):
        answers = json.loads(account_of(nodes, client).read_text())["answers"]
        assert answers == {str(client): [1 + (client not in idle_nodes), 1]}


def account_of(nodes: MaskedNodes, client: int) -> Path:
    return nodes.round_file(client).parents[1] / "answers.json"


def test_a_client_whose_budget_another_round_used_in_between_refuses_its_input(nodes: MaskedNodes) -> None:
    def meanwhile(phase: Phase, client: int, message: Message) -> Message:
        if (phase, client) == (Phase.INPUTS, 0):
            account = account_of(nodes, 0)
            scenario = nodes.scenario
            opened = Account.open(account.parent, scenario)
            StoredBudgets(opened, CLIENTS, nodes.plan.answers).spend(nodes.ids(0), 0)
        return message

    total = nodes.round(0, grid=Wire(nodes, request=meanwhile))
    assert (total.survivors, total.refused, total.faults.by_kind) == ((1, 2, 3, 4), 1, {})
    assert total.integers is not None


@pytest.mark.exhaustive
def test_a_run_that_is_refused_leaves_the_round_of_another_run_as_it_is(nodes: MaskedNodes) -> None:
    seconds: list[Total] = []

    def meanwhile(phase: Phase, client: int, message: Message) -> Message:
        if (phase, client) == (Phase.CONSISTENCY, 0):
            seconds.append(nodes.round(0, run=new_run()))
        return message

    total = nodes.round(0, grid=Wire(nodes, request=meanwhile))
    assert [second.refused for second in seconds] == [CLIENTS]
    assert total.survivors == (0, 1, 2, 3, 4)
    assert total.integers is not None


@pytest.mark.exhaustive
def test_a_round_that_is_repeated_under_its_name_gives_no_second_sum(nodes: MaskedNodes) -> None:
    """Equal requests get the bytes of the first round: a server that has them learns nothing."""
    wire = Wire(nodes)
    first = nodes.round(grid=wire)
    again = Wire(nodes)
    second = nodes.round(grid=again)
    assert first.integers is not None
    assert second.integers is not None
    np.testing.assert_array_equal(first.integers, second.integers)
    assert [_bytes(each) for each in wire.replies] == [_bytes(each) for each in again.replies]


def _bytes(reply: tuple[Phase, int, Message]) -> tuple[Phase, int, bytes]:
    return reply[0], reply[1], StepReply.of(*parts_of(reply[2])).message


def refused(wire: Wire, phase: Phase, client: int, kind: str = "secure-sum") -> None:
    """A client refused a step, and the server learned the kind alone."""
    [reply] = [reply for at, who, reply in wire.replies if (at, who) == (phase, client)]
    assert reply.has_error()
    assert reply.error.reason.split("\n")[0] == f"fedprivacy.errors.Refusal: {kind}: {KINDS[kind]}"


def test_a_server_that_shows_two_sets_of_survivors_opens_one(nodes: MaskedNodes) -> None:
    def lie(phase: Phase, client: int, message: Message) -> Message:
        if phase is not Phase.CONSISTENCY or client < 3:
            return message
        survivors = decoded(Survivors, message.content.config_records["values"]["message"])  # type: ignore[arg-type]
        return with_values(message, message=encoded(Survivors(survivors.round_id, (1, 2, 3, 4))))

    wire = Wire(nodes, request=lie)
    total = nodes.round(grid=wire)
    opened = [reply for phase, _, reply in wire.replies if phase is Phase.OPENING and not reply.has_error()]
    # Clients 0 to 2, which are k, signed one set; 3 and 4 signed the other and are not enough to open it.
    assert total.survivors == (0, 1, 2, 3, 4)
    assert len(opened) == 3
    for reply in opened:
        message = decoded(OpenedShares, StepReply.of(*parts_of(reply)).message)
        assert set(message.seeds) == set(range(CLIENTS))
        assert not message.mask_keys


def test_a_server_that_leaves_keys_out_for_one_client_gets_no_input_of_it(nodes: MaskedNodes) -> None:
    def lie(phase: Phase, client: int, message: Message) -> Message:
        if phase is not Phase.SHARES or client:
            return message
        keys = decoded(KeyList, message.content.config_records["values"]["message"])  # type: ignore[arg-type]
        return with_values(message, message=encoded(KeyList(keys.round_id, keys.keys[:4])))

    wire = Wire(nodes, request=lie)
    total = nodes.round(grid=wire)
    assert total.survivors == (1, 2, 3, 4)


def test_a_server_that_sends_another_model_to_one_client_gets_no_input_of_it(nodes: MaskedNodes) -> None:
    def lie(phase: Phase, client: int, message: Message) -> Message:
        if phase is Phase.INPUTS and client == 2:
            request = SumRequest.of(*parts_of(message))
            other = nodes.training(weight=1.0).weights
            values = request.parts()[1]
            return request_to(3, "train.secure_sum", message.metadata.group_id, {"weights": other}, values)
        return message

    wire = Wire(nodes, request=lie)
    total = nodes.round(grid=wire)
    refused(wire, Phase.INPUTS, 2, "request")
    assert total.survivors == (0, 1, 3, 4)


def test_a_server_that_sends_other_bytes_for_a_step_ends_the_round_for_the_client(
    nodes: MaskedNodes,
) -> None:
    others: list[Message] = []

    def before(phase: Phase, client: int, message: Message) -> Message:
        if (phase, client) == (Phase.CONSISTENCY, 0):
            request = SumRequest.of(*parts_of(message))
            other = replace(request, message=encoded(Survivors(request.round_id, (0, 1, 2, 3))))
            sent = request_to(1, "train.secure_sum", "x/0", *other.parts())
            others.extend(nodes.grid().send_and_receive([sent]))
        return message

    wire = Wire(nodes, request=before)
    total = nodes.round(grid=wire)
    # It signed the first claim alone, which is not that of the others, and opened nothing.
    assert not others[0].has_error()
    refused(wire, Phase.CONSISTENCY, 0)
    assert not [client for phase, client, _ in wire.requests if (phase, client) == (Phase.OPENING, 0)]
    assert total.survivors == (0, 1, 2, 3, 4)
    assert total.integers is not None


def test_a_node_that_speaks_for_another_is_left_out(nodes: MaskedNodes) -> None:
    """Inputs are not signed: that of client 1 comes from its node alone."""
    first: dict[Phase, Message] = {}

    def swap(phase: Phase, client: int, message: Message) -> Message:
        if phase is Phase.INPUTS and client == 0:
            values = StepReply.of(*parts_of(message))
            other = decoded(MaskedInput, values.message)
            return with_values(message, message=encoded(MaskedInput(1, other.round_id, other.packed)))
        first[phase] = message
        return message

    total = nodes.round(grid=Wire(nodes, reply=swap))
    assert total.survivors == (1, 2, 3, 4)
    assert total.faults.by_kind == {"reply_shape": 1}


@pytest.mark.exhaustive(every=3)
@pytest.mark.parametrize(
    "values",
    [
        {"message": b""},
        {"message": b"\0" * 64},
        {"message": "text"},
        {"refused": "yes", "message": b"x"},
    ],
)
@pytest.mark.parametrize("at", [Phase.KEYS, Phase.INPUTS])
def test_a_reply_that_is_none_is_left_out(nodes: MaskedNodes, values: dict, at: Phase) -> None:
    def spoil(phase: Phase, client: int, message: Message) -> Message:
        return with_values(message, **values) if (phase, client) == (at, 3) else message

    total = nodes.round(grid=Wire(nodes, reply=spoil))
    assert total.survivors == (0, 1, 2, 4)
    assert total.faults.by_kind == {"reply_shape": 1}


@pytest.mark.exhaustive(beyond=2)
@pytest.mark.parametrize("at", list(Phase)[1:5])
def test_bytes_that_are_no_message_end_the_round_for_the_client(nodes: MaskedNodes, at: Phase) -> None:
    def spoil(phase: Phase, client: int, message: Message) -> Message:
        return with_values(message, message=b"bytes") if (phase, client) == (at, 0) else message

    wire = Wire(nodes, request=spoil)
    total = nodes.round(grid=wire)
    refused(wire, at, 0)
    assert not nodes.round_file(0).exists()
    assert total.survivors == tuple(range(at <= Phase.INPUTS, CLIENTS))
    assert total.integers is not None


def test_a_node_under_another_trust_or_without_a_plan_takes_no_step(nodes: MaskedNodes, owners) -> None:
    name = round_name(new_run(), 0, nodes.training().weights)
    request = SumRequest(Phase.KEYS, 0, name, 0, 0, nodes.scenario.seed, nodes.plan)
    follows = {"partition-id": 0, "num-partitions": 3}
    text = MaskedNodes(owners.folder, TEXT.replace(ON_NODES, SYNTHETIC))
    for config, run, kind in (
        (owners.config(), {}, "plan"),
        (follows, {"scenario": text.scenario.to_toml()}, "no plan of its own"),
    ):
        grid = EmbeddedGrid(app, [config], run)
        [reply] = grid.send_and_receive([request_to(1, "train.secure_sum", "0/0", *request.parts())])
        assert reply.has_error()
        assert kind in reply.error.reason


def test_a_request_without_masks_is_refused_by_a_node_with_noise_in_shares(nodes: MaskedNodes) -> None:
    training = nodes.training()
    [reply] = nodes.grid().send_and_receive([request_to(1, "train", "0/0", *training.parts())])
    assert reply.has_error()
    assert f"messages: {KINDS['messages']}" in reply.error.reason
    assert not account_of(nodes, 0).exists()


def test_a_node_whose_rotation_has_another_seed_is_left_out(nodes: MaskedNodes) -> None:
    """Its update would be rotated back by other signs, and be noise in the sum."""
    other = nodes.scenario.model_copy(update={"seed": 77}).to_toml()
    wire = Wire(nodes, scenario=other)
    assert nodes.round(grid=wire).integers is None
    refused(wire, Phase.KEYS, 0, "plan")


REFUSED = {
    "no keys": ({"roster": None, "node_key": None}, "needs node-key = PATH"),
    "no roster": ({"roster": None}, "needs node-key = PATH"),
    "another roster": ({"roster": "/nowhere"}, "roster /nowhere: No such file"),
    "another key": ({"node_key": "/nowhere"}, "node-key /nowhere: No such file"),
    "two clients": (
        {"num_partitions": 2, "partition_id": 0},
        "this node has 3 clients, and takes part in a secure sum by masks as one",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_node_whose_keys_do_not_fit_says_so_in_its_log(nodes: MaskedNodes, case: str, capsys) -> None:
    changes, problem = REFUSED[case]
    if case == "two clients":
        stream = np.random.default_rng(0)
        path = nodes.folder / "several.npz"
        x = stream.standard_normal((30, 4)).astype(np.float32)
        np.savez(path, x_train=x, y_train=(x[:, 0] > 0).astype(np.int64), user_train=np.arange(30) % 3 * 2)
        changes = {**changes, "data": str(path)}
    wire = Wire(nodes, **changes)
    assert nodes.round(grid=wire).integers is None
    refused(wire, Phase.KEYS, 0, "node-config")
    assert problem in capsys.readouterr().err


def test_a_roster_without_a_peer_or_with_another_key_is_refused(nodes: MaskedNodes, capsys) -> None:
    text = nodes.roster_file.read_text().splitlines()
    short, swapped = nodes.folder / "short", nodes.folder / "swapped"
    short.write_text("\n".join(text[:4]))
    swapped.write_text("\n".join([f"1{text[0][1:]}", f"0{text[1][1:]}", *text[2:]]))
    for file, problem in ((short, "lacks the keys of clients 4"), (swapped, "another key for client 0")):
        wire = Wire(nodes, roster=str(file))
        assert nodes.round(grid=wire).integers is None
        refused(wire, Phase.KEYS, 0, "node-config")
        assert problem in capsys.readouterr().err


def test_a_plan_with_too_few_survivors_for_masks_is_refused(tmp_path: Path, capsys) -> None:
    nodes = MaskedNodes(tmp_path, TEXT, "privacy.min_survivors=2")
    training = nodes.training()
    request = SumRequest(Phase.KEYS, 0, f"{new_run()} 0 {'0' * 64}", 0, 0, nodes.scenario.seed, training.plan)
    [reply] = nodes.grid().send_and_receive([request_to(1, "train.secure_sum", "0/0", *request.parts())])
    assert reply.has_error()
    assert "min_survivors = 2: too few for masks" in capsys.readouterr().err
