"""Malicious clients with poisoned records around their own part of the real apps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from clients.chunk_training import ChunkTrainer
from clients.poisoner import Poisoner, poisoned_fleet
from fedprivacy.attacks.poisoned_records import LabelFlip
from fedprivacy.mechanisms.clipping import bounds_of_a_sum
from fedprivacy.messages.protocol import TrainRequest, parts_of

FLIP = LabelFlip(source=1, target=0)
ATTACKERS = frozenset({2, 7})
ALONE = ("federation.chunk_size=1", "federation.observe=each")


class Wire:
    """What each client uploads."""

    def __init__(self) -> None:
        self.updates: dict[int, np.ndarray] = {}

    def __call__(self, message, context, call_next):
        reply = call_next(message, context)
        if message.metadata.message_type == "train":
            client = int(parts_of(message)[0]["clients"][0])
            self.updates[client] = parts_of(reply)[0]["updates"].reshape(-1).copy()
        return reply


def uploads(make_scenario, trial, *changes: str, **options) -> tuple[dict[int, np.ndarray], object]:
    """The uploads of the first round, and the federation after it."""
    played = trial(make_scenario(*ALONE, *changes))
    wire = Wire()
    mods = (wire,)
    if options:
        fleet = poisoned_fleet(played.fleet, FLIP, ATTACKERS)
        mods = (wire, Poisoner(fleet, ATTACKERS, **options))
    played = trial(make_scenario(*ALONE, *changes), mods=mods)
    played.federation.round(0)
    return wire.updates, played


def test_the_poisoned_fleet_has_the_attackers_records_alone_with_other_labels(make_scenario, trial) -> None:
    honest = trial(make_scenario(*ALONE)).fleet
    fleet = poisoned_fleet(honest, FLIP, ATTACKERS)
    partition = fleet.people.partition
    assert {client for client in range(12) if len(partition.records(client))} == ATTACKERS
    for client in ATTACKERS:
        records, before = partition.records(client), honest.people.partition.records(client)
        assert np.array_equal(fleet.people.dataset.x[records], honest.people.dataset.x[before])
        assert (fleet.people.dataset.y[records] == 0).all()
        assert honest.people.dataset.y[before].any()
    assert (fleet.plan.trust, fleet.plan.mechanism) == ("none", None)


@pytest.mark.parametrize("trust", ["none", "local"])
def test_only_the_malicious_clients_upload_something_else(make_scenario, trial, trust: str) -> None:
    before, _ = uploads(make_scenario, trial, f"privacy.trust={trust}")
    after, played = uploads(make_scenario, trial, f"privacy.trust={trust}", boost=3.0)
    changed = {client for client in before if not np.array_equal(before[client], after[client])}
    assert changed == ATTACKERS
    # Without noise of its own, whatever the plan of the others: three times the update by flipped labels.
    fleet = poisoned_fleet(played.fleet, FLIP, ATTACKERS)
    first = trial(make_scenario(*ALONE, f"privacy.trust={trust}")).federation.model
    for client in ATTACKERS:
        request = TrainRequest(0, 0, 0, np.array([client]), first, fleet.plan, "each")
        update = ChunkTrainer(fleet, request).trained(np.array([client])).updates.stack().numpy()[0]
        assert after[client] == pytest.approx(3 * update, abs=1e-6)


def test_the_boost_of_the_denominator_replaces_the_model(make_scenario, trial) -> None:
    """With the updates of all others at zero the model is the attacker's."""
    quiet = ("privacy.trust=none", "privacy.clipping_norm=1e-9")
    after, played = uploads(make_scenario, trial, *quiet, boost=12.0)
    fleet = poisoned_fleet(played.fleet, FLIP, ATTACKERS)
    first = trial(make_scenario(*ALONE, *quiet)).federation.model
    updates = []
    for client in sorted(ATTACKERS):
        request = TrainRequest(0, 0, 0, np.array([client]), first, fleet.plan, "each")
        updates.append(ChunkTrainer(fleet, request).trained(np.array([client])).updates.stack().numpy()[0])
    played = trial(
        make_scenario(*ALONE, *quiet, "server.aggregation=mean"),
        mods=(Poisoner(replace(fleet), ATTACKERS, 12.0),),
    )
    played.federation.longest = None
    played.federation.round(0)
    assert played.federation.model == pytest.approx(first + sum(updates), abs=1e-5)
    assert set(after) == set(range(12))


def test_more_passes_go_further(make_scenario, trial) -> None:
    (once, _), (often, _) = (
        uploads(make_scenario, trial, "privacy.trust=none", boost=1.0, passes=passes) for passes in (1, 4)
    )
    for client in ATTACKERS:
        assert np.linalg.norm(often[client]) > 2 * np.linalg.norm(once[client])


def test_an_upload_is_as_long_as_the_server_takes(make_scenario, trial) -> None:
    asked = make_scenario(*ALONE)
    played = trial(asked)
    mod = Poisoner(
        poisoned_fleet(played.fleet, FLIP, ATTACKERS), ATTACKERS, 1e6, most=played.federation.longest
    )
    poisoned = trial(asked, mods=(mod,))
    total = poisoned.federation.total(0, np.arange(12))
    assert total.answered == 12
    assert total.failed == 0
    refused = trial(asked, mods=(replace(mod, most=None),)).federation.total(0, np.arange(12))
    assert refused.failed == 2


def test_a_server_that_clips_takes_the_norm_whatever_the_boost(make_scenario, trial) -> None:
    asked = make_scenario(*ALONE, "server.clips=true")
    played = trial(asked)
    bound, _ = bounds_of_a_sum(played.fleet.plan.clipping_norm, 12)
    for boost in (1e3, 1e9):
        mod = Poisoner(poisoned_fleet(played.fleet, FLIP, ATTACKERS), ATTACKERS, boost)
        alone = trial(asked, mods=(mod,)).federation.total(0, np.array([2]))
        assert np.linalg.norm(alone.updates) == pytest.approx(bound, rel=1e-9)
