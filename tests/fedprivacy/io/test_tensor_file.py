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
from fedprivacy.records.run_directory import Checkpoint, RunDirectory


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
    with pytest.raises(ValueError, match=r"more (names )?than 10,000 tensors"):
        check_tensor_file(written(tmp_path / "more", MAX_TENSORS + 1))


def test_a_header_without_an_end_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(struct.pack("<Q", 2**60) + b"{}")
    with pytest.raises(ValueError, match="header"):
        check_tensor_file(tmp_path / "a")
    (tmp_path / "b").write_bytes(save({"a": np.zeros(3)}, metadata={"facts": json.dumps({})}))
    check_tensor_file(tmp_path / "b")


ONE = '"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}'


@pytest.mark.parametrize(
    "header",
    [
        "{"
        + f'"__metadata__":{{{",".join(f"{chr(34)}{at}{chr(34)}:{chr(34) * 2}" for at in range(60_000))}}}'
        + "}",
        "{" + ",".join([ONE] * 60_000) + "}",
        '{"a":' * 20_000 + "1" + "}" * 20_000,
        '{"a":{"dtype":"U8","shape":[' + "1," * 800_000 + '1],"data_offsets":[0,1]}}',
        '{"a":' + "[" * 30_000,
    ],
    ids=["metadata", "one name many times", "nested tables", "a long shape", "nested lists"],
)
def test_what_a_header_is_made_of_has_bounds(tmp_path: Path, header: str) -> None:
    (tmp_path / "a").write_bytes(struct.pack("<Q", len(header)) + header.encode() + b"0")
    with pytest.raises(ValueError, match="more "):
        check_tensor_file(tmp_path / "a")


def test_what_a_text_in_the_header_says_counts_for_nothing(tmp_path: Path) -> None:
    """Facts of a round are JSON within a text: of many classes they have many names and numbers."""
    facts = json.dumps({f'[{{,\\"{at}\\': ["{", at] for at in range(200_000)})
    (tmp_path / "a").write_bytes(save({"a\\": np.zeros(3)}, metadata={"facts": facts}))
    check_tensor_file(tmp_path / "a")


def test_a_sparse_file_is_refused_by_its_size_alone(tmp_path: Path) -> None:
    with (tmp_path / "a").open("wb") as sparse:
        sparse.truncate(2**40)
    with pytest.raises(ValueError, match="larger than 16 GB"):
        check_tensor_file(tmp_path / "a")
    (tmp_path / "b").write_bytes(struct.pack("<Q", 10**8))
    with pytest.raises(ValueError, match="cut off"):
        check_tensor_file(tmp_path / "b")
