from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from fedprivacy.errors import InputError
from fedprivacy.records.run_directory import Checkpoint, RunDirectory, _digest, check_out, read_document


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    return RunDirectory.create(tmp_path / "runs", "test", 'name = "test"\n')


def checkpoint(rounds: int) -> Checkpoint:
    return Checkpoint(
        rounds, {"weights": np.arange(5.0) * rounds, "n": np.array([3], np.int32)}, {"a": [1, None]}
    )


def test_names_carry_time_and_name_and_never_collide(tmp_path: Path) -> None:
    made = [RunDirectory.create(tmp_path, "same", "text").path for _ in range(3)]
    assert len(set(made)) == 3
    assert all("-same-" in path.name for path in made)
    assert (made[0] / "scenario.toml").read_text() == "text"


def test_a_checkpoint_comes_back_bit_for_bit(directory: RunDirectory) -> None:
    assert directory.load_checkpoint() is None
    directory.save_checkpoint(checkpoint(1))
    directory.save_checkpoint(checkpoint(2))
    back = directory.load_checkpoint()
    assert (back.rounds, back.facts) == (2, {"a": [1, None]})
    assert np.array_equal(back.tensors["weights"], np.arange(5.0) * 2)
    assert back.tensors["n"].dtype == np.int32


def test_only_the_newest_two_checkpoints_are_kept_and_no_parts(directory: RunDirectory) -> None:
    for rounds in range(1, 6):
        directory.save_checkpoint(checkpoint(rounds))
    names = sorted(path.name for path in (directory.path / "checkpoint").iterdir())
    assert names == ["round-000004.safetensors", "round-000005.safetensors"]


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "not safetensors"])
def test_a_damaged_checkpoint_is_noticed_and_the_one_before_is_used(
    directory: RunDirectory, damage: str
) -> None:
    directory.save_checkpoint(checkpoint(1))
    directory.save_checkpoint(checkpoint(2))
    newest = directory.path / "checkpoint" / "round-000002.safetensors"
    data = bytearray(newest.read_bytes())
    if damage == "flip":
        data[-1] ^= 1
    newest.write_bytes({"cut": data[:-3], "flip": data, "empty": b"", "not safetensors": b"x" * 500}[damage])
    told: list[Path] = []
    assert directory.load_checkpoint(told.append).rounds == 1
    assert told == [newest]
    directory.drop_checkpoints(after=1)
    assert [path.name for path in (directory.path / "checkpoint").iterdir()] == ["round-000001.safetensors"]


def test_a_million_rounds_come_after_those_before_them(directory: RunDirectory) -> None:
    for rounds in (999_998, 999_999, 1_000_000):
        directory.save_checkpoint(checkpoint(rounds))
    found = directory.load_checkpoint()
    assert found is not None
    assert found.rounds == 1_000_000
    directory.drop_checkpoints(after=999_999)
    [left] = (directory.path / "checkpoint").iterdir()
    assert left.name == "round-999999.safetensors"


@pytest.mark.parametrize(
    ("what", "other"), [(b'"a": [1, null]', b'"a": [2, null]'), (b'"rounds":"2"', b'"rounds":"9"')]
)
def test_a_checkpoint_whose_facts_were_changed_is_damaged(directory: RunDirectory, what, other) -> None:
    directory.save_checkpoint(checkpoint(2))
    [path] = (directory.path / "checkpoint").iterdir()
    data = path.read_bytes().replace(b'\\"', b'"')
    assert what in data
    data = path.read_bytes()
    changed = data.replace(what, other).replace(what.replace(b'"', b'\\"'), other.replace(b'"', b'\\"'))
    assert changed != data
    path.write_bytes(changed)
    assert directory.load_checkpoint() is None


def test_a_checkpoint_of_an_earlier_version_is_read(directory: RunDirectory) -> None:
    """Its digest was of the arrays alone."""
    one = checkpoint(3)
    metadata = {"rounds": "3", "facts": json.dumps(one.facts), "digest": _digest(one.tensors)}
    (directory.path / "checkpoint").mkdir()
    path = directory.path / "checkpoint" / "round-000003.safetensors"
    path.write_bytes(save(one.tensors, metadata=metadata))
    assert directory.load_checkpoint().rounds == 3
    path.rename(path.with_name("round-000004.safetensors"))
    assert directory.load_checkpoint() is None


def test_events_are_cut_back_to_what_a_checkpoint_covers(directory: RunDirectory) -> None:
    for number in range(4):
        directory.append_event({"round": number})
    assert directory.keep_events(2) == [{"round": 0}, {"round": 1}]
    assert (directory.path / "events.jsonl").read_text() == '{"round": 0}\n{"round": 1}\n'


def test_events_that_were_changed_are_noticed(directory: RunDirectory) -> None:
    directory.keep_events(0)
    for number in range(3):
        directory.append_event({"round": number, "loss": 0.5})
    digest = directory.events_digest
    again = RunDirectory(directory.path)
    assert len(again.keep_events(3, digest)) == 3
    assert again.events_digest == digest
    file = directory.path / "events.jsonl"
    file.write_text(file.read_text().replace("0.5", "0.25", 1))
    with pytest.raises(InputError, match=r"damaged.*fedprivacy run .*scenario\.toml"):
        again.keep_events(3, digest)


def test_a_folder_that_cannot_be_written_is_an_input_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"--out .*file.* Choose a folder"):
        RunDirectory.create(tmp_path / "file" / "runs", "test", "")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 99, "kind": "run"}'])
def test_documents_that_are_not_ours_are_input_errors(tmp_path: Path, text: str) -> None:
    path = tmp_path / "run.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"run\.json"):
        read_document(path)


def test_no_number_in_a_document_is_outside_json(directory: RunDirectory) -> None:
    with pytest.raises(ValueError, match="JSON"):
        directory.write_document({"schema": 1, "loss": float("nan")})
    assert not (directory.path / "run.json").exists()
    directory.write_document({"schema": 1})
    assert json.loads((directory.path / "run.json").read_text()) == directory.document()


def test_a_folder_without_a_run_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a run directory"):
        RunDirectory.open(tmp_path)


def test_several_commands_may_begin_in_a_folder_that_is_not_there_yet(tmp_path: Path) -> None:
    """Each tries whether it can be made, and takes it away again."""
    with ThreadPoolExecutor(4) as pool:
        for number in range(100):
            out = tmp_path / str(number) / "deep"
            tried = [pool.submit(check_out, out) for _ in range(8)]
            made = [pool.submit(RunDirectory.create, out, "x", "") for _ in range(2)]
            assert [one.result() for one in tried] == [None] * 8
            assert all(one.result().path.is_dir() for one in made)


def test_trying_a_folder_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    check_out(tmp_path / "a" / "b")
    check_out(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    for wrong in (tmp_path / "file", tmp_path / "file" / "x"):
        with pytest.raises(InputError, match=f"--out {wrong}: not a folder. Choose a folder"):
            check_out(wrong)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
