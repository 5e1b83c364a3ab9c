"""Workers: the same bits for any number of them, and what becomes of a run when one dies."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from clients.chunk_training import ChunkTrainer, client_chunks
from clients.fleet import Fleet
from clients.worker_pool import WorkerPool
from fedprivacy.messages.protocol import TrainRequest
from fedprivacy.records.run_directory import RunDirectory
from scenarios.engines.launch import Engine
from scenarios.runner import run

SCENARIO = """
name = "pool"
seed = 1
[data]
name = "synthetic"
records = 900
test_records = 50
features = 4
partition = "iid"
clients = 300
[model]
name = "mlp"
hidden = [5]
[training]
batch_size = 2
learning_rate = 0.5
[server]
rounds = 3
[sampling]
name = "poisson"
rate = 0.5
[privacy]
trust = "central"
clipping_norm = 1.0
noise_multiplier = 1.0
delta = 1e-4
"""
LOCAL = "privacy={trust='local', clipping_norm=1.0, noise_multiplier=1.0, delta=1e-4}"
EXAMPLE = (
    "privacy={trust='local', unit='example', adjacency='add-remove', clipping_norm=1.0, noise_multiplier=1.0, "
    "delta=1e-4}"
)
KINDS = {
    "central": (),
    "sum of local noise": (f"{LOCAL[:-1]}, noise_draw='sum'}}",),
    "local noise": (LOCAL,),
    "distributed": (LOCAL.replace("local", "distributed"), "sampling={name='fixed', cohort=150}"),
    "distributed, one draw": (
        f"{LOCAL.replace('local', 'distributed')[:-1]}, noise_draw='sum'}}",
        "sampling={name='fixed', cohort=150}",
        "federation.chunk_size=40",
    ),
    "each update": ("federation.observe=each",),
    "each update, local": (LOCAL, "federation.observe=each", "federation.chunk_size=40"),
    "frozen encoder": (LOCAL, "model={name='mlp', hidden=[5], freeze=['1.*']}"),
    "adapters": ("model={name='mlp', hidden=[5], lora={rank=2, alpha=4.0}}",),
    "frozen head": ("model={name='mlp', hidden=[5], freeze=['3.*']}",),
    "records": (EXAMPLE, "training={batches='poisson', rate=0.5, steps=2, learning_rate=0.5}"),
}


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eleven clients at most, so that there are more pieces than slots."""
    monkeypatch.setattr(Fleet, "piece_size", lambda self, records=None, *, formed=False: 7 if formed else 11)


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("kind", KINDS)
def test_workers_change_no_bit(make_scenario, tmp_path: Path, kind: str) -> None:
    def played(workers: int) -> tuple[dict, dict[str, np.ndarray]]:
        scenario = make_scenario(*KINDS[kind], text=SCENARIO)
        document = run(scenario, tmp_path / str(workers), report=False, engine=Engine(workers=workers))
        checkpoint = RunDirectory.open(Path(document["path"])).load_checkpoint()
        assert checkpoint is not None
        return document, dict(checkpoint.tensors)

    (one, first), (three, third) = played(1), played(3)
    assert one["status"] == "finished"
    assert one["final"] == three["final"]
    assert first.keys() == third.keys()
    assert all(np.array_equal(first[name], third[name]) for name in first)
    without = {"seconds"}
    for left, right in zip(one["rounds"], three["rounds"], strict=True):
        assert {k: v for k, v in left.items() if k not in without} == {
            k: v for k, v in right.items() if k not in without
        }


def request(fleet: Fleet, clients: np.ndarray, observe: str = "sum") -> TrainRequest:
    weights = np.zeros(sum(p.numel() for p in fleet.module.parameters()), np.float32)
    return TrainRequest(0, 0, 0, clients, weights, fleet.plan, observe)


def test_answers_come_in_the_order_of_the_pieces(make_scenario) -> None:
    fleet = Fleet.of(make_scenario(text=SCENARIO))
    asked = request(fleet, np.arange(300))
    parts = client_chunks(fleet, asked.clients, "sum")
    assert np.array_equal(np.concatenate(parts), asked.clients)
    assert max(map(len, parts)) <= 11
    with WorkerPool(2) as pool:
        found = [(part.clients, part.private.copy()) for part in pool.train(fleet, asked, parts)]
    for (ids, total), piece in zip(found, parts, strict=True):
        assert np.array_equal(ids, piece)
        assert np.array_equal(total, ChunkTrainer(fleet, asked).train(piece).private)


def test_clients_of_a_size_class_are_cut_into_calls_of_one_shape(make_scenario) -> None:
    """However many of them come, and whoever else does."""
    fleet = Fleet.of(make_scenario(text=SCENARIO))
    places = fleet.shape(3).places
    for size in (0, 1, 3, 44, 300):
        assert len(client_chunks(fleet, np.arange(size), "sum")) == -(-size // places)


def test_clients_of_other_size_classes_stand_in_other_calls(make_scenario) -> None:
    fleet = Fleet.of(make_scenario("data.records=1000", text=SCENARIO))
    sizes = fleet.people.partition.sizes
    cut = client_chunks(fleet, np.arange(300), "sum")
    assert {len(set(sizes[piece].tolist())) for piece in cut} == {1}
    assert {tuple(sizes[piece][:1]) for piece in cut} == {(3,), (4,)}
    assert np.array_equal(np.sort(np.concatenate(cut)), np.arange(300))


def test_larger_clients_come_in_smaller_pieces(make_scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    fleet = Fleet.of(make_scenario("model={name='mlp', hidden=[500]}", text=SCENARIO))
    fits = [fleet.piece_size(records) for records in (1, 10, 100, 1000)]
    assert fits == sorted(set(fits), reverse=True)


def test_calls_are_larger_where_every_client_takes_part_in_each_round(
    make_scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By whichever sampler; with fewer of them more places would be empty."""
    monkeypatch.setattr(Fleet, "piece_size", lambda self, records=None, *, formed=False: 40)

    def places(sampling: str) -> int:
        return Fleet.of(make_scenario(f"sampling={{{sampling}}}", text=SCENARIO)).shape(3).places

    assert places("name='fixed', cohort=300") == places("name='all'") == 40
    assert places("name='fixed', cohort=299") == places("name='poisson', rate=0.5") == 10


def test_a_worker_ends_with_its_parent() -> None:
    """Even where that was killed: nobody would want its work, and it holds the data."""
    code = (
        "import time; from fedprivacy.io.processes import pool; p = pool(2); "
        "print([p.submit(time.sleep, 0.5).result() for _ in range(2)], list(p._processes), flush=True); "
        "time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        workers = json.loads(parent.stdout.readline().split("] ", 1)[1])
        parent.kill()
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and any(Path(f"/proc/{pid}").exists() for pid in workers):
        time.sleep(0.1)
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]


def test_a_client_that_fails_fails_alone_in_any_process(make_scenario) -> None:
    fleet = Fleet.of(make_scenario(text=SCENARIO))
    y = fleet.people.dataset.y.copy()
    y[fleet.people.partition.records(17)[0]] = 99  # no such class
    fleet = replace(fleet, people=replace(fleet.people, dataset=replace(fleet.people.dataset, y=y)))
    asked = request(fleet, np.arange(300))
    parts = client_chunks(fleet, asked.clients, "sum")
    with WorkerPool(2) as pool:
        found = list(pool.train(fleet, asked, parts))
    failures = {client: reason for part in found for client, reason in part.failures.items()}
    assert list(failures) == [17]
    assert (failures[17].kind, "client 17" in failures[17].reason) == ("raised", True)
    assert sum(len(part.clients) for part in found) == 299


@pytest.mark.exhaustive
def test_a_worker_that_was_killed_is_replaced_and_its_piece_done_again(make_scenario, tmp_path: Path) -> None:
    """Somebody ends a process between two rounds: the same bits as without, and the record says so."""

    def kill(event: dict) -> None:
        if event["round"] == 1:
            children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
            os.kill(int(children[-1]), signal.SIGKILL)

    scenario = make_scenario("server.rounds=4", text=SCENARIO)
    quiet = run(scenario, tmp_path / "quiet", report=False, engine=Engine(workers=2))
    document = run(scenario, tmp_path / "killed", report=False, engine=Engine(workers=2), on_round=kill)
    assert [event["faults"] for event in document["rounds"]] == [{}, {}, {"retried": 1}, {}]
    assert document["final"] == quiet["final"]
    assert document["estimate"]["unbiased"]


def test_no_process_is_left_behind(make_scenario) -> None:
    fleet = Fleet.of(make_scenario(text=SCENARIO))
    asked = request(fleet, np.arange(300))
    with WorkerPool(3) as pool:
        list(pool.train(fleet, asked, client_chunks(fleet, asked.clients, "sum")))
        assert len(multiprocessing.active_children()) == 3
    assert not multiprocessing.active_children()
    with WorkerPool(3) as pool:  # whoever stops in the middle leaves nobody at work
        next(pool.train(fleet, asked, client_chunks(fleet, asked.clients, "sum")))
    assert not multiprocessing.active_children()


def test_one_worker_needs_no_process_and_of_several_no_more_are_started_than_have_work(make_scenario) -> None:
    fleet = Fleet.of(make_scenario(text=SCENARIO))
    asked = request(fleet, np.arange(3))
    expected = ChunkTrainer(fleet, replace(asked)).train(asked.clients).private
    for workers, started in ((1, 0), (4, 1)):
        with WorkerPool(workers) as pool:
            [part] = pool.train(fleet, asked, [asked.clients])
            assert len(multiprocessing.active_children()) == started
            assert np.array_equal(part.private, expected)
