"""Stores what a seat sees in the trials of an attack, which can be scored again without any training."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load, save

from fedprivacy.attacks.stored_observations import Recording, digest
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
        self, key: str, first: int, secret: bytes, make: Callable[[], NDArray[Number]]
    ) -> NDArray[Number]:
        """The observations of some trials: as they are stored, or else made and then stored.

        Args:
            key: What is observed.
            first: The number of the first trial.
            secret: Identifies the secrets of these trials, of which a digest is stored.
            make: Observes them, each row a trial.

        Raises:
            InputError: the recording is damaged, or of other trials.
        """
        block = {"key": key, "first": first, "secret": digest(secret)}
        if self.reads:
            return self._stored(block)
        rows = make()
        if not self._blocks:
            self.folder.mkdir(parents=True, exist_ok=True)
            sweep_parts(self.folder)  # of a process that was killed in the middle
        number, data = len(self._blocks), save({"rows": torch.from_numpy(np.ascontiguousarray(rows))})
        if self.stores:
            replace_file(self._file(number), data)
        self._written[number] = digest(data)
        self._blocks.append(block)
        return rows

    def complete(self, facts: dict[str, Any]) -> None:
        """Completes the recording; without this it is ignored."""
        if not self.reads:
            stored = {"stored": self.stores, "blocks": self._blocks}
            self.close(range(len(self._blocks)), {**facts, **stored})

    def covers(self, rounds: Iterable[int]) -> bool:
        """Whether it holds the observations, and not their digests alone."""
        return self.facts.get("stored") is True

    def _file(self, number: int) -> Path:
        return self.folder / f"block-{number:06d}.safetensors"

    def _stored(self, block: dict[str, Any]) -> NDArray[Any]:
        index, facts = self._index()
        try:
            number = facts["blocks"].index(block)
        except (KeyError, AttributeError, ValueError) as error:
            wrong = ValueError(f"it has no trials from {block['first']} on with these secrets")
            raise self.damaged(self.folder, wrong) from error
        path = self._file(number)
        try:
            data = read_regular(path, MAX_TENSOR_BYTES, follow=False)
            if digest(data) != index.get(number):
                raise ValueError("its content was changed")
            rows: NDArray[Any] = load(data)["rows"].numpy()
            return rows
        except (SafetensorError, ValueError, LookupError, TypeError, OSError) as error:
            raise self.damaged(path, error) from error
