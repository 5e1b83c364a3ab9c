"""Removes stored results: run directories with nothing in them but what a run makes."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from fedprivacy.errors import InputError
from fedprivacy.io.escape import on_one_line
from fedprivacy.io.lock import alone
from fedprivacy.records.run_directory import read_document
from scenarios.jobs.manifest import MANIFEST
from scenarios.stored.listing import StoredError, read_scenario
from scenarios.stored.tables import OPERATOR_TABLE, TABLES

_NAMES = "|".join(sorted({table for tables in TABLES.values() for table in tables} | {OPERATOR_TABLE}))
# What the program writes into a run directory, and into each of its folders.
_FILES = re.compile(
    r"scenario\.toml|events\.jsonl|run\.json|begun\.json|report\.html|operator\.html|tags\.json|account\.json|lock|spent\.json"
    r"|model\.safetensors"
    rf"|\.report\..*\.html|.+-({_NAMES})\.(csv|parquet)"
)
_FOLDERS = {
    "checkpoint": re.compile(r"round-[0-9]{6,9}\.safetensors"),
    "cells": re.compile(r".+\.json"),
    "figures-operator": re.compile(r"captions\.txt|.+\.(svg|png|pdf)"),
    "figures": re.compile(r"captions\.txt|.+\.(svg|png|pdf)"),
    "seen": re.compile(r"transcript\.json|(round|block)-[0-9]{6,9}\.safetensors"),
}
_PART = re.compile(r".+\.[0-9]+-[0-9a-f]{8}\.part")
# Of a directory that `RunDirectory.create` made.
_STAMP = re.compile(r"[0-9]{8}-[0-9]{6}-.+-[0-9a-f]{6}(-[0-9]+)?")


def check_removable(paths: Sequence[Path]) -> list[Path]:
    """Checks that each path is a run directory that can be removed.

    Returns:
        The directories, resolved, each once.

    Raises:
        InputError: with every path that is a link or no run directory, holds other files than those that a
            run makes, lies in another one of them, or is the folder that the process is in.
    """
    problems, directories = [], {}
    for path in paths:
        try:
            directories[_checked(path)] = path
        except InputError as error:
            problems.append(on_one_line(str(error)))
    for directory, path in directories.items():
        if any(other in directory.parents for other in directories):
            problems.append(
                on_one_line(f"{path}: inside another one that is to be removed. Name one of them.")
            )
    if problems:
        raise StoredError("\n".join(problems))
    return list(directories)


def _checked(path: Path) -> Path:
    """Returns the resolved path of a run directory that can be removed."""
    if path.is_symlink():
        raise InputError(f"{path}: a link. Name the run directory itself.")
    if not path.is_dir():
        raise InputError(f"{path}: no such run directory. `fedprivacy list` names those in runs.")
    directory = path.resolve()
    if directory == Path.cwd() or directory in Path.cwd().parents:
        raise InputError(f"{path}: the folder that you are in. Go to another one first.")
    if os.path.lexists(directory / "run.json"):
        document = read_document(directory / "run.json")
        ours = document.get("kind") in TABLES and isinstance(document.get("scenario"), dict)
    else:
        signs = ("events.jsonl", MANIFEST, "checkpoint")
        ours = bool(_STAMP.fullmatch(directory.name)) or any((directory / name).exists() for name in signs)
        ours = ours and (directory / "scenario.toml").is_file()
        if ours:
            read_scenario(directory / "scenario.toml")
    if not ours:
        raise InputError(f"{path}: not a run directory. `fedprivacy list` names those in runs.")
    try:
        foreign = next(_foreign(directory), None)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}. Ask for the right to read it.") from error
    if foreign is not None:
        raise InputError(
            f"{path}: holds {foreign.relative_to(directory)}, which no run makes. Move it elsewhere, or "
            "remove the run directory yourself."
        )
    return directory


def _foreign(directory: Path, job: bool = False) -> Iterator[Path]:
    """Yields what no run makes, links above all, in a run directory.

    Args:
        directory: The run directory.
        job: Whether it lies in the directory of a comparison or replay, which has folders for its runs.
    """
    job = job or (directory / MANIFEST).is_file()
    with os.scandir(directory) as entries:
        for entry in entries:
            path = Path(entry.path)
            if entry.is_dir(follow_symlinks=False):
                if entry.name in _FOLDERS:
                    yield from _others(path, _FOLDERS[entry.name], deep=entry.name == "seen")
                elif job:
                    yield from _foreign(path, job)
                else:
                    yield path
            elif not entry.is_file(follow_symlinks=False) or not _is_ours(entry.name, _FILES):
                yield path


def _others(folder: Path, names: re.Pattern[str], deep: bool) -> Iterator[Path]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if deep and entry.is_dir(follow_symlinks=False):
                yield from _others(Path(entry.path), names, deep)
            elif not entry.is_file(follow_symlinks=False) or not _is_ours(entry.name, names):
                yield Path(entry.path)


def _is_ours(name: str, names: re.Pattern[str]) -> bool:
    return bool(names.fullmatch(name) or _PART.fullmatch(name))


def remove(*paths: Path) -> list[Path]:
    """Removes run directories with all that is in them; none where one cannot be removed.

    Returns:
        The directories that were removed, resolved.

    Raises:
        InputError: if one cannot be removed (`check_removable`), or a process works on it.
    """
    directories = check_removable(paths)
    with ExitStack() as locks:
        for directory in directories:
            locks.enter_context(alone(directory))
        for directory in directories:
            try:
                shutil.rmtree(directory)  # follows no links
            except OSError as error:
                raise InputError(
                    f"{directory}: {error.strerror}. Ask for the right to remove it and what is in it."
                ) from error
    return directories
