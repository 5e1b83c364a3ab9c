"""Prepares training on a GPU: float32 as on the CPU, and the same bits in each run.

Kernels that add in an order of chance are replaced by ordered ones; torch raises where it has none.
"""

from __future__ import annotations

import os

import torch

from fedprivacy.errors import InputError


def prepare_cuda() -> None:
    """Sets torch's switches for this process.

    Raises:
        InputError: torch finds no GPU.
    """
    if not torch.cuda.is_available():
        raise InputError('training.device = "cuda": torch finds no GPU here. Set device = "cpu".')
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # else cuBLAS may add in another order
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False  # it would choose kernels by their times
    # TF32 keeps ten bits of each factor: its products are not those of a plain loop.
    torch.backends.cudnn.allow_tf32 = False
    torch.set_float32_matmul_precision("highest")
