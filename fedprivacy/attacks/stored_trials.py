"""Stores what a seat sees in the trials of an attack, which can be scored again without any training."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load, save

from fedprivacy.attacks.stored_observations import Recording, digest
from fedprivacy.errors import InputError
from fedprivacy.io.atomic import replace_file, sweep_parts
from fedprivacy.io.regular_file import read_regular
from fedprivacy.io.tensor_file import MAX_BYTES as MAX_TENSOR_BYTES

MOST_BYTES = 2**30  # of the observations of an attack on one run; of larger ones digests alone are stored
MODELS = "models"
Number = TypeVar("Number", np.float32, np.float64)


@dataclass(frozen=True)
class TrialRecording(Recording):
    """A folder with a file for each block of trials, and an index once all exist.

    It contains answers of the victim: a reader of the files sees as much as the seat.

    Args:
        folder: Its path.
        reads: Whether it is complete, and read in place of being written.
        stores: Whether it is written with the observations, not with their digests alone.
    """

    reads: bool = False
    stores: bool = True
    _blocks: list[dict[str, Any]] = field(default_factory=list)

    def observed(
        self,
        key: str,
        first: int,
        secret: bytes,
        make: Callable[[], NDArray[Number]],
        *,
        shape: tuple[int, ...],
        dtype: type[Number],
    ) -> NDArray[Number]:
        """The observations of some trials: as they are stored, or else made and then stored.

        Args:
            key: What is observed.
            first: The number of the first trial.
            secret: Identifies the secrets of these trials, of which a digest is stored.
            make: Observes them, each row a trial.
            shape: That of the observations.
            dtype: Their type.

        Raises:
            InputError: the recording is damaged, of other trials, or of observations that were charged and
                are others than those that are made now.
        """
        block = {"key": key, "first": first, "secret": digest(secret)}
        if self.reads:
            return self._stored(block, shape, dtype)
        rows = make()
        number, data = len(self._blocks), save({"rows": torch.from_numpy(np.ascontiguousarray(rows))})
        if self.whole and self._earlier.get(_identity(block), (0, None))[1] != digest(data):
            raise self._others()
        if not self._blocks:
            self.folder.mkdir(parents=True, exist_ok=True)
            sweep_parts(self.folder)  # of a process that was killed in the middle
        if self.stores:
            replace_file(self._file(number), data)
        self._written[number] = digest(data)
        self._blocks.append(block)
        return rows

    def complete(self, facts: Mapping[str, Any]) -> None:
        """Completes the recording; without this it is ignored.

        Raises:
            InputError: earlier observations of the same attack are others.
        """
        if self.reads:
            return
        if self.whole and self._earlier.keys() != {*map(_identity, self._blocks)}:
            raise self._others()
        stored = {"stored": self.stores, "blocks": self._blocks}
        self.close(range(len(self._blocks)), {**facts, **stored})

    def check(self, facts: Mapping[str, Any]) -> None:
        """Refuses a complete recording of another run, view or attack.

        Args:
            facts: Those that were passed to `complete`, as far as they are known.

        Raises:
            InputError: one of them differs, or the folder has the name of another attack.
        """
        stored = self.facts
        wrong = [name for name, value in facts.items() if stored.get(name) != value]
        if wrong or digest(str(stored.get("key")).encode()) != self.folder.name:
            raise self.damaged(self.folder, ValueError(f"it has another {(wrong or ['key'])[0]}"))

    def covers(self, rounds: Iterable[int]) -> bool:
        """Whether it holds the observations, and not their digests alone."""
        return self.facts.get("stored") is True

    def _file(self, number: int) -> Path:
        return self.folder / f"block-{number:06d}.safetensors"

    @cached_property
    def _earlier(self) -> dict[tuple[Any, ...], tuple[int, str | None]]:
        """Of each block of the index its number and its digest; read once, since there may be 10^5."""
        index, facts = self._index()
        try:
            return {_identity(block): (at, index[at]) for at, block in enumerate(facts["blocks"])}
        except (LookupError, TypeError, AttributeError) as error:
            raise self.damaged(self.folder, error) from error

    def _stored(self, block: dict[str, Any], shape: tuple[int, ...], dtype: type[Number]) -> NDArray[Number]:
        number, expected = self._earlier.get(_identity(block), (None, None))
        if number is None:
            wrong = ValueError(f"it has no trials from {block['first']} on with these secrets")
            raise self.damaged(self.folder, wrong)
        path = self._file(number)
        try:
            data = read_regular(path, MAX_TENSOR_BYTES, follow=False)
            if digest(data) != expected:
                raise ValueError("its content was changed")
            rows: NDArray[Any] = load(data)["rows"].numpy()
            if (rows.shape, rows.dtype) != (shape, np.dtype(dtype)):
                raise ValueError(f"it is not of shape {shape} and type {np.dtype(dtype)}")
            return rows
        except (SafetensorError, ValueError, LookupError, TypeError, OSError) as error:
            raise self.damaged(path, error) from error

    def _others(self) -> InputError:
        """The error for observations that would be further answers, which nothing was charged for."""
        return InputError(
            f"{self.folder}: these observations are others than those that were charged: torch, hardware or "
            "data differ. Repeat the attack where it was made, or play the scenario anew."
        )


def _identity(block: Mapping[str, Any]) -> tuple[Any, ...]:
    return block["key"], block["first"], block["secret"]
