"""Stored trials are read as they were observed, and refused where they are others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save

from fedprivacy.attacks.stored_observations import digest
from fedprivacy.attacks.stored_trials import TrialRecording
from fedprivacy.errors import InputError
from fedprivacy.io import bounded_json

ROWS = np.arange(12.0).reshape(4, 3)
FACTS = {"seed": 1, "view": "property-1"}


def observe(recording: TrialRecording, rows: np.ndarray = ROWS, first: int = 0) -> np.ndarray:
    return recording.observed("trial", first, b"secret", lambda: rows, shape=ROWS.shape, dtype=np.float64)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / digest(b"key")


def stored(folder: Path, blocks: int = 1, *, stores: bool = True) -> None:
    recording = TrialRecording(folder, stores=stores)
    for first in range(blocks):
        observe(recording, first=first)
    recording.complete({**FACTS, "key": "key"})


def test_stored_rows_are_read_bit_for_bit(folder: Path) -> None:
    stored(folder)
    recording = TrialRecording(folder, reads=True)
    recording.check(FACTS)
    np.testing.assert_array_equal(observe(recording, np.zeros(1)), ROWS)


@pytest.mark.parametrize("wrong", [ROWS[:3], ROWS[:, :2], ROWS.astype(np.float32)])
def test_a_block_of_another_shape_or_type_is_refused(folder: Path, wrong: np.ndarray) -> None:
    """Its digest fits: whoever changes a block may change the index beside it."""
    stored(folder)
    data, index = save({"rows": np.ascontiguousarray(wrong)}), folder / "transcript.json"
    (folder / "block-000000.safetensors").write_bytes(data)
    index.write_text(json.dumps({**json.loads(index.read_text()), "rounds": {"0": digest(data)}}))
    with pytest.raises(InputError, match="it is not of shape"):
        observe(TrialRecording(folder, reads=True))


@pytest.mark.parametrize("facts", [{"seed": 2}, {"view": "property-2"}])
def test_a_transcript_of_another_run_or_view_is_refused(folder: Path, facts: dict[str, Any]) -> None:
    stored(folder)
    with pytest.raises(InputError, match=f"another {next(iter(facts))}"):
        TrialRecording(folder, reads=True).check({**FACTS, **facts})


def test_a_folder_with_the_name_of_another_attack_is_refused(folder: Path) -> None:
    stored(folder)
    moved = folder.rename(folder.with_name(digest(b"other")))
    with pytest.raises(InputError, match="another key"):
        TrialRecording(moved, reads=True).check(FACTS)


def test_an_attack_with_digests_alone_must_observe_the_same_again(folder: Path) -> None:
    """Others would be further answers, which nothing was charged for."""
    stored(folder, 2, stores=False)
    first = (folder / "transcript.json").read_bytes()
    stored(folder, 2, stores=False)
    assert (folder / "transcript.json").read_bytes() == first
    with pytest.raises(InputError, match="others than those that were charged"):
        observe(TrialRecording(folder, stores=False), ROWS + 1e-12)
    for blocks in (1, 3):
        with pytest.raises(InputError, match="others than those that were charged"):
            stored(folder, blocks, stores=False)
    assert (folder / "transcript.json").read_bytes() == first


def test_the_index_is_read_once_for_all_blocks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Poisoning has two blocks a trial: reading it for each would take the square of their number."""
    stored(folder, 5)
    reads, read = [], bounded_json.read
    monkeypatch.setattr(bounded_json, "read", lambda path: reads.append(path) or read(path))
    recording = TrialRecording(folder, reads=True)
    for first in range(5):
        observe(recording, first=first)
    assert len(reads) == 1
