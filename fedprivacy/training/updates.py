"""The updates of a chunk before any noise: a stack, or a factored form of one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedprivacy.mechanisms.clipping import clip
from fedprivacy.mechanisms.summation import sum_of_rows

Index = NDArray[np.int64]


class Updates(Protocol):
    """The updates of some clients, formed or not."""

    def clipped_total(self, clipping_norm: float | None, error: float = math.inf) -> tuple[Tensor, Tensor]:
        """The sum of the clipped updates; one that is not finite counts as zero.

        Args:
            clipping_norm: C, the bound of each client's L2 norm in the sum; None clips nothing.
            error: The allowed rounding error of each client's part (`clipping.bounds_of_a_sum`).

        Returns:
            The sum, float64, shape (parameters,), on the CPU; and which updates were not finite, bool, shape
            (clients,).
        """

    def norms(self) -> Tensor:
        """The L2 norms before clipping, 0 where one is not finite; float64, shape (clients,), on the CPU."""

    def stack(self) -> Tensor:
        """All of them, shape (clients, parameters), on the CPU."""

    def only(self, clients: Index) -> Updates:
        """Those of some clients, by their places here; not one bit of them changes."""


@dataclass(frozen=True)
class Stack:
    """Updates that are formed, shape (clients, parameters), on the CPU.

    A GPU adds a row's squares in an order that depends on the number of rows, so that a norm would reveal it.
    """

    updates: Tensor

    def clipped_total(self, clipping_norm: float | None, error: float = math.inf) -> tuple[Tensor, Tensor]:
        """As `Updates` has it: formed updates are rounded when they are added, and nowhere else."""
        bounded, broken = clip(self.updates, clipping_norm)
        return sum_of_rows(bounded), broken

    def norms(self) -> Tensor:
        """As `Updates` has it."""
        return torch.linalg.vector_norm(clip(self.updates, None)[0], dim=1)

    def stack(self) -> Tensor:
        """As `Updates` has it."""
        return self.updates

    def only(self, clients: Index) -> Stack:
        """As `Updates` has it."""
        return Stack(self.updates[torch.from_numpy(clients)])


@dataclass(frozen=True)
class Joined:
    """Updates of several calls, formed or not, in any order.

    Args:
        parts: Of each call.
        lengths: The number of clients of each call.
        order: For each client its place in the parts, one after the other; None: that is the order.
    """

    parts: Sequence[Updates]
    lengths: Sequence[int]
    order: Index | None = None

    def clipped_total(self, clipping_norm: float | None, error: float = math.inf) -> tuple[Tensor, Tensor]:
        """As `Updates` has it."""
        totals, broken = zip(*(part.clipped_total(clipping_norm, error) for part in self.parts), strict=True)
        return torch.stack(totals).sum(dim=0), self._in_order(broken)

    def norms(self) -> Tensor:
        """As `Updates` has it."""
        return self._in_order([part.norms() for part in self.parts])

    def stack(self) -> Tensor:
        """As `Updates` has it."""
        return self._in_order([part.stack() for part in self.parts])

    def only(self, clients: Index) -> Updates:
        """As `Updates` has it; places may come in any order."""
        if not len(clients):
            return self.parts[0].only(clients)
        places = clients if self.order is None else self.order[clients]
        begins = np.cumsum([0, *self.lengths])
        parts: list[Updates] = []
        members: list[Index] = []  # of each part, as places in `clients`
        for part, begin, end in zip(self.parts, begins[:-1], begins[1:], strict=True):
            members_here = np.flatnonzero((places >= begin) & (places < end))
            if len(members_here):
                parts.append(part.only(places[members_here] - begin))
                members.append(members_here)
        return Joined(parts, [len(part) for part in members], np.argsort(np.concatenate(members)))

    def _in_order(self, values: Sequence[Tensor]) -> Tensor:
        together = torch.cat(list(values))
        return together if self.order is None else together[torch.from_numpy(self.order)]
