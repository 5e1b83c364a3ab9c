"""Data sets that flwr-datasets loads, each made once into an .npz file of the cache folder.

From there on they are such files: the same checks, scaling and partitions hold for them, which is
why flwr-datasets' own partitioners are not used. The file is a copy of private data, which only its
owner may read; it may be deleted at any time.

Nothing that is loaded runs code: datasets 4 has no loading scripts any more, and a format by name
("pandas", which reads pickles of the current folder) is not accepted as a path.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import tempfile
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import astuple
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from fedprivacy.data import storage
from fedprivacy.data.source import Source, SourceError
from fedprivacy.errors import Finding, InputError
from fedprivacy.io.atomic import replacing
from fedprivacy.io.escape import on_one_line
from fedprivacy.io.install_hint import install
from fedprivacy.io.toml_text import literal, suggestion
from fedprivacy.io.waiting import waiting

if TYPE_CHECKING:
    import datasets

VERSION = 1  # of how files are made
PATIENCE = 60.0  # seconds for which a failure is cached: a scenario is checked several times
_failed: dict[tuple[Source, object], tuple[float, SourceError]] = {}


def file(source: Source) -> str:
    """The path of the .npz file of a data set, which is made if it is missing.

    Files of a folder are checked each time: if one changes, a new .npz file is made.

    Raises:
        SourceError: if the data set cannot be loaded, or lacks required columns.
        InputError: if the cache folder cannot be written.
    """
    stamp = _stamp(source)
    key = hashlib.blake2b(repr((VERSION, astuple(source), stamp)).encode(), digest_size=16).hexdigest()
    target = storage.folder() / f"{key}.npz"
    if target.exists():
        return str(target)
    until, error = _failed.get((source, stamp), (0.0, None))
    if error is not None and time.monotonic() < until:
        raise error
    try:
        _make(source, target)
    except SourceError as error:
        _failed[source, stamp] = time.monotonic() + PATIENCE, error
        raise
    except OSError as error:
        raise InputError(
            f"{target.parent}: {error.strerror or error}. It keeps the records of {source.path}: make "
            "room, or "
            "set XDG_CACHE_HOME to another folder."
        ) from error
    return str(target)


def _stamp(source: Source) -> object:
    """Changes when a folder does."""
    if not source.is_folder:
        return None
    top = Path(os.path.abspath(source.path))
    files = ((path, path.stat()) for path in sorted(top.rglob("*")) if path.is_file())
    return str(top), tuple((str(path), status.st_size, status.st_mtime_ns) for path, status in files)


def _make(source: Source, target: Path) -> None:
    if find_spec("flwr_datasets") is None:
        what = f"needs the extra: {install('datasets')}"
        raise SourceError([Finding(("data", "name"), what)])
    from fedprivacy.data.hub_arrays import arrays, write

    if os.path.isfile(source.path):
        raise SourceError([_at("path", source.path, "a file, not a folder", "Name the folder around it.")])
    if not source.is_folder and not re.fullmatch(r"[\w.-]+/[\w.-]+", source.path):
        what = "no folder here, and not the name of a data set of the Hugging Face Hub"
        raise SourceError([_at("path", source.path, what, 'Such names have an owner: "ylecun/mnist".')])
    if source.is_folder and source.revision is not None:
        raise SourceError([_at("revision", source.revision, "has no effect with a folder", "Remove it.")])
    for path in Path(source.path).rglob("*") if source.is_folder else ():
        if not (path.is_file() or path.is_dir()):  # a pipe, which nobody may ever write to, or a device
            what = f"{path.name} in it is neither a file nor a folder"
            raise SourceError([_at("path", source.path, what, "Remove it, or name another folder.")])
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _passing_cache(source, target.parent) as cache:
        with waiting(f"loading {on_one_line(source.path)} by the library of the Hugging Face Hub"):
            train, test = _load(source, cache)
            stored = arrays(source, train, test)
        with replacing(target, storage.OWNER_ONLY) as opened:
            write(opened, stored)


def _passing_cache(source: Source, beside: Path) -> AbstractContextManager[str | None]:
    """A cache for what datasets makes of a folder, one more copy of private data, which goes after use."""
    return tempfile.TemporaryDirectory(dir=beside) if source.is_folder else nullcontext()


def held_out_columns(source: Source) -> dict[str, NDArray[Any]]:
    """The columns of numbers or texts that are no features, of the test records alone.

    Each has the shape (test records,). They are read from the data set, and stored nowhere.

    Args:
        source: A data set that `file` accepts.

    Raises:
        SourceError: if the data set cannot be loaded.
    """
    return _held_out_columns(source, _stamp(source))


@lru_cache(maxsize=4)
def _held_out_columns(source: Source, stamp: object) -> dict[str, NDArray[Any]]:
    from fedprivacy.data.hub_arrays import flat_columns

    folder = storage.folder()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _passing_cache(source, folder) as cache:
        train, test = _load(source, cache)
        return flat_columns(source, train, test)


def _load(source: Source, cache: str | None) -> tuple[datasets.Dataset, datasets.Dataset]:
    """The two splits, their records in the order in which they are stored."""
    # Without this, telemetry would send the data set's name to Flower. It is read at import.
    os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")
    import datasets
    from flwr_datasets import FederatedDataset

    def checked(splits: datasets.DatasetDict) -> datasets.DatasetDict:
        parts = [
            _at(key, name, "no such split", suggestion(name, list(splits), quoted=True))
            for key, name in (("train", source.train), ("test", source.test))
            if name not in splits
        ]
        if source.train == source.test:
            parts = [_at("test", source.test, "the records of train", "Held-out records are needed.")]
        if parts:
            raise SourceError(parts)
        return splits

    loggers = [logging.getLogger(name) for name in ("datasets", "huggingface_hub")]
    levels, quiet = [logger.level for logger in loggers], datasets.are_progress_bars_disabled()
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)  # they also raise every error that they log
    datasets.disable_progress_bars()
    try:
        whole = FederatedDataset(
            # A path beginning with / is never taken for a format or for a name on the Hub.
            dataset=os.path.abspath(source.path) if source.is_folder else source.path,
            subset=source.subset,
            partitioners={},
            shuffle=False,
            preprocessor=checked,
            revision=source.revision,
            cache_dir=cache,
        )
        return whole.load_split(source.train), whole.load_split(source.test)
    except SourceError:
        raise
    except Exception as error:  # each format raises errors of its own
        raise SourceError([_explained(source, error)]) from error
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
        if not quiet:
            datasets.enable_progress_bars()


def _explained(source: Source, error: Exception) -> Finding:
    chain: list[BaseException] = [error]
    while (inner := chain[-1].__cause__) is not None:
        chain.append(inner)
    message = str(chain[-1]).strip().split("\n")[0].rstrip(".") or type(error).__name__
    if str(error).startswith(("BuilderConfig", "Config name is missing")):
        names = re.search(r"\[.*\]", str(error))
        what = "there are several" if source.subset is None else "no such subset"
        return _at("subset", source.subset, what, f"Known here: {names[0] if names else 'none'}.")
    if source.is_folder:
        remedy = "Files of one format are needed, such as train.csv and test.csv, or images in train/LABEL."
        return _at("path", source.path, f"the folder cannot be loaded ({message})", remedy)
    from datasets.exceptions import DatasetNotFoundError

    if isinstance(error, DatasetNotFoundError):
        return _at("path", source.path, f"no such data set ({message})", "Correct it, or name a folder here.")
    network = (ConnectionError, TimeoutError)
    clients = ("httpx", "httpcore", "requests", "aiohttp")
    if any(isinstance(link, network) or type(link).__module__.split(".")[0] in clients for link in chain):
        what = f"the Hugging Face Hub cannot be reached ({message})"
        return _at("path", source.path, what, "Try again with a network, or name a folder here.")
    return _at("path", source.path, f"cannot be loaded ({message})", "Correct it, or name a folder here.")


def _at(key: str, value: object, what: str, remedy: str) -> Finding:
    return Finding(("data", key), what, remedy, "" if value is None else literal(value))
