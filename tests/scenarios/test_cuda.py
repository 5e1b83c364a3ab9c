"""Whole runs on a GPU: the same bits in each, and without noise the figures of the CPU."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from scenarios.runner import run
from tests.scenarios.engines.hashes import final_hash

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
