"""The machine of a measurement: processor, cores, and versions of libraries."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import torch
import typer

CPU_INFO = Path("/proc/cpuinfo")
OURS = ("torch", "flwr", "numpy")


@dataclass(frozen=True)
class Machine:
    """The machine and the libraries that were measured.

    Args:
        processor: The model of the GPU, where there trains one, and of the processor.
        cores: The cores that this process may use.
        ours: Versions of Python and of our libraries.
        peers: Versions of the peers' libraries, in their interpreter.
    """

    processor: str
    cores: int
    ours: dict[str, str]
    peers: dict[str, str]

    @classmethod
    def of(cls, cores: int, peers: dict[str, str], device: str = "cpu") -> Machine:
        """Describes this machine; with the device "cuda" its GPU too."""
        gpu = f"{torch.cuda.get_device_name(0)}, " if device == "cuda" else ""
        libraries = {"python": platform.python_version()} | {name: version(name) for name in OURS}
        return cls(gpu + processor(), cores, libraries, peers)

    @property
    def libraries(self) -> str:
        """Our libraries, then those of the peers, in one line."""
        return f"{_listed(self.ours)}; peers: {_listed(self.peers)}" if self.peers else _listed(self.ours)


def processor() -> str:
    """Returns the model name of the processor; its architecture where the system names no model."""
    if CPU_INFO.is_file() and (name := re.search(r"^model name\s*:\s*(.+)$", CPU_INFO.read_text(), re.M)):
        return re.sub(r"\((R|TM)\)|\s+(CPU|Processor)\b", "", name[1]).strip()
    return platform.processor() or platform.machine()


def check_device(device: str) -> None:
    """Refuses a GPU that torch does not find.

    Raises:
        typer.BadParameter: there is none.
    """
    if device == "cuda" and not torch.cuda.is_available():
        raise typer.BadParameter("torch finds no GPU here. Leave it out.", param_hint="--device")


def versions_in(python: Path, names: Sequence[str]) -> dict[str, str]:
    """Returns the versions of the packages that another interpreter has."""
    code = (
        "import json, sys\nfrom importlib.metadata import PackageNotFoundError, version\nfound = {}\n"
        "for name in sys.argv[1:]:\n    try:\n        found[name] = version(name)\n"
        "    except PackageNotFoundError:\n        pass\nprint(json.dumps(found))"
    )
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    run = subprocess.run(
        [python, "-c", code, *names], env=inherited, capture_output=True, text=True, check=True
    )
    answer: dict[str, str] = json.loads(run.stdout)
    return answer


def _listed(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in versions.items())
