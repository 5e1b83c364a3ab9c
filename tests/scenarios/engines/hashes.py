"""Runs that every engine has to end with the same bits, and what tells those bits."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedprivacy.records.run_directory import RunDirectory

SCENARIO = """
name = "engines"
seed = 1
[data]
name = "synthetic"
records = 1200
test_records = 50
features = 4
partition = "iid"
clients = 400
[model]
name = "mlp"
hidden = [5]
[training]
batch_size = 2
learning_rate = 0.5
[server]
rounds = 3
optimizer = "adam"
[sampling]
name = "poisson"
rate = 0.5
[privacy]
trust = "central"
clipping_norm = 1.0
noise_multiplier = 1.0
delta = 1e-4
[federation]
hosts = 3
chunk_size = 16
"""
LOCAL = "privacy={trust='local', clipping_norm=1.0, noise_multiplier=1.0, delta=1e-4"
KINDS: dict[str, tuple[str, ...]] = {
    "central": (),
    "sum of local noise": (f"{LOCAL}, noise_draw='sum'}}",),
    "local noise": (f"{LOCAL}}}", "federation.observe=each"),
    "adaptive clipping": (
        "privacy.clipping_quantile=0.5",
        "privacy.clipping_count_noise=5.0",
        "server.denoise='james-stein'",
    ),
    "distributed": (
        "privacy={trust='distributed', clipping_norm=1.0, noise_multiplier=1.0, delta=1e-4, min_survivors=150}",
        "sampling={name='fixed', cohort=200}",
        "federation.dropout=0.2",
    ),
    "frozen encoder": ("model={name='mlp', hidden=[5], lora={rank=2, alpha=4.0, targets=['3']}}",),
    "records": (
        f"{LOCAL}, unit='example', adjacency='add-remove'}}",
        "training={batches='poisson', rate=0.5, steps=2, learning_rate=0.5}",
    ),
}
"""More chunks than any engine has slots; what is not said in an override is as in `SCENARIO`."""


def final_hash(document: Mapping[str, Any], folder: Path = Path(), *, nodes: bool = True) -> str:
    """Tells the final model of a run, its optimizer, the states of its nodes and what its ledger charged.

    Args:
        document: Of the run.
        folder: Where the command was given, if the path in the document is seen from there.
        nodes: Whether with what nodes keep: the server of a real federation cannot see that.
    """
    checkpoint = RunDirectory.open(folder / document["path"]).load_checkpoint()
    assert checkpoint is not None
    assert checkpoint.rounds == len(document["rounds"])
    digest = hashlib.sha256()
    for name, array in sorted(checkpoint.tensors.items()):
        if name.startswith("node/") and not nodes:
            continue
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
