"""Tables as data of a scenario: each is made once into an .npz file of the cache folder.

That file is a copy of private data, which only its owner may read; it may be deleted at any time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from fedprivacy.data import storage, tables
from fedprivacy.data.source import SourceError
from fedprivacy.data.tasks import CLASSIFICATION
from fedprivacy.errors import Finding, InputError

if TYPE_CHECKING:
    import pandas as pd

VERSION = 2  # of how files are made


@dataclass(frozen=True)
class TableSource:
    """The keys of the data section that select the records of a table."""

    path: str
    label: str | tuple[str, ...]
    user: str | None
    drop: tuple[str, ...]
    held_out: float
    test: str | None
    task: str = CLASSIFICATION

    @classmethod
    def of(cls, keys: Mapping[str, Any]) -> Self:
        """The source that a data section names; what it lacks is None."""
        values: dict[str, Any] = {field.name: keys.get(field.name) for field in fields(cls)}
        label = values["label"]
        return cls(
            **{
                **values,
                "drop": tuple(values["drop"] or ()),
                "label": tuple(label) if isinstance(label, list) else label,
                "task": values["task"] or CLASSIFICATION,
            }
        )


def file(source: TableSource) -> str:
    """The path of the .npz file of a table, which is made if it is missing or the table has changed.

    Raises:
        SourceError: if the table cannot be read, or a column cannot be used.
        InputError: if the cache folder cannot be written.
    """

    def make() -> dict[str, NDArray[Any]]:
        train, held, _ = _parts(source)
        return tables.arrays_of(train, held)

    given = astuple(source)
    chosen = given[:-1] if source.task == CLASSIFICATION else given  # as in files of earlier versions
    return storage.converted((VERSION, "table", chosen, _stamps(source)), source.path, make)


def held_out_columns(source: TableSource) -> dict[str, NDArray[Any]]:
    """The columns that are no features, of the test records alone, each shape (test records,).

    They are read from the table each time that it changes, and stored nowhere: nothing trains on them.

    Raises:
        SourceError: if the table cannot be read, or a column cannot be used.
    """
    return _held_out_columns(source, tuple(_stamps(source)))


@lru_cache(maxsize=4)
def _held_out_columns(source: TableSource, stamps: tuple[object, ...]) -> dict[str, NDArray[Any]]:
    import pandas as pd

    _, held, frame = _parts(source)
    columns = {}
    for name in dict.fromkeys([*([source.user] if source.user else []), *source.drop]):
        values = frame[name].iloc[held.positions]
        number = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
        if number and not pd.api.types.is_complex_dtype(values):
            columns[name] = values.to_numpy(dtype=np.float64, na_value=np.nan)
        else:
            columns[name] = values.astype(object).where(values.notna(), None).to_numpy(dtype=object)
    return columns


def _parts(source: TableSource) -> tuple[tables.Table, tables.Table, pd.DataFrame]:
    """The training records, the test records, and the table that their positions are rows of.

    Raises:
        SourceError: if the table cannot be read, or a column cannot be used.
    """
    try:
        frame = tables.read_table(source.path)
        test = source.held_out if source.test is None else tables.read_table(source.test)
        parts = tables.prepared(
            frame,
            test,
            label=source.label,
            user=source.user,
            drop=source.drop,
            bounds={},
            source=source.path,
            task=source.task,
        )
        whole = frame if isinstance(test, float) else tables.joined(frame, test, source.path)
    except SourceError:
        raise
    except InputError as error:
        lines = str(error).split("\n")
        raise SourceError([Finding(("data", "path"), *_split(line)) for line in lines]) from None
    return parts.train, parts.test, whole.rename(columns=str)


def _stamps(source: TableSource) -> list[object]:
    return [storage.stamp_of(path) for path in (source.path, source.test) if path is not None]


def _split(line: str) -> tuple[str, str]:
    """A message as its problem and its remedy."""
    problem, _, remedy = line.partition(". ")
    return problem.rstrip("."), remedy
