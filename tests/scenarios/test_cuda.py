"""Whole runs on a GPU: the same bits in each and on Ray, the figures of the CPU, and the end of a lost device."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import torch
from warm import COLD, ENVIRONMENT

from benchmarks.faults import TEXT, write_records
from scenarios.engines.launch import Engine
from scenarios.runner import run
from tests.scenarios.engines.hashes import KINDS, SCENARIO, final_hash

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")

MODELS = {
    "logistic": "model={name='logistic'}",
    "mlp": "model={name='mlp', hidden=[16]}",
    "cnn": "model={name='cnn', channels=[4, 6], kernel_size=3, hidden=[8]}",
    "lora": "model={name='mlp', hidden=[11], lora={rank=3, alpha=6.0}, trainable=['3.bias']}",
}
TRUSTS = {
    "none": ("privacy={trust='none'}",),
    "central": ("privacy={trust='central', clipping_norm=1.0, epsilon=4.0, delta=1e-4}",),
    "adaptive": (
        "privacy={trust='central', clipping_norm=1.0, epsilon=4.0, delta=1e-4, clipping_quantile=0.5}",
    ),
    "local": ("privacy={trust='local', clipping_norm=1.0, epsilon=8.0, delta=1e-4}",),
    "distributed": ("privacy={trust='distributed', clipping_norm=1.0, epsilon=8.0, delta=1e-4}",),
}
TRAINING = "training={learning_rate=0.5, epochs=2, batch_size=5, momentum=0.5"


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("trust", TRUSTS)
def test_a_run_has_the_same_bits_twice_and_the_cpus_figures(
    make_scenario, tmp_path: Path, model: str, trust: str
) -> None:
    data = "data={name='digits', partition='iid', clients=40}"
    settings = (data, MODELS[model], *TRUSTS[trust], "server.rounds=3", "sampling={name='all'}")
    gpu = make_scenario(*settings, TRAINING + ", device='cuda'}")
    first, second = (run(gpu, tmp_path / name, report=False) for name in ("a", "b"))
    assert final_hash(first) == final_hash(second)
    assert "on cuda" in first["performance"]["way"]
    if trust == "none":  # the device keys the streams of noise
        cpu = run(make_scenario(*settings, TRAINING + "}"), tmp_path / "c", report=False)
        losses = [document["rounds"][-1]["loss"] for document in (first, cpu)]
        assert losses[0] == pytest.approx(losses[1], rel=1e-3)


def test_a_kernel_that_fails_ends_the_run_before_its_round_is_released(tmp_path: Path) -> None:
    """In a process of its own, whose device answers no more: one client's record reads beyond an array."""
    write_records(tmp_path, bad=True)
    file = tmp_path / "faulty.toml"
    file.write_text(TEXT.format(folder=tmp_path, harm="beyond", trust="local"), encoding="utf-8")
    options = ["--set", "training.device=cuda", "--allow-code", "--out", "runs"]
    ended = subprocess.run(
        [*COLD, "run", str(file), *options], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True
    )
    assert ended.returncode == 1, ended.stderr
    assert "GPU is lost" in ended.stderr
    assert "Traceback" not in ended.stderr
    (path,) = tmp_path.glob("runs/*/run.json")
    assert json.loads(path.read_text(encoding="utf-8"))["rounds"] == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["central", "adaptive clipping", "local noise", "distributed"])
def test_ray_with_shares_of_a_gpu_ends_with_the_same_bits(make_scenario, tmp_path: Path, kind: str) -> None:
    pytest.importorskip("ray")
    scenario = make_scenario(*KINDS[kind], "training.device=cuda", text=SCENARIO)
    engines = {"embedded": Engine(workers=1), "ray": Engine("ray", workers=2, gpus_per_worker=0.5)}
    documents = {name: run(scenario, tmp_path / name, report=False, engine=engines[name]) for name in engines}
    assert final_hash(documents["ray"]) == final_hash(documents["embedded"])
    assert [each["failures"] + each["refusals"] for each in documents["ray"]["rounds"]] == [0] * 3
    assert documents["ray"]["performance"]["workers"] == 2
