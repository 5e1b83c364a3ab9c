"""The scenarios that come with the package, by name."""

from __future__ import annotations

import difflib
from importlib import resources
from pathlib import Path

from fedprivacy.errors import InputError


def ready() -> dict[str, Path]:
    """Name -> file of each ready scenario, in the order of the names."""
    files = [
        Path(str(item)) for item in resources.files("scenarios").iterdir() if item.name.endswith(".toml")
    ]
    return {file.stem: file for file in sorted(files)}


def find(name_or_path: str) -> Path:
    """The file of a scenario, given the name of a ready one or a path.

    Args:
        name_or_path: A ready name goes first; a file of the same name is reached as `./name`.

    Raises:
        InputError: It is neither.
    """
    known = ready()
    if name_or_path in known:
        return known[name_or_path]
    try:
        if name_or_path and Path(name_or_path).exists():
            return Path(name_or_path)
    except (OSError, ValueError):  # a name too long for a path, or with a null byte
        pass
    near = difflib.get_close_matches(Path(name_or_path).stem.lower(), known, n=1)
    guess = f" Did you mean {near[0]}?" if near else ""
    raise InputError(
        f"{name_or_path[:200]!r}: no ready scenario and no file.{guess} "
        f"Ready: {', '.join(known)}. Or give the path of a .toml file."
    )
