"""One column of a data file's records as it was before scaling, also where it is no feature."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedprivacy.data import hub, npz, table_file
from fedprivacy.data.source import Source
from fedprivacy.data.table_file import TableSource

Origin = TableSource | Source | None  # what the .npz file was made from; None: it was given
MISSING = "missing"
OTHERS = "all others"  # of one-hot columns without one for the first category
USER = "user"  # the name of `user_test` of an .npz file that was given


@dataclass(frozen=True)
class Column:
    """The values of one column.

    Args:
        texts: Categories, shape (records,); None where they are numbers.
        numbers: float64, NaN where missing, shape (records,); None where they are categories.
    """

    texts: NDArray[np.object_] | None = None
    numbers: NDArray[np.float64] | None = None


def origin_of(name: str, keys: Mapping[str, Any]) -> Origin:
    """What the .npz file of a data set is made from; None where the scenario names the file itself.

    Args:
        name: The data set, `data.name`.
        keys: The valid keys of the data section.
    """
    if name == "table":
        return TableSource.of(keys)
    return Source.of(keys) if name == "flwr-datasets" else None


def names(file: str, origin: Origin) -> list[str]:
    """The names of the columns of the test records, features first; one-hot columns have one name.

    Args:
        file: The .npz file.
        origin: What it was made from.
    """
    facts = npz.facts(file)
    known = [name.partition("=")[0] for name in facts.feature_names]
    return list(dict.fromkeys([*known, *_others(file, origin)]))


def held_out_column(file: str, origin: Origin, name: str) -> Column | None:
    """A column of the test records, in their order; None where there is no such column.

    Args:
        file: The .npz file.
        origin: What it was made from; its columns that are no features are read from there.
        name: The column.
    """
    if (column := feature(file, name, "test")) is not None:
        return column
    if name not in _others(file, origin):
        return None
    if isinstance(origin, TableSource):
        return _parsed(table_file.held_out_columns(origin)[name])
    if isinstance(origin, Source):
        return _parsed(hub.held_out_columns(origin)[name])
    return _parsed(npz.array(file, "user_test"))


def feature(file: str, name: str, part: str) -> Column | None:
    """A column of the features of one part, "train" or "test"; None where it is no feature.

    Args:
        file: The .npz file.
        name: The column: of numbers, or what the names of one-hot columns have before "=".
        part: "train" or "test".
    """
    return _feature(file, name, part, npz.stamp(file))


@lru_cache(maxsize=32)
def _feature(file: str, name: str, part: str, stamp: tuple[str, int, int]) -> Column | None:
    known = npz.facts(file).feature_names
    categories = [title for title in known if title.startswith(f"{name}=")]
    if name in known:
        flag = f"{name}={MISSING}"
        wanted = [name, *([flag] if flag in known else [])]
        values = _taken(file, part, [known.index(title) for title in wanted]).astype(np.float64)
        there = values[:, 1] == 0 if len(wanted) > 1 else np.ones(len(values), bool)
        numbers = np.where(there & np.isfinite(values[:, 0]), values[:, 0], np.nan)
        return Column(numbers=numbers)
    if not categories:
        return None
    ones = _taken(file, part, [known.index(title) for title in categories])
    labels = np.array([*(title.removeprefix(f"{name}=") for title in categories), OTHERS], dtype=object)
    place = np.where((ones == 1).any(axis=1), (ones == 1).argmax(axis=1), len(categories))
    return Column(texts=labels[place])


def _taken(file: str, part: str, places: list[int]) -> NDArray[np.generic]:
    blocks: Iterator[NDArray[np.generic]] = npz.blocks(file, f"x_{part}")
    return np.concatenate([block[:, places] for block in blocks])


def _others(file: str, origin: Origin) -> list[str]:
    """The columns of the test records that are no features."""
    if isinstance(origin, TableSource):
        return list(table_file.held_out_columns(origin))
    if isinstance(origin, Source):
        return list(hub.held_out_columns(origin))
    return [USER] if npz.facts(file).test_users else []


def _parsed(values: NDArray[np.generic]) -> Column:
    """Numbers where all values are some, else texts."""
    if values.dtype.kind in "iuf":
        numbers = values.astype(np.float64)
        return Column(numbers=np.where(np.isfinite(numbers), numbers, np.nan))
    texts = [MISSING if value is None or value != value else str(value) for value in values.tolist()]
    return Column(texts=np.array(texts, dtype=object))
