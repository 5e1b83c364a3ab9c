"""A malicious participant around its own client, over the real apps."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from clients.adversary import Participant
from fedprivacy.attacks.ascent import Ascent
from fedprivacy.attacks.signals import Probe
from fedprivacy.attacks.transcript import Sight
from fedprivacy.messages.protocol import parts_of

ATTACKER, CLIENTS = 4, 12
ALONE = "federation.chunk_size=1"
SERVER_RATE = 0.5


class Wire:
    """What each client uploads, behind the attacker's back."""

    def __init__(self) -> None:
        self.updates: dict[int, np.ndarray] = {}

    def __call__(self, message, context, call_next):
        reply = call_next(message, context)
        if message.metadata.message_type == "train" and not reply.has_error():
            arrays, _ = parts_of(reply)
            client = int(parts_of(message)[0]["clients"][0])
            self.updates[client] = arrays["updates"].reshape(-1).copy()
        return reply


def attacked(make_scenario, trial, *overrides: str, ascent: Ascent | None = None, boost: float = 1.0):
    """A federation with a participant in it, the attacker, what it sees, and what everybody uploads."""
    asked = make_scenario(ALONE, f"server.learning_rate={SERVER_RATE}", "server.rounds=9", *overrides)
    seen: list[Sight] = []
    mod = Participant(ATTACKER, SERVER_RATE / CLIENTS, seen.append, probe=None, ascent=ascent, boost=boost)
    wire = Wire()
    played = trial(asked, mods=(wire, mod))
    mod.probe = Probe(played.fleet.module, played.fleet.x, played.fleet.y)
    return played, mod, seen, wire


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("observe", ["sum", "each"])
def test_a_passive_participant_changes_no_bit_and_sees_what_the_others_did(
    make_scenario, trial, observe
) -> None:
    options = ("privacy.trust=none", f"federation.observe={observe}")
    played, _, seen, wire = attacked(make_scenario, trial, *options)
    models, others = [played.federation.model.copy()], []
    for number in range(4):
        played.federation.round(number)
        models.append(played.federation.model.copy())
        others.append(sum(wire.updates[client] for client in range(CLIENTS) if client != ATTACKER))
    assert len(seen) == 3  # the last round has not been shown to it yet
    for number, sight in enumerate(seen):
        assert np.array_equal(sight.sent.numpy(), models[number])
        assert sight.update.numpy() == pytest.approx(others[number] * SERVER_RATE / CLIENTS, abs=1e-6)
        assert sight.others.shape == (0, len(models[0]))
        assert sight.targets is None
    honest = make_scenario(ALONE, f"server.learning_rate={SERVER_RATE}", "server.rounds=9", *options)
    assert np.array_equal(trial(honest).play(4), played.federation.weights)


@pytest.mark.parametrize("observe", ["sum", "each"])
def test_an_ascending_participant_uploads_its_ascent_and_others_are_left_alone(
    make_scenario, trial, observe
) -> None:
    ascent, boost, targets = Ascent(level=2.0), CLIENTS / SERVER_RATE, np.array([5, 9])
    options = ("privacy={trust='none'}", f"federation.observe={observe}")
    played, mod, seen, wire = attacked(make_scenario, trial, *options, ascent=ascent, boost=boost)
    start = played.federation.model.copy()
    mod.climbing = targets
    _, total = played.federation.round(0)
    assert (total.answered, total.failed) == (CLIENTS, 0)
    raised = ascent.climb(mod.probe.at(targets), torch.from_numpy(start)).numpy()
    assert wire.updates[ATTACKER] == pytest.approx(boost * (raised - start), rel=1e-5, abs=1e-6)
    alone = Wire()
    honest = trial(
        make_scenario(ALONE, f"server.learning_rate={SERVER_RATE}", "server.rounds=9", *options),
        mods=(alone,),
    )
    honest.federation.round(0)
    for client in range(CLIENTS):
        assert client == ATTACKER or np.array_equal(wire.updates[client], alone.updates[client])
    # Boosted so, averaging and the server's learning rate leave it whole beside the others' training.
    others = sum(wire.updates[client] for client in range(CLIENTS) if client != ATTACKER)
    assert played.federation.weights == pytest.approx(raised + others * SERVER_RATE / CLIENTS, abs=1e-5)

    mod.climbing, attacked_model = None, played.federation.model.copy()
    played.federation.round(1)
    mod.watched = targets
    assert seen == []  # the round of the ascent is not an observation
    others = sum(wire.updates[client] for client in range(CLIENTS) if client != ATTACKER)
    played.federation.round(2)
    [sight] = seen
    assert np.array_equal(sight.sent.numpy(), attacked_model)
    assert sight.update.numpy() == pytest.approx(others * SERVER_RATE / CLIENTS, abs=1e-5)
    assert np.array_equal(sight.targets, targets)


def test_an_ascent_beyond_what_the_server_takes_is_scaled_down_to_it(make_scenario, trial) -> None:
    ascent = Ascent(level=2.0)
    for most, rejected in ((None, 1), (1.0, 0)):
        played, mod, _, wire = attacked(
            make_scenario, trial, "privacy.trust=none", ascent=ascent, boost=float(CLIENTS)
        )
        mod.climbing, mod.most = np.array([5, 9]), most
        _, total = played.federation.round(0)
        assert total.faults.by_kind == ({"reply_too_large": 1} if rejected else {})
        assert (np.linalg.norm(wire.updates[ATTACKER]) > 1 + 1e-9) == bool(rejected)


def test_a_round_in_which_its_own_client_failed_is_not_taken_for_an_observation(make_scenario, trial) -> None:
    """Two rounds together are never seen as one."""
    asked = make_scenario(ALONE, "privacy.trust=none")
    seen: list[Sight] = []

    def failing(message, context, call_next):
        arrays, values = parts_of(message) if message.metadata.message_type == "train" else ({}, {})
        if values.get("round") == 1 and arrays["clients"][0] == ATTACKER:
            raise RuntimeError("no memory left")
        return call_next(message, context)

    mod = Participant(ATTACKER, 1 / CLIENTS, seen.append, probe=None)
    played = trial(asked, mods=(mod, failing))
    models = []
    for number in range(4):
        models.append(played.federation.model.copy())
        _, total = played.federation.round(number)
        assert total.failed == (number == 1)
    assert [next(n for n, m in enumerate(models) if np.array_equal(m, s.sent.numpy())) for s in seen] == [
        0,
        2,
    ]


def test_a_spent_attacker_still_uploads_its_ascent(make_scenario, trial) -> None:
    """Its own client's budget binds honest code alone."""
    played, mod, _, wire = attacked(
        make_scenario,
        trial,
        "privacy.trust=local",
        "privacy.max_participations=1",
        ascent=Ascent(level=2.0),
        boost=2.0,
    )
    played.federation.round(0)
    played.ledger.participations[:] = 0
    mod.climbing = np.array([3])
    _, total = played.federation.round(1)
    assert (total.refused, total.answered, total.failed) == (CLIENTS - 1, 1, 0)
    assert np.abs(wire.updates[ATTACKER]).max() > 0
    assert all((wire.updates[client] == 0).all() for client in range(CLIENTS) if client != ATTACKER)
