"""Adversaries in the server's seat, over the real ClientApp and the embedded grid."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from flwr.app import Message

from fedprivacy.attacks.ascent import Ascent
from fedprivacy.attacks.signals import Probe
from fedprivacy.attacks.transcript import Sight
from fedprivacy.attacks.trap_units import TrapUnits
from fedprivacy.messages.protocol import parts_of
from server.adversary import Climber, Interposed, Isolator, Listener

VICTIM = 2
ALONE = "federation.chunk_size=1"


@dataclass
class Wire:
    """Writes down what passes: requests by client, after the adversary, and the order of all clients."""

    sent: dict[int, np.ndarray] = field(default_factory=dict)
    updates: dict[int, np.ndarray] = field(default_factory=dict)
    asked: list[int] = field(default_factory=list)

    def act(self, request: Message) -> Message:
        if request.metadata.message_type == "train":
            arrays, _ = parts_of(request)
            self.sent[int(arrays["clients"][0])] = arrays["weights"].copy()
            self.asked += arrays["clients"].tolist()
        return request

    def observe(self, reply: Message) -> Message:
        if "arrays" in reply.content:
            arrays, _ = parts_of(reply)
            if len(arrays["clients"]):
                self.updates[int(arrays["clients"][0])] = arrays["updates"].reshape(-1).copy()
        return reply


def probe_of(played) -> Probe:
    rows = torch.from_numpy(played.people.partition.records(VICTIM))
    return Probe(played.fleet.module, played.fleet.x[rows], played.fleet.y[rows])


@pytest.mark.exhaustive(beyond=2)
@pytest.mark.parametrize(
    "overrides",
    [
        ["privacy.trust=none"],
        ["privacy.trust=central"],
        ["privacy.trust=local"],
        ["privacy.trust=none", "federation.observe=each", "server.optimizer=adam"],
    ],
)
def test_a_listener_changes_no_bit_of_the_run_and_sees_every_update(make_scenario, trial, overrides) -> None:
    asked = make_scenario(ALONE, *overrides)
    honest = trial(asked).play()
    seen: list[Sight] = []
    listener, wire = Listener(VICTIM, seen.append), Wire()
    played = trial(asked, wrap=lambda grid: Interposed(Interposed(grid, wire), listener))
    for number in range(asked.server.rounds):
        played.federation.round(number)
        assert listener.close()
        assert np.array_equal(seen[-1].sent.numpy(), wire.sent[VICTIM])
        assert np.array_equal(seen[-1].update.numpy(), wire.updates[VICTIM].astype(np.float32))
        others = [wire.updates[client].astype(np.float32) for client in range(12) if client != VICTIM]
        assert np.array_equal(seen[-1].others.numpy(), np.stack(others))
        assert seen[-1].targets is None
    assert len(seen) == asked.server.rounds
    assert np.array_equal(played.federation.weights, honest)


@pytest.mark.parametrize("observe", ["sum", "each"])
def test_a_climber_sends_the_victim_alone_what_it_raised(make_scenario, trial, observe) -> None:
    asked = make_scenario(ALONE, "privacy.trust=none", f"federation.observe={observe}")
    seen: list[Sight] = []
    wire, ascent, targets = Wire(), Ascent(level=2.0), np.array([0, 3])

    def wrap(grid):
        nonlocal climber
        climber = Climber(VICTIM, seen.append, probe=None, ascent=ascent)
        return Interposed(Interposed(grid, wire), climber)

    climber: Climber
    played = trial(asked, wrap=wrap)
    climber.probe = probe_of(played)
    for number in range(2):
        climber.targets = targets
        before = played.federation.model.copy()
        honest = played.federation.weights.copy()
        played.federation.round(number)
        assert climber.close()
        raised = ascent.climb(climber.probe.at(targets), torch.from_numpy(before))
        assert not np.array_equal(raised.numpy(), before)
        assert np.array_equal(wire.sent[VICTIM], raised.numpy())
        for client in range(12):
            assert client == VICTIM or np.array_equal(wire.sent[client], before)
        assert np.array_equal(seen[-1].sent.numpy(), raised.numpy())
        assert np.array_equal(seen[-1].update.numpy(), wire.updates[VICTIM].astype(np.float32))
        assert np.array_equal(seen[-1].targets, targets)
        # The honest code moves the model by the mean of the differences, the victim's from what it was sent.
        moved = sum(wire.updates[client] for client in range(12)) / 12
        assert played.federation.weights == pytest.approx(honest + moved, abs=1e-12)


def test_the_victim_corrects_its_own_record_when_the_ascent_has_raised_it(make_scenario, trial) -> None:
    """The lectures' idea in one round: the raised loss of a member falls, by its owner's training."""
    asked = make_scenario(ALONE, "privacy.trust=none", "training.epochs=5")
    seen: list[Sight] = []
    climber = Climber(VICTIM, seen.append, np.array([0]), probe=None, ascent=Ascent())
    played = trial(asked, wrap=lambda grid: Interposed(grid, climber))
    climber.probe = probe_of(played)
    played.federation.round(0)
    climber.close()
    [sight], one = seen, climber.probe.at(np.array([0]))
    assert float(one.losses(sight.sent)) >= 3.0
    assert float(one.losses(sight.sent + sight.update)) < 2.0


def isolator_of(played) -> Isolator:
    weights = torch.from_numpy(played.federation.model.copy())
    return Isolator(played.federation.grid, 1, 0, played.fleet.plan, VICTIM, weights)


def test_an_isolator_asks_nobody_but_the_victim_and_goes_on_from_its_upload(make_scenario, trial) -> None:
    asked = make_scenario(ALONE, "privacy.trust=none")
    wire = Wire()
    played = trial(asked, wrap=lambda grid: Interposed(grid, wire))
    isolator, before = isolator_of(played), played.federation.weights.copy()
    start = isolator.weights.clone()
    first = isolator.ask(0)
    second = isolator.ask(1)
    assert wire.asked == [VICTIM, VICTIM]
    assert torch.equal(first.sent, start)
    assert torch.equal(second.sent, first.sent + first.update)
    assert torch.equal(isolator.weights, second.sent + second.update)
    assert not torch.equal(second.update, torch.zeros_like(second.update))
    assert first.others.shape == (0, len(start))
    assert np.array_equal(played.federation.weights, before)  # the global model has not moved


def test_an_isolator_may_ascend_before_it_asks(make_scenario, trial) -> None:
    wire = Wire()
    played = trial(make_scenario(ALONE, "privacy.trust=none"), wrap=lambda grid: Interposed(grid, wire))
    isolator, ascent = isolator_of(played), Ascent(level=2.0)
    start, aim = isolator.weights.clone(), probe_of(played).at(np.array([1]))
    sight = isolator.ask(0, aim, ascent)
    assert torch.equal(sight.sent, ascent.climb(aim, start))
    assert np.array_equal(wire.sent[VICTIM], sight.sent.numpy())
    assert torch.equal(isolator.weights, sight.sent + sight.update)


def test_an_isolated_stream_has_no_trap_units(make_scenario, trial) -> None:
    """Nor do the victim's steps on them, which are no steps of the units that they replace."""
    asked = make_scenario(ALONE, "privacy.trust=none", "model={name='mlp', hidden=[8], activation='tanh'}")
    played = trial(asked, wrap=lambda grid: Interposed(grid, Wire()))
    isolator, aim = isolator_of(played), probe_of(played).at(np.array([1]))
    references, _ = played.people.held_out("test")
    traps = TrapUnits(played.fleet.module, references, np.random.default_rng(1), units=2)
    start = isolator.weights.clone()
    sight = isolator.ask(0, aim, traps)
    assert torch.equal(sight.sent, traps.climb(aim, start))
    planted = traps.planted(1)
    rest = np.setdiff1d(np.arange(len(start)), planted)
    assert (sight.update[planted] != 0).any()
    assert torch.equal(isolator.weights[planted], start[planted])
    assert torch.equal(isolator.weights[rest], (start + sight.update)[rest])
    assert (sight.update[rest] != 0).any()


def test_a_spent_victim_refuses_every_adversary(make_scenario, trial) -> None:
    """Under local trust each client keeps its own budget, whoever asks and however."""
    asked = make_scenario(ALONE, "privacy.trust=local", "privacy.max_participations=2")
    seen: list[Sight] = []
    listener = Listener(VICTIM, seen.append)
    played = trial(asked, wrap=lambda grid: Interposed(grid, listener))
    isolator = isolator_of(played)
    isolator.grid = played.grid  # past the listener
    played.federation.round(0)
    assert listener.close()
    assert isolator.ask(1) is not None
    at = isolator.weights.clone()
    assert isolator.ask(2) is None
    assert torch.equal(isolator.weights, at)
    assert isolator.ask(1) is None  # nor does it answer a round twice
    played.ledger.participations[:] = 0  # a server that lies to itself
    played.federation.round(3)
    assert not listener.close()
    assert len(seen) == 1


def test_a_round_that_the_victim_did_not_answer_leaves_nothing_for_the_next(make_scenario, trial) -> None:
    seen: list[Sight] = []
    listener = Listener(VICTIM, seen.append)
    assert not listener.close()
    played = trial(make_scenario(ALONE, "privacy.trust=none"), wrap=lambda grid: Interposed(grid, listener))
    played.federation.round(0)
    assert listener.close()
    assert not listener.close()
    played.federation.round(1)
    assert listener.close()
    assert seen[1].others.shape[0] == 11
