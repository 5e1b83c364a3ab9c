"""The run directory: the files of a run, written so that a crash loses at most one round.

scenario.toml   complete, every default written out
events.jsonl    one line a round, flushed
run.json        the versioned result document
checkpoint/     the two newest rounds, safetensors, enough to resume bit-identically
model.safetensors the released model, trained and frozen tensors by name, where a part of it is frozen
report.html     one offline page, public
operator.html   the operator-only rest of it, not to be passed on
lock            the process that works on it, while one does (`ownership`)
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import shlex
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from fedprivacy.documents.envelope import SCHEMA
from fedprivacy.errors import InputError
from fedprivacy.io import bounded_json
from fedprivacy.io.atomic import PART, keep_names, replace_file
from fedprivacy.io.folder import check_tree, is_inner, make_inner, open_append
from fedprivacy.io.lock import FILE as LOCK
from fedprivacy.io.regular_file import LOOP, is_loop
from fedprivacy.io.tensor_file import Tensors, check_tensor_file

CHECKPOINTS = 2
MAX_ROUNDS = 10**6
_TRIES = 20
Done = TypeVar("Done")


@dataclass(frozen=True)
class Checkpoint:
    """The state after a round.

    Args:
        rounds: How many rounds are done.
        tensors: Named arrays: weights, optimizer state, participations, node states.
        facts: Small JSON values that belong to them.
    """

    rounds: int
    tensors: dict[str, NDArray[Any]]
    facts: dict[str, Any]


_NAME_ONE = "Name a run directory: `fedprivacy list` lists them."


class RunDirectory:
    """One run's files.

    Args:
        path: The directory; it exists.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._events = hashlib.blake2b(digest_size=16)

    @classmethod
    def create(cls, parent: Path, name: str, scenario: str) -> RunDirectory:
        """Makes `parent/<time>-<name>-<short token>` with the complete scenario in it.

        The token is random: a hash of the scenario would let whoever sees the name try out seeds.

        Raises:
            InputError: if it cannot be made or written.
        """
        stem = f"{time.strftime('%Y%m%d-%H%M%S')}-{name}-{secrets.token_hex(3)}"

        def new_path() -> Path:
            parent.mkdir(parents=True, exist_ok=True)
            return _unused(parent, stem)

        try:
            path = _against_others(new_path)
            keep_names(parent)
            run = cls(path)
            run.write("scenario.toml", scenario)
        except OSError as error:
            raise _unwritable(parent, error) from error
        return run

    @classmethod
    def open(cls, path: Path) -> RunDirectory:
        """An existing run directory.

        Raises:
            InputError: if there is no run in `path`.
        """
        if not (path / "scenario.toml").is_file():
            if path.is_dir():
                check_tree(path, depth=1)  # a pipe or a broken link in its place
            if path.is_dir() and all(file.name == LOCK or file.suffix == PART for file in path.iterdir()):
                raise InputError(f"{path}: not a run directory: no run was started in it. Start a new run.")
            raise InputError(f"{path}: not a run directory: it has no scenario.toml. {_NAME_ONE}")
        return cls(path)

    def nothing_started(self, command: str) -> InputError:
        """The error for a directory whose process ended before any work.

        Args:
            command: That of `fedprivacy` which starts what it was to hold.
        """
        anew = f"fedprivacy {command} {shlex.quote(str(self.path / 'scenario.toml'))}"
        return InputError(
            f"{self.path}: nothing was begun in it: its process ended before. Start it anew: {anew}"
        )

    def write(self, name: str, text: str) -> Path:
        """Writes a file atomically: readers see the old text or the new, never half of it."""
        return replace_file(self.path / name, text.encode())

    def write_document(self, document: Mapping[str, Any]) -> None:
        """Writes run.json."""
        self.write("run.json", json.dumps(document, indent=2, allow_nan=False) + "\n")

    def document(self) -> dict[str, Any]:
        """Reads run.json.

        Raises:
            InputError: if it is missing, damaged or of another schema.
        """
        return read_document(self.path / "run.json")

    def append_event(self, event: Mapping[str, Any]) -> None:
        """Adds one line to events.jsonl, on disk before the checkpoint that covers it."""
        line = json.dumps(event, allow_nan=False) + "\n"
        with open_append(self.path / "events.jsonl") as stream:
            stream.write(line.encode())
            stream.flush()
            os.fsync(stream.fileno())
        self._events.update(line.encode())

    @property
    def events_digest(self) -> str:
        """Of the lines of events.jsonl, as they were kept or added."""
        return self._events.hexdigest()

    def keep_events(self, count: int, digest: str | None = None) -> list[dict[str, Any]]:
        """Cuts events.jsonl to its first `count` lines, the rounds that a checkpoint covers.

        Args:
            count: How many.
            digest: What `events_digest` was after them, where it is known.

        Raises:
            InputError: if these rounds are not in it, or were changed.
        """
        source = self.path / "events.jsonl"
        lines: list[str] = []
        try:
            lines = (
                bounded_json.read_bytes(source, follow=False).decode(errors="replace").splitlines()[:count]
                if source.exists()
                else []
            )
            events = [bounded_json.loads(line) for line in lines]
            whole = len(lines) == count and all(event["round"] == at for at, event in enumerate(events))
        except (OSError, ValueError, LookupError, TypeError):
            whole = False
        text = "".join(line + "\n" for line in lines)
        self._events = hashlib.blake2b(text.encode(errors="replace"), digest_size=16)
        if not whole or digest not in (None, self.events_digest):
            anew = f"fedprivacy run {shlex.quote(str(self.path / 'scenario.toml'))}"
            raise InputError(
                f"{source}: damaged, it does not hold the {count} rounds of the checkpoint. Start the run "
                f"anew, for the same numbers: {anew}"
            )
        self.write("events.jsonl", text)
        return events

    def save_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Writes a checkpoint atomically and removes all but the newest two."""
        if make_inner(self.path / "checkpoint"):
            keep_names(self.path)
        tensors = {name: np.ascontiguousarray(array) for name, array in checkpoint.tensors.items()}
        metadata = {"rounds": str(checkpoint.rounds), "facts": json.dumps(checkpoint.facts)}
        metadata["whole"] = _digest(tensors, metadata["rounds"], metadata["facts"])
        replace_file(self._checkpoint(checkpoint.rounds), save(tensors, metadata=metadata))
        for old in self._checkpoints()[:-CHECKPOINTS]:
            old.unlink()

    def save_model(self, content: bytes) -> None:
        """Writes the released model with its frozen part, in the format of safetensors."""
        replace_file(self.path / "model.safetensors", content)

    def load_checkpoint(self, on_damaged: Callable[[Path], object] | None = None) -> Checkpoint | None:
        """The newest undamaged checkpoint, or None.

        Args:
            on_damaged: Called with each newer one that is not.
        """
        for path in reversed(self._checkpoints()):
            checkpoint = _load(path)
            if checkpoint is not None and path == self._checkpoint(checkpoint.rounds):
                return checkpoint
            if on_damaged:
                on_damaged(path)
        return None

    def drop_checkpoints(self, after: int) -> None:
        """Removes checkpoints of more rounds, which are damaged: they would count as the newest two."""
        for path in self._checkpoints():
            if _number(path) > after:
                path.unlink()

    def _checkpoint(self, rounds: int) -> Path:
        return self.path / "checkpoint" / f"round-{rounds:06d}.safetensors"

    def _checkpoints(self) -> list[Path]:
        folder = self.path / "checkpoint"
        if not is_inner(folder):  # of a link to a folder, old checkpoints would be removed elsewhere
            return []
        return sorted(folder.glob("round-*.safetensors"), key=_number)


def _number(checkpoint: Path) -> int:
    """The rounds in a checkpoint's name, which has no leading zeros from a million on."""
    digits = checkpoint.stem.removeprefix("round-")
    return int(digits) if digits.isascii() and digits.isdecimal() else -1


def check_out(parent: Path) -> None:
    """Tries whether run directories can be made in a folder, and leaves nothing behind.

    Raises:
        InputError: if not; asked before the work that would be lost.
    """
    try:
        _against_others(lambda: _tried(parent))
    except OSError as error:
        raise _unwritable(parent, error) from error


def _tried(parent: Path) -> None:
    created: list[Path] = []
    try:
        for folder in reversed([parent, *parent.parents]):
            if not folder.exists():
                folder.mkdir(exist_ok=True)
                created.append(folder)
        created.append(Path(tempfile.mkdtemp(dir=parent)))
    finally:
        for folder in reversed(created):
            with suppress(OSError):  # another process has begun to use it
                folder.rmdir()


def _against_others(work: Callable[[], Done]) -> Done:
    """Work in a folder that another process may just have tried (`check_out`), and taken away again."""
    for _ in range(_TRIES - 1):
        with suppress(FileNotFoundError, FileExistsError):  # gone before, or in the middle of, making it
            return work()
    return work()


def _unwritable(parent: Path, error: OSError) -> InputError:
    what = "not a folder" if error.errno in (errno.ENOTDIR, errno.EEXIST) else error.strerror
    return InputError(f"--out {parent}: {what}. Choose a folder that you may write to.")


def read_document(path: Path) -> dict[str, Any]:
    """Reads a result document (run.json).

    Raises:
        InputError: if it is missing, damaged or of another schema.
    """
    try:
        document = bounded_json.read(path)
    except OSError as error:
        what, remedy = LOOP if is_loop(error) else (error.strerror, _NAME_ONE)
        raise InputError(f"{path}: {what}. {remedy}") from error
    except ValueError as error:
        raise InputError(f"{path}: damaged, not JSON ({error}).") from error
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise InputError(f"{path}: not a result document of schema {SCHEMA}.")
    return document


def _unused(parent: Path, stem: str) -> Path:
    for suffix in ("", *(f"-{number}" for number in range(2, 1000))):
        path = parent / f"{stem}{suffix}"
        try:
            path.mkdir()
        except FileExistsError:
            continue
        return path
    raise InputError(f"--out {parent}: holds too many runs named {stem}. Choose another folder.")


def _digest(tensors: Tensors, *texts: str) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for text in texts:
        digest.update(f"{len(text)}:{text}".encode())
    for name in sorted(tensors):
        array = tensors[name]
        digest.update(f"{name}/{array.dtype.str}/{array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _load(path: Path) -> Checkpoint | None:
    """A checkpoint file, or None if it is damaged (cut short, bits flipped).

    safetensors takes no tensor that is not in the file as its header says, and no other types than numbers.
    """
    try:
        check_tensor_file(path)
        with safe_open(path, framework="numpy") as stored:
            metadata = stored.metadata() or {}
            rounds, facts = int(metadata["rounds"]), bounded_json.loads(metadata["facts"])
            if not isinstance(facts, dict) or not 0 <= rounds <= MAX_ROUNDS:
                return None
            tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
        # Earlier versions had a digest of the tensors alone.
        whole = "whole" in metadata
        covered = (metadata["rounds"], metadata["facts"]) if whole else ()
        if metadata["whole" if whole else "digest"] != _digest(tensors, *covered):
            return None
        return Checkpoint(rounds, tensors, facts)
    except (SafetensorError, OSError, LookupError, ValueError, TypeError, AttributeError):
        return None
