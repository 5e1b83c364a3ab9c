"""The columns of a loaded data set as the arrays of an .npz file, block by block."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any

import datasets
import numpy as np
from datasets.features import Array2D, Array3D, Array4D, Array5D, ClassLabel, Image, LargeList, List, Value
from numpy.lib import format as npy
from numpy.typing import NDArray

from fedprivacy.data.source import Source, SourceError
from fedprivacy.errors import Finding, KeyPath
from fedprivacy.io.toml_text import literal, suggestion

_BLOCK = 1000  # records
_TEXT = ("string", "large_string", "string_view")
# What an image is turned into, so that one of 1 bit or with a palette has plain grey or colour values.
_MODES = {"1": "L", "L": "L", "P": "RGB", "RGB": "RGB", "CMYK": "RGB", "YCbCr": "RGB", "RGBA": "RGBA"}


@dataclass(frozen=True)
class Stored:
    """One array to be written: its name, shape and type, and its rows in order."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    blocks: Iterator[NDArray[Any]]


def arrays(source: Source, train: datasets.Dataset, test: datasets.Dataset) -> list[Stored]:
    """x_train, y_train, x_test, y_test, and if present user_train, feature_names and classes.

    Raises:
        SourceError: with all columns that are not there or are not what is needed.
    """
    inputs = _inputs(source, train)
    faults = list(_faults(source, inputs, train, test))
    if faults:
        raise SourceError(faults)
    stored: list[Stored] = []
    names: tuple[str, ...] = ()
    for part, split in (("train", train), ("test", test)):
        x, names = _records(f"x_{part}", split, inputs)
        stored.append(x)
    labels, classes = _labels(source.label, train, test)
    stored += [_whole(f"y_{part}", rows) for part, rows in zip(("train", "test"), labels, strict=True)]
    if source.user is not None:
        stored.append(_whole("user_train", np.array(train[source.user][:])))
    if names:
        stored.append(_whole("feature_names", np.array(names)))
    if classes:
        stored.append(_whole("classes", np.array(classes)))
    return stored


def flat_columns(source: Source, train: datasets.Dataset, test: datasets.Dataset) -> dict[str, NDArray[Any]]:
    """The columns of the test records that are no features: numbers, or texts and names of classes.

    Args:
        source: The data set.
        train: Its training split, whose columns are the features where the source names none.
        test: Its test split.
    """
    used = {*_inputs(source, train), source.label}
    columns = {}
    for name in test.column_names:
        feature = test.features[name]
        if name in used or not isinstance(feature, Value | ClassLabel):
            continue
        values = test.with_format("arrow")[:][name]
        if isinstance(feature, ClassLabel):
            words = [None if value is None else feature.int2str(value) for value in values.to_pylist()]
            columns[name] = np.array(words, dtype=object)
        elif (dtype := _number(feature)) is not None and dtype.kind != "b":
            columns[name] = values.to_numpy().astype(np.float64)
        elif _is_text(feature) or dtype is not None:
            columns[name] = np.array(values.to_pylist(), dtype=object)
    return columns


def _inputs(source: Source, train: datasets.Dataset) -> tuple[str, ...]:
    """The columns that make a record."""
    return source.inputs or tuple(
        name for name in train.column_names if name not in (source.label, source.user)
    )


def write(opened: IO[bytes], stored: Sequence[Stored]) -> None:
    """Writes an .npz file, its rows not compressed, so that they are read as fast as they can be.

    Raises:
        SourceError: if a record is not like the others.
    """
    with zipfile.ZipFile(opened, "w") as archive:
        for array in stored:
            with archive.open(f"{array.name}.npy", "w", force_zip64=True) as member:
                about = {
                    "descr": npy.dtype_to_descr(array.dtype),
                    "fortran_order": False,
                    "shape": array.shape,
                }
                npy.write_array_header_1_0(member, about)
                for block in array.blocks:
                    member.write(np.ascontiguousarray(block, array.dtype).data)


def _faults(
    source: Source, inputs: Sequence[str], train: datasets.Dataset, test: datasets.Dataset
) -> Iterator[Finding]:
    """The problems with the columns that their types reveal."""
    for key, split in (("train", train), ("test", test)):
        if not len(split):
            yield Finding(("data", key), "the split has no records", "At least one is needed.")
    columns: list[tuple[KeyPath, str]] = [(("data", "label"), source.label)]
    if source.user is not None:
        columns.append((("data", "user"), source.user))
    columns += [(("data", "inputs", at), name) for at, name in enumerate(source.inputs or ())]
    taken = {source.label: "is the label", source.user: "says whose the record is"}
    for path, name in columns:
        if name not in train.column_names:
            remedy = suggestion(name, train.column_names, quoted=True)
            yield Finding(path, "no such column", remedy, literal(name))
        elif name not in test.column_names and path[1] != "user":
            what = f"the split {literal(source.test)} has no such column"
            yield Finding(path, what, suggestion(name, test.column_names, quoted=True), literal(name))
        elif path[1] == "inputs":
            if name in taken:
                yield Finding(path, taken[name], "Remove it.", literal(name))
            taken[name] = "the list names this column twice"
    if source.user == source.label:
        yield Finding(("data", "user"), "is the label", "Name another column.", literal(source.label))
    if not inputs:
        yield Finding(("data", "inputs"), "no column is left beside label and user", "Name one.")
    for at, name in enumerate(inputs):
        if name not in train.column_names or name in (source.label, source.user):
            continue
        feature = train.features[name]
        path = ("data", "inputs", at) if source.inputs else ("data", "inputs")
        if not isinstance(feature, Image) and _number(feature) is None:
            what = f"column {literal(name)} holds {_words(feature)}, numbers or images are needed"
            yield Finding(path, what, "Name other columns, or make numbers of it first.")
        elif len(inputs) > 1 and not _is_flat(feature):
            what = f"column {literal(name)} holds {_words(feature)}, which cannot stand beside other columns"
            yield Finding(path, what, f"Set inputs = {literal([name])}, or leave it out.")
    for key, kinds in (("label", "bifu"), ("user", "biu")):
        name = getattr(source, key)
        if name not in train.column_names:
            continue
        feature = train.features[name]
        dtype = _number(feature) if isinstance(feature, Value | ClassLabel) else None
        if not _is_text(feature) and (dtype is None or dtype.kind not in kinds):
            yield Finding(("data", key), f"holds {_words(feature)}", "Whole numbers or text.", literal(name))
        elif (key == "user" or _is_text(feature)) and _lacks_values(train, test, name):
            yield Finding(("data", key), "is missing in some records", "Leave them out.", literal(name))


def _lacks_values(train: datasets.Dataset, test: datasets.Dataset, name: str) -> bool:
    splits = [split for split in (train, test) if name in split.column_names]
    return any(split.data.column(name).null_count for split in splits)


def _number(feature: Any) -> np.dtype[Any] | None:
    """The type of a column of numbers, or of lists of them; None if it holds something else."""
    if isinstance(feature, ClassLabel):
        return np.dtype(np.int64)
    if isinstance(feature, List | LargeList):
        return _number(feature.feature)
    if not isinstance(feature, Value | Array2D | Array3D | Array4D | Array5D):
        return None
    try:
        dtype = np.dtype(feature.dtype)
    except TypeError:
        return None
    return dtype if dtype.kind in "biuf" else None


def _is_flat(feature: Any) -> bool:
    """Whether a record has one number, or one row of them."""
    inner = feature.feature if isinstance(feature, List | LargeList) else feature
    return isinstance(inner, Value | ClassLabel)


def _is_text(feature: Any) -> bool:
    return isinstance(feature, Value) and feature.dtype in _TEXT


def _words(feature: Any) -> str:
    """The kind of values in a column."""
    if _is_text(feature):
        return "text"
    if isinstance(feature, Value):
        return {"null": "nothing"}.get(feature.dtype, f"values of type {feature.dtype}")
    if _number(feature) is not None:
        return "arrays of numbers"
    kinds = {"List": "lists", "LargeList": "lists", "dict": "groups of columns", "Image": "images"}
    return kinds.get(type(feature).__name__, f"values of type {type(feature).__name__}")


def _records(name: str, split: datasets.Dataset, inputs: Sequence[str]) -> tuple[Stored, tuple[str, ...]]:
    """The records of a split, shape (records, *features), and their columns' names if they are rows."""
    dtypes = [_column_type(split, feature) for feature in inputs]
    dtype = np.result_type(*dtypes)
    firsts = [_rows(split, feature, dtype, slice(0, 1)) for feature in inputs]
    names = tuple(
        label
        for feature, first in zip(inputs, firsts, strict=True)
        for label in ([feature] if first.ndim == 1 else [f"{feature}[{at}]" for at in range(first[0].size)])
    )
    shape = firsts[0].shape[1:] if firsts[0].ndim > 2 else (len(names),)

    def blocks() -> Iterator[NDArray[Any]]:
        for start in range(0, len(split), _BLOCK):
            rows = slice(start, min(start + _BLOCK, len(split)))
            columns = [
                _rows(split, feature, dtype, rows, like=first.shape[1:])
                for feature, first in zip(inputs, firsts, strict=True)
            ]
            flat = [column.reshape(len(column), -1) for column in columns]
            yield columns[0] if len(shape) > 1 else np.concatenate(flat, axis=1)

    return Stored(name, (len(split), *shape), dtype, blocks()), names if len(shape) == 1 else ()


def _column_type(split: datasets.Dataset, name: str) -> np.dtype[Any]:
    """The type that holds all of a column, where a missing number is NaN."""
    dtype = _number(split.features[name]) or np.dtype(np.uint8)
    if split.data.column(name).null_count and dtype.kind != "f":
        return np.dtype(np.float64)
    return np.dtype(np.uint8) if dtype.kind == "b" else dtype


def _rows(
    split: datasets.Dataset, name: str, dtype: np.dtype[Any], rows: slice, like: tuple[int, ...] | None = None
) -> NDArray[Any]:
    """Some rows of a column, shape (rows, *features).

    Args:
        split: Where they are.
        name: The column.
        dtype: What they become.
        rows: Which.
        like: The shape that each must have.

    Raises:
        SourceError: if a row cannot be read, or has another shape.
    """
    feature = split.features[name]
    if isinstance(feature, Value | ClassLabel):  # missing numbers are NaN
        return np.asarray(split.with_format("arrow")[rows][name].to_numpy()).astype(dtype)
    try:
        if isinstance(feature, Image):
            arrays = [_pixels(image) for image in split[rows][name]]
        else:
            arrays = [np.array(row, dtype) for row in split.with_format("arrow")[rows][name].to_pylist()]
    except Exception as error:  # each format of images raises errors of its own
        message = str(error).strip().split("\n")[0].rstrip(".")
        where = f"records {rows.start} to {rows.stop - 1} of split {literal(str(split.split))}"
        what = f"column {literal(name)} has a value that cannot be read, among {where} ({message})"
        raise SourceError([Finding(("data", "inputs"), what, "Correct it, or leave it out.")]) from error
    like = arrays[0].shape if like is None else like
    for at, row in enumerate(arrays, rows.start):
        if row.shape != like:
            what = (
                f"column {literal(name)} has the shape {row.shape} in record {at} of split "
                f"{literal(str(split.split))}, and {like} in the first"
            )
            raise SourceError([Finding(("data", "inputs"), what, "All records need one shape.")])
    return np.stack(arrays)


def _pixels(image: Any) -> NDArray[np.uint8]:
    """An image of 8 bits, shape (height, width), with its channels last if it has colours."""
    if image is None:
        raise ValueError("an image is missing")
    if image.mode not in _MODES:
        raise ValueError(f"an image of the mode {image.mode}, which has no 8 bits")
    return np.asarray(image.convert(_MODES[image.mode]), np.uint8)


def _labels(
    name: str, train: datasets.Dataset, test: datasets.Dataset
) -> tuple[list[NDArray[Any]], tuple[str, ...]]:
    """The labels of both splits, and the names of the classes; words are numbered in alphabetical order."""
    feature, given = train.features[name], [list(split[name][:]) for split in (train, test)]
    if _is_text(feature):
        words = sorted({word for part in given for word in part})
        place = {word: at for at, word in enumerate(words)}
        return [np.array([place[word] for word in part]) for part in given], tuple(words)
    numbers = [np.array([np.nan if label is None else label for label in part]) for part in given]
    whole = [part.astype(np.int64) if part.dtype.kind == "b" else part for part in numbers]
    return whole, tuple(feature.names) if isinstance(feature, ClassLabel) else ()


def _whole(name: str, rows: NDArray[Any]) -> Stored:
    return Stored(name, rows.shape, rows.dtype, iter([rows]))
