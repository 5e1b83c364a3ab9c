"""Turns tables (CSV, Parquet, DataFrames) into the arrays that a federation trains on.

Text columns become one column for each category, text labels become numbers with names, and numbers stay as
they are. Everything that is read off the records and then public (categories, classes, bounds) is reported as
a note, because no epsilon covers it.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from fedprivacy.data.tasks import CLASSIFICATION, MULTI_LABEL
from fedprivacy.errors import InputError
from fedprivacy.io.escape import on_one_line
from fedprivacy.io.regular_file import read_regular

if TYPE_CHECKING:
    import pandas as pd

MAX_BYTES = 2**32  # of a table file
MAX_CATEGORIES = 100  # of one text column; more make a model of names instead of properties
HELD_OUT = 0.2  # the share of records, or of users, to test on
FEWEST_USERS = 20  # with fewer users each one's records are split, instead of the users
SUFFIXES = (".csv", ".tsv", ".parquet")


class TableError(InputError):
    """The problems of a table, one on each line."""

    several = True

    @classmethod
    def of(cls, problems: Iterable[str]) -> Self:
        """Returns the error of these problems; names of columns cannot begin a line of their own."""
        return cls("\n".join(map(on_one_line, problems)))


@dataclass(frozen=True)
class Table:
    """Records of a table as arrays.

    Args:
        x: The features, float32, shape (records, columns).
        y: The labels, int64, shape (records,), or targets, float32, shape (records, targets).
        users: The owner of each record, shape (records,), or None.
        feature_names: The names of the columns, those of categories as "column=category".
        classes: The names of the classes; empty where labels are numbers. Of another task those of targets.
        notes: Statements on what was read off the records, and on missing values.
        ranges: Column -> its least and largest value, for the numeric columns of the table.
        positions: The rows of the DataFrame that the records come from, shape (records,).
    """

    x: NDArray[np.float32]
    y: NDArray[Any]
    users: NDArray[Any] | None
    feature_names: tuple[str, ...]
    classes: tuple[str, ...]
    notes: tuple[str, ...] = ()
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    positions: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    def rows(self, chosen: NDArray[np.int64]) -> Table:
        """Returns the records at these positions."""
        users = None if self.users is None else self.users[chosen]
        return replace(
            self, x=self.x[chosen], y=self.y[chosen], users=users, positions=self.positions[chosen]
        )


def read_table(path: str | Path) -> pd.DataFrame:
    """Reads a CSV, TSV or Parquet file.

    Raises:
        InputError: if it cannot be read, is of another type, or a package to read it is missing.
    """
    import io

    import pandas as pd

    file = Path(path)
    if file.suffix.lower() not in SUFFIXES:
        raise InputError(f"{file}: not a table. Give a file that ends in {', '.join(SUFFIXES)}.")
    try:
        content = io.BytesIO(read_regular(file, MAX_BYTES))
    except FileNotFoundError:
        raise InputError(f"{file}: no such file. Check the name.") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or error}.") from None
    try:
        if file.suffix.lower() == ".parquet":
            return pd.read_parquet(content)
        separator = "\t" if file.suffix.lower() == ".tsv" else ","
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            # Without it the first column of rows that end in a separator would become their index.
            return pd.read_csv(content, sep=separator, low_memory=False, index_col=False)
    except pd.errors.ParserWarning:
        raise InputError(
            f"{file}: line {_longer_row(content, separator)}: more fields than the first line has names. "
            "Name each column."
        ) from None
    except ImportError:
        raise InputError(
            f"{file}: pyarrow is needed to read Parquet. Install it with: pip install 'fedprivacy[parquet]'"
        ) from None
    except Exception as error:  # each format has errors of its own
        reason = str(error).strip().split("\n")[0]
        raise InputError(f"{file}: damaged, or not a table: {reason}. Save it again as CSV.") from None


def _longer_row(content: IO[bytes], separator: str) -> str:
    """Returns the number of the line of the first row that has values beyond the last name."""
    import csv
    import io

    content.seek(0)
    rows = csv.reader(io.TextIOWrapper(content, "utf-8", newline=""), delimiter=separator)
    width = 0
    for row in rows:
        if width and any(row[width:]):
            return str(rows.line_num)
        width = width or len(row)
    return "?"


def table(
    frame: pd.DataFrame,
    label: str | Sequence[str],
    user: str | None = None,
    drop: Sequence[str] = (),
    source: str = "table",
    task: str = CLASSIFICATION,
) -> Table:
    """Turns a DataFrame into arrays.

    Args:
        frame: One row for each record.
        label: The column of the labels: text, or whole numbers from 0 (others become classes by value); or
            the columns of several targets.
        user: The column that names the owner of each record; None where each record is its own.
        drop: Columns to leave out.
        source: The name of the table in messages.
        task: What is predicted (`fedprivacy.data.tasks`).

    Raises:
        InputError: with every column that is missing or cannot be used.
    """
    labels = [label] if isinstance(label, str) else list(label)
    frame, drop = frame.rename(columns=str), [str(name) for name in drop]
    problems = _missing_columns(frame, [*labels, *([user] if user else []), *drop], source)
    twice = frame.columns[frame.columns.duplicated()]
    problems += [
        f"{source}: {name}: two columns have this name. Rename one." for name in dict.fromkeys(twice)
    ]
    if not len(frame):
        problems.append(f"{source}: has no records.")
    if problems:
        raise TableError.of(problems)
    notes: list[str] = []
    y: NDArray[Any]
    if task == CLASSIFICATION:
        y, classes, labelled = _labels(frame[labels[0]], labels[0], source, notes)
    else:
        y, classes, labelled = _targets(frame[labels], source, notes, task)
    frame = frame[labelled]
    owners = None
    if user:
        if frame[user].isna().any():
            raise InputError(f"{source}: {user}: a record has no owner. Name it, or remove the record.")
        owners = frame[user].astype(str).to_numpy(dtype=str)
    columns, names, ranges = [], [], {}
    for name in frame.columns:
        if name in (*labels, user, *drop):
            continue
        try:
            part, titles = _column(frame[name], name, notes)
        except InputError as error:
            problems.append(f"{source}: {error}")
            continue
        if titles[0] == name:
            ranges[name] = (float(part[:, 0].min()), float(part[:, 0].max()))
        columns.append(part)
        names += titles
    problems += [
        f"{source}: {name}: two columns would get this name. Rename the one that has it."
        for name, times in Counter(names).items()
        if times > 1
    ]
    if not columns and not problems:
        problems.append(f"{source}: no column is left to learn from. Drop fewer columns.")
    if problems:
        raise TableError.of(problems)
    x = np.concatenate(columns, axis=1)
    notes = [on_one_line(note) for note in notes]
    return Table(x, y, owners, tuple(names), classes, tuple(notes), ranges, np.flatnonzero(labelled))


def _missing_columns(frame: pd.DataFrame, wanted: Sequence[str], source: str) -> list[str]:
    known = ", ".join(map(str, list(frame.columns)[:20]))
    return [
        f"{source}: has no column {name!r}. It has: {known}." for name in wanted if name not in frame.columns
    ]


def _labels(
    column: pd.Series[Any], name: str, source: str, notes: list[str]
) -> tuple[NDArray[np.int64], tuple[str, ...], NDArray[np.bool_]]:
    """Returns labels from 0, the names of the classes, and which records have a label."""
    import pandas as pd

    labelled = column.notna().to_numpy()
    if not labelled.any():
        raise InputError(f"{source}: {name}: no record has a label. Choose another column of labels.")
    if not labelled.all():
        notes.append(f"{int((~labelled).sum()):,} records without a label ({name}) were left out.")
    column = column[labelled]
    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
        values = column.to_numpy(dtype=np.float64)
        distinct = np.unique(values)
        if (distinct % 1 != 0).any() or len(distinct) > MAX_CATEGORIES:
            raise InputError(
                f"{source}: {name}: {len(distinct):,} different numbers, which are no classes. "
                "Group them into classes first."
            )
        if distinct.min() >= 0 and distinct.max() < 2 * len(distinct):
            notes.append(
                f"The number of classes, {int(distinct.max()) + 1}, was read off the labels ({name})."
            )
            return values.astype(np.int64), (), labelled
        notes.append(
            f"The classes were read off the labels ({name}), and numbered from 0 by their values: "
            f"{', '.join(f'{value:g}' for value in distinct)}."
        )
        return (
            np.searchsorted(distinct, values).astype(np.int64),
            tuple(f"{value:g}" for value in distinct),
            labelled,
        )
    texts = column.astype(str)
    classes = sorted(texts.unique())
    if len(classes) > MAX_CATEGORIES:
        raise InputError(
            f"{source}: {name}: {len(classes):,} different labels. Choose a column with at most "
            f"{MAX_CATEGORIES}."
        )
    notes.append(f"The classes were read off the labels ({name}): {', '.join(classes)}.")
    place = {text: at for at, text in enumerate(classes)}
    return texts.map(place).to_numpy(dtype=np.int64), tuple(classes), labelled


def _targets(
    columns: pd.DataFrame, source: str, notes: list[str], task: str
) -> tuple[NDArray[np.float32], tuple[str, ...], NDArray[np.bool_]]:
    """Returns targets, shape (records, targets), their names, and which records have all of them."""
    import pandas as pd

    problems, names = [], tuple(columns.columns)
    for name in names:
        column = columns[name]
        if not pd.api.types.is_numeric_dtype(column) or pd.api.types.is_complex_dtype(column):
            problems.append(f"{source}: {name}: no numbers. Choose columns of numbers to predict.")
        elif task == MULTI_LABEL and not column.dropna().isin([0, 1]).all():
            problems.append(f"{source}: {name}: a label holds only 0 and 1. Choose other columns of labels.")
    if problems:
        raise TableError.of(problems)
    values = columns.to_numpy(dtype=np.float64, na_value=np.nan)
    with np.errstate(over="ignore"):
        targets = values.astype(np.float32)
    labelled = np.isfinite(targets).all(axis=1)
    if not labelled.any():
        raise InputError(f"{source}: {', '.join(names)}: no record has all targets. Choose other columns.")
    if not labelled.all():
        notes.append(
            f"{int((~labelled).sum()):,} records without all targets ({', '.join(names)}) were left out."
        )
    return targets[labelled], names, labelled


def _column(column: pd.Series[Any], name: str, notes: list[str]) -> tuple[NDArray[np.float32], list[str]]:
    """Returns the numbers of a column, shape (records, columns), and the names of these columns."""
    import pandas as pd

    if pd.api.types.is_complex_dtype(column):
        raise InputError(f"{name}: complex numbers. Drop the column ({name}).")
    if pd.api.types.is_numeric_dtype(column):  # yes and no too
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        missing = ~np.isfinite(values)
        if (np.abs(values[~missing]) > np.finfo(np.float32).max).any():
            raise InputError(f"{name}: has numbers beyond 3.4e38. Drop the column ({name}).")
        if missing.all():
            raise InputError(f"{name}: has no values. Drop the column ({name}).")
        if not missing.any():
            return values.astype(np.float32)[:, None], [name]
        # Zero, and a column that marks it: a mean of the records would be one more release.
        notes.append(
            f"{name}: {int(missing.sum()):,} missing values became 0, and a column {name}=missing marks them."
        )
        values = np.where(missing, 0.0, values)
        return np.stack([values, missing], axis=1).astype(np.float32), [name, f"{name}=missing"]
    if pd.api.types.is_datetime64_any_dtype(column) or pd.api.types.is_timedelta64_dtype(column):
        raise InputError(f"{name}: dates or times. Turn them into numbers, or drop the column ({name}).")
    texts = column.astype(object).where(column.notna(), "missing").astype(str)
    categories = sorted(texts.unique())
    if len(categories) > MAX_CATEGORIES:
        raise InputError(
            f"{name}: {len(categories):,} different texts; at most {MAX_CATEGORIES} become columns. "
            f"Group them, or drop the column ({name})."
        )
    notes.append(f"{name}: its {len(categories)} categories, read off the records, became a column each.")
    shown = texts.to_numpy(dtype=object)
    return (
        np.stack([shown == category for category in categories], axis=1).astype(np.float32),
        [f"{name}={category}" for category in categories],
    )


def owners_hidden(owners: int) -> bool:
    """Whether clients are protected, and not single records: there are enough owners for one to be hidden.

    Args:
        owners: The number of all owners, those of test records included: the split and the unit agree by it.
    """
    return owners >= FEWEST_USERS


def owners_of(*parts: Table) -> int:
    """Returns the number of owners of all these records, 0 where each record is its own."""
    return len({str(user) for part in parts if part.users is not None for user in np.unique(part.users)})


def split(table: Table, fraction: float = HELD_OUT, seed: int = 0) -> tuple[Table, Table, str]:
    """Splits off test records, and describes the split.

    Where there are at least `FEWEST_USERS` users, whole users are held out, so that no client owns a test
    record. With fewer, records of each user are.

    Args:
        table: All records.
        fraction: The share to test on, above 0 and below 1.
        seed: The seed of the draw.

    Raises:
        InputError: if a part would be empty.
    """
    random = np.random.default_rng(seed)
    users = table.users
    if users is not None and owners_hidden(owners_of(table)):
        names = np.unique(users)
        held = random.permutation(names)[: max(1, round(fraction * len(names)))]
        tested = np.isin(users, held)
        words = f"{len(held):,} of {len(names):,} users were held out at random to test on."
    else:
        tested = np.zeros(len(table.y), dtype=bool)
        owners = (
            np.zeros(len(table.y), dtype=int) if users is None else np.unique(users, return_inverse=True)[1]
        )
        for owner in range(int(owners.max()) + 1):
            rows = random.permutation(np.flatnonzero(owners == owner))
            tested[rows[: round(fraction * len(rows))]] = True
        words = f"{int(tested.sum()):,} of {len(tested):,} records were held out at random to test on."
        if users is not None and (gone := sorted(set(users[tested]) - set(users[~tested]))):
            words += f" Not training, since all their records were held out: {', '.join(map(str, gone))}."
    if not tested.any() or tested.all():
        raise InputError(
            f"test = {fraction}: leaves no records to {'train' if tested.all() else 'test'} on. "
            "Choose another share, or give test records."
        )
    return table.rows(np.flatnonzero(~tested)), table.rows(np.flatnonzero(tested)), words


@dataclass(frozen=True)
class Prepared:
    """A table as training and test records, with what was read off them.

    Args:
        train: The training records.
        test: The test records.
        bounds: The lower and upper bound of each column.
        read: The columns whose bounds were read off the records.
        notes: Statements on what was read off the records, on missing values and on the split.
    """

    train: Table
    test: Table
    bounds: tuple[list[float], list[float]]
    read: tuple[str, ...]
    notes: tuple[str, ...]


def prepared(
    frame: pd.DataFrame,
    test: pd.DataFrame | float,
    *,
    label: str | Sequence[str],
    user: str | None = None,
    drop: Sequence[str] = (),
    bounds: Mapping[str, tuple[float, float]],
    source: str = "table",
    option: str = "bounds",
    seed: int = 0,
    task: str = CLASSIFICATION,
) -> Prepared:
    """Turns a DataFrame into training and test records and their bounds.

    Args:
        frame: One row for each record.
        test: The share to test on, or a table of test records.
        label: The column of the labels, or the columns of several targets.
        user: The column that names the owner of each record; None where each record is its own.
        drop: Columns to leave out.
        bounds: Public limits of columns.
        source: The name of the table in messages.
        option: What gives the bounds, in messages.
        seed: The seed of the split.
        task: What is predicted (`fedprivacy.data.tasks`).

    Raises:
        InputError: with what is wrong.
    """
    records = len(frame)
    if not isinstance(test, float):
        frame = joined(frame, test, source)
    whole = table(frame, label, user, drop, source, task)
    notes = list(whole.notes)
    if isinstance(test, float):
        train, held, words = split(whole, test, seed)
        notes.append(words)
    else:
        train, held = split_at(whole, records)
    check_columns(bounds, whole, option)
    low, high, read = public_bounds(whole, bounds)
    notes += tested_clients(train, held)
    return Prepared(train, held, (low, high), tuple(read), tuple(map(on_one_line, notes)))


def tested_clients(train: Table, test: Table) -> list[str]:
    """Returns a note where test records belong to owners who train, or may; none elsewhere."""
    if train.users is None:
        return []
    if test.users is None:
        whose = "may belong"
    elif np.isin(test.users, train.users).any():
        whose = "belong"
    else:
        return []
    return [
        f"Test records {whose} to clients: accuracy and loss depend on clients' records without any noise. "
        "The guarantee assumes that the observer is not shown them."
    ]


def split_at(table: Table, records: int) -> tuple[Table, Table]:
    """Splits a table of two joined ones into the records before and from this row of the DataFrame on."""
    first = table.positions < records
    return table.rows(np.flatnonzero(first)), table.rows(np.flatnonzero(~first))


def joined(train: pd.DataFrame, test: pd.DataFrame, source: str) -> pd.DataFrame:
    """Returns the records of two tables with the same columns, those of the first before the others.

    Raises:
        TableError: with every column that only one of them has.
    """
    import pandas as pd

    train, test = train.rename(columns=str), test.rename(columns=str)
    pairs = ((train, test, "the test records lack it"), (test, train, "only the test records have it"))
    if problems := [
        f"{source}: {name}: {problem}. Give both tables the same columns."
        for here, there, problem in pairs
        for name in here.columns
        if name not in there.columns
    ]:
        raise TableError.of(problems)
    if train.columns.has_duplicates or test.columns.has_duplicates:
        return train  # `table` reports the names
    return pd.concat([train, test], ignore_index=True)


def checked_bounds(bounds: Mapping[str, Any], where: str) -> dict[str, tuple[float, float]]:
    """Returns bounds given by column as pairs of numbers.

    Raises:
        TableError: with every column whose bounds are not two numbers in rising order.
    """
    limits, problems = {}, []
    for name, pair in bounds.items():
        try:
            low, high = (float(value) for value in pair)
        except (TypeError, ValueError):
            low = high = math.nan
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            problems.append(f"{where}: {name}: {pair!r} are no bounds. Give two numbers, the lower first.")
        limits[str(name)] = (low, high)
    if problems:
        raise TableError.of(problems)
    return limits


def check_columns(names: Iterable[str], table: Table, where: str) -> None:
    """Checks that each name is a column of numbers.

    Raises:
        TableError: with every other name.
    """
    known = ", ".join(table.ranges) or "none"
    if problems := [
        f"{where}: no column of numbers {name!r}. There are: {known}."
        for name in names
        if name not in table.feature_names
    ]:
        raise TableError.of(problems)


def public_bounds(
    table: Table, given: Mapping[str, tuple[float, float]]
) -> tuple[list[float], list[float], list[str]]:
    """Returns the lower and upper bound of each column, and the columns whose bounds were read off.

    Bounds that nobody gives are the least and largest value, rounded outward to one significant digit of the
    width.
    """
    low, high, read = [], [], []
    for at, name in enumerate(table.feature_names):
        if name in given:
            least, most = given[name]
        elif name in table.ranges and not np.isin(table.x[:, at], (0.0, 1.0)).all():
            least, most = table.ranges[name]
            read.append(name)
            step = 10.0 ** math.floor(math.log10(most - least)) if most > least else 1.0
            least, most = math.floor(least / step) * step, math.ceil(most / step) * step
        else:
            least, most = 0.0, 1.0  # of a category, or of yes and no
        low.append(float(f"{least:.12g}"))
        high.append(float(f"{most if most > least else least + 1:.12g}"))
    return low, high, read


def save(file: IO[bytes], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Writes arrays as .npz.

    Raises:
        InputError: if one holds objects, which would be pickled.
    """
    for name, array in arrays.items():
        if array.dtype.hasobject:
            raise InputError(f"people: {name} holds objects. Give arrays of numbers.")
    np.savez(file, **arrays)  # type: ignore[arg-type]


def arrays_of(train: Table, test: Table) -> dict[str, NDArray[Any]]:
    """Returns the arrays of the .npz file of a data set."""
    arrays: dict[str, NDArray[Any]] = {
        "x_train": train.x,
        "y_train": train.y,
        "x_test": test.x,
        "y_test": test.y,
        "feature_names": np.array(train.feature_names, dtype=str),
    }
    if train.classes:
        arrays["classes"] = np.array(train.classes, dtype=str)
    for name, users in (("user_train", train.users), ("user_test", test.users)):
        if users is not None:
            arrays[name] = users
    return arrays
