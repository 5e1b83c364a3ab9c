"""A file of very many tensors is refused before each of them costs time."""

from __future__ import annotations

import json
import struct
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from fedprivacy.io.tensor_file import MAX_TENSORS, check_tensor_file
from fedprivacy.runs import Checkpoint, RunDirectory


def written(path: Path, tensors: int) -> Path:
    entry = '"{}":{{"dtype":"U8","shape":[0],"data_\\u006fffsets":[0,0]}}'  # a key may be written so, too
    header = "{" + ",".join(entry.format(at) for at in range(tensors)) + "}"
    path.write_bytes(struct.pack("<Q", len(header)) + header.encode())
    return path


def test_a_million_tensors_are_refused_at_once(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path, "a", "")
    run.save_checkpoint(Checkpoint(1, {"weights": np.arange(3.0)}, {"[": "[" * 100}))
    path = written(run.path / "checkpoint" / "round-000002.safetensors", 10**6)
    began, damaged = time.process_time(), []
    found = run.load_checkpoint(damaged.append)
    assert time.process_time() - began < 5  # it took half a minute
    assert damaged == [path]
    assert found is not None
    assert found.rounds == 1


def test_the_number_of_tensors_has_a_bound(tmp_path: Path) -> None:
    check_tensor_file(written(tmp_path / "most", MAX_TENSORS))
    with pytest.raises(ValueError, match="more than 10,000 tensors"):
        check_tensor_file(written(tmp_path / "more", MAX_TENSORS + 1))


def test_a_header_without_an_end_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(struct.pack("<Q", 2**60) + b"{}")
    with pytest.raises(ValueError, match="header"):
        check_tensor_file(tmp_path / "a")
    (tmp_path / "b").write_bytes(save({"a": np.zeros(3)}, metadata={"facts": json.dumps({})}))
    check_tensor_file(tmp_path / "b")
