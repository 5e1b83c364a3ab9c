"""A client refuses a server that lies, repeats or tampers, and then answers nothing more in this round."""

from __future__ import annotations

import copy
import logging
import pickle
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from phases import Round, flipped, node_key, random_inputs, roster_of

from clients.error_filter import kinds_only
from fedprivacy.errors import InputError, Refusal
from fedprivacy.secure_sum.client import Client
from fedprivacy.secure_sum.keys import KEY_BYTES, sign
from fedprivacy.secure_sum.messages import DeliveredShares, KeyList, SignatureList, Survivors
from fedprivacy.secure_sum.parameters import Parameters
from fedprivacy.secure_sum.rounds import Rounds
from fedprivacy.secure_sum.server import Server
from fedprivacy.secure_sum.transcript import KEYS_PURPOSE, signed_keys, signed_survivors

PARAMETERS = Parameters(dimension=8, bits=16, clients=5, survivors=3, colluders=0, threshold=3)
ROUND = "a run, round 1"


def new_round(parameters: Parameters = PARAMETERS, round_id: str = ROUND) -> Round:
    return Round(parameters, range(parameters.clients), round_id)


def refuses(step: Callable[[], object], text: str) -> None:
    """A step is refused for a reason."""
    with pytest.raises(Refusal, match=text) as caught:
        step()
    assert caught.value.kind == "secure-sum"


def no_training() -> NDArray[np.int64]:
    """The integers of a client that must not train: its round cannot be opened."""
    pytest.fail("the shares are checked before the client trains")


def key_list(run: Round) -> KeyList:
    return run.advertise(range(5))


def delivered(run: Round) -> dict[int, DeliveredShares]:
    return run.share(key_list(run), range(5))


def survivors(run: Round) -> Survivors:
    """Client 4 drops out before its input."""
    return run.mask(delivered(run), random_inputs(run.parameters, range(5)), range(4))


def signatures(run: Round) -> SignatureList:
    return run.sign(survivors(run), range(4))


def test_a_roster_with_another_key_of_the_client_is_refused() -> None:
    with pytest.raises(InputError, match="another key for client 0, or none"):
        Client(0, node_key(1), roster_of(range(3)), PARAMETERS, ROUND, Rounds())
    with pytest.raises(InputError, match="another key for client 7, or none"):
        Client(7, node_key(7), roster_of(range(3)), PARAMETERS, ROUND, Rounds())


def test_a_second_sum_of_one_round_is_refused() -> None:
    rounds, roster = Rounds(), roster_of(range(5))

    def client(round_id: str) -> Client:
        return Client(0, node_key(0), roster, PARAMETERS, round_id, rounds)

    client(ROUND).advertise()
    refuses(client(ROUND).advertise, "took part before")
    client("a run, round 2").advertise()


def test_each_step_happens_once_and_in_order() -> None:
    run = new_round()
    refuses(lambda: run.clients[0].share(KeyList(ROUND, ())), "not next")
    refuses(run.clients[0].advertise, "taken before")

    run = new_round()
    message = key_list(run)
    run.clients[0].share(message)
    refuses(lambda: run.clients[0].share(message), "taken before")

    run = new_round()
    shares = delivered(run)[0]
    integers = random_inputs(PARAMETERS, [0])[0]
    run.clients[0].mask(shares, lambda: integers)
    refuses(lambda: run.clients[0].mask(shares, lambda: integers), "taken before")

    run = new_round()
    listed = survivors(run)
    run.clients[0].sign(listed)
    refuses(lambda: run.clients[0].sign(listed), "taken before")


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_client_is_not_copied(copied: Callable[[Client], object]) -> None:
    with pytest.raises(TypeError, match="cannot be copied"):
        copied(new_round().clients[0])


def test_of_equal_calls_in_threads_the_first_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    run = new_round()
    message = survivors(run)
    both = threading.Barrier(2)

    def slow(*parts: object) -> tuple[bytes, ...]:
        time.sleep(0.2)
        return signed_survivors(*parts)  # type: ignore[arg-type]

    def sign_once() -> bool:
        both.wait()
        try:
            run.clients[0].sign(message)
        except Refusal:
            return False
        return True

    monkeypatch.setattr("fedprivacy.secure_sum.client.signed_survivors", slow)
    with ThreadPoolExecutor(2) as pool:
        results = [call.result() for call in [pool.submit(sign_once), pool.submit(sign_once)]]
    assert sorted(results) == [False, True]
    assert "_shares" not in vars(run.clients[0])


def test_clients_in_threads_enter_a_round_once(monkeypatch: pytest.MonkeyPatch) -> None:
    class SlowSet(set[str]):
        def add(self, round_id: str) -> None:
            time.sleep(0.2)
            super().add(round_id)

    rounds = Rounds()
    monkeypatch.setattr(rounds, "_entered", SlowSet())
    clients = [Client(0, node_key(0), roster_of([0, 1]), PARAMETERS, ROUND, rounds) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        errors = [call.exception() for call in [pool.submit(each.advertise) for each in clients]]
    assert [type(error) for error in errors if error] == [Refusal]


def test_secrets_that_no_further_step_needs_are_forgotten() -> None:
    run = new_round()
    survivors(run)
    assert not {"_seed", "_sealing", "_masking"} & vars(run.clients[0]).keys()
    assert run.clients[0]._shares


def test_a_refusal_is_of_a_kind_that_a_node_may_send() -> None:
    with pytest.raises(Refusal, match=r"^secure-sum: ") as caught, kinds_only(pinned=True):
        new_round().clients[0].share(KeyList(ROUND, ()))
    assert caught.value.kind == "secure-sum"


@pytest.mark.parametrize("round_id", ["\ud800", None, b"a run", 1])
def test_a_round_id_that_is_no_text_is_refused(round_id: str) -> None:
    with pytest.raises(InputError, match=r"round_id = .*: must be text"):
        Client(0, node_key(0), roster_of([0]), PARAMETERS, round_id, Rounds())
    with pytest.raises(InputError, match=r"round_id = .*: must be text"):
        Server(roster_of([0]), PARAMETERS, round_id)


@pytest.mark.parametrize("identity", [-1, 2**64, 0.0, False, "0"])
def test_an_identity_that_is_out_of_range_is_refused(identity: int) -> None:
    roster = {identity: node_key(0).public_key()}
    with pytest.raises(InputError, match=r"roster: .* from 0 to 2\^64 - 1"):
        Client(identity, node_key(0), roster, PARAMETERS, ROUND, Rounds())
    with pytest.raises(InputError, match=r"roster: .* from 0 to 2\^64 - 1"):
        Server(roster, PARAMETERS, ROUND)


def test_a_refusal_ends_the_round_and_forgets_its_secrets() -> None:
    run = new_round()
    message = survivors(run)
    refuses(lambda: run.clients[0].sign(replace(message, clients=(0, 1))), "fewer than survivors = 3")
    refuses(lambda: run.clients[0].sign(message), "taken before")
    assert not {"_seed", "_sealing", "_masking", "_shares"} & vars(run.clients[0]).keys()


def test_keys_that_are_wrong_are_refused() -> None:
    other = key_list(new_round(round_id="a run, round 2"))

    def another(position: int, **changes: object) -> Callable[[KeyList], KeyList]:
        def change(message: KeyList) -> KeyList:
            keys = list(message.keys)
            keys[position] = replace(keys[position], **changes)
            return replace(message, keys=tuple(keys))

        return change

    changes: list[tuple[Callable[[KeyList], KeyList], str]] = [
        (lambda message: replace(message, round_id="a run, round 2"), "another round"),
        (lambda message: replace(message, keys=message.keys[:2]), "2 clients, fewer than survivors = 3"),
        (lambda message: replace(message, keys=message.keys[1:]), "keys of this client are missing"),
        (lambda message: replace(message, keys=(*message.keys, message.keys[1])), "6 clients, more than"),
        (lambda message: replace(message, keys=(*message.keys[:4], message.keys[1])), "listed twice"),
        (
            lambda message: replace(message, keys=(*message.keys[:4], other.keys[4])),
            "client 4 are not signed",
        ),
        (another(4, sender=9), "a client is unknown"),
        (another(4, signature=b""), "client 4 are not signed"),
        (another(4, mask_key=bytes(KEY_BYTES)), "client 4 are not signed"),
        (another(4, round_id="a run, round 2"), "client 4 are not signed"),
        (another(0, mask_key=bytes(KEY_BYTES)), "keys of this client are missing or changed"),
        (lambda message: another(4, mask_key=message.keys[1].mask_key)(message), "two of the keys are equal"),
        (
            lambda message: another(3, signature=flipped(message.keys[3].signature, 77))(message),
            "client 3 are not signed",
        ),
    ]
    for change, text in changes:
        run = new_round()
        message = change(key_list(run))
        refuses(lambda client=run.clients[0], message=message: client.share(message), text)


def test_keys_of_another_plan_are_refused() -> None:
    run, other = new_round(), new_round(replace(PARAMETERS, bits=17))
    message = key_list(run)
    keys = [other.clients[1].advertise() if each.sender == 1 else each for each in message.keys]
    refuses(lambda: run.clients[0].share(KeyList(ROUND, tuple(keys))), "client 1 are not signed for this")


SMALL_ORDER = bytes(KEY_BYTES), b"\x01" + bytes(KEY_BYTES - 1)


@pytest.mark.parametrize("name", ["sealing_key", "mask_key"])
@pytest.mark.parametrize("key", [*SMALL_ORDER, bytes(31), b""])
def test_a_signed_key_that_is_invalid_is_refused(name: str, key: bytes) -> None:
    run = new_round()
    keys = list(key_list(run).keys)
    changed = replace(keys[1], **{name: key})
    signature = sign(node_key(1), KEYS_PURPOSE, *signed_keys(changed, PARAMETERS))
    keys[1] = replace(changed, signature=signature)
    refuses(lambda: run.clients[0].share(KeyList(ROUND, tuple(keys))), "client 1 is not a valid X25519 key")


def test_shares_that_are_wrong_are_refused() -> None:
    replayed = delivered(new_round(round_id="a run, round 2"))[0]
    cases: list[tuple[Callable[[dict[int, DeliveredShares]], DeliveredShares], str]] = [
        (lambda all_shares: replayed, "another round"),
        (lambda all_shares: replace(replayed, round_id=ROUND), "not for this client and round"),
        (lambda all_shares: all_shares[1], "listed twice"),
        (lambda all_shares: replace(all_shares[0], sealed={1: all_shares[0].sealed[1]}), "2 clients, fewer"),
        (
            lambda all_shares: replace(all_shares[0], sealed={**all_shares[0].sealed, 9: b""}),
            "a client is unknown",
        ),
        (
            lambda all_shares: replace(
                all_shares[0], sealed={**all_shares[0].sealed, 2: all_shares[0].sealed[1]}
            ),
            "shares of client 2 are not for this client and round",
        ),
        (
            lambda all_shares: replace(
                all_shares[0], sealed={**all_shares[0].sealed, 2: all_shares[1].sealed[2]}
            ),
            "shares of client 2 are not for this client and round",
        ),
    ]
    for change, text in cases:
        run = new_round()
        message = change(delivered(run))
        refuses(lambda client=run.clients[0], message=message: client.mask(message, no_training), text)


def test_shares_that_a_client_sealed_itself_are_refused_when_they_come_back() -> None:
    run = new_round()
    message = delivered(run)[0]
    returned = replace(message, sealed={**message.sealed, 1: run.sealed[0].sealed[1]})
    refuses(lambda: run.clients[0].mask(returned, no_training), "client 1 are not for this client and round")


@pytest.mark.parametrize("bit", [0, 100, 500])
def test_a_flipped_bit_of_sealed_shares_is_refused(bit: int) -> None:
    run = new_round()
    message = delivered(run)[0]
    sealed = {**message.sealed, 3: flipped(message.sealed[3], bit)}
    changed = replace(message, sealed=sealed)
    refuses(lambda: run.clients[0].mask(changed, no_training), "client 3 are not for this client and round")


@pytest.mark.parametrize(
    ("integers", "text"),
    [
        (np.zeros(7, np.int64), r"\(7,\): must be \(8,\)"),
        (np.full(8, -1), "from 0 to"),
        (np.full(8, 2**16), "from 0 to"),
        (np.full(8, 1.5), "float64: must have an integer dtype"),
        (np.full(8, np.nan), "float64: must have an integer dtype"),
        (np.full(8, True), "bool: must have an integer dtype"),
        (np.full(8, 1, "m8[s]"), "must have an integer dtype"),
    ],
)
def test_integers_out_of_range_are_refused(integers: np.ndarray, text: str) -> None:
    run = new_round()
    message = delivered(run)[0]
    with pytest.raises(InputError, match=text):
        run.clients[0].mask(message, lambda: integers)


@pytest.mark.parametrize(
    ("clients", "text"),
    [
        ((0, 1), "2 clients, fewer than survivors = 3"),
        ((0, 1, 1), "listed twice"),
        ((0, 1, 2, 9), "a client is unknown"),
        ((1, 2, 3), "leave out this client"),
    ],
)
def test_survivors_that_are_wrong_are_refused(clients: tuple[int, ...], text: str) -> None:
    run = new_round()
    survivors(run)
    refuses(lambda: run.clients[0].sign(Survivors(ROUND, clients)), text)


def test_survivors_of_another_round_are_refused() -> None:
    run = new_round()
    message = replace(survivors(run), round_id="a run, round 2")
    refuses(lambda: run.clients[0].sign(message), "another round")


def test_a_client_that_sent_no_shares_is_no_survivor() -> None:
    run = new_round()
    shares = run.share(key_list(run), range(4))
    run.mask(shares, random_inputs(PARAMETERS, range(4)), range(4))
    refuses(lambda: run.clients[0].sign(Survivors(ROUND, (0, 1, 2, 4))), "a client is unknown")


def test_signatures_that_are_wrong_are_refused() -> None:
    cases: list[tuple[Callable[[SignatureList], SignatureList], str]] = [
        (lambda message: replace(message, round_id="a run, round 2"), "another round"),
        (
            lambda message: replace(message, signatures={0: message.signatures[0], 1: message.signatures[1]}),
            "2 clients signed the survivors, fewer than threshold = 3",
        ),
        (
            lambda message: replace(message, signatures={**message.signatures, 4: message.signatures[0]}),
            "no survivors signed",
        ),
        (
            lambda message: replace(message, signatures={**message.signatures, 2: message.signatures[1]}),
            "client 2 did not sign",
        ),
        (
            lambda message: replace(
                message, signatures={**message.signatures, 3: flipped(message.signatures[3], 90)}
            ),
            "client 3 did not sign",
        ),
    ]
    for change, text in cases:
        run = new_round()
        message = change(signatures(run))
        refuses(lambda client=run.clients[0], message=message: client.open(message), text)


def test_a_server_that_lies_about_survivors_gets_no_share_from_either_half() -> None:
    """With five clients and a threshold of 3, no two claims have three honest supporters each."""
    run = new_round()
    survivors(run)
    claims = {0: (0, 1, 2, 3), 1: (0, 1, 2, 3), 2: (1, 2, 3), 3: (1, 2, 3)}
    signed = {
        client: run.clients[client].sign(Survivors(ROUND, claim)).signature
        for client, claim in claims.items()
    }
    refuses(
        lambda: run.clients[0].open(SignatureList(ROUND, {0: signed[0], 1: signed[1]})), "2 clients signed"
    )
    refuses(lambda: run.clients[1].open(SignatureList(ROUND, signed)), "client 2 did not sign")
    refuses(
        lambda: run.clients[2].open(SignatureList(ROUND, {2: signed[2], 3: signed[3]})), "2 clients signed"
    )
    refuses(
        lambda: run.clients[3].open(SignatureList(ROUND, {each: signed[each] for each in (1, 2, 3)})),
        "client 1 did not sign",
    )


def test_a_server_that_shows_different_senders_of_shares_gets_no_share() -> None:
    """The server shows client 0 a list of senders without client 4, and the others the full one; the survivors are the same."""
    run = new_round()
    shares = delivered(run)
    inputs = random_inputs(PARAMETERS, range(5))
    fewer = {sender: shares[0].sealed[sender] for sender in (1, 2, 3)}
    run.clients[0].mask(replace(shares[0], sealed=fewer), lambda: inputs[0])
    for client in (1, 2, 3):
        run.clients[client].mask(shares[client], lambda client=client: inputs[client])
    listed = Survivors(ROUND, (0, 1, 2, 3))
    signed = {client: run.clients[client].sign(listed).signature for client in range(4)}
    refuses(lambda: run.clients[1].open(SignatureList(ROUND, signed)), "client 0 did not sign")


def test_a_server_that_shows_different_keys_gets_no_input() -> None:
    run = new_round()
    message = key_list(run)
    shares = {
        client: run.clients[client].share(message if client else replace(message, keys=message.keys[:4]))
        for client in range(4)
    }
    received = DeliveredShares(ROUND, {sender: shares[sender].sealed[0] for sender in (1, 2, 3)})
    refuses(lambda: run.clients[0].mask(received, no_training), "not for this client and round")


def test_exactly_one_share_of_each_peer_is_opened_and_once() -> None:
    run = new_round()
    message = signatures(run)
    opened = run.clients[0].open(message)
    assert set(opened.seeds) == {0, 1, 2, 3}
    assert set(opened.mask_keys) == {4}
    refuses(lambda: run.clients[0].open(message), "taken before")
    # A server that wants the other share of client 1 too claims that it dropped out.
    refuses(lambda: run.clients[0].sign(Survivors(ROUND, (0, 2, 3))), "taken before")
    assert not {"_seed", "_sealing", "_masking", "_shares"} & vars(run.clients[0]).keys()


def test_no_secret_is_shown_logged_or_pickled(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        run = new_round()
        client = run.clients[0]
        hidden = [client._seed, client._masking.secret(), client._sealing.secret()]
        shares = delivered(run)
        hidden += list(shares[0].sealed.values())
        shown = repr(client) + str(client) + repr(shares[0]) + repr(run.sealed[0])
        with pytest.raises(TypeError):
            pickle.dumps(client)
        message = run.sign(run.mask(shares, random_inputs(PARAMETERS, range(5)), range(4)), range(4))
        hidden += [share for pair in client._shares.values() for share in pair]
        shown += repr(client.open(message)) + repr(run.inputs[0])
    assert caplog.text == ""
    assert not [secret for secret in hidden if repr(secret)[2:-1] in shown or secret.hex() in shown]
