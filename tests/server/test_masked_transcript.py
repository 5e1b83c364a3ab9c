"""All that the server receives in a run under masks shows the sum of honest clients, and nothing else of them.

Whole runs of the apps: pinned nodes, messages of Flower, the phases of `MaskedSum`. Clients 0, 1 and 2 are honest,
client 3 colludes with the server, the input of client 4 comes too late, so that its private mask key is opened. The
server takes off each masked input every mask that it can compute from the transcript and the colluder's secrets.
The rest must be uniform and independent of the client's integers, given the sum. Data and noise have fixed seeds;
keys and masks come from the system's entropy. Each chi-square test has a false-alarm rate of 1e-6, all 28 together
2.8e-5.
"""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest
from flwr.app import Context, Message, RecordDict
from numpy.typing import NDArray
from scipy import stats

from clients.fleet import Fleet
from clients.node import clients_of_node
from clients.training_handler import answer
from fedprivacy.messages.protocol import parts_of
from fedprivacy.messages.secure_sum import StepReply, SumRequest
from fedprivacy.secure_sum import client as client_module
from fedprivacy.secure_sum.client_state import ClientState
from fedprivacy.secure_sum.encoding import decoded
from fedprivacy.secure_sum.keys import KeyPair, is_signed
from fedprivacy.secure_sum.masks import add_shared, keystream, reduce_words
from fedprivacy.secure_sum.messages import (
    AdvertisedKeys,
    Checked,
    MaskedInput,
    OpenedShares,
    SealedShares,
    SurvivorSignature,
)
from fedprivacy.secure_sum.packing import Words, unpack
from fedprivacy.secure_sum.secret_sharing import combine
from fedprivacy.secure_sum.stored_client import StoredClient
from fedprivacy.secure_sum.transcript import (
    KEYS_PURPOSE,
    SURVIVORS_PURPOSE,
    Phase,
    holder_points,
    self_mask_key,
    shared_mask_key,
    signed_keys,
    signed_survivors,
    view_of,
)
from tests.server.masked import CLIENTS, TEXT, MaskedNodes, Wire, served, with_values

HONEST, COLLUDER, LATE = (0, 1, 2), 3, 4
SURVIVORS = (*HONEST, COLLUDER)
ROUNDS = (3, 24)  # 3 show each missing mask; 24 are exhaustive
FALSE_ALARM = 1e-6
PHASES: dict[type[Checked], Phase] = {
    AdvertisedKeys: Phase.KEYS,
    SealedShares: Phase.SHARES,
    MaskedInput: Phase.INPUTS,
    SurvivorSignature: Phase.CONSISTENCY,
    OpenedShares: Phase.OPENING,
}
FromClient = TypeVar("FromClient", AdvertisedKeys, SealedShares, MaskedInput, SurvivorSignature, OpenedShares)
Values = dict[str, object]


class Transcript:
    """A round as a curious server with a colluder sees it, and the plain integers for comparison."""

    def __init__(self, nodes: MaskedNodes) -> None:
        self.nodes, self.parameters = nodes, nodes.parameters
        self.requests: dict[int, SumRequest] = {}  # of inputs
        self.replies: dict[tuple[Phase, int], dict[str, Values]] = {}  # all records of the message
        self.colluder = b""  # its private mask key

    def message(self, kind: type[FromClient], client: int) -> FromClient:
        values = self.replies[PHASES[kind], client]["values"]
        return decoded(kind, StepReply.of({}, values).message)

    @property
    def keys(self) -> dict[int, AdvertisedKeys]:
        return {client: self.message(AdvertisedKeys, client) for client in range(CLIENTS)}

    @property
    def view(self) -> bytes:
        return view_of(self.keys[0].round_id, self.parameters, self.keys)

    def opened(self, kind: str, client: int) -> bytes:
        """The seed of a survivor, or the private mask key of the late client."""
        points = holder_points(range(CLIENTS))
        shares = {
            points[peer]: int.from_bytes(getattr(self.message(OpenedShares, peer), kind)[client], "big")
            for peer in SURVIVORS
        }
        return combine(shares).to_bytes(32, "big")

    def masked(self, client: int) -> Words:
        packed = self.message(MaskedInput, client).packed
        return unpack(packed, self.parameters.dimension, self.parameters.bits)

    def residual(self, client: int) -> Words:
        """A masked input without each mask that the server can compute."""
        words, view, keys = self.masked(client), self.view, self.keys
        known = {COLLUDER: KeyPair(self.colluder), LATE: KeyPair(self.opened("mask_keys", LATE))}
        if client in SURVIVORS:
            words -= keystream(self_mask_key(self.opened("seeds", client), view), len(words))
        for peer in set(range(CLIENTS) if client in known else known) - {client}:
            pair, other = (known[client], peer) if client in known else (known[peer], client)
            key = shared_mask_key(pair, keys[other].mask_key, view, client, peer)
            add_shared(words, peer, client, keystream(key, len(words)))  # the other's sign: takes it off
        return reduce_words(words, self.parameters.bits)

    def plain(self, client: int) -> NDArray[np.int64]:
        """The client's integers; its noise has a seed, so that the test can train once more."""
        config = self.nodes.config(client, noise="seeded")
        context = Context(run_id=1, node_id=1, node_config=config, state=RecordDict(), run_config={})
        fleet = clients_of_node(context).clients
        assert isinstance(fleet, Fleet)
        reply, _ = answer(fleet, None, self.requests[client].training(), [client])
        return np.asarray(reply.updates, np.int64)


def transcripts(folder: Path, rounds: int) -> list[Transcript]:
    """The rounds of a run of both apps; each reply is noted before anything is lost."""
    nodes = MaskedNodes(folder, TEXT, f"server.rounds={rounds}", "privacy.colluders=1")
    seen: list[Transcript] = []

    def request(phase: Phase, client: int, message: Message) -> Message:
        if (phase, client) == (Phase.KEYS, 0):
            seen.append(Transcript(nodes))
        if phase is Phase.INPUTS:
            seen[-1].requests[client] = SumRequest.of(*parts_of(message))
        if (phase, client) == (Phase.INPUTS, COLLUDER):
            seen[-1].colluder = secret_of(nodes, COLLUDER)
        return message

    def reply(phase: Phase, client: int, message: Message) -> Message:
        records = {name: dict(record) for name, record in message.content.items()}
        seen[-1].replies[phase, client] = records
        return with_values(message, message=b"") if (phase, client) == (Phase.INPUTS, LATE) else message

    document = served(nodes, Wire(nodes, request=request, reply=reply, noise="seeded"))
    assert [event["faults"] for event in document["rounds"]] == [{"reply_shape": 1}] * rounds
    return seen


def secret_of(nodes: MaskedNodes, client: int) -> bytes:
    """The private mask key in a node's home, before its input is masked."""
    stored = StoredClient(nodes.round_file(client).parents[1], client, nullcontext)._read()
    assert stored is not None
    return decoded(ClientState, stored.state).mask_secret


@pytest.fixture(scope="module", params=ROUNDS)
def seen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Transcript]:
    return transcripts(tmp_path_factory.mktemp("run"), request.param)


def stacked(rows: list[NDArray]) -> NDArray[np.int64]:
    return np.concatenate(rows).astype(np.int64)


def is_uniform(*digits: NDArray[np.int64]) -> bool:
    """Whether all combinations of digits from 0 to 3 come up equally often."""
    cells = np.ravel_multi_index(digits, (4,) * len(digits))
    return bool(stats.chisquare(np.bincount(cells, minlength=4 ** len(digits))).pvalue > FALSE_ALARM)


def is_independent(digit: NDArray[np.int64], *given: NDArray[np.int64]) -> bool:
    """Whether a digit from 0 to 3 is uniform for each combination of others, and so independent of them."""
    cells = np.ravel_multi_index(given, (4,) * len(given))
    counts = np.array([np.bincount(digit[cells == cell], minlength=4) for cell in np.unique(cells)])
    expected = counts.sum(axis=1, keepdims=True) / 4
    statistic = ((counts - expected) ** 2 / expected).sum()
    return bool(stats.chi2.sf(statistic, 3 * len(counts)) > FALSE_ALARM)


def hides_all_but_the_sum(seen: list[Transcript]) -> bool:
    """Whether the digits of all masked inputs pass the tests: the lowest and the highest two bits."""
    bits, modulus = seen[0].parameters.bits, 1 << seen[0].parameters.bits
    rest = {client: stacked([each.residual(client) for each in seen]) for client in (*HONEST, LATE)}
    plain = {client: stacked([each.plain(client) for each in seen]) for client in rest}
    total = sum(plain[client] for client in HONEST) % modulus
    passed = []
    for shift in (0, bits - 2):
        digit = {client: rest[client] >> shift & 3 for client in rest}
        inputs = {client: plain[client] >> shift & 3 for client in rest}
        passed += [is_uniform(digit[first], digit[second]) for first, second in ((0, 1), (1, 2), (2, 0))]
        passed += [is_independent(digit[client], inputs[client], total >> shift & 3) for client in HONEST]
        passed += [is_uniform(digit[LATE]), is_independent(digit[LATE], inputs[LATE])]
        passed += [
            is_uniform(stacked([each.masked(client) for each in seen]) >> shift & 3) for client in rest
        ]
    return all(passed)


@pytest.mark.slow
@pytest.mark.exhaustive(beyond=1)
def test_masked_inputs_are_uniform_given_the_sum(seen: list[Transcript]) -> None:
    assert hides_all_but_the_sum(seen)
    for each in seen:  # all that is left to learn of honest survivors together is in their sum
        rest, plain = (sum(of(client) for client in HONEST) for of in (each.residual, each.plain))
        np.testing.assert_array_equal(rest % 2**each.parameters.bits, plain % 2**each.parameters.bits)


@pytest.mark.slow
@pytest.mark.exhaustive(beyond=1)
def test_all_other_messages_of_an_honest_client_depend_on_no_data(seen: list[Transcript]) -> None:
    """Uniform bytes, fresh in each round, and signatures of values that the server has."""
    fresh: dict[str, list[bytes]] = {name: [] for name in ("keys", "commitments", "sealed", "opened")}
    sizes: set[tuple[int, ...]] = set()
    for each in seen:
        replies = [each.replies[phase, 0] for phase in PHASES.values()]
        # Nothing but the bytes of the messages is in the replies.
        assert [{name: set(record) for name, record in reply.items()} for reply in replies] == [
            {"arrays": set(), "values": {"message", "refused"}}
        ] * len(PHASES)
        assert not any(reply["values"]["refused"] for reply in replies)
        keys, shares = each.message(AdvertisedKeys, 0), each.message(SealedShares, 0)
        opening, signature = each.message(OpenedShares, 0), each.message(SurvivorSignature, 0)
        assert {keys.sender, shares.sender, opening.sender, signature.sender} == {0}
        node_key = each.nodes.roster[0]
        assert is_signed(node_key, keys.signature, KEYS_PURPOSE, *signed_keys(keys, each.parameters))
        survivors = signed_survivors(each.view, range(CLIENTS), SURVIVORS)
        assert is_signed(node_key, signature.signature, SURVIVORS_PURPOSE, *survivors)
        assert (set(opening.seeds), set(opening.mask_keys)) == (set(SURVIVORS), {LATE})
        fresh["keys"] += [keys.sealing_key[:31], keys.mask_key[:31]]  # the highest bit of a key is 0
        fresh["commitments"] += [shares.commitment]
        fresh["sealed"] += shares.sealed.values()
        opened = [*opening.seeds.values(), *opening.mask_keys.values()]
        fresh["opened"] += [share[1:] for share in opened]  # of integers below 2^256 + 297
        sizes.add((len(each.message(MaskedInput, 0).packed), *map(len, shares.sealed.values())))
    assert len(sizes) == 1
    for values in fresh.values():
        assert len(set(values)) == len(values)
        data = np.frombuffer(b"".join(values), np.uint8).astype(np.int64)
        assert is_uniform(data >> 6, data >> 4 & 3, data >> 2 & 3, data & 3)


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("weakness", ["no masks", "no mask of honest pairs", "one mask", "no self mask"])
def test_the_tests_see_missing_masks(weakness: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def weak_key(pair: KeyPair, peer_key: bytes, view: bytes, client: int, peer: int) -> bytes:
        key = b"1" * 32 if weakness == "one mask" else bytes(32)
        return key if max(client, peer) < COLLUDER else shared_mask_key(pair, peer_key, view, client, peer)

    def blank_of_zero_key(key: bytes, dimension: int) -> Words:
        blank = weakness == "no masks" or not any(key)
        return np.zeros(dimension, np.uint32) if blank else keystream(key, dimension)

    monkeypatch.setattr(client_module, "keystream", blank_of_zero_key)
    if weakness == "no self mask":
        monkeypatch.setattr(client_module, "self_mask_key", lambda *_: bytes(32))
    elif weakness != "no masks":
        monkeypatch.setattr(client_module, "shared_mask_key", weak_key)
    assert not hides_all_but_the_sum(transcripts(tmp_path, 3))
