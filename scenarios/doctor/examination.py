"""Runs all checks, and makes and prints the document of their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from scenarios.doctor import libraries, machine, packages
from scenarios.doctor.check import FAILURE, Step

SCHEMA = 1
_AT_ONCE = 3  # most steps wait for a process of their own
_MARKS = {"ok": "ok", "warning": "WARNING", "failure": "FAILURE", "absent": "-"}


@dataclass(frozen=True)
class Examination:
    """The scope of an examination.

    Args:
        out: The folder that runs go to.
        ports: Those that a deployment would listen on.
        ray: Whether Ray is to be started.
    """

    out: Path = Path("runs")
    ports: Sequence[int] = machine.PORTS
    ray: bool = False


def steps(examination: Examination) -> list[Step]:
    """The checks, in the order of the output."""
    listed = [
        Step("python", packages.python),
        Step("fedprivacy", packages.installation),
        Step("torch", libraries.torch),
        Step("flwr", libraries.flower),
        Step("packages", packages.packages),
        Step("extras", packages.extras),
        Step("cores", machine.cores),
        Step("memory", machine.memory),
        Step("fork", machine.fork),
        Step("folder of runs", partial(machine.out, examination.out)),
        Step("cache folder", machine.cache),
        Step("temporary files", machine.temporary),
        Step("ports", partial(machine.ports, examination.ports)),
        Step("names", libraries.clashes),
    ]
    return [*listed, Step("ray", libraries.ray)] if examination.ray else listed


def examine(examination: Examination) -> dict[str, Any]:
    """Makes all checks.

    Returns:
        The document: `checks`, each with name, status, found and remedy; `able` where none failed.
    """
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        checks = [check for group in threads.map(Step.checks, steps(examination)) for check in group]
    return {
        "schema": SCHEMA,
        "kind": "doctor",
        "able": not any(check.status == FAILURE for check in checks),
        "checks": [check.to_json() for check in checks],
    }


def show(document: Mapping[str, Any]) -> None:
    """Prints a line for each check, with the fix below each failed one."""
    checks = document["checks"]
    width = max((len(check["name"]) for check in checks), default=0)
    for check in checks:
        print(f"{_MARKS[check['status']]:8} {check['name']:{width}}  {check['found']}")
        if check["remedy"]:
            print(f"{'':8} {'':{width}}  {check['remedy']}")
    failed = sum(check["status"] == "failure" for check in checks)
    warned = sum(check["status"] == "warning" for check in checks)
    if failed:
        print(f"{failed} of {len(checks)} checks failed. The fix follows each of them.")
    else:
        warnings = f", with {warned} warning{'' if warned == 1 else 's'}" if warned else ""
        print(f"fedprivacy can run on this machine{warnings}.")
