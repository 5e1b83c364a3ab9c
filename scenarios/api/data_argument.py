"""The data of a simulation, from arrays, tables, torch datasets or files."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedprivacy.data import storage, tables
from fedprivacy.data.npz import Facts, NpzError, facts
from fedprivacy.data.tables import HELD_OUT, Table, TableError
from fedprivacy.errors import InputError
from fedprivacy.io.atomic import replacing
from scenarios.authoring.brought_data import notes_on, owners_named

Bounds = Mapping[str, tuple[float, float]]


@dataclass(frozen=True, repr=False)
class People:
    """Records and their owners, ready for simulations; `people` makes them.

    Attributes:
        path: The .npz file that holds them; a temporary one where the records came from Python.
        notes: Statements on what was read off the records, and on the split.
        temporary: Whether the file goes when this object does.
    """

    path: Path
    notes: tuple[str, ...] = ()
    temporary: bool = False
    bounds: tuple[Sequence[float], Sequence[float]] | None = None
    read: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    _folder: Any = field(default=None, compare=False)

    @property
    def facts(self) -> Facts:
        """The headers of the file."""
        return facts(str(self.path))

    @property
    def clients(self) -> int:
        """The number of clients: the users, or else the training records."""
        return self.facts.users or self.facts.records

    def save(self, path: str | Path) -> People:
        """Keeps the records in a file that only its owner can read, so that a stored run can be repeated.

        Args:
            path: The .npz file to write.

        Raises:
            InputError: if it exists or cannot be written.
        """
        target = Path(path)
        if os.path.lexists(target):
            raise InputError(f"{target}: already exists. Choose another file.")
        try:
            with self.path.open("rb") as source, replacing(target, storage.OWNER_ONLY) as stream:
                shutil.copyfileobj(source, stream)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(f"{target}: {reason}. Choose another file.") from error
        return People(target, self.notes, False, self.bounds, self.read, self.owners)

    def __repr__(self) -> str:
        """Returns the sizes and the notes."""
        known = self.facts
        features = " x ".join(map(str, known.features))
        lines = [
            f"People: {self.clients:,} clients, {known.records:,} records of {features} features to train "
            f"on, {known.test_records:,} to test on, {known.classes()} classes"
        ]
        return "\n".join([*lines, *(f"- {note}" for note in self.notes)])


def people(
    x: Any,
    y: Any = None,
    *,
    users: Any = None,
    test: Any = HELD_OUT,
    bounds: Bounds | None = None,
    drop: Sequence[str] = (),
    seed: int = 0,
) -> People:
    """Returns the data of a simulation.

    Args:
        x: The records: an array (records, columns) or (records, side, side[, 3]), a pandas or polars
            DataFrame, a torch Dataset of (record, label) pairs, or the path of a .npz, .csv, .tsv or
            .parquet file.
        y: The labels: an array (records,), or of a table the name of its column.
        users: The owner of each record: an array (records,), or of a table the name of its column. None:
            each record has an owner of its own.
        test: What to test on: the share of records (of whole users, where there are many) to hold out, or
            records of the same kind as `x`, of arrays as a pair (x, y).
        bounds: Of a table: column -> (lower, upper), public limits to scale by. Bounds of other columns are
            read off the records, which is a release that no epsilon covers.
        drop: Of a table: the columns to leave out.
        seed: The seed of the split.

    Raises:
        InputError: if something is missing, or is not as described.

    >>> import numpy as np
    >>> x, y = np.eye(10).repeat(10, axis=0), np.arange(10).repeat(10)
    >>> people(x, y)
    People: 80 clients, 80 records of 10 features to train on, 20 to test on, 10 classes
    - 20 of 100 records were held out at random to test on.
    """
    if bounds is not None and not isinstance(bounds, Mapping):
        raise InputError("people: bounds: give a dictionary, column -> (lower, upper).")
    drop = [drop] if isinstance(drop, str) else drop
    if isinstance(seed, bool) or not isinstance(seed, Integral) or seed < 0:
        raise InputError(f"people: seed = {seed!r}: give a whole number from 0.")
    if isinstance(x, str | os.PathLike):
        path = Path(x)
        if path.suffix.lower() == ".npz":
            facts(str(path))
            whole = isinstance(test, float) and test == HELD_OUT
            if not (y is None and users is None and whole) or bounds or drop:
                raise InputError(f"{path}: has labels, users and test records itself. Give the path alone.")
            return People(path)
        if path.suffix.lower() not in tables.SUFFIXES:
            raise InputError(
                f"{path}: not a data set. Give a file that ends in .npz, .csv, .tsv or .parquet."
            )
        x = tables.read_table(path)
        return _of_table(x, y, users, _test_of_file(test), bounds or {}, drop, seed, str(path))
    if (frame := _frame(x)) is not None:
        return _of_table(frame, y, users, _test_of_file(test), bounds or {}, drop, seed, "table")
    if bounds or drop:
        raise InputError("people: bounds and drop are for tables. Scale or drop columns of the array first.")
    if y is None and hasattr(x, "__getitem__") and hasattr(x, "__len__") and not isinstance(x, np.ndarray):
        x, y = _pairs(x)
        test = _pairs(test) if hasattr(test, "__getitem__") and not isinstance(test, tuple) else test
    return _of_arrays(x, y, users, test, seed)


def _frame(value: Any) -> Any:
    """Returns a pandas DataFrame of a pandas or polars one, None for anything else."""
    kind = f"{type(value).__module__.partition('.')[0]}.{type(value).__name__}"
    if kind == "pandas.DataFrame":
        return value
    if kind == "polars.DataFrame":
        import pandas as pd

        return pd.DataFrame({name: value[name].to_list() for name in value.columns})
    return None


def _pairs(dataset: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Returns the records and labels of a dataset of pairs."""
    try:
        rows = [dataset[at] for at in range(len(dataset))]
        x = np.stack([np.asarray(row[0]) for row in rows])
        y = np.array([int(row[1]) for row in rows])
    except (TypeError, ValueError, IndexError, KeyError, RuntimeError) as error:
        raise InputError(
            f"people: a dataset needs (record, label) pairs, records of one shape and whole labels: {error}."
        ) from None
    if x.ndim == 4 and x.shape[1] in (1, 3):  # channels first, as torch has images
        x = np.moveaxis(x, 1, 3)
        x = x[..., 0] if x.shape[3] == 1 else x
    return x, y


def _test_of_file(test: Any) -> Any:
    return tables.read_table(Path(test)) if isinstance(test, str | os.PathLike) else test


def _of_table(
    frame: Any, y: Any, users: Any, test: Any, bounds: Bounds, drop: Sequence[str], seed: int, source: str
) -> People:
    frame = frame.reset_index(drop=True)
    tested = _frame(test)
    limits = tables.checked_bounds(bounds, "bounds")
    if tested is not None and not (isinstance(y, str) and isinstance(users, str | None)):
        raise InputError(f"{source}: with a table of test records name the columns y and users.")
    frame, y = _with_column(frame, y, "label", f"{source}: y")
    if users is not None:
        frame, users = _with_column(frame, users, "user", f"{source}: users")
    parts = tables.prepared(
        frame,
        _fraction(test) if tested is None else tested,
        label=y,
        user=users,
        drop=drop,
        bounds=limits,
        source=source,
        option=f"{source}: bounds",
        seed=seed,
    )
    notes = notes_on(parts, "the scenario", "Give public ones as bounds = {column: (lower, upper)}.")
    owners = owners_named(parts.train, parts.test)
    return _stored(tables.arrays_of(parts.train, parts.test), notes, parts.bounds, parts.read, owners)


def _with_column(frame: Any, values: Any, name: str, where: str) -> tuple[Any, str]:
    """Returns a table with values as a column, and the name of the column."""
    if isinstance(values, str):
        return frame, values
    column = None if values is None else _array(values, where)
    if column is None or column.ndim != 1 or len(column) != len(frame):
        raise InputError(f"{where}: name a column, or give one value for each of {len(frame):,} records.")
    if _missing(values, column):
        raise InputError(f"{where}: a record has none. Give one for each, or remove the record.")
    while name in frame.columns:
        name += "_"
    return frame.assign(**{name: column}), name


def _of_arrays(x: Any, y: Any, users: Any, test: Any, seed: int) -> People:
    if y is None:
        raise InputError("people: give the labels as y, one for each record.")
    if isinstance(test, tuple):
        if len(test) not in (2, 3):
            raise InputError("people: test: give (x, y), or (x, y, users).")
        names = _class_names(y, test[1])
        train, notes = _plain_table(x, y, users, names), []
        held = _plain_table(test[0], test[1], test[2] if len(test) == 3 else None, names, "test")
    else:
        whole = _plain_table(x, y, users, _class_names(y))
        train, held, note = tables.split(whole, _fraction(test), seed)
        notes = [note]
    notes += tables.tested_clients(train, held)
    arrays = tables.arrays_of(train, held)
    del arrays["feature_names"]
    return _stored(arrays, notes)


def _class_names(*labels: Any) -> tuple[str, ...]:
    """Returns the classes of all labels that are texts, in order; none where labels are numbers."""
    arrays = [_array(each, "people: y") for each in labels]
    if not any(each.dtype.kind in "OUS" for each in arrays):
        return ()
    return tuple(sorted({str(label) for each in arrays for label in each.ravel()}))


def _plain_table(x: Any, y: Any, users: Any, classes: tuple[str, ...] = (), where: str = "people") -> Table:
    given, x, y = y, _array(x, f"{where}: x"), _array(y, f"{where}: y")
    problems = []
    if x.ndim < 2 or y.ndim != 1 or len(x) != len(y):
        problems.append(
            f"{where}: {x.shape} records and {y.shape} labels. Give x of shape (records, ...) and y of shape "
            "(records,)."
            + " Several targets or labels: save the arrays with numpy.savez, and name the file in a scenario "
            'with data.task = "regression" or "multi-label" (docs/tasks.md).' * (y.ndim == 2)
        )
    elif _missing(given, y):
        problems.append(f"{where}: y: a record has no label. Leave the record out.")
    elif classes:
        y = np.array([classes.index(str(label)) for label in y], dtype=np.int64)
    owners = None
    if users is not None:
        named = _array(users, f"{where}: users")
        owners = named.astype(str)
        if owners.shape == y.shape and _missing(users, named):
            problems.append(f"{where}: users: a record has no owner. Name it, or remove the record.")
        if owners.shape != y.shape:
            problems.append(f"{where}: {owners.shape} users for {y.shape} records. Give one for each record.")
    if problems:
        raise TableError("\n".join(problems))
    return Table(x, y, owners, (), classes, positions=np.arange(len(y)))


def _array(values: Any, where: str) -> NDArray[Any]:
    """Returns values as an array, or says why they are none."""
    try:
        return np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:  # rows of several lengths, tensors with gradients
        reason = str(error).strip().split("\n")[0].rstrip(".")
        raise InputError(f"{where}: no array: {reason}. Give numbers of one shape for each record.") from None


def _missing(values: Any, array: NDArray[Any]) -> bool:
    """Whether one of the values, which have been made an array, is None or no number."""
    import pandas as pd

    # In an array of texts a missing value has become a text itself.
    plain = np.asarray(values, dtype=object) if isinstance(values, list | tuple) else array
    return bool(pd.isna(plain).any())


def _fraction(test: Any) -> float:
    if not isinstance(test, float) or not 0 < test < 1:
        shown = repr(test) if isinstance(test, int | float | str | None) else type(test).__name__
        raise InputError(f"people: test = {shown}: give a share above 0 and below 1, or test records.")
    return test


def _stored(
    arrays: Mapping[str, NDArray[Any]],
    notes: Sequence[str],
    bounds: tuple[Sequence[float], Sequence[float]] | None = None,
    read: tuple[str, ...] = (),
    owners: tuple[str, ...] = (),
) -> People:
    """Writes the arrays to a temporary file that only this user can read; it goes with the object."""
    try:
        folder = _Folder()
        path = folder.path / "people.npz"
        with replacing(path, storage.OWNER_ONLY) as stream:
            tables.save(stream, arrays)
    except OSError as error:
        raise InputError(
            f"{tempfile.gettempdir()}: {error.strerror or error}. It keeps the records while they are used: "
            "make room, or set TMPDIR to another folder."
        ) from error
    try:
        facts(str(path))  # explains what cannot be used
    except NpzError as error:
        raise NpzError("people", error.wrongs) from None
    return People(path, tuple(notes), True, bounds, read, owners, folder)


class _Folder:
    """A private temporary folder, removed with this object or at the end of the process."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="fedprivacy-"))
        weakref.finalize(self, _remove, self.path, os.getpid())


def _remove(folder: Path, process: int) -> None:
    if os.getpid() == process:  # not in a forked worker, which ends before its parent
        shutil.rmtree(folder, ignore_errors=True)
