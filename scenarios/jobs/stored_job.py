"""A resumable job made of many independent cells, stored in one directory."""

from __future__ import annotations

import json
import shlex
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fedprivacy.errors import InputError
from fedprivacy.io.atomic import sweep_parts
from fedprivacy.records.ownership import begin_run, take_up_run
from fedprivacy.records.run_directory import RunDirectory
from fedprivacy.records.run_record import scenario_digest
from fedprivacy.report import is_written
from fedprivacy.report import write as write_report
from fedprivacy.verification.verify import checked_document
from scenarios.jobs.cell_store import FOLDER, SCHEMA, CellStore, digest_of
from scenarios.jobs.manifest import COMMANDS, MANIFEST, manifest_in
from scenarios.jobs.outcome import on_resuming

Prepare = Callable[[RunDirectory], object]


@dataclass(frozen=True)
class Work:
    """The description of a job; it cannot be resumed if any of this has changed.

    Args:
        kind: That of the document.
        name: The scenario's.
        text: The scenario, complete.
        versions: The versions that the results depend on.
        data: A digest of the data.
        code: Whether the scenario runs code of its own.
        facts: Further facts about it, as JSON.
    """

    kind: str
    name: str
    text: str
    versions: Mapping[str, str]
    data: str
    code: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class StoredJob:
    """A directory with work under way, which this process holds alone.

    Args:
        directory: Where it is.
        cells: The results of its cells.
        command: The command that began it.
        started: When, in ISO 8601.
        again: A sentence on how to resume it.
        finished: Its document, if all is done already.
    """

    directory: RunDirectory
    cells: CellStore
    command: str
    started: str
    again: str
    finished: dict[str, Any] | None = None

    @property
    def path(self) -> Path:
        """The directory."""
        return self.directory.path

    @property
    def seconds(self) -> float:
        """The time worked so far; of killed processes until their last write."""
        return time.time() - self.cells.began


@contextmanager
def open_job(
    work: Work, out: Path, *, resume: Path | None, command: str = "", prepare: Prepare | None = None
) -> Iterator[StoredJob]:
    """Starts a job in a new directory, or resumes one.

    Args:
        work: The job's description.
        out: Where a new directory goes.
        resume: The directory of a job to resume; None starts a new one.
        command: The command that begins it, for the record.
        prepare: Called with a new directory before it counts as begun.

    Raises:
        InputError: the directory cannot be made, or contains no job or another job, or another
            process is at work on it.
    """
    holding = begin_run(out, work.name, work.text) if resume is None else take_up_run(resume)
    with holding as directory:
        if resume is None:
            if prepare:
                prepare(directory)
            manifest = _begin(directory, work, command)
        else:
            manifest = _resumed(directory, work)
            sweep_parts(directory.path)
            sweep_parts(directory.path / FOLDER)
        folder, origin = directory.path / FOLDER, digest_of({**manifest, "command": "", "started": ""})
        began = time.time() - CellStore(folder, origin, 0.0).seconds()
        allow = " --allow-code" if work.code else ""
        command_again = f"fedprivacy {COMMANDS[work.kind]} --resume {shlex.quote(str(directory.path))}{allow}"
        words = on_resuming(command_again, str(tomllib.loads(work.text).get("description", "")))
        finished = None if resume is None else _finished(directory)
        yield StoredJob(
            directory,
            CellStore(folder, origin, began),
            manifest["command"],
            manifest["started"],
            words,
            finished,
        )


def _begin(directory: RunDirectory, work: Work, command: str) -> dict[str, Any]:
    manifest = {
        "schema": SCHEMA,
        "kind": work.kind,
        "command": command,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": dict(work.versions),
        "scenario_digest": scenario_digest(directory),
        "data": work.data,
        "facts": dict(work.facts),
    }
    directory.write(MANIFEST, json.dumps(manifest, indent=2) + "\n")
    return manifest


def _resumed(directory: RunDirectory, work: Work) -> dict[str, Any]:
    """The manifest of a directory, if it is of this job."""
    manifest, path = manifest_in(directory.path, work.kind), directory.path
    if manifest.get("schema") != SCHEMA or manifest.get("scenario_digest") != scenario_digest(directory):
        raise InputError(
            f"{path / 'scenario.toml'}: changed since the work began. Restore the file, or start a new "
            "job from the changed one."
        )
    before = manifest.get("versions", {})
    other = [
        f"{name} {before.get(name)} (here {now})"
        for name, now in work.versions.items()
        if before.get(name) != now
    ]
    if other:
        raise InputError(
            f"{path}: begun with {', '.join(other)}. It can only be resumed with these versions: "
            "install them, or start a new job."
        )
    if manifest.get("data") != work.data:
        what = "the data or the code of its model" if work.code else "the data"
        raise InputError(
            f"{path}: {what} changed since the work began, so it cannot be resumed. Start a new job."
        )
    return manifest


def _finished(directory: RunDirectory) -> dict[str, Any] | None:
    """The document of work that is done, its report beside it. A damaged or changed one is made again."""
    if not (directory.path / "run.json").exists():
        return None
    try:
        document = checked_document(directory.path)
    except InputError as error:
        print(f"{error} It is made again, of the cells.", file=sys.stderr)
        return None
    if document.get("status") != "finished":
        return None
    if not is_written(directory.path):
        write_report(document, directory.path)
    return document
