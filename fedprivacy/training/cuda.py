"""Trains on a GPU: float32 as on the CPU, the same bits in each run; a lost GPU ends the run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from fedprivacy.errors import InputError

_WORKSPACE = "CUBLAS_WORKSPACE_CONFIG"
_ORDERED = (":4096:8", ":16:8")  # with any other cuBLAS may add in another order


class DeviceLost(BaseException):
    """The GPU answers no more, since a kernel failed: no client of this process can train.

    It is no `Exception`, so that it is never counted as a fault of each client: then the records of one would
    remove all others from a round that is released.
    """


def prepare_cuda() -> None:
    """Sets torch's switches for this process.

    Raises:
        InputError: torch finds no GPU, or the environment asks cuBLAS for sums in any order.
    """
    if not torch.cuda.is_available():
        raise InputError('training.device = "cuda": torch finds no GPU here. Set device = "cpu".')
    if os.environ.setdefault(_WORKSPACE, _ORDERED[0]) not in _ORDERED:
        raise InputError(
            f"{_WORKSPACE}={os.environ[_WORKSPACE]}: with it sums on a GPU differ from run to run. Unset it, "
            f"or set it to {' or '.join(_ORDERED)}."
        )
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False  # it would choose kernels by their times
    # TF32 keeps ten bits of each factor: its products are not those of a plain loop.
    torch.backends.cudnn.allow_tf32 = False
    torch.set_float32_matmul_precision("highest")


@contextmanager
def ordered_kernels() -> Iterator[None]:
    """Replaces kernels that add in an order of chance; torch raises where it has no other."""
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)


def refuse_lost_device(error: Exception) -> None:
    """Looks whether the GPU still answers after an error.

    Args:
        error: What training raised.

    Raises:
        DeviceLost: it does not.
    """
    try:
        torch.cuda.synchronize()
    except Exception as lost:
        raise DeviceLost(f"{type(error).__name__}: {error}") from lost
