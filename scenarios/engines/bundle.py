"""Bundles the Flower app of a run: our packages, a pyproject.toml and its run config."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, TypeVar, cast

import tomli_w

import clients
import fedprivacy
import server
from fedprivacy import __version__
from fedprivacy.errors import InputError
from fedprivacy.scenario.data import FlwrDatasets
from fedprivacy.scenario.loading import AnyScenario

AnyRunnable = TypeVar("AnyRunnable", bound="AnyScenario")
_PACKAGES = (fedprivacy, clients, server)
# A key can only be given to a run if its app has it.
_CONFIG: dict[str, Any] = {
    "scenario": "",
    "allow-code": False,
    "out": "runs",
    "noise": "system",
    "pinned": False,
    "roster": "",
    "record": "",
}


def make_app(folder: Path) -> Path:
    """Writes the app and returns its folder, whose name Flower takes (letters, digits, hyphens).

    Flower bundles .py, .toml, .md, .yaml and .json files only and drops others without a word: what a page
    of a report needs stays here, where the report is made.

    Args:
        folder: Where the app's folder is made.
    """
    app = folder / "fedprivacy-app"
    for package in _PACKAGES:
        source = Path(str(package.__file__)).parent
        shutil.copytree(
            source, app / source.name, ignore=lambda path, names: [n for n in names if _dropped(path, n)]
        )
    (app / "pyproject.toml").write_text(tomli_w.dumps(_project()), encoding="utf-8")
    return app


def write_run_config(path: Path, **values: str | bool) -> Path:
    """Writes a run config for `flwr run --run-config` and returns its path.

    Raises:
        KeyError: if the app has no such key.
    """
    config = {key.replace("_", "-"): value for key, value in values.items()}
    if unknown := set(config) - set(_CONFIG):
        raise KeyError(unknown)
    path.write_text(tomli_w.dumps(config), encoding="utf-8")
    return path


def with_absolute_paths(scenario: AnyRunnable) -> AnyRunnable:
    """A scenario whose files are found from any folder of this machine: its processes work elsewhere.

    Raises:
        InputError: if such a file is not there.
    """
    data = scenario.data
    keys = ["path"] if isinstance(data, FlwrDatasets) else ["path", "test"]
    changed = {}
    for key in keys:
        value = getattr(data, key, None)
        if not isinstance(value, str):
            continue
        if isinstance(data, FlwrDatasets) and not Path(value).is_dir():
            continue  # a name on the Hub
        if not Path(value).exists():
            raise InputError(f"data.{key} = {value!r}: there is no such file here.")
        changed[key] = str(Path(value).absolute())
    return cast("AnyRunnable", scenario.model_copy(update={"data": data.model_copy(update=changed)}))


def _project() -> dict[str, Any]:
    return {
        "project": {
            "name": "fedprivacy",
            "version": __version__,
            "description": "Federated differential-privacy learning",
            "license": "Apache-2.0",
            "dependencies": [],
        },
        "tool": {
            "flwr": {
                "app": {
                    "publisher": "fedprivacy",
                    "fab-include": ["fedprivacy/**/*.py", "clients/**/*.py", "server/**/*.py"],
                    "components": {"serverapp": "server.app:app", "clientapp": "clients.app:app"},
                    "config": _CONFIG,
                }
            }
        },
    }


def _dropped(path: str, name: str) -> bool:
    return not (name.endswith(".py") or (Path(path) / name).is_dir()) or name == "__pycache__"
