"""What the clients of a chunk answer before anybody's noise: a stack of updates, or what stands for one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from fedprivacy.mechanisms.clipping import add_in_order, clip


class Updates(Protocol):
    """The updates of some clients, formed or not."""

    def clipped_total(self, clipping_norm: float | None) -> tuple[Tensor, Tensor]:
        """The sum of the clipped updates; one that is not finite counts as zero.

        Args:
            clipping_norm: C, which bounds the L2 norm of what each client adds; None clips nothing.

        Returns:
            The sum, float64, shape (parameters,), on the CPU; and which updates were not finite, bool, shape
            (clients,).
        """

    def norms(self) -> Tensor:
        """The L2 norms before clipping, 0 where one is not finite; float64, shape (clients,), on the CPU."""

    def stack(self) -> Tensor:
        """All of them, shape (clients, parameters), on the CPU."""


@dataclass(frozen=True)
class Stack:
    """Updates that are formed, shape (clients, parameters)."""

    updates: Tensor

    def clipped_total(self, clipping_norm: float | None) -> tuple[Tensor, Tensor]:
        """As `Updates` has it."""
        bounded, broken = clip(self.updates, clipping_norm)
        return add_in_order(bounded).cpu(), broken.cpu()

    def norms(self) -> Tensor:
        """As `Updates` has it."""
        norms = torch.linalg.vector_norm(clip(self.updates, None)[0], dim=1)
        return norms.cpu()

    def stack(self) -> Tensor:
        """As `Updates` has it."""
        return self.updates.cpu()
