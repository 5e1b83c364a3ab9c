"""A federation of nodes with records and keys of their own sums under masks, over a real SuperLink."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from warm import flower_environment

from fedprivacy.guarantees.assumptions import TrainingAssumption
from tests.scenarios.engines.test_superlink import fedprivacy, left

MASKED = """
name = "masked"
seed = 3
[data]
name = "on-nodes"
features = 4
classes = 2
clients = 3
[model]
name = "logistic"
[training]
learning_rate = 0.5
[server]
rounds = 1
[sampling]
name = "all"
[privacy]
trust = "distributed"
adjacency = "zero-out"
min_survivors = 2
clipping_norm = 1.0
noise_multiplier = 0.5
delta = 1e-3
[federation]
hosts = 3
"""


@pytest.mark.slow
@pytest.mark.exhaustive  # 90 s of processor time; tests/server/test_masked_grid.py has the same steps in every run
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
def test_pinned_nodes_sum_under_masks_and_one_that_drops_out_is_not_in_the_sum(
    tmp_path: Path, free_ports
) -> None:
    (tmp_path / "masked.toml").write_text(MASKED)
    folder, data = tmp_path / "federation", []
    for node in range(3):
        x = np.random.default_rng(node).standard_normal((20, 4)).astype(np.float32)
        np.savez(tmp_path / f"{node}.npz", x_train=x, y_train=(x[:, 0] > 0).astype(np.int64))
        data += ["--data", str(tmp_path / f"{node}.npz")]
    up = ("federation", "up", "--scenario", "masked.toml", "--port", str(free_ports(4)), *data)
    try:
        refused = fedprivacy(*up, "--nodes", "2", cwd=tmp_path)
        assert refused.returncode == 2
        started = fedprivacy(*up, "--nodes", "3", cwd=tmp_path, cold=True, more=flower_environment())
        assert started.returncode == 0, started.stderr
        # Node 2 cannot sign as client 2 with the key of node 0, and refuses to take part.
        (folder / "keys" / "node-2").write_bytes((folder / "keys" / "node-0").read_bytes())
        done = fedprivacy("run", "masked.toml", "--engine", "superlink", "--json", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        logs = [(folder / "logs" / f"node-{node}.log").read_text() for node in range(3)]
    finally:
        down = fedprivacy("federation", "down", cwd=tmp_path)
    assert down.returncode == 0
    assert left(folder) == []
    document = json.loads(done.stdout)
    assert document["status"] == "finished"
    [path] = (tmp_path / "runs").glob("*/run.json")
    [event] = json.loads(path.read_text())["rounds"]
    assert (event["faults"], event.get("void", False)) == ({"node_error": 1}, False)
    for guarantee in document["privacy"]["guarantees"]:
        assert TrainingAssumption.MASKED_SUM in guarantee["assumptions"]
    for phase in ("keys", "shares", "inputs", "consistency", "opening"):
        assert all(f"round 0: secure sum: {phase}" in log for log in logs[:2])
    assert "has another key for client 2, this node's" in logs[2]
    # Rounds and participations outlive the federation; its keys do not.
    assert sorted(item.name for item in (folder / "home" / "secure-sum").iterdir()) == [
        "client-0.round", "client-0.rounds", "client-1.round", "client-1.rounds",
    ]  # fmt: skip
    assert not (folder / "keys").exists()
