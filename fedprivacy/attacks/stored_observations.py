"""Stores the observations of a passive seat, which can be scored again without any training."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

from fedprivacy.attacks.transcript import Sight
from fedprivacy.errors import InputError
from fedprivacy.io import bounded_json
from fedprivacy.io.atomic import replace_file, sweep_parts
from fedprivacy.io.regular_file import read_regular
from fedprivacy.io.tensor_file import MAX_BYTES as MAX_TENSOR_BYTES

SCHEMA = 1
_INDEX = "transcript.json"
_PARTS = ("sent", "update", "others")


@dataclass(frozen=True)
class Recording:
    """A folder with a file for each observed round, and an index once all exist.

    It contains raw updates of the clients: a reader of the files sees as much as the seat.

    Args:
        folder: Its path.
    """

    folder: Path
    _written: dict[int, str] = field(default_factory=dict)

    def add(self, sight: Sight) -> None:
        """Stores an observation of all targets."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if not self._written:
            sweep_parts(self.folder)  # of a process that was killed in the middle
        data = save({name: getattr(sight, name).contiguous() for name in _PARTS})
        replace_file(self._file(sight.round), data)
        self._written[sight.round] = digest(data)

    def close(self, rounds: Iterable[int], facts: Mapping[str, Any]) -> None:
        """Completes the recording; without this it is ignored.

        Args:
            rounds: Those that were to be observed; one that the victim refused has no file.
            facts: Further facts about it, as JSON.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        seen = {str(number): self._written.get(number) for number in rounds}
        index = {"schema": SCHEMA, "rounds": seen, "facts": facts}
        # Written last: a recording without an index is incomplete, and is made again.
        replace_file(self.folder / _INDEX, (json.dumps(index, indent=2) + "\n").encode())

    @property
    def whole(self) -> bool:
        """Whether the recording is complete."""
        return (self.folder / _INDEX).is_file()

    def covers(self, rounds: Iterable[int]) -> bool:
        """Whether these rounds are part of the recording.

        Raises:
            InputError: the index is damaged.
        """
        return set(rounds) <= self._index()[0].keys()

    @property
    def facts(self) -> dict[str, Any]:
        """The facts passed to `close`."""
        return self._index()[1]

    def sights(self, rounds: Iterable[int], parameters: int | None = None) -> Iterator[Sight]:
        """The observations of these rounds, in order; none of a round that the victim refused.

        Args:
            rounds: Which.
            parameters: The number of weights of the observed model; None: as stored.

        Raises:
            InputError: a file is damaged, changed or missing.
        """
        index, _ = self._index()
        for number in sorted(rounds):
            path = self._file(number)
            if number not in index:
                raise self.damaged(path, ValueError("its round is not in the index"))
            if index[number] is None:
                continue
            try:
                data = read_regular(path, MAX_TENSOR_BYTES, follow=False)
                if digest(data) != index[number]:
                    raise ValueError("its content was changed")
                arrays = load(data)
                sight = Sight(arrays["sent"], arrays["update"], arrays["others"], round=number)
                self._check(sight, parameters)
                yield sight
            except (SafetensorError, ValueError, LookupError, TypeError, OSError) as error:
                raise self.damaged(path, error) from error

    def _check(self, sight: Sight, parameters: int | None) -> None:
        shapes = sight.sent.shape, sight.update.shape, sight.others.shape[1:]
        expected = sight.sent.numel() if parameters is None else parameters
        if {*shapes} != {(expected,)} or {getattr(sight, name).dtype for name in _PARTS} != {torch.float32}:
            raise ValueError(f"it is not of a model with {expected} weights")

    def damaged(self, path: Path, error: Exception) -> InputError:
        """The error for a file that was changed after writing."""
        return InputError(
            f"{path}: the transcript is damaged ({type(error).__name__}: {error}). Remove "
            f"{self.folder}, and the attack that made it repeats the same rounds."
        )

    def _file(self, number: int) -> Path:
        return self.folder / f"round-{number:06d}.safetensors"

    def _index(self) -> tuple[dict[int, str | None], dict[str, Any]]:
        """The digest of each round that was to be observed, None where the victim refused; and the facts."""
        path = self.folder / _INDEX
        try:
            index = bounded_json.read(path)
            if index["schema"] != SCHEMA:
                raise ValueError(f"schema {index['schema']}")
            return {int(number): entry for number, entry in index["rounds"].items()}, dict(index["facts"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise self.damaged(path, error) from error


def digest(data: bytes) -> str:
    """Identifies the content of a file."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()
