"""All checks together, and the document that they make."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from scenarios.doctor import libraries, machine, names, places, python
from scenarios.doctor.check import FAILURE, Step

SCHEMA = 1
_AT_ONCE = 3  # most steps wait for a process of their own


@dataclass(frozen=True)
class Asked:
    """What is to be examined.

    Args:
        out: The folder that runs go to.
        ports: Those that a deployment would listen on.
        ray: Whether Ray is to be started.
    """

    out: Path = Path("runs")
    ports: Sequence[int] = places.PORTS
    ray: bool = False


def steps(asked: Asked) -> list[Step]:
    """What is looked at, in the order in which it is told."""
    listed = [
        Step("python", python.python),
        Step("fedprivacy", python.installation),
        Step("torch", libraries.torch),
        Step("flwr", libraries.flower),
        Step("packages", python.packages),
        Step("extras", python.extras),
        Step("cores", machine.cores),
        Step("memory", machine.memory),
        Step("fork", machine.fork),
        Step("folder of runs", partial(places.out, asked.out)),
        Step("cache folder", places.cache),
        Step("temporary files", places.temporary),
        Step("ports", partial(places.ports, asked.ports)),
        Step("names", names.clashes),
    ]
    return [*listed, Step("ray", libraries.ray)] if asked.ray else listed


def examine(asked: Asked) -> dict[str, Any]:
    """Makes all checks.

    Returns:
        The document: `checks`, each with name, status, found and remedy; `able` where none failed.
    """
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        checks = [check for found in threads.map(Step.checks, steps(asked)) for check in found]
    return {
        "schema": SCHEMA,
        "kind": "doctor",
        "able": not any(check.status == FAILURE for check in checks),
        "checks": [check.to_json() for check in checks],
    }
