"""Training calls whose shape, and each client's place in them, depend on no other client.

The guarantee assumes that one client's data do not change another client's update. Floating-point kernels can
break this: their order of additions may change with the shape of a call, at the edge of a matrix, in the rest
of a vector, or with the alignment in memory, and unstable training amplifies a last digit to a whole update.
Therefore the plan and the client alone determine everything that the order of additions depends on:

    class of a client   by its own agreed size                    `size_class`
    shape of a call     by the class and the plan                 `Shape`: empty places get copies
    place in a call     by the client's id alone                  `clients.fleet.Fleet.places`

Each number computed for a client depends only on the client's own numbers, at the same place in tensors of
the same shape, which torch allocates at the same alignment. (DP-SGD reads some arrays of numpy,
whose alignment differs; and where a module raises on a record, all records of a call are passed one by one.)
Two clients of one place go into two calls (`calls_of`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fedprivacy.training.task import Index, Shape, Task
from fedprivacy.training.updates import Joined, Updates

Train = Callable[[Task], tuple[Updates, Index]]


def calls_of(places: Index) -> list[Index]:
    """Cuts clients into calls, each of which has at most one client for each place.

    Args:
        places: The place of each client, shape (clients,).

    Returns:
        For each call its clients, in order: the first of each place, then the second of each, and so on.

    >>> [call.tolist() for call in calls_of(np.array([0, 1, 0, 2, 0]))]
    [[0, 1, 3], [2], [4]]
    """
    order = np.argsort(places, kind="stable")
    alike = places[order]
    rank = np.empty(len(places), np.int64)
    rank[order] = np.arange(len(places)) - np.searchsorted(alike, alike)
    return [np.flatnonzero(rank == number) for number in range(int(rank.max(initial=-1)) + 1)]


def train_in_call(task: Task, train: Train, places: Index, *, secret: bool) -> tuple[Updates, Index]:
    """Trains clients of one size class in a call of the shape that the task names.

    A client whose Poisson batch is wider than the shape, by its own draw, is trained in a call of its own.

    Args:
        task: The clients.
        train: Trains the clients of a call, and counts for each what it counts.
        places: The place of each in the call, no two alike, shape (clients,).
        secret: As `Task.positions` has it.

    Returns:
        The result of `train`, for each client.
    """
    shape = task.shape
    if shape is None:
        return train(task)
    drawn = task.positions(secret=secret)
    # Cutting the batch would change the sampling that is accounted for; widening the call would change the
    # rounding of the other clients, which would then depend on this client's draw.
    wide = drawn[1].sum(axis=2).max(axis=1) > shape.width  # once in a billion times
    fit = np.flatnonzero(~wide)
    parts: list[Updates] = []
    counts: list[Index] = []
    if len(fit):
        # Empty places train copies of a client of this call: the kernels see the same shape however many
        # clients come, and the results of the copies are dropped.
        filled = np.full(shape.places, fit[0])
        filled[places[fit]] = fit
        updates, counted = train(task.at(filled, shape, drawn))
        parts.append(updates.only(places[fit]))
        counts.append(counted[places[fit]])
    alone = Shape(1, shape.records, shape.rows, shape.rows)
    for client in np.flatnonzero(wide):
        updates, counted = train(task.at(np.array([client]), alone, drawn))
        parts.append(updates)
        counts.append(counted)
    if len(parts) == 1:
        return parts[0], counts[0]
    order = np.argsort(np.concatenate([fit, np.flatnonzero(wide)]))
    return Joined(parts, [len(part) for part in counts], order), np.concatenate(counts)[order]
