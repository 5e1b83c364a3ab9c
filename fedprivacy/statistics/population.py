"""The people of a statistics run: columns of numbers, and the owner of each record."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedprivacy.data import npz
from fedprivacy.randomness.streams import Streams
from fedprivacy.scenario.statistics.data import Bits, Categories, Data, NpzTable, Numbers
from fedprivacy.scenario.statistics.facts import ANSWER, columns_of

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class People:
    """Records of clients; client i owns those from offsets[i] to offsets[i + 1].

    Args:
        columns: Name -> one number for each record, float64, shape (records,).
        offsets: int64, shape (clients + 1,).
    """

    columns: Mapping[str, NDArray[np.float64]]
    offsets: Ids

    @property
    def population(self) -> int:
        """The number of clients."""
        return len(self.offsets) - 1

    @cached_property
    def one_each(self) -> bool:
        """Whether every client has exactly one record."""
        return bool((np.diff(self.offsets) == 1).all())

    @cached_property
    def digest(self) -> str:
        """Identifies these records and owners among others."""
        digest = hashlib.blake2b(digest_size=16)
        for name, array in (*self.columns.items(), ("", self.offsets)):
            digest.update(f"{name}/{array.dtype.str}/{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()


def people(data: Data, columns: Iterable[str]) -> People:
    """Loads, or generates, the requested columns.

    Raises:
        InputError: if a file does not match the scenario.
    """
    stamp = npz.stamp(data.path) if isinstance(data, NpzTable) else None
    return _people(data, tuple(sorted(set(columns))), stamp)


@lru_cache(maxsize=4)
def _people(data: Data, columns: tuple[str, ...], stamp: tuple[str, int, int] | None) -> People:
    if isinstance(data, NpzTable):
        return _from_file(data, columns)
    each = data.each if isinstance(data, Categories) else 1
    return People({ANSWER: synthetic(data)}, np.arange(data.clients + 1) * each)


def synthetic(data: Bits | Categories | Numbers) -> NDArray[np.float64]:
    """The answers of made-up clients, one client's after the other's, float64, shape (records,)."""
    stream = Streams(data.seed).stream(f"statistics/{data.name}")
    if isinstance(data, Bits):
        answers = np.zeros(data.clients)
        answers[: round(data.share * data.clients)] = 1.0
        return stream.permutation(answers)
    if isinstance(data, Categories):
        shares = np.asarray(data.shares or _zipf(data.categories, data.exponent), dtype=np.float64)
        edges = np.cumsum(shares) / shares.sum()
        drawn = np.searchsorted(edges, stream.random(data.clients * data.each), side="right")
        return np.minimum(drawn, len(shares) - 1).astype(np.float64)
    if data.law == "uniform":
        return stream.uniform(data.low or 0.0, data.high or 0.0, data.clients)
    normal = stream.standard_normal(data.clients)
    return (data.median or 0.0) * np.exp((data.spread or 0.0) * normal)


def _zipf(categories: int | None, exponent: float | None) -> NDArray[np.float64]:
    ranks = np.arange(1, (categories or 0) + 1, dtype=np.float64)
    return ranks ** -(exponent or 0.0)


def _from_file(data: NpzTable, columns: tuple[str, ...]) -> People:
    names = columns_of(data)
    places = {name: names.index(name) for name in columns if name != data.label}
    columns_read: dict[str, list[NDArray[Any]]] = {name: [] for name in places}
    for block in npz.blocks(data.path, "x_train"):
        for name, place in places.items():
            columns_read[name].append(block[:, place].astype(np.float64))
    table = {name: np.concatenate(parts) for name, parts in columns_read.items()}
    if data.label in columns:
        table[data.label] = npz.array(data.path, "y_train").astype(np.float64)
    if data.owner == "record":
        records = npz.facts(data.path).records
        return People(table, np.arange(records + 1))
    _, owner = np.unique(npz.array(data.path, "user_train"), return_inverse=True)
    order = np.argsort(owner, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(owner))])
    return People({name: values[order] for name, values in table.items()}, offsets)
