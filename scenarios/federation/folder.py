"""The folder of a federation for trying: for its owner alone, taken by one, cleared at the end."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import TypeGuard

from fedprivacy.errors import InputError
from fedprivacy.io.atomic import replace_file, sweep_parts
from fedprivacy.io.folder import check_tree
from fedprivacy.io.regular_file import TooLarge, read_regular
from fedprivacy.scenario import OnNodes, Scenario
from fedprivacy.scenario.loading import AnyScenario
from fedprivacy.scenario.statistics import Statistics
from scenarios.federation.state import read

HOST = "127.0.0.1"
_SIGN = ".fedprivacy-federation"
_ABOUT = """This folder belongs to a federation for trying, made by `fedprivacy federation up`.
End it with `fedprivacy federation down`; then the folder may be removed. What clients have left of their
budgets is in home/: without it their nodes start anew.
"""


def check_folder(folder: Path) -> None:
    """Sees that a folder is ours or may become it, and that no federation is up in it.

    Raises:
        InputError: if not.
    """
    if read(folder) is not None:
        raise InputError(
            f"--dir {folder}: there is a federation here. End it first (fedprivacy federation down --dir "
            f"{folder}), or choose another folder."
        )
    try:
        if folder.exists() and any(folder.iterdir()) and not _is_ours(folder):
            raise InputError(
                f"--dir {folder}: holds other files. Choose an empty folder, or one that is not there."
            )
    except OSError as error:
        raise _unusable(folder, error) from error
    if folder.exists():
        check_tree(folder, depth=2)


def _is_ours(folder: Path) -> bool:
    try:
        return read_regular(folder / _SIGN, 2**12, follow=False) == _ABOUT.encode()
    except (OSError, TooLarge):
        return False


def claim(folder: Path) -> None:
    """Makes the folder and takes it for this start alone: of two at once one is refused.

    Raises:
        InputError: if it cannot be made, or another start has it.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
        replace_file(folder / _SIGN, _ABOUT.encode())
        os.close(os.open(folder / "federation.json", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError as error:
        raise InputError(f"--dir {folder}: another federation is being started here.") from error
    except OSError as error:
        raise _unusable(folder, error) from error


def clear(folder: Path) -> None:
    """Removes keys, Flower's files and the state; budgets, logs and records stay."""
    for name in ("keys", "flower"):
        shutil.rmtree(folder / name, ignore_errors=True)
    sweep_parts(folder)
    for name in ("scenario.toml", "federation.json"):
        (folder / name).unlink(missing_ok=True)


def check_port(port: int) -> None:
    """Tries whether a port of this machine is free.

    Raises:
        InputError: if not.
    """
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((HOST, port))
        except OSError as error:
            raise InputError(
                f"port {port} of {HOST}: {error.strerror}. Choose others with --port: the SuperLink "
                "takes it, the nodes the next ones."
            ) from error


def check_data(data: Sequence[Path], nodes: int, scenario: Scenario | Statistics | None) -> None:
    """Checks that nodes have records exactly where the plan places data on nodes.

    Raises:
        InputError: if not.
    """
    on_nodes = scenario is not None and isinstance(scenario.data, OnNodes)
    if on_nodes != bool(data):
        raise InputError(
            '--data: goes with --scenario of one whose data are on nodes (data.name = "on-nodes"), and such '
            "a one needs it, once for each node."
        )
    if data and len(data) != nodes:
        raise InputError(f"--data: {len(data)} files for {nodes} nodes; give it once for each node.")
    for path in data:
        if not path.is_file():
            raise InputError(f"--data {path}: no such file.")


def needs_masks(scenario: AnyScenario | None) -> TypeGuard[Scenario]:
    """Whether pinned nodes of a scenario sum under masks, for which they need each other's keys."""
    return isinstance(scenario, Scenario) and scenario.privacy.trust == "distributed"


def check_clients(nodes: int, scenario: Scenario | Statistics | None) -> None:
    """Checks that each client has a node of its own, where nodes sum under masks.

    Raises:
        InputError: if not.
    """
    if not needs_masks(scenario):
        return
    if not nodes == scenario.population == scenario.federation.hosts:
        raise InputError(
            f"--nodes {nodes}: a secure sum by masks counts nodes as clients, and the scenario has "
            f"{scenario.population} clients on {scenario.federation.hosts} hosts. Use as many nodes and "
            "federation.hosts as clients."
        )


def _unusable(folder: Path, error: OSError) -> InputError:
    return InputError(f"--dir {folder}: {error.strerror}. Choose a folder that you may write to.")
