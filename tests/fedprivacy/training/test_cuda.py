"""A lost GPU ends a run; it is no fault of each client that trains afterwards."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch

import clients.chunk_training
from clients.fleet import Fleet
from fedprivacy.errors import InputError, RunError
from fedprivacy.training.cuda import DeviceLost, ordered_kernels, prepare_cuda, refuse_lost_device
from scenarios.runner import run


@pytest.mark.skipif(torch.cuda.is_available(), reason="this GPU answers")
def test_without_an_answer_a_device_is_lost() -> None:
    with pytest.raises(DeviceLost, match="IndexError: label 99"):
        refuse_lost_device(IndexError("label 99"))


def test_a_lost_device_ends_the_run_before_its_round_is_released(
    make_scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients after the fatal one would else be counted as failed, and the rest released without them."""
    train, calls = Fleet.train, []

    def lose(self: Fleet, task):
        calls.append(task.round)
        if task.round == 1:
            raise RuntimeError("CUDA error: device-side assert triggered")
        return train(self, task)

    def refuse(self, error: Exception) -> None:
        raise DeviceLost(f"{type(error).__name__}: {error}")

    monkeypatch.setattr(Fleet, "train", lose)
    monkeypatch.setattr(clients.chunk_training.ChunkTrainer, "_refuse_lost_device", refuse)
    with pytest.raises(RunError, match=r"GPU is lost.*device-side assert"):
        run(make_scenario("server.rounds=3"), tmp_path, report=False)
    assert calls.count(1) == 1
    (events,) = tmp_path.glob("*/events.jsonl")
    assert len(events.read_text(encoding="utf-8").splitlines()) == 1


def test_labels_that_would_end_the_use_of_a_gpu_raise_before_it(make_scenario) -> None:
    fleet = Fleet.of(make_scenario())
    records = fleet.people.partition.records_of(np.arange(2))
    object.__setattr__(fleet, "device", "cuda")
    fleet.check_labels(records)
    fleet.people.dataset.y[records[1][0]] = 99
    with pytest.raises(IndexError, match="label 99 is out of range"):
        fleet.check_labels(records)


def test_sums_in_any_order_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setitem(os.environ, "CUBLAS_WORKSPACE_CONFIG", ":0:0")
    with pytest.raises(InputError, match=r"CUBLAS_WORKSPACE_CONFIG=:0:0: .* Unset it"):
        prepare_cuda()


def test_kernels_are_ordered_inside_alone() -> None:
    assert not torch.are_deterministic_algorithms_enabled()
    with ordered_kernels():
        assert torch.are_deterministic_algorithms_enabled()
    assert not torch.are_deterministic_algorithms_enabled()
