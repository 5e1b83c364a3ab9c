"""Clients that are trained jointly answer as if each message were trained by itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from clients import chunk_training
from clients.fleet import Fleet
from clients.joint_training import JointTraining
from clients.training_handler import answer
from fedprivacy.messages.protocol import TrainReply, TrainRequest
from fedprivacy.models.by_name import flat_weights

CLIENTS, VICTIM = 9, 4
# With other kernels a lone client may differ from one of a call in the last digits; a run uses one of the two.
SAME_KERNELS = torch.backends.cpu.get_cpu_capability() != "AVX512"
EXAMPLE = (
    "privacy={trust='local', unit='example', adjacency='add-remove', clipping_norm=1.0, noise_multiplier=1.0, "
    "delta=1e-5}",
    "training={batches='poisson', rate=0.5, steps=2, learning_rate=0.5}",
)
KINDS = [(), ("privacy.trust=local",), EXAMPLE, ("model={name='mlp', hidden=[7]}",)]


@pytest.fixture
def make_fleet(make_scenario):
    def make(*overrides: str) -> Fleet:
        return Fleet.of(
            make_scenario(
                f"data.clients={CLIENTS}",
                f"data.records={CLIENTS * 12}",
                "sampling.name=all",
                "federation.chunk_size=1",
                *overrides,
            )
        )

    return make


def replies(
    fleet: Fleet, joint: JointTraining | None, observe: str = "sum"
) -> list[tuple[TrainReply, object]]:
    """The replies of two rounds, in which the victim is sent weights of its own."""
    weights, answers = flat_weights(fleet.model.build(3)), []
    for round in range(2):
        for client in range(CLIENTS):
            sent = weights + np.float32(0.1 * round + (client == VICTIM))
            request = TrainRequest(round, 0, client, np.array([client]), sent, fleet.plan, observe)
            answers.append(answer(fleet, None, request, pool=joint))
    return answers


def equal(first: np.ndarray, second: np.ndarray) -> bool:
    return first.tobytes() == second.tobytes() if SAME_KERNELS else np.allclose(first, second, atol=1e-6)


def same(first: list, second: list) -> bool:
    return all(
        equal(one.updates, other.updates)
        and one.clients.tolist() == other.clients.tolist()
        and (one.faults, untold) == (other.faults, untold_too)
        for (one, untold), (other, untold_too) in zip(first, second, strict=True)
    )


@pytest.mark.parametrize("observe", ["sum", "each"])
@pytest.mark.parametrize("overrides", KINDS)
def test_joint_training_changes_no_bit(make_fleet, overrides, observe: str) -> None:
    fleet = make_fleet(*overrides)
    assert same(replies(fleet, JointTraining(VICTIM), observe), replies(fleet, None, observe))


@pytest.mark.parametrize("trust", ["central", "local"])
def test_a_client_that_fails_fails_alone(make_fleet, trust: str) -> None:
    fleet = make_fleet(f"privacy.trust={trust}")
    data, record = fleet.people.dataset, fleet.people.partition.records(6)[0]
    labels = data.y.copy()
    labels[record] = 99
    fleet = replace(fleet, people=replace(fleet.people, dataset=replace(data, y=labels)))
    joint, each = replies(fleet, JointTraining(VICTIM)), replies(fleet, None)
    assert same(joint, each)
    assert [untold.failed + reply.faults.failed for reply, untold in joint] == 2 * [0, 0, 0, 0, 0, 0, 1, 0, 0]


def test_clients_with_the_same_weights_share_a_call(make_fleet, monkeypatch) -> None:
    """The victim and the others: two calls a round, and never one with the weights of an earlier message."""
    calls = []
    train_in_call = chunk_training.train_in_call

    def counted(task, *args, **kwargs):
        calls.append((task.round, task.clients.tolist()))
        return train_in_call(task, *args, **kwargs)

    monkeypatch.setattr(chunk_training, "train_in_call", counted)
    replies(make_fleet(), JointTraining(VICTIM))
    others = [client for client in range(CLIENTS) if client != VICTIM]
    of_round = {number: sorted(call for round, call in calls if round == number) for number in (0, 1)}
    assert of_round == {0: [others, [VICTIM]], 1: [others, [VICTIM]]}


@pytest.mark.parametrize("overrides", KINDS)
def test_a_victim_of_a_size_of_its_own_is_trained_without_copies(make_fleet, monkeypatch, overrides) -> None:
    """In a message to all clients, as in a warm-up: the others fill a call, and it would be alone in one."""
    fleet = make_fleet(*overrides)
    dealt = fleet.people.partition
    owned = [np.tile(dealt.records(c), 5 if c == VICTIM else 1) for c in range(CLIENTS)]
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in owned])])
    larger = replace(dealt, order=np.concatenate(owned), offsets=offsets)
    fleet = replace(fleet, people=replace(fleet.people, partition=larger), alone=False)
    weights, everybody = flat_weights(fleet.model.build(3)), np.arange(CLIENTS)
    request = TrainRequest(0, 0, 0, everybody, weights, fleet.plan, "sum")
    places = []
    train_in_call = chunk_training.train_in_call

    def noted(task, *args, **kwargs):
        places.append((VICTIM in task.clients, task.shape.places))
        return train_in_call(task, *args, **kwargs)

    monkeypatch.setattr(chunk_training, "train_in_call", noted)
    lone = answer(fleet, None, request, pool=JointTraining(VICTIM))
    with_copies = answer(fleet, None, request, pool=JointTraining(VICTIM, alone=False))
    assert places[1] == (True, 1)
    assert places[3][1] > 1
    assert places[0] == places[2]
    assert same([lone], [with_copies])
