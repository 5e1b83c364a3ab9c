"""Who else has our top-level names: `clients`, `server` and `scenarios` are words that others use too."""

from __future__ import annotations

import importlib.machinery
import sys
from collections.abc import Iterator, Mapping
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from fedprivacy.io.install_hint import ROOT
from scenarios.doctor.check import FAILURE, OK, WARNING, Check

NAMES = ("fedprivacy", "clients", "server", "scenarios")


def clashes() -> Iterator[Check]:
    """Other distributions, folders and files of our names, without importing any."""
    owners = metadata.packages_distributions()
    wrong = False
    for name in NAMES:
        for check in _of(name, owners):
            wrong = True
            yield check
    if not wrong:
        yield Check("names", OK, f"{', '.join(NAMES)} are ours alone")


def _of(name: str, owners: Mapping[str, list[str]]) -> Iterator[Check]:
    others = sorted({one for one in owners.get(name, []) if one.lower().replace("_", "-") != "fedprivacy"})
    if others:
        what = f"the package {name} is also that of the distribution {', '.join(others)}"
        remedy = f"pip uninstall {' '.join(others)}, or use an environment of its own for fedprivacy."
        yield Check(f"name {name}", FAILURE, what, remedy)
    ours = (ROOT / name).resolve()
    spec = find_spec(name)
    found = Path(spec.origin).resolve().parent if spec is not None and spec.origin else None
    if found != ours:
        where = spec.origin if spec is not None else "nowhere"
        what = f"`import {name}` would take {where}, and not {ours}"
        yield Check(f"name {name}", FAILURE, what, f"Rename or remove what stands there, or {_first()}.")
        return
    for folder in _folders():
        other = importlib.machinery.PathFinder.find_spec(name, [str(folder)])
        origin = Path(other.origin).resolve() if other is not None and other.origin else None
        if origin is not None and origin.parent != ours:
            yield _other(name, origin, folder)


def _other(name: str, origin: Path, folder: Path) -> Check:
    """What else has our name; in the current folder it is in the way, elsewhere it may be."""
    remedy = "Rename it, or run elsewhere: `flwr run .` and --allow-code look there first."
    if (folder / "fedprivacy" / "__init__.py").is_file():
        return Check(f"name {name}", WARNING, f"{folder} is another copy of fedprivacy", remedy)
    if folder == Path.cwd():
        what = f"{origin}, in the current folder, has the name of our package"
        return Check(f"name {name}", FAILURE, what, remedy)
    what = f"{origin}, on the import path, has the name of our package, which comes first"
    return Check(f"name {name}", WARNING, what, "Rename it, or see that it stays behind ours.")


def _first() -> str:
    return f"put {ROOT} first: export PYTHONPATH={ROOT}"


def _folders() -> list[Path]:
    """The current folder and the import path, each once."""
    return list(dict.fromkeys(Path(part or ".").resolve() for part in ["", *sys.path]))
