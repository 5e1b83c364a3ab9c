"""Describes the environment of a result: versions, and the memory that it took."""

from __future__ import annotations

import platform
import re
import resource
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from fedprivacy import __version__

_LIBRARIES = ["torch", "flwr", "dp-accounting", "numpy", "scipy"]


def versions(trainer: str = "fedprivacy") -> dict[str, str]:
    """The versions that a result depends on; "none" for a missing package.

    Args:
        trainer: The DP-SGD implementation.
    """
    # Our own from the code: inside a Flower app bundle the package is not installed.
    ours = {"fedprivacy": __version__, "python": platform.python_version()}
    others = ["opacus"] if trainer == "opacus" else []
    return ours | {name: _installed(name) for name in _LIBRARIES + others}


@cache  # to read it takes longer than a small round
def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"


def peak_memory_bytes() -> int:
    """The largest memory that this process held so far.

    `getrusage` counts on Linux what the process held before it became this program: a program begins with the
    peak of the process that started it. So the kernel's count of the present memory map comes first.
    """
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:  # not on Linux
        status = ""
    if count := re.search(r"^VmHWM:\s*(\d+) kB$", status, re.MULTILINE):
        return 1024 * int(count[1])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if platform.system() == "Darwin" else 1024 * peak


def peak_memory_mb() -> float:
    """`peak_memory_bytes` in MB."""
    return round(peak_memory_bytes() / 1e6, 1)
