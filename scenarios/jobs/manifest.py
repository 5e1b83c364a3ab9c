"""The manifest of a job: the work started in its directory."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from pydantic import Field

from fedprivacy.errors import InputError
from fedprivacy.io import bounded_json
from fedprivacy.io.validation import Fields, check
from fedprivacy.records.run_directory import RunDirectory

MANIFEST = "begun.json"
# Kind of document whose work can be resumed -> the command that does it.
COMMANDS = {
    "run": "run",
    "compare": "compare",
    "compare-statistics": "compare",
    "replay": "replay",
    "tune": "tune",
    "plan": "plan",
}


class Facts(Fields):
    """Further facts about the job."""

    stored: str | None = None
    question: dict[str, Any] | None = None


class Manifest(Fields):
    """The manifest."""

    schema_: int = Field(alias="schema")
    kind: str
    command: str
    started: str
    versions: dict[str, str]
    scenario_digest: str
    data: str
    facts: Facts


def manifest_in(path: Path, *kinds: str) -> dict[str, Any]:
    """Reads the file `begun.json` of a directory.

    Args:
        path: The directory.
        kinds: The kinds of jobs that can be resumed here.

    Raises:
        InputError: nothing was begun in it, or another kind of work.
    """
    directory, command = RunDirectory.open(path), COMMANDS[kinds[0]]
    anew = f"fedprivacy {command} {shlex.quote(str(path / 'scenario.toml'))}"
    try:
        manifest = bounded_json.read(path / MANIFEST)
        check(manifest, Manifest, str(path / MANIFEST), f"Start the work anew, for the same numbers: {anew}")
    except FileNotFoundError:
        if not (path / "run.json").exists():
            raise directory.nothing_started(command) from None
        manifest = directory.document()
        if manifest.get("kind") in kinds:
            raise InputError(
                f"{path}: written by a version without stored cells, so it cannot be resumed. "
                f"Start it anew, for the same numbers: {anew}"
            ) from None
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path / MANIFEST}: damaged ({error}). Start the work anew, for the same numbers: {anew}"
        ) from error
    kind = manifest.get("kind")
    if kind not in kinds:
        other = COMMANDS.get(str(kind))
        remedy = f"Resume it with: fedprivacy {other} --resume {shlex.quote(str(path))}"
        raise InputError(f"{path}: a {kind}. {remedy if other else 'It is not resumed; start it anew.'}")
    return dict(manifest)
