"""Runs the script of pfl-research on a GPU: its records lie there from the beginning.

    python benchmarks/peer_on_gpu.py SCRIPT ARGUMENTS...

The script makes its records by `torch.from_numpy`, which copies them to the GPU here. It runs in the peer's
environment, so it imports none of our code.
"""

from __future__ import annotations

import os
import runpy
import sys
from typing import Any

os.environ["PFL_PYTORCH_DEVICE"] = "cuda"

import torch

_from_numpy = torch.from_numpy


def _on_gpu(array: Any) -> torch.Tensor:
    return _from_numpy(array).cuda()


if __name__ == "__main__":
    torch.from_numpy = _on_gpu  # type: ignore[assignment]
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
