"""Records that live on nodes: what everybody knows of them, and what one node has.

A node's own file is an .npz with `x_train` and `y_train` (so that one which serves a simulation can be taken
as it is), and `user_train`, the clients' numbers, where several clients live on the node.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fedprivacy.data import npz
from fedprivacy.data.datasets import Dataset
from fedprivacy.data.npz import Header, NpzError
from fedprivacy.population.clients import Population
from fedprivacy.population.partition import Partition
from fedprivacy.scenario.on_nodes import OnNodes

Ids = NDArray[np.int64]
_MAKE = "Save it with numpy.savez."


def agreed_sizes(options: OnNodes) -> Ids:
    """The records that each client is agreed to have, shape (clients,); 0 where nothing is agreed."""
    return np.broadcast_to(np.array(options.records_per_client or 0, np.int64), options.clients)


def known(options: OnNodes) -> Population:
    """Public knowledge about the records: their shape, their classes, and their agreed number; no record."""
    x, y = np.zeros((0, *options.shape), np.float32), np.zeros(0, np.int64)
    return _population(options, x, y, np.zeros(0, np.int64), agreed_sizes(options))


def for_server(options: OnNodes) -> Population:
    """Public knowledge about the records, with the public held-out ones of the server, if any.

    Raises:
        NpzError: if their file cannot be used.
    """
    people = known(options)
    if options.test is None:
        return people
    x, y = _records(options, options.test, "test")
    data = people.dataset
    dataset = Dataset(data.x, data.y, x, y, data.classes, class_names=data.class_names)
    return Population(dataset, people.partition)


def of_node(options: OnNodes, path: str, here: Ids, *, exact: bool) -> Population:
    """The records of the clients of one node; all others have none here.

    Args:
        options: The agreed section.
        path: The node's own file.
        here: The clients that live on the node, sorted.
        exact: Whether each must have exactly the agreed number of records. False under add-remove of records,
            where a refusal would reveal a record.

    Raises:
        NpzError: if the file does not fit what was agreed.
    """
    x, y = _records(options, path, "train")
    owners = np.full(len(y), here[0]) if len(here) == 1 else _owners(path, len(y), here)
    sizes = np.bincount(owners, minlength=options.clients)
    lacking = here[sizes[here] == 0]
    if len(lacking):
        raise NpzError(path, [(f"client {lacking[0]} has no records", "Each client needs at least one.")])
    wanted = agreed_sizes(options)
    other = here[sizes[here] != wanted[here]]
    if exact and len(other):
        node = int(other[0])
        raise NpzError(
            path,
            [
                (
                    f"client {node} has {sizes[node]} records, {wanted[node]} are agreed",
                    "Agree on another number, or take as many.",
                )
            ],
        )
    return _population(options, x, y, np.argsort(owners, kind="stable"), sizes)


def _population(options: OnNodes, x: NDArray[np.float32], y: Ids, order: Ids, sizes: Ids) -> Population:
    names = () if isinstance(options.classes, int) else options.classes
    nothing, none = np.zeros((0, *options.shape), np.float32), np.zeros(0, np.int64)
    dataset = Dataset(x, y, nothing, none, options.class_count, class_names=names)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    return Population(dataset, Partition(order, offsets, np.zeros(0, np.int64)))


def _records(options: OnNodes, path: str, part: str) -> tuple[NDArray[np.float32], Ids]:
    """The records and labels of a part of a file, checked against what was agreed.

    Raises:
        NpzError: with everything that does not fit.
    """
    x_name, y_name = f"x_{part}", f"y_{part}"
    headers = npz.headers(path)
    absent = [name for name in (x_name, y_name) if name not in headers]
    if absent:
        raise NpzError(path, [(f"the file has no {' and no '.join(absent)}", _MAKE)])
    _refuse(path, _misfits(options, headers, x_name, y_name))
    x, y = npz.array(path, x_name), npz.array(path, y_name)
    _refuse(path, _wrong_values(options, x_name, x, y_name, y))
    return x.astype(np.float32), y.astype(np.int64)


def _misfits(
    options: OnNodes, headers: dict[str, Header], x_name: str, y_name: str
) -> Iterator[tuple[str, str]]:
    x, y = headers[x_name], headers[y_name]
    for name, header in ((x_name, x), (y_name, y)):
        if header.dtype.kind not in "biuf":
            yield f"{name} holds {header.dtype}, numbers are needed", npz.remedy(name, header)
    if x.shape[1:] != options.shape:
        what = f"records of {x_name} have the shape {x.shape[1:]}, {options.shape} is agreed"
        yield what, "Bring them into that shape."
    if not x.shape or x.shape[0] == 0:
        yield f"{x_name} has no rows", "At least one is needed."
    if y.shape != x.shape[:1]:
        yield f"{y_name} has the shape {y.shape}, {x_name} {x.shape}", "Each record needs one label."


def _wrong_values(
    options: OnNodes, x_name: str, x: NDArray[np.generic], y_name: str, y: NDArray[np.generic]
) -> Iterator[tuple[str, str]]:
    if not npz.usable(x).all():
        yield (
            f"{x_name} has values that are NaN, infinite or beyond float32",
            "Replace them, or leave them out.",
        )
    labels = y.astype(np.float64)
    good = (labels == np.floor(labels)) & (labels >= 0) & (labels < options.class_count)
    if not good.all():
        what = f"{y_name} has the label {labels[~good][0]:g}, of the classes 0 to {options.class_count - 1}"
        yield what, "Labels are whole numbers, counted from 0."


def _owners(path: str, records: int, here: Ids) -> Ids:
    """The client of each record, from `user_train`."""
    header = npz.headers(path).get("user_train")
    if header is None or header.dtype.kind not in "iu" or header.shape != (records,):
        what = f"clients {here.tolist()[:8]} live here, and no user_train says whose a record is"
        raise NpzError(path, [(what, "Add the number of its client for each record.")])
    owners = npz.array(path, "user_train").astype(np.int64)
    foreign = np.setdiff1d(owners, here)
    if len(foreign):
        what = f"user_train names client {foreign[0]}, who does not live on this node"
        raise NpzError(path, [(what, f"Here live {here.tolist()[:8]}.")])
    return owners


def _refuse(path: str, wrongs: Iterator[tuple[str, str]]) -> None:
    problems = list(wrongs)
    if problems:
        raise NpzError(path, problems)
