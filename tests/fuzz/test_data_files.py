"""Data files and transcripts that are broken in hundreds of ways end in an InputError, or are what they were."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from breaking import Tally, an_eighth_or_all, bounded, broken_bytes, broken_json, broken_npy, fuzz, places
from hypothesis import given
from hypothesis import strategies as some

from fedprivacy.attacks.stored_observations import Recording
from fedprivacy.attacks.transcript import Sight
from fedprivacy.data import npz
from fedprivacy.data.storage import mapped
from fedprivacy.errors import InputError

ARRAYS = {
    "x_train": np.arange(24.0).reshape(8, 3),
    "y_train": np.arange(8) % 2,
    "x_test": np.arange(6.0).reshape(2, 3),
    "y_test": np.arange(2),
    "user_train": np.array(["a", "b"] * 4),
    "feature_names": np.array(["one", "two", "three"]),
}


def members() -> dict[str, bytes]:
    found = {}
    for name, array in ARRAYS.items():
        stream = io.BytesIO()
        np.save(stream, array)
        found[f"{name}.npy"] = stream.getvalue()
    return found


def packed(parts: dict[str, bytes], packing: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", packing) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return stream.getvalue()


@some.composite
def broken_npz(draw: Any) -> bytes:
    """An .npz file with a broken member, with one of another name, or with broken bytes."""
    parts = members()
    if draw(some.booleans()):
        name = draw(some.sampled_from([*parts]))
        parts[name] = draw(broken_npy(parts[name]))
    if draw(some.integers(0, 5)) == 0:
        name = draw(some.sampled_from([*parts]))
        other = draw(
            some.sampled_from(
                ["/etc/passwd.npy", "../../x_train.npy", "x_train", "user_test.npy", "classes.npy"]
            )
        )
        parts[other] = parts.pop(name)
    whole = packed(parts, draw(some.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])))
    return bytes(draw(broken_bytes(whole))) if draw(some.booleans()) else whole


@an_eighth_or_all
def test_broken_data_files_end_in_our_errors(part: int, tmp_path: Path) -> None:
    tally, file = Tally(), tmp_path / "data.npz"

    def read() -> None:
        found = npz.facts(str(file))
        for name in npz.NEEDED:
            assert len(npz.array(str(file), name)) in (found.records, found.test_records)
        npz.unusable_columns(str(file))

    @fuzz(200 // part)
    @given(broken_npz())
    def each(data: bytes) -> None:
        file.write_bytes(data)
        npz._facts.cache_clear()
        npz._unusable_columns.cache_clear()
        tally.read(read)

    with bounded():
        each()
    assert [path.name for path in tmp_path.iterdir()] == ["data.npz"]
    assert 0.4 * tally.examples < tally.refused < tally.examples


def test_a_file_that_unpacks_to_far_more_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npz, "LARGEST_PACKED", 2**22)
    parts = members()
    stream = io.BytesIO()
    np.save(stream, np.zeros(2**23, np.uint8))
    parts["y_train.npy"] = stream.getvalue()
    file = tmp_path / "bomb.npz"
    file.write_bytes(packed(parts))
    with bounded(), pytest.raises(InputError, match=r"y_train unpacks to .* save it unpacked"):
        npz.facts(str(file))
    file.write_bytes(packed(parts, zipfile.ZIP_STORED))
    with pytest.raises(InputError, match="do not fit each other"):  # as large, and not packed
        npz.facts(str(file))


@an_eighth_or_all
def test_a_damaged_copy_of_records_is_not_used(part: int, tmp_path: Path) -> None:
    file, tally = tmp_path / "copy.npy", Tally()
    np.save(file, np.ones((3, 2), np.float32))
    whole = file.read_bytes()
    assert mapped(file).tolist() == [[1, 1]] * 3

    def read() -> Any:
        try:
            return mapped(file)
        except (OSError, ValueError) as error:  # which `records` makes one of our errors of
            raise InputError(str(error)) from error

    @fuzz(100 // part)
    @given(broken_npy(whole))
    def each(data: bytes) -> None:
        file.write_bytes(data)
        found = tally.read(read)
        assert found is None or found.nbytes <= len(data)

    with bounded():
        each()
    assert tally.refused > 0


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    made = Recording(tmp_path_factory.mktemp("seen"))
    for number in (0, 1):
        made.add(Sight(torch.ones(4), torch.zeros(4), torch.ones(2, 4), round=number))
    made.close([0, 1], {"before": 0.5, "after": {"1": 0.5, "2": 0.6}})
    return made


@an_eighth_or_all
def test_broken_transcripts_end_in_our_errors(part: int, recording: Recording) -> None:
    tally = Tally()
    files = {path.name: path.read_bytes() for path in recording.folder.iterdir()}
    index = json.loads(files["transcript.json"])

    def read() -> None:
        again = Recording(recording.folder)
        assert again.covers([0]) in (True, False)
        for sight in again.sights([0, 1], parameters=4):
            assert sight.sent.shape == (4,)

    @fuzz(200 // part)
    @given(some.sampled_from([*files]), some.data())
    def each(name: str, data: some.DataObject) -> None:
        text = name == "transcript.json"
        broken = data.draw(broken_json(index, places(index)) if text else broken_bytes(files[name]))
        for other, whole in files.items():
            (recording.folder / other).write_bytes(broken if other == name else whole)
        tally.read(read)

    with bounded():
        each()
    assert tally.refused > 0.5 * tally.examples


def test_a_transcript_of_another_model_is_refused(tmp_path: Path) -> None:
    made = Recording(tmp_path)
    made.add(Sight(torch.ones(4), torch.zeros(4), torch.ones(2, 5), round=0))
    made.close([0], {})
    with pytest.raises(InputError, match="not of a model with 4 weights"):
        list(made.sights([0], parameters=4))
