"""Describes the environment of a result: versions, and the memory that it took."""

from __future__ import annotations

import platform
import resource
from functools import cache
from importlib.metadata import PackageNotFoundError, version

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


def peak_memory_mb() -> float:
    """The largest memory that this process held so far, in MB (Linux reports kilobytes, macOS bytes)."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (1e6 if platform.system() == "Darwin" else 1e3), 1)
