"""What a directory of many cells says of the work that was begun in it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from pydantic import Field

from fedprivacy.errors import InputError
from fedprivacy.io import bounded_json
from fedprivacy.io.validation import Fields, check
from fedprivacy.records.run_directory import RunDirectory

BEGUN = "begun.json"
# The command that makes a document of a kind.
COMMANDS = {
    "run": "run",
    "compare": "compare",
    "compare-statistics": "compare",
    "replay": "replay",
    "tune": "tune",
}


class Facts(Fields):
    """What else is to be known of the work."""

    stored: str | None = None


class Begun(Fields):
    """What was begun."""

    schema_: int = Field(alias="schema")
    kind: str
    command: str
    started: str
    versions: dict[str, str]
    scenario_digest: str
    data: str
    facts: Facts


def begun_in(path: Path, *kinds: str) -> dict[str, Any]:
    """What the file `begun.json` of a directory says.

    Args:
        path: The directory.
        kinds: Of the work that can be gone on with here.

    Raises:
        InputError: nothing was begun in it, or another kind of work.
    """
    directory, command = RunDirectory.open(path), COMMANDS[kinds[0]]
    anew = f"fedprivacy {command} {shlex.quote(str(path / 'scenario.toml'))}"
    try:
        begun = bounded_json.read(path / BEGUN)
        check(begun, Begun, str(path / BEGUN), f"Start the work anew, for the same numbers: {anew}")
    except FileNotFoundError:
        if not (path / "run.json").exists():
            raise directory.nothing_begun(command) from None
        begun = directory.document()
        if begun.get("kind") in kinds:
            raise InputError(
                f"{path}: from a version that kept no single cells, so that there is nothing to go on with. "
                f"Start it anew, for the same numbers: {anew}"
            ) from None
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path / BEGUN}: damaged ({error}). Start the work anew, for the same numbers: {anew}"
        ) from error
    kind = begun.get("kind")
    if kind not in kinds:
        other = COMMANDS.get(str(kind))
        remedy = f"Go on with it by: fedprivacy {other} --resume {shlex.quote(str(path))}"
        raise InputError(f"{path}: a {kind}. {remedy if other else 'It is not resumed; start it anew.'}")
    return dict(begun)
