"""The scenarios of the package, by name, with the purpose of each."""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from fedprivacy.errors import InputError

# In the order of the list.
GROUPS = ("train and compare", "statistics", "attacks", "records", "estimates", "data you bring")


def ready() -> dict[str, Path]:
    """Returns name -> file of each ready scenario, in the order of the names."""
    files = [
        Path(str(item)) for item in resources.files("scenarios").iterdir() if item.name.endswith(".toml")
    ]
    return {file.stem: file for file in sorted(files, key=lambda file: file.stem)}


def find(name_or_path: str) -> Path:
    """Returns the file of a scenario, given the name of a ready one or a path.

    Args:
        name_or_path: A ready name goes first; a file of the same name is reached as `./name`.

    Raises:
        InputError: It is neither.
    """
    known = ready()
    if name_or_path in known:
        return known[name_or_path]
    try:
        if name_or_path and os.path.lexists(name_or_path):  # also a broken link, which the user meant
            return Path(name_or_path)
    except (OSError, ValueError):  # a name too long for a path, or with a null byte
        pass
    raise InputError(
        f"{name_or_path[:200]!r}: no ready scenario and no file.{_guess(name_or_path)} "
        "Give the path of a .toml file, or a name that `fedprivacy scenarios` lists."
    )


def ready_file(name: str) -> Path:
    """Returns the file of a ready scenario.

    Raises:
        InputError: There is none of this name.
    """
    known = ready()
    if name not in known:
        raise InputError(
            f"{name[:200]!r}: no ready scenario.{_guess(name)} `fedprivacy scenarios` lists all of them."
        )
    return known[name]


def _guess(name: str) -> str:
    near = difflib.get_close_matches(Path(name).stem.lower(), ready(), n=1)
    return f" Did you mean {near[0]}?" if near else ""


def complete(incomplete: str) -> list[str]:
    """Returns the completions of a SCENARIO: ready names, then scenario files and folders."""
    names = [name for name in ready() if name.startswith(incomplete)]
    folder = Path(incomplete).parent if not incomplete.endswith("/") else Path(incomplete)
    start = incomplete[: incomplete.rfind("/") + 1]
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        entries = []
    shown = [entry for entry in entries if entry.suffix == ".toml" or entry.is_dir()]
    paths = [start + entry.name + ("/" if entry.is_dir() else "") for entry in shown]
    return names + [path for path in paths if path.startswith(incomplete) and not _hidden(path, incomplete)]


def _hidden(path: str, incomplete: str) -> bool:
    return Path(path).name.startswith(".") and not Path(incomplete).name.startswith(".")


def describe(name: str, file: Path) -> dict[str, Any]:
    """Returns the purpose, duration and requirements of a ready scenario, for a list.

    Args:
        name: Its name.
        file: Its file.

    Returns:
        `purpose` is the first sentence of the description. `data` is the path of data that the user has to
        provide, None if there is none. `clients` is None if that data is missing, or is unusable, which
        `problem` then explains.
    """
    from fedprivacy.scenario.loading import load

    tables = tomllib.loads(file.read_text(encoding="utf-8"))
    data = tables["data"].get("path")
    here, clients, problem = data is None or Path(data).exists(), None, None
    try:
        clients = load(file).population
    except InputError as error:
        problem = str(error) if here else None
    return {
        "name": name,
        "group": group_of(tables),
        "file": str(file),
        "purpose": first_sentence(tables["description"]),
        "description": tables["description"],
        "duration": tables["duration"],
        "command": f"fedprivacy {start_command(tables)} {name}",
        "clients": clients,
        "data": data,
        "data_is_here": here,
        "problem": problem,
    }


def group_of(tables: Mapping[str, Any]) -> str:
    """Returns the one of `GROUPS` that a scenario is listed under, by its sections.

    >>> group_of({"data": {"name": "survey"}, "queries": {}})
    'statistics'
    """
    if "path" in tables["data"]:
        return "data you bring"
    for section, group in (("queries", "statistics"), ("attacks", "attacks"), ("objective", "estimates")):
        if section in tables:
            return group
    return "records" if tables["privacy"].get("unit") == "example" else "train and compare"


def start_command(tables: Mapping[str, Any]) -> str:
    """Returns the command for a scenario; one with a `[compare]` section is compared."""
    if "attacks" in tables:
        return "replay"
    if "tune" in tables:
        return "tune"
    return "compare" if "compare" in tables else "run"


def first_sentence(text: str) -> str:
    """Returns the text up to the first full stop that a capital letter follows.

    >>> first_sentence("Epsilon 1.5, say. Then more.")
    'Epsilon 1.5, say.'
    """
    return re.split(r"(?<=[.?!])\s+(?=[A-Z])", text.strip(), maxsplit=1)[0]
