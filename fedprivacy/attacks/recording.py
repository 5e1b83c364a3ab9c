"""What a passive seat saw of a run, stored: it can be scored again without any training."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from fedprivacy.attacks.transcript import Sight
from fedprivacy.errors import InputError

SCHEMA = 1
_INDEX = "transcript.json"


@dataclass(frozen=True)
class Recording:
    """A folder with a file for each observed round, and an index once all are there.

    It holds raw updates of the clients: whoever reads it sits in the seat.

    Args:
        folder: Where it is.
    """

    folder: Path

    def add(self, sight: Sight) -> None:
        """Stores an observation in which all targets are judged."""
        self.folder.mkdir(parents=True, exist_ok=True)
        arrays = {name: getattr(sight, name).contiguous() for name in ("sent", "update", "others")}
        save_file(arrays, self._file(sight.round))

    def close(self, rounds: Iterable[int], facts: Mapping[str, Any]) -> None:
        """Ends the recording: without this it does not count as one.

        Args:
            rounds: Those that were to be observed; of one that the victim refused there is no file.
            facts: What else is to be known of it, as JSON.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        index = {"schema": SCHEMA, "rounds": list(rounds), "facts": facts}
        part = self.folder / f"{_INDEX}.part"
        part.write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")
        part.replace(self.folder / _INDEX)

    @property
    def whole(self) -> bool:
        """Whether it was ended."""
        return (self.folder / _INDEX).is_file()

    def covers(self, rounds: Iterable[int]) -> bool:
        """Whether these rounds were to be observed."""
        return set(rounds) <= set(self._index()["rounds"])

    @property
    def facts(self) -> dict[str, Any]:
        """What `close` was told."""
        return dict(self._index()["facts"])

    def sights(self, rounds: Iterable[int]) -> Iterator[Sight]:
        """The observations of these rounds, in order.

        Raises:
            InputError: a file is damaged.
        """
        for number in sorted(rounds):
            path = self._file(number)
            if not path.is_file():
                continue
            try:
                arrays = load_file(path)
                yield Sight(arrays["sent"], arrays["update"], arrays["others"], round=number)
            except (SafetensorError, KeyError, OSError) as error:
                raise self._damaged(path, error) from error

    def _file(self, number: int) -> Path:
        return self.folder / f"round-{number:06d}.safetensors"

    def _index(self) -> dict[str, Any]:
        path = self.folder / _INDEX
        try:
            index = json.loads(path.read_text(encoding="utf-8"))
            if index["schema"] != SCHEMA:
                raise ValueError(f"schema {index['schema']}")
            return {"rounds": [int(number) for number in index["rounds"]], "facts": dict(index["facts"])}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise self._damaged(path, error) from error

    def _damaged(self, path: Path, error: Exception) -> InputError:
        return InputError(
            f"{path}: the transcript is damaged ({type(error).__name__}: {error}). Remove "
            f"{self.folder}, and the same rounds are played again."
        )
