"""Clients that hang, kill their process or drop out, on a real pool and with the real model that does it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.faulty import TRIGGER
from clients.fleet import Budgets, Fleet
from clients.training_handler import answer
from clients.worker_pool import WorkerPool
from fedprivacy.messages.faults import Faults
from fedprivacy.messages.protocol import TrainRequest
from fedprivacy.population.clients import population

CODE = "model={name='code', factory='benchmarks.faulty:make', options={harm='%s', mark='%s'}}"
LOCAL = "privacy={trust='local', clipping_norm=1.0, noise_multiplier=1.0, delta=1e-3%s}"
EXAMPLE = (
    "privacy={trust='local', unit='example', adjacency='add-remove', clipping_norm=1.0, noise_multiplier=1.0, "
    "delta=1e-3}",
    "training={batches='poisson', rate=0.9, steps=6, learning_rate=0.5}",
)
LIMIT = "federation.client_timeout=1.0"


@pytest.fixture
def faulty(make_scenario, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Twelve clients, of whom some have the record that sets the model off, in pieces of three."""

    def make(harm: str, *overrides: str, bad: tuple[int, ...] = (4,)) -> Fleet:
        asked = make_scenario(CODE % (harm, tmp_path / "mark"), *overrides)
        people = population(asked.data)
        x = people.dataset.x.copy()
        x[[people.partition.records(client)[0] for client in bad], 0] = TRIGGER
        people = replace(people, dataset=replace(people.dataset, x=x))
        return Fleet.of(asked, people, allow_code=True)

    monkeypatch.setattr(Fleet, "piece_size", lambda self, records=None, *, formed=False: 3)
    return make


def asked(fleet: Fleet, observe: str = "each") -> TrainRequest:
    weights = np.zeros(sum(p.numel() for p in fleet.module.parameters()), np.float32)
    return TrainRequest(0, 0, 0, np.arange(12), weights, fleet.plan, observe)


def budgets(fleet: Fleet) -> Budgets | None:
    return Budgets.fresh(12, 3) if fleet.plan.trust == "local" else None


@pytest.mark.exhaustive(beyond=2)
@pytest.mark.parametrize(
    ("harm", "kind", "workers"), [("kill", "worker_died", 2), ("hang", "late", 2), ("hang", "late", 1)]
)
@pytest.mark.parametrize("trust", ["central", "local"])
def test_who_kills_its_process_or_hangs_fails_alone(faulty, harm, kind, workers, trust: str) -> None:
    """Under local trust it answers with noise alone, and nothing else in the reply tells of it."""
    limit = LIMIT if harm == "hang" else "federation.client_timeout=30.0"  # no busy machine is late by that
    overrides = (limit, LOCAL % "") if trust == "local" else (limit,)
    fleet = faulty(harm, *overrides)
    healthy = replace(fleet, people=faulty(harm, *overrides, bad=()).people, client_timeout=None)
    with WorkerPool(workers) as pool:
        reply, untold = answer(fleet, budgets(fleet), asked(fleet), pool=pool)
    quiet, _ = answer(healthy, budgets(healthy), asked(healthy))
    found = untold if trust == "local" else reply.faults
    assert (found[kind], found.failed, found.first.startswith("client 4")) == (1, 1, True)
    assert found["retried"] == (kind == "worker_died")
    if trust == "central":
        others = np.delete(np.arange(12), 4)
        assert (untold, reply.clients.tolist()) == (Faults(), others.tolist())
        assert np.array_equal(reply.updates, quiet.updates[others])
    else:
        assert reply.parts()[1] == quiet.parts()[1]
        assert np.array_equal(reply.clients, quiet.clients)
        difference = np.linalg.norm(reply.updates - quiet.updates, axis=1)
        assert np.flatnonzero(difference).tolist() == [4]
        assert difference[4] <= 1 + 1e-6  # its clipped update is missing, its noise is there


def test_noise_in_each_step_is_there_without_data_too(faulty) -> None:
    fleet = faulty("kill", *EXAMPLE)
    with WorkerPool(2) as pool:
        reply, untold = answer(fleet, budgets(fleet), asked(fleet), pool=pool)
    assert reply.clients.tolist() == list(range(12))
    assert untold.by_kind == {"worker_died": 1, "retried": 1}
    assert reply.updates[4].any()


@pytest.mark.parametrize("observe", ["sum", "each"])
def test_a_piece_done_again_gives_the_same_bits(faulty, tmp_path: Path, observe: str) -> None:
    fleet = faulty("kill-once", LOCAL % "")
    replies = []
    for _ in range(2):  # the second finds the mark and kills nothing
        with WorkerPool(2) as pool:
            replies.append(answer(fleet, budgets(fleet), asked(fleet, observe), pool=pool))
    assert [untold.by_kind for _, untold in replies] == [{"retried": 1}, {}]
    assert np.array_equal(replies[0][0].updates, replies[1][0].updates)


def test_a_client_that_drops_out_spends_no_budget_and_the_same_ones_drop_out_again(faulty) -> None:
    """So that a server that asks again learns nothing, and the noise of a round is used once."""
    fleet = faulty("raise", LOCAL % "", "federation.dropout=0.4", bad=())
    left = budgets(fleet)
    reply, untold = answer(fleet, left, asked(fleet))
    gone = np.setdiff1d(np.arange(12), reply.clients)
    assert 0 < len(gone) < 12
    assert (reply.faults.by_kind, untold) == ({"dropped": len(gone)}, Faults())
    assert (left.counts[gone] == 0).all()
    assert (left.counts[reply.clients] == 1).all()
    again, _ = answer(fleet, left, asked(fleet))
    assert (len(again.clients), again.refused) == (0, len(reply.clients))
    other, _ = answer(fleet, left, replace(asked(fleet), round=1))
    assert not np.array_equal(other.clients, reply.clients)
