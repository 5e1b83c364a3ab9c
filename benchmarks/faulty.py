"""A model that fails on marked data of a client: it raises, hangs or kills its process.

A linear model that looks at each record: one that begins with `TRIGGER` sets it off. No part of the product
is replaced: a scenario names this as its model by code, and a data set has the trigger in some clients.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.func import debug_unwrap

TRIGGER = 777.0


def _raise(x: Tensor, mark: str) -> Tensor:
    raise RuntimeError("this client's training fails")


def _hang(x: Tensor, mark: str) -> Tensor:
    while True:
        time.sleep(60)


def _slow(x: Tensor, mark: str) -> Tensor:
    time.sleep(0.2)
    return x


def _kill(x: Tensor, mark: str) -> Tensor:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def _kill_once(x: Tensor, mark: str) -> Tensor:
    """As a process that runs out of memory now and not the next time."""
    if not Path(mark).exists():
        Path(mark).touch()
        _kill(x, mark)
    return x


def _times(x: Tensor, factor: float) -> Tensor:
    return torch.where(x[..., :1] == TRIGGER, x * factor, x)


def _beyond(x: Tensor, mark: str) -> Tensor:
    """Reads beyond an array: on a GPU the failing kernel ends the use of the device."""
    return x + x.new_zeros(1)[torch.full((1,), 9, device=x.device)]


HARM: dict[str, Callable[[Tensor, str], Tensor]] = {
    "raise": _raise,
    "wrong-shape": lambda x, mark: x[..., :-1],
    "nan": lambda x, mark: _times(x, torch.nan),
    "infinite": lambda x, mark: _times(x, torch.inf),
    "huge": lambda x, mark: _times(x, 1e20),
    "beyond": _beyond,
    "slow": _slow,
    "hang": _hang,
    "kill": _kill,
    "kill-once": _kill_once,
}


class Faulty(nn.Module):
    """A linear model with a trap in front."""

    def __init__(self, features: int, classes: int, harm: str, mark: str) -> None:
        super().__init__()
        self.harm, self.mark = harm, mark
        self.layer = nn.Linear(features, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Logits, shape (records, classes)."""
        x = x.flatten(1)
        # Under `vmap` no record can be looked at but through this.
        if bool((debug_unwrap(x)[..., 0] == TRIGGER).any()):
            x = HARM[self.harm](x, self.mark)
        logits: Tensor = self.layer(x)
        return logits


def make(features: Sequence[int], classes: int, harm: str = "raise", mark: str = "") -> nn.Module:
    """The model of a scenario.

    Args:
        features: The shape of a record.
        classes: The number of classes.
        harm: What a record with the trigger does, one of `HARM`.
        mark: A file that is there once "kill-once" has killed.
    """
    return Faulty(int(torch.Size(features).numel()), classes, harm, mark)
