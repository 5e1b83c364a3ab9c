"""Stores each finished cell as a file, so that an interrupted job resumes with the others."""

from __future__ import annotations

import hashlib
import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import Field

from fedprivacy.errors import InputError
from fedprivacy.io import bounded_json
from fedprivacy.io.atomic import keep_names, replace_file
from fedprivacy.io.folder import make_inner
from fedprivacy.io.validation import Fields
from scenarios.jobs.process_pool import spread

SCHEMA = 1
FOLDER = "cells"
Result = TypeVar("Result")
CellTask = tuple[str, tuple[object, ...]]  # the key of a cell, and its arguments


class CellFile(Fields):
    """The file of a cell."""

    schema_: int = Field(alias="schema")
    cell: str
    origin: str
    result: Any
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    digest: str


@dataclass(frozen=True)
class CellStore:
    """The files of the cells of one comparison or replay.

    Args:
        folder: Where they are.
        origin: A digest of the inputs of every cell: scenario, data, versions.
        began: When the job would have started had it never been interrupted, in seconds since the epoch.
    """

    folder: Path
    origin: str
    began: float

    def keep(self, key: str, result: Any) -> Any:
        """Writes down what a cell amounts to.

        Args:
            key: Its identity among the others.
            result: As JSON.

        Returns:
            The result as `find` gives it.
        """
        # The digest is of the JSON that a reader gets: numeric keys become text, which sorts differently.
        result = json.loads(json.dumps(result))
        content = {"schema": SCHEMA, "cell": key, "origin": self.origin, "result": result}
        content["seconds"] = round(time.time() - self.began, 3)
        text = json.dumps({"digest": digest_of(content), **content}) + "\n"
        if make_inner(self.folder):
            keep_names(self.folder.parent)
        replace_file(self._file(key), text.encode())
        return result

    def find(self, key: str) -> Any:
        """The result of a cell; None if it is not there.

        Raises:
            InputError: its file is damaged, or of another cell or other work.
        """
        path = self._file(key)
        content = self._read(path)
        if content is not None and content["cell"] != key:
            raise _foreign(path)
        return None if content is None else content["result"]

    def has(self, key: str) -> bool:
        """Whether a cell is marked as finished, even if its file is gone."""
        return self._file(key).exists()

    def complete(
        self,
        work: Callable[..., Any],
        read: Callable[[Any], Result],
        tasks: Sequence[CellTask],
        workers: int,
    ) -> Iterator[tuple[int, Result]]:
        """Yields each task's number and result: first the finished ones, then the others as they finish.

        Args:
            work: A function of a module; it is given one task's arguments, and gives its result as JSON.
            read: Converts the stored value to the yielded one. An InputError rejects a stored one.
            tasks: The cells.
            workers: How many processes; the results do not depend on it.
        """
        left = []
        for number, (key, _) in enumerate(tasks):
            try:
                stored = self.find(key)
                value = None if stored is None else read(stored)
            except InputError as error:
                print(f"{error}: run again.", file=sys.stderr)
                value = None
            if value is None:
                left.append(number)
            else:
                yield number, value
        todo = [(self, tasks[number][0], work, tasks[number][1]) for number in left]
        if todo:
            for place, result in spread(_complete_cell, todo, min(workers, len(todo))):
                yield left[place], read(result)

    def seconds(self) -> float:
        """The time worked until the last of these files was written."""
        elapsed = [0.0]
        for path in self.folder.glob("*.json"):
            with suppress(InputError):  # it is computed again
                content = self._read(path)
                elapsed.append(0.0 if content is None else content["seconds"])
        return max(elapsed)

    def _read(self, path: Path) -> dict[str, Any] | None:
        """Reads the file of a cell of this job; None if it is not there.

        Raises:
            InputError: it is damaged, or of other work.
        """
        try:
            content = bounded_json.loads(
                bounded_json.read_bytes(path, follow=False).decode("utf-8"), finite=False
            )
            CellFile.model_validate(content)
            digest = content.pop("digest")
            if digest != digest_of(content) or (content["schema"], content["origin"]) != (
                SCHEMA,
                self.origin,
            ):
                raise _foreign(path)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:  # a ValidationError is one, too
            raise _foreign(path) from error
        return dict(content)

    def _file(self, key: str) -> Path:
        words = re.sub(r"[^A-Za-z0-9.]+", "-", key)[:60].strip("-.")
        short = hashlib.blake2b(key.encode(), digest_size=4).hexdigest()
        return self.folder / f"{words}-{short}.json"


def _foreign(path: Path) -> InputError:
    return InputError(f"{path}: damaged, or not of this work")


def digest_of(content: Any) -> str:
    """The fingerprint of a JSON value."""
    return hashlib.blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=16).hexdigest()


def _complete_cell(cells: CellStore, key: str, work: Callable[..., Any], given: tuple[object, ...]) -> Any:
    """Runs one cell and writes it down, in any process."""
    return cells.keep(key, work(*given))
