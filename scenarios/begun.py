"""What a directory of many cells says of the work that was begun in it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from fedprivacy.errors import InputError
from fedprivacy.runs import RunDirectory

BEGUN = "begun.json"
# The command that makes a document of a kind.
COMMANDS = {"run": "run", "compare": "compare", "compare-statistics": "compare", "replay": "replay"}


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
        begun = json.loads((path / BEGUN).read_bytes())
        kind, _, _ = begun["kind"], begun["command"], begun["started"]
    except FileNotFoundError:
        if not (path / "run.json").exists():
            raise directory.nothing_begun(command) from None
        begun = directory.document()
        kind = begun.get("kind")
        if kind in kinds:
            raise InputError(
                f"{path}: from a version that kept no single cells, so that there is nothing to go on with. "
                f"Start it anew, for the same numbers: {anew}"
            ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path / BEGUN}: damaged ({error}). Start the work anew, for the same numbers: {anew}"
        ) from error
    if kind not in kinds:
        other = COMMANDS.get(str(kind))
        remedy = f"Go on with it by: fedprivacy {other} --resume {shlex.quote(str(path))}"
        raise InputError(f"{path}: a {kind}. {remedy if other else 'It is not resumed; start it anew.'}")
    return dict(begun)
