"""Neighbouring data sets, trained on through the clients' own code: honest training, and training that reacts."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from clients.fleet import Fleet
from fedprivacy.attacks.measured_sensitivity import ROUNDING, Neighbours
from fedprivacy.mechanisms.clipping import clip
from fedprivacy.models.by_name import flat_weights
from fedprivacy.scenario import Scenario
from fedprivacy.training.layerwise import LayerwiseUpdates
from fedprivacy.training.updates import Stack, Updates
from fedprivacy.verification.verify import checked_document
from scenarios.experiments import audit_run
from scenarios.experiments.audit import audit
from scenarios.experiments.neighbouring_runs import neighbours

TEXT = """
name = "neighbours"
seed = 1
[data]
name = "synthetic"
records = 240
test_records = 10
features = 8
partition = "iid"
clients = 12
[model]
name = "mlp"
hidden = [6]
[training]
learning_rate = 0.5
epochs = 3
batch_size = "all"
[server]
rounds = 1
[sampling]
name = "all"
[privacy]
trust = "central"
clipping_norm = 1.0
epsilon = 1.0
delta = 1e-2
"""


def found_of(*overrides: str) -> Neighbours | None:
    scenario = Scenario.from_text(TEXT, overrides=overrides)
    fleet = Fleet.of(scenario)
    model = flat_weights(fleet.model.build(7)).astype(np.float64)
    return neighbours(fleet, fleet.plan.population, model, scenario)


@pytest.mark.parametrize(
    ("overrides", "records", "allowed"),
    [
        ([], (1, 20, 200), 2.0),
        (["privacy.adjacency=zero-out"], (0, 1, 20, 200), 1.0),
        (["privacy.trust=local", "federation.hosts=3", "federation.chunk_size=2"], (1, 20, 200), 2.0),
        (["privacy.trust=local", "privacy.noise_draw=sum", "federation.chunk_size=5"], (1, 20, 200), 2.0),
        (["model={name='logistic'}", "training.batch_size=7"], (1, 20, 200), 2.0),
        (["federation={observe='each', hosts=2, dropout=0.9}"], (1, 20, 200), 2.0),
    ],
)
def test_one_client_moves_what_is_released_by_no_more_than_is_accounted_for(
    overrides: list[str], records: tuple[int, ...], allowed: float
) -> None:
    found = found_of(*overrides)
    assert found is not None
    assert (found.clients, found.records, found.allowed) == (12, records, allowed)
    assert 0.999 * allowed < found.distance <= allowed * (1 + ROUNDING)  # the planted update attains it
    assert not found.refutes


EDGE = (
    "data={name='synthetic', records=1200, test_records=10, features=64, signal=2.0, "
    "partition='iid', clients=60}",
    "model.hidden=[32]",
    "training={learning_rate=4.0, epochs=100}",
)


def test_at_the_edge_of_stability_no_other_client_moves() -> None:
    """Where training amplifies one rounding to a whole update: 60 clients, one has 1, 20 or 200 records."""
    found = found_of(*EDGE)
    assert found is not None
    assert (found.clients, found.records) == (60, (1, 20, 200))
    assert found.changed == 0
    assert found.others < 1e-6
    assert 0.1 < found.distance <= found.allowed
    assert not found.refutes


def reacting(fleet: Fleet) -> Fleet:
    """A fault on purpose: the size of the largest client decides how all others train."""
    rate = fleet.training.learning_rate * (1 + 0.5 * (fleet.sizes.max() > 100))
    return replace(fleet, training=replace(fleet.training, learning_rate=rate))


def test_clients_that_react_to_the_size_of_another_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = replace

    def faulty(what: Any, **changes: Any) -> Any:
        changed = honest(what, **changes)
        return reacting(changed) if "sizes" in changes else changed

    monkeypatch.setattr("scenarios.experiments.neighbouring_runs.replace", faulty)
    found = found_of()
    assert found is not None
    assert found.changed == 11
    assert found.others > 0.1
    assert found.refutes
    assert "changes the updates of 11 others" in found.words


@pytest.mark.exhaustive
def test_an_audit_refutes_the_claim_of_clients_that_react(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = Scenario.from_text(TEXT)
    honest = audit(scenario, tmp_path, canaries=20)
    assert not honest["refuted"]
    assert honest["audited"]["neighbours"]["clients"] == 12
    dealt = audit_run.with_partition
    for place in ("scenarios.experiments.neighbouring_runs", "scenarios.experiments.audit_run"):
        monkeypatch.setattr(f"{place}.with_partition", lambda *given: reacting(dealt(*given)))
    document = audit(scenario, tmp_path, canaries=20)
    refuted = {one["observer"]: one["verdict"] for one in document["observers"]}
    assert document["refuted"]
    assert refuted["participant"]["holds"] is False
    assert "takes the others' updates for unchanged" in refuted["participant"]["words"]
    assert refuted["server"]["holds"] is None  # nothing is claimed of it


Total = tuple[torch.Tensor, torch.Tensor]


def ten_times(updates: Updates, bound: float, error: float, honest: Any) -> Total:
    """A fault on purpose: a factor that belongs to nobody."""
    total, broken = honest(updates, bound, error)
    return 10 * total, broken


def clipped_later(updates: Updates, bound: float, error: float, honest: Any) -> Total:
    """A fault on purpose: clients are added up first, and then clipped together."""
    total, broken = honest(updates, math.inf, math.inf)
    return clip(total[None], bound)[0][0], broken


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize(
    ("kind", "fault", "adjacency", "says"),
    [
        (LayerwiseUpdates, ten_times, "replace-one", "takes what is released to move by 2 C at most"),
        (Stack, ten_times, "replace-one", "takes what is released to move by 2 C at most"),
        (LayerwiseUpdates, clipped_later, "zero-out", "takes what is released for a sum of clipped updates"),
    ],
)
def test_an_audit_refutes_the_claim_of_nodes_that_add_up_wrongly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Any, fault: Any, adjacency: str, says: str
) -> None:
    """Where updates are formed singly, as canaries' are, nothing of it is seen."""
    honest = kind.clipped_total
    monkeypatch.setattr(kind, "clipped_total", lambda *given: fault(*given, honest))
    scenario = Scenario.from_text(TEXT, overrides=[f"privacy.adjacency={adjacency}"])
    document = audit(scenario, tmp_path, canaries=20)
    assert document["audited"]["neighbours"]["changed"] == 0
    for one in document["observers"]:
        claimed = one["observer"] != "server"
        assert one["verdict"]["holds"] is (False if claimed else None)
        assert (says in one["verdict"]["words"]) is claimed
    assert checked_document(Path(document["path"]))["refuted"]


def test_where_nothing_is_compared() -> None:
    """Nobody else is there, or nothing is clipped."""
    assert found_of("data.clients=1", "privacy.delta=0.5") is None
    assert found_of("privacy={trust='none'}") is None
