"""Reads numpy .npz files: their headers, and their arrays block by block.

Arrays of objects are never read, since they are pickles, which run code.
"""

from __future__ import annotations

import lzma
import math
import os
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from fedprivacy.data.file_format import BEGIN, explain_format
from fedprivacy.data.tasks import CLASSIFICATION, NAMED, NEXT_TOKEN, REGRESSION
from fedprivacy.errors import InputError
from fedprivacy.io import npy
from fedprivacy.io.escape import on_one_line
from fedprivacy.io.regular_file import LOOP, NotRegular, TooLarge, check_regular, is_loop, open_regular

NEEDED = ("x_train", "y_train", "x_test", "y_test")
MAX_LABEL = 10**6
_USED = (*NEEDED, "user_train", "user_test", "feature_names", "classes")
_BLOCK_BYTES = 2**22
MAX_BYTES = 2**40  # of a file; records are read block by block
# What unpacks to more, and by more than a factor that data has, was made to fill a disk or the memory.
LARGEST_PACKED, MAX_RATIO = 2**28, 200
_NUMBERS, _WORDS = "biuf", "US"
_KINDS = {"O": "objects (a pickle, never read)", "c": "complex numbers", "U": "text", "S": "text"}
_DAMAGE = (zlib.error, lzma.LZMAError, EOFError, OSError, ValueError, NotImplementedError, RuntimeError)


class NpzError(InputError):
    """The problems of a file, each as (problem, remedy)."""

    several = True

    def __init__(self, path: str, wrongs: Sequence[tuple[str, str]]) -> None:
        self.wrongs = tuple(wrongs)
        super().__init__("\n".join(on_one_line(f"{path}: {what}. {remedy}") for what, remedy in wrongs))


@dataclass(frozen=True)
class Header(npy.Header):
    """One array of the file: its header, and how it is packed."""

    packing: int


@dataclass(frozen=True)
class Facts:
    """The headers of a file, its records unread.

    Args:
        records: Training records.
        test_records: Test records.
        features: The shape of one record.
        top_label: The largest training label.
        top_test_label: The largest test label.
        users: Distinct users of the training records; None where there is no user_train.
        feature_names: The columns' names; empty where the file has none.
        class_names: The classes' names; empty where the file has none.
        stamp: Changes when the file does: its absolute path, size and time of change.
        test_users: Whether the test records name their users too, as user_test.
        most_of_user: The training records of the user who has most; None where there is no user_train.
        targets: The numbers or labels of each record; None where it has a class.
        top_tokens: The largest token in x_train and in x_test; None where records are no texts.
    """

    records: int
    test_records: int
    features: tuple[int, ...]
    top_label: int
    top_test_label: int
    users: int | None
    feature_names: tuple[str, ...]
    class_names: tuple[str, ...]
    stamp: tuple[str, int, int]
    test_users: bool = False
    most_of_user: int | None = None
    targets: int | None = None
    top_tokens: tuple[int, int] | None = None

    def classes(self, given: int | None = None) -> int:
        """The number of classes: as given, or of the file's names, or of its training labels.

        Of another task it is the number of targets.
        """
        return self.targets or given or len(self.class_names) or self.top_label + 1


def facts(path: str, task: str = CLASSIFICATION) -> Facts:
    """The headers of a file; read again only when it has changed.

    Args:
        path: The file.
        task: What is predicted, which the arrays of y have to fit.

    Raises:
        NpzError: with everything that keeps it from being used.
    """
    return _facts(path, stamp(path), task)


def stamp(path: str) -> tuple[str, int, int]:
    """The absolute path, size and time of change of a file.

    Raises:
        NpzError: if it is not there.
    """
    with _explained(path):
        status = os.stat(path)
        check_regular(status, path)
        return _stamp(path, status)


def array(path: str, name: str) -> NDArray[Any]:
    """One whole array.

    Raises:
        NpzError: if it cannot be read.
    """
    pieces = list(blocks(path, name))
    return np.concatenate(pieces) if pieces else np.empty(0)


def blocks(path: str, name: str) -> Iterator[NDArray[Any]]:
    """The rows of an array in order, some 4 MB at a time, shape (rows, *features).

    Raises:
        NpzError: if it cannot be read.
    """
    with _explained(path), _opened(path) as archive, archive.open(f"{name}.npy") as member:
        header = _header_of(member, 0)
        yield from _rows(member, header)
        member.read(1)  # past the end, where zipfile compares checksums


def header_of(path: str, name: str) -> Header:
    """The header of one array.

    Raises:
        NpzError: if it cannot be read.
    """
    return headers(path)[name]


def headers(path: str) -> dict[str, Header]:
    """The headers of those arrays whose names mean something here.

    Raises:
        NpzError: if they cannot be read.
    """
    with _explained(path), _opened(path) as archive:
        return _headers(archive)


def unusable_columns(path: str) -> tuple[int, ...]:
    """The columns of x with values that are NaN, infinite or beyond float32.

    Returns:
        Their places; records of another shape than a row are counted as if they were laid out flat.

    Raises:
        NpzError: if the file cannot be read.
    """
    return _unusable_columns(path, stamp(path))


def usable(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which values are finite as float32."""
    if values.dtype.kind != "f":
        return np.ones(values.shape, dtype=bool)
    with np.errstate(over="ignore"):
        return np.isfinite(values.astype(np.float32, copy=False))


@lru_cache(maxsize=16)
def _unusable_columns(path: str, stamp: tuple[str, int, int]) -> tuple[int, ...]:
    columns: set[int] = set()
    for name in ("x_train", "x_test"):
        if header_of(path, name).dtype.kind == "f":
            for block in blocks(path, name):
                good = usable(block).reshape(len(block), -1).all(axis=0)
                columns.update(np.flatnonzero(~good).tolist())
    return tuple(sorted(columns))


def _stamp(path: str, status: os.stat_result) -> tuple[str, int, int]:
    return os.path.abspath(path), status.st_size, status.st_mtime_ns


@contextmanager
def _opened(path: str, stamp: tuple[str, int, int] | None = None) -> Iterator[zipfile.ZipFile]:
    """The file as an archive; if a stamp is given, only as long as it has that."""
    with open_regular(path, MAX_BYTES) as stream:
        if stamp is not None and _stamp(path, os.fstat(stream.fileno())) != stamp:
            raise ValueError("it changed while it was read")
        other = explain_format(stream.read(BEGIN))
        if other is not None:
            raise NpzError(path, [other])
        with zipfile.ZipFile(stream) as archive:
            yield archive


@contextmanager
def _explained(path: str) -> Iterator[None]:
    """Turns whatever a broken file raises into what the user reads."""
    try:
        yield
    except NpzError:
        raise
    except FileNotFoundError:
        wrong = ("no such file", "Give its path from the folder where the command runs.")
    except IsADirectoryError:
        wrong = ("a folder, not a file", "Name the .npz file in it.")
    except NotRegular as error:
        wrong = (str(error.strerror), "Save the arrays in an .npz file, and name that.")
    except TooLarge as error:
        wrong = (str(error), "Use a part of the records, or several files with a scenario each.")
    except PermissionError:
        wrong = ("may not be read", "Ask for the right to read it.")
    except zipfile.BadZipFile as error:
        wrong = (
            f"not an .npz file, or a damaged one ({error})",
            "Fetch it again, or save it with numpy.savez.",
        )
    except _DAMAGE as error:
        problem = f"cannot be read: {getattr(error, 'strerror', None) or error}"
        wrong = LOOP if is_loop(error) else (problem, "Fetch or save it again.")
    else:
        return
    raise NpzError(path, [wrong]) from None


def _headers(archive: zipfile.ZipFile) -> dict[str, Header]:
    headers = {}
    for info in archive.infolist():
        name = info.filename.removesuffix(".npy")
        if name in _USED and info.filename.endswith(".npy"):
            with archive.open(info) as member:
                header = _header_of(member, info.compress_type)
                size = member.tell() + header.size
            if info.file_size > max(LARGEST_PACKED, MAX_RATIO * info.compress_size):
                what = (
                    f"{name} unpacks to {info.file_size / 1e9:.1f} GB from {info.compress_size / 1e6:.1f} MB"
                )
                raise ValueError(f"{what}; if that is right, save it unpacked, with numpy.savez")
            if header.dtype.kind != "O" and size != info.file_size:
                raise ValueError(f"{name} is cut off")
            headers[name] = header
    return headers


def _header_of(member: IO[bytes], packing: int) -> Header:
    header = npy.header_of(member)
    return Header(header.shape, header.dtype, header.fortran, packing)


def _rows(member: IO[bytes], header: Header) -> Iterator[NDArray[Any]]:
    rows, *features = header.shape
    width = math.prod(features) * header.dtype.itemsize
    step = max(1, _BLOCK_BYTES // max(width, 1))
    if header.fortran:  # column after column: no row is there before the last column is
        whole = npy.rows_of(_exactly(member, rows * width), header, rows)
        for start in range(0, rows, step):
            yield np.ascontiguousarray(whole[start : start + step])
        return
    for start in range(0, rows, step):
        count = min(step, rows - start)
        yield npy.rows_of(_exactly(member, count * width), header, count)


def _exactly(member: IO[bytes], size: int) -> bytes:
    data = member.read(size)
    if len(data) < size:
        raise EOFError("it is cut off")
    return data


@lru_cache(maxsize=16)
def _facts(path: str, stamp: tuple[str, int, int], task: str) -> Facts:
    with _explained(path), _opened(path, stamp) as archive:
        headers = _headers(archive)
        there = [info.filename.removesuffix(".npy") for info in archive.infolist()]
    absent = [name for name in NEEDED if name not in headers]
    if absent:
        has = f"It has {', '.join(name[:60] for name in there[:20])}" if there else "It is empty"
        lacks = f"the file has no {' and no '.join(absent)}"
        raise NpzError(path, [(lacks, f"{has}; records and labels are {', '.join(NEEDED)}.")])
    wrongs = list(_misfits(headers, task))
    if wrongs:
        raise NpzError(path, wrongs)
    tops = []
    noun = "token" if task == NEXT_TOKEN else "label"
    for name in ("y_train", "y_test"):
        labels = array(path, name)
        wrongs += _wrong_labels(name, labels, noun) if task in NAMED else _wrong_targets(name, labels, task)
        tops.append(0 if wrongs or task not in NAMED else int(labels.max()))
    tokens = None
    if task == NEXT_TOKEN:
        texts = [array(path, name) for name in ("x_train", "x_test")]
        for name, text in zip(("x_train", "x_test"), texts, strict=True):
            wrongs += _wrong_labels(name, text, "token")
        tokens = None if wrongs else (int(texts[0].max()), int(texts[1].max()))
    names, classes = (
        tuple(map(_word, array(path, name).tolist())) if name in headers else ()
        for name in ("feature_names", "classes")
    )
    targets = None if task in NAMED else math.prod(headers["y_train"].shape[1:])
    if targets and classes and len(classes) != targets:
        wrongs.append((f"classes has {len(classes)} names for {targets} targets", "Give each target a name."))
    for listed, given, what in (("feature_names", names, "column"), ("classes", classes, "class")):
        if len(set(given)) < len(given):
            wrongs.append((f"{listed} has a name twice", f"Give each {what} a name of its own."))
    if wrongs:
        raise NpzError(path, wrongs)
    x = headers["x_train"].shape
    users = most_of_user = None
    if "user_train" in headers:
        _, counts = np.unique(array(path, "user_train"), return_counts=True)
        users, most_of_user = len(counts), int(counts.max(initial=0))
    named = names if len(x) == 2 else ()
    tests, named_tests = headers["x_test"].shape[0], "user_test" in headers
    return Facts(
        x[0],
        tests,
        x[1:],
        tops[0],
        tops[1],
        users,
        named,
        classes,
        stamp,
        named_tests,
        most_of_user,
        targets,
        tokens,
    )


def _word(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _misfits(headers: dict[str, Header], task: str) -> Iterator[tuple[str, str]]:
    """The problems with the shapes and types of the arrays."""
    wanted = {"x": (_NUMBERS, "numbers"), "y": (_NUMBERS, "numbers"), "user": (_WORDS + "biu", "ids")}
    for name, header in headers.items():
        kinds, noun = wanted.get(name.split("_")[0], (_WORDS + "biu", "names"))
        if header.dtype.kind not in kinds:
            kind = _KINDS.get(header.dtype.kind, f"values of type {header.dtype}")
            yield f"{name} holds {kind}, {noun} are needed", remedy(name, header, task)
        if name.startswith("x_") and (len(header.shape) < 2 or 0 in header.shape[1:]):
            yield (
                f"{name} has shape {header.shape}",
                "One row for each record is needed: (records, features).",
            )
        elif name.startswith("y_") and task == NEXT_TOKEN:
            if header.shape != headers[f"x_{name[2:]}"].shape or len(header.shape) != 2:
                yield (
                    f"{name} has shape {header.shape}",
                    "A token for each of a record is needed, the one that follows: x and y of shape "
                    "(records, positions).",
                )
        elif name.startswith("y_") and task != CLASSIFICATION:
            if len(header.shape) not in (1, 2) or 0 in header.shape[1:]:
                yield (
                    f"{name} has shape {header.shape}",
                    "One row for each record is needed: (records, targets), or a plain list of one target.",
                )
        elif not name.startswith("x_") and len(header.shape) != 1:
            yield f"{name} has shape {header.shape}", "A plain list is needed: one dimension."
    for part in ("train", "test"):
        if headers[f"x_{part}"].shape[:1] == (0,):
            yield f"x_{part} has no rows", "At least one is needed."
        for other in (f"y_{part}", f"user_{part}"):
            shape, two = headers[f"x_{part}"].shape, headers[other].shape if other in headers else ()
            if shape and two and shape[0] != two[0]:
                what = f"x_{part} and {other} do not fit each other: {shape[0]} rows and {two[0]}"
                yield what, "Row i of both must be the same record."
    train, test = (headers[f"x_{part}"].shape[1:] for part in ("train", "test"))
    if train != test:
        yield f"records have shape {train} in x_train and {test} in x_test", "Both must be of the same kind."
    train_targets, test_targets = (headers[f"y_{part}"].shape[1:] for part in ("train", "test"))
    if train_targets != test_targets and task not in NAMED:
        what = f"targets have shape {train_targets} in y_train and {test_targets} in y_test"
        yield what, "Both must be of the same kind."
    names = headers.get("feature_names")
    if names is not None and len(train) == 1 and names.shape != train:
        yield (
            f"feature_names has shape {names.shape}",
            f"A name for each of the {train[0]} columns is needed.",
        )


def remedy(name: str, header: Header, task: str = CLASSIFICATION) -> str:
    """The remedy for an array of values of another kind."""
    if name.startswith("y_") and task not in NAMED:
        return "Save real numbers." if task == REGRESSION else "Save a column of 0 and 1 for each label."
    if name.startswith("user_") and header.dtype.kind != "O":
        return "Save whole numbers or words."
    if name.startswith("y_") and header.dtype.kind in _WORDS + "Oc":
        return (
            "Number the classes from 0, the same in both parts, as numpy.unique(labels, return_inverse=True) "
            "does. Their names may go into an array classes."
        )
    if name.startswith("x_") and header.dtype.kind == "c":
        return "Save real numbers, such as the real and the imaginary parts as columns of their own."
    if name.startswith("x_") and header.dtype.kind in _WORDS:
        return "Encode words as numbers, such as one column of 0 and 1 for each word."
    return "Save it as a plain array."


def _wrong_targets(name: str, targets: NDArray[Any], task: str) -> Iterator[tuple[str, str]]:
    if task == REGRESSION:
        if missing := int((~usable(targets)).sum()):
            what = f"{name} has {missing:,} targets that are NaN, infinite or beyond float32"
            yield what, "Leave their records out: a record without a target teaches nothing."
        return
    others = targets[(targets != 0) & (targets != 1)]
    if len(others):
        yield f"{name} has the label {others[0]:g}", "Each column of a label holds 0 and 1 alone."


def _wrong_labels(name: str, labels: NDArray[Any], noun: str = "label") -> Iterator[tuple[str, str]]:
    remedy = f"{noun.capitalize()}s are whole numbers, counted from 0."
    whole = labels.dtype.kind != "f" or bool(np.all(np.isfinite(labels) & (labels == np.floor(labels))))
    if not whole:
        bad = labels[~(np.isfinite(labels) & (labels == np.floor(labels)))][0]
        others = ' To predict numbers name the file in a scenario with data.task = "regression".'
        yield f"{name} has the {noun} {bad:g}", remedy + others * bool(np.isfinite(bad) and noun == "label")
    elif labels.min() < 0:
        yield f"{name} has the {noun} {int(labels.min())}", remedy
    elif labels.max() > MAX_LABEL:
        many = f"{MAX_LABEL:,} {'classes' if noun == 'label' else 'tokens'}"
        yield f"{name} has the {noun} {int(labels.max())}, beyond {many}", remedy
