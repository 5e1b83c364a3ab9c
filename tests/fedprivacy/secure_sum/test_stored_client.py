"""A client whose process may end after each message answers each step once, or the round is void."""

from __future__ import annotations

import errno
import multiprocessing
import os
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from phases import Integers, Round, flipped, node_key, random_inputs, roster_of

import fedprivacy.secure_sum.stored_client as stored_client
from fedprivacy.errors import InputError, Refusal
from fedprivacy.io.folder import open_append
from fedprivacy.io.lock import locked
from fedprivacy.secure_sum.client import Client
from fedprivacy.secure_sum.client_state import ClientState
from fedprivacy.secure_sum.encoding import decoded, encoded
from fedprivacy.secure_sum.messages import (
    AdvertisedKeys,
    Checked,
    DeliveredShares,
    KeyList,
    MaskedInput,
    OpenedShares,
    SealedShares,
    SignatureList,
    Survivors,
    SurvivorSignature,
)
from fedprivacy.secure_sum.parameters import Parameters
from fedprivacy.secure_sum.stored_client import StoredClient
from fedprivacy.secure_sum.transcript import Phase

PARAMETERS = Parameters(dimension=8, bits=16, clients=5, survivors=3, colluders=0, threshold=3)
ROUND = "a run, round 1"
INPUT = np.arange(8)
PROCESSES = multiprocessing.get_context("fork")


class Node:
    """Client 0 in a home; each step is taken as by a process of its own, which knows the home alone."""

    def __init__(self, home: Path, round_id: str = ROUND) -> None:
        self.home, self.round_id = home, round_id
        self.during: Callable[[], object] = lambda: None
        self.most = 100

    @contextmanager
    def lock(self) -> Iterator[None]:
        with open_append(self.home / "lock") as file, locked(file.fileno(), 5.0):
            yield

    def _answer(self, phase: Phase, message: bytes, run: Callable[[Client], Checked]) -> bytes:
        stored = StoredClient(self.home, 0, self.lock, self.most)
        arguments = 0, node_key(0), roster_of(range(5)), PARAMETERS, self.round_id

        def client_of(state: ClientState | None) -> Client:
            if state is None:
                return Client(*arguments, stored.rounds)
            return Client.restored(state, *arguments)

        def step(client: Client) -> Checked:
            self.during()
            return run(client)

        return stored.answer(phase, self.round_id, message, client_of, step)

    def advertise(self, request: bytes = b"") -> AdvertisedKeys:
        return decoded(AdvertisedKeys, self._answer(Phase.KEYS, request, Client.advertise))

    def share(self, message: KeyList) -> SealedShares:
        reply = self._answer(Phase.SHARES, encoded(message), lambda client: client.share(message))
        return decoded(SealedShares, reply)

    def mask(self, message: DeliveredShares, compute: Callable[[], Integers] = lambda: INPUT) -> MaskedInput:
        reply = self._answer(Phase.INPUTS, encoded(message), lambda client: client.mask(message, compute))
        return decoded(MaskedInput, reply)

    def sign(self, message: Survivors) -> SurvivorSignature:
        reply = self._answer(Phase.CONSISTENCY, encoded(message), lambda client: client.sign(message))
        return decoded(SurvivorSignature, reply)

    def open(self, message: SignatureList) -> OpenedShares:
        reply = self._answer(Phase.OPENING, encoded(message), lambda client: client.open(message))
        return decoded(OpenedShares, reply)

    @property
    def file(self) -> Path:
        return self.home / "secure-sum" / "client-0.round"

    @property
    def files(self) -> bytes:
        """All bytes that are on disk."""
        return b"".join(path.read_bytes() for path in (self.home / "secure-sum").iterdir())


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def new_round(node: Node) -> Round:
    """A round of which client 0 is the node's."""
    run = Round(PARAMETERS, range(5), node.round_id)
    run.clients[0] = node  # type: ignore[assignment]
    return run


def shares_of(run: Round) -> DeliveredShares:
    return run.share(run.advertise(range(5)), range(5))[0]


def refuses(step: Callable[[], object], text: str, kind: str = "secure-sum") -> None:
    with pytest.raises(Refusal, match=text) as caught:
        step()
    assert caught.value.kind == kind


def in_process(work: Callable[[], object]) -> multiprocessing.process.BaseProcess:
    process = PROCESSES.Process(target=work)
    process.start()
    return process


@pytest.mark.parametrize("gone", [(), (4,), (1, 2)])
def test_a_round_whose_steps_are_processes_of_their_own_gives_the_sum(
    node: Node, gone: Collection[int]
) -> None:
    run, inputs = new_round(node), random_inputs(PARAMETERS, range(5))
    alive = [client for client in range(5) if client not in gone]
    total = run.run(inputs, {client: 5 if client in alive else 2 for client in range(5)})
    assert (total == sum(inputs[client] for client in alive) % 2**16).all()


def test_a_state_has_no_secret_that_no_further_step_needs(node: Node) -> None:
    run = new_round(node)
    shares = shares_of(run)
    state = _state(node)
    hidden = [state.seed, state.mask_secret, state.sealing_secret]
    assert all(len(secret) == 32 and secret in node.files for secret in hidden)
    assert node.file.stat().st_mode & 0o777 == 0o600
    assert node.file.parent.stat().st_mode & 0o777 == 0o700
    node.during = lambda: hidden.append(b"x" * 32 if hidden[0] in node.files else b"")
    inputs = random_inputs(PARAMETERS, range(5))
    run.mask(dict.fromkeys([0], shares), inputs, [0]) if False else node.mask(shares)
    assert hidden.pop() == b""  # a claim takes the secrets out of the file
    assert not any(secret in node.files for secret in hidden)


def _state(node: Node) -> ClientState:
    stored = StoredClient(node.home, 0, node.lock)._read()
    assert stored is not None
    return decoded(ClientState, stored.state)


def test_after_the_opening_only_replies_are_left(node: Node) -> None:
    run, inputs = new_round(node), random_inputs(PARAMETERS, range(5))
    run.run(inputs, dict.fromkeys(range(5), 5))
    stored = StoredClient(node.home, 0, node.lock)._read()
    assert stored is not None
    assert stored.state == b""
    assert set(stored.replies) == set(range(5))
    StoredClient(node.home, 0, node.lock).end("another round")
    assert node.file.exists()
    StoredClient(node.home, 0, node.lock).end(ROUND)
    assert not node.file.exists()


def test_equal_requests_get_equal_replies_and_no_second_step(node: Node) -> None:
    run = new_round(node)
    steps: list[int] = []
    node.during = lambda: steps.append(1)
    keys = run.advertise(range(5))
    assert node.advertise() == run.keys[0]
    shares = run.share(keys, range(5))
    assert node.share(keys) == run.sealed[0]
    assert node.advertise() == run.keys[0]  # also after a later step
    inputs = random_inputs(PARAMETERS, range(5))
    survivors = run.mask(shares, inputs, range(5))
    # The integers of the second call are others: a step that ran again would show two masks of one key.
    assert node.mask(shares[0], lambda: inputs[1]) == run.inputs[0]
    signatures = run.sign(survivors, range(5))
    assert node.sign(survivors).signature == run.server._signatures[0]
    run.open(signatures, range(5))
    assert node.open(signatures) == run.openings[0]
    assert len(steps) == 5


def test_another_request_for_a_step_ends_the_round(node: Node) -> None:
    run = new_round(node)
    keys = run.advertise(range(5))
    refuses(lambda: node.advertise(b"another"), "taken before")
    refuses(lambda: node.share(keys), "not in it")
    assert not node.file.exists()

    node.round_id = "a run, round 2"
    run = new_round(node)
    keys = run.advertise(range(5))
    run.share(keys, range(5))
    refuses(lambda: node.share(KeyList(node.round_id, keys.keys[:4])), "taken before")
    refuses(lambda: node.share(keys), "not in it")

    node.round_id = "a run, round 3"
    keys = new_round(node).advertise(range(5))
    refuses(lambda: node.sign(Survivors(node.round_id, (0, 1, 2))), "not next")
    refuses(lambda: node.share(keys), "not in it")


def test_a_refusal_of_the_client_ends_the_round_on_disk(node: Node) -> None:
    keys = new_round(node).advertise(range(5))
    refuses(lambda: node.share(KeyList(ROUND, keys.keys[:2])), "fewer than survivors")
    assert not node.file.exists()
    refuses(lambda: node.share(keys), "not in it")
    refuses(node.advertise, "took part before")


def test_a_round_is_entered_once_also_after_a_restart(node: Node) -> None:
    run = new_round(node)
    run.advertise(range(5))
    node.round_id = "a run, round 2"
    new_round(node).advertise(range(5))
    node.round_id = ROUND
    refuses(node.advertise, "took part before")


def test_a_newer_round_removes_the_secrets_of_an_older_one(node: Node) -> None:
    shares_of(new_round(node))
    before = _state(node)
    node.round_id = "a run, round 2"
    node.advertise()
    for secret in (before.seed, before.mask_secret, before.sealing_secret):
        assert secret not in node.files


def test_a_process_that_is_killed_in_a_step_leaves_no_second_answer(node: Node) -> None:
    run = new_round(node)
    keys = run.advertise(range(5))
    node.during = lambda: os._exit(9)
    killed = in_process(lambda: node.share(keys))
    killed.join(10)
    assert killed.exitcode == 9
    node.during = lambda: None
    refuses(lambda: node.share(keys), "was interrupted")
    refuses(lambda: node.share(KeyList(ROUND, keys.keys[:4])), "taken before")


def test_a_process_that_is_killed_before_its_reply_leaves_that_reply(node: Node) -> None:
    run = new_round(node)
    shares, inputs = shares_of(run), random_inputs(PARAMETERS, range(5))

    def masked() -> None:
        node.mask(shares, lambda: inputs[0])
        os._exit(9)

    killed = in_process(masked)
    killed.join(10)
    assert killed.exitcode == 9
    reply = node.mask(shares, lambda: inputs[1])
    run.server.add_input(reply)
    stored = StoredClient(node.home, 0, node.lock)._read()
    assert stored is not None
    assert decoded(MaskedInput, stored.replies[Phase.INPUTS]) == reply


def test_of_two_processes_at_once_one_takes_the_step(node: Node) -> None:
    keys = new_round(node).advertise(range(5))
    results = PROCESSES.SimpleQueue()
    node.during = lambda: time.sleep(0.5)

    def share() -> None:
        try:
            results.put(encoded(node.share(keys)))
        except Refusal as error:
            results.put(str(error))

    for process in [in_process(share) for _ in range(3)]:
        process.join(20)
    seen = [results.get() for _ in range(3)]
    replies = {reply for reply in seen if isinstance(reply, bytes)}
    assert len(replies) == 1
    assert all("is being taken" in text for text in seen if isinstance(text, str))
    assert encoded(node.share(keys)) in replies


def test_a_round_that_ends_during_a_step_gets_no_reply(node: Node) -> None:
    def end() -> None:
        StoredClient(node.home, 0, node.lock).end(ROUND)

    keys = new_round(node).advertise(range(5))
    node.during = end
    refuses(lambda: node.share(keys), "ended while")
    assert not node.file.exists()


def test_a_damaged_file_of_a_round_ends_it(node: Node) -> None:
    for number, damaged in enumerate(
        [lambda data: flipped(data, 999), lambda data: data[:50], lambda data: b""]
    ):
        node.round_id = f"a run, round {number}"
        keys = new_round(node).advertise(range(5))
        node.file.write_bytes(damaged(node.file.read_bytes()))
        refuses(lambda keys=keys: node.share(keys), "not in it")
        refuses(node.advertise, "took part before")


def test_a_damaged_file_of_rounds_ends_all(node: Node) -> None:
    node.advertise()
    rounds = node.file.with_suffix(".rounds")
    rounds.write_bytes(rounds.read_bytes().replace(b"round 1", b"round 9"))
    node.round_id = "a run, round 2"
    refuses(node.advertise, "damaged or unreadable", "home")
    rounds.unlink()
    rounds.symlink_to(node.home / "lock")
    node.round_id = "a run, round 3"
    refuses(node.advertise, "damaged or unreadable", "home")


@pytest.mark.parametrize("writes", [0, 1])
def test_a_full_disk_gives_no_reply_and_no_second_one(
    node: Node, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    """Full before the step is claimed, the step can be taken later; full after it, the round has ended."""
    run = new_round(node)
    keys = run.advertise(range(5))
    original, left = stored_client.replace_file, [writes]

    def full(*args: object, **options: object) -> Path:
        if not left[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        left[0] -= 1
        return original(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(stored_client, "replace_file", full)
    with pytest.raises(OSError, match="No space"):
        node.share(keys)
    monkeypatch.undo()
    if writes:
        refuses(lambda: node.share(keys), "was interrupted")
    else:
        assert set(node.share(keys).sealed) == {1, 2, 3, 4}


def test_a_full_disk_enters_no_round(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, *args: object, **options: object) -> Path:
        if path.suffix == ".rounds":
            raise OSError(errno.ENOSPC, "No space left on device")
        return original(path, *args, **options)  # type: ignore[arg-type]

    original = stored_client.replace_file
    monkeypatch.setattr(stored_client, "replace_file", full)
    with pytest.raises(OSError, match="No space"):
        node.advertise()
    assert not node.file.exists()


def test_partial_files_of_a_killed_process_are_removed(node: Node) -> None:
    node.advertise()
    partial = node.file.with_name("client-0.round.1-aa.part")
    partial.write_bytes(b"a secret")
    node.round_id = "a run, round 2"
    node.advertise()
    assert not partial.exists()


def test_a_client_that_hands_over_takes_no_further_step() -> None:
    run = Round(PARAMETERS, range(5))
    keys = run.advertise(range(5))
    client = run.clients[0]
    state = client.hand_over()
    refuses(lambda: client.share(keys), "taken before")
    assert not {"_seed", "_sealing", "_masking", "_shares"} & vars(client).keys()
    assert client.hand_over() == ClientState(Phase.ENDED)
    arguments = 0, node_key(0), roster_of(range(5)), PARAMETERS, ROUND
    assert Client.restored(state, *arguments).share(keys).sealed.keys() == {1, 2, 3, 4}


@pytest.mark.parametrize("phase", [Phase.KEYS, Phase.ENDED, 9])
def test_a_client_that_entered_no_round_or_ended_is_not_restored(phase: int) -> None:
    with pytest.raises(InputError, match="no further step"):
        Client.restored(ClientState(phase), 0, node_key(0), roster_of(range(5)), PARAMETERS, ROUND)


def test_a_server_cannot_make_a_client_enter_rounds_without_end(tmp_path: Path) -> None:
    for number in range(3):
        node = Node(tmp_path, f"round {number}")
        node.most = 3
        node.advertise()
    node = Node(tmp_path, "round 3")
    node.most = 3
    with pytest.raises(Refusal, match="entered 3 rounds, the most that its plan allows"):
        node.advertise()
