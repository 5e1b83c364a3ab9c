"""Other simulators of federated learning, run as programs of their own on the works of `cohort`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cohort import WORKS

LIMIT = 1800.0  # seconds that one measurement may take
ON_GPU = Path(__file__).with_name("peer_on_gpu.py")


class PeerError(Exception):
    """A peer is not there, or did not end with a figure."""


@dataclass(frozen=True)
class Measurement:
    """One measurement to make.

    Args:
        work: One of `cohort.WORKS`.
        cohort: The clients of a round.
        rounds: How many are timed.
        warmup: How many come before them.
        processes: How many train side by side.
        device: Where, "cpu" or "cuda".
    """

    work: str
    cohort: int
    rounds: int
    warmup: int
    processes: int
    device: str = "cpu"

    @property
    def options(self) -> list[str]:
        """The options of both peers' scripts."""
        sizes = ["--features", str(WORKS[self.work].features), "--cohort", str(self.cohort)]
        return ["--model", self.work, *sizes, "--rounds", str(self.rounds), "--warmup", str(self.warmup)]


@dataclass(frozen=True)
class Peer:
    """A simulator.

    Args:
        title: Its name, for people.
        script: The script that measures it.
        modules: What has to be importable.
        program: What runs the script; stands beside the interpreter.
        options: The program's options, and those of the script alone.
    """

    title: str
    script: str
    modules: tuple[str, ...]
    program: str
    options: Callable[[Measurement], tuple[list[str], list[str]]]

    def check(self, python: Path, bench: Path) -> None:
        """Whether it can run.

        Args:
            python: The interpreter that has it.
            bench: The folder of the scripts.

        Raises:
            PeerError: if something is missing.
        """
        for path in (python, self._program(python), bench / self.script):
            if not path.is_file():
                raise PeerError(f"{self.title}: {path} is not there.")
        for module in self.modules:
            code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
            if subprocess.run([python, "-c", code], env=_environment(), capture_output=True).returncode:
                raise PeerError(f"{self.title}: {python} has no module {module}. Install it there.")

    def measure(self, python: Path, bench: Path, request: Measurement) -> float:
        """Clients per second.

        Raises:
            PeerError: if it fails, takes too long, or prints no figure; with the end of what it said.
        """
        before, after = self.options(request)
        script = [str(bench.absolute() / self.script)]
        program = str(self._program(python))
        if request.device == "cuda":
            program, before, script = str(python), [], [str(ON_GPU), *script]
        command = [program, *before, *script, *request.options, *after]
        # pfl-research takes every GPU that torch finds, one for each process.
        hidden = {} if request.device == "cuda" else {"CUDA_VISIBLE_DEVICES": ""}
        output = run(command, self.title, environment=hidden)
        for line in reversed(output.splitlines()):
            try:
                return float(json.loads(line)["clients_per_s"])
            except (ValueError, TypeError, KeyError):
                continue
        raise PeerError(f"{self.title} printed no clients_per_s; the end of what it said: {output[-500:]!r}")

    def _program(self, python: Path) -> Path:
        return python.absolute().parent / (self.program or python.name)


def _of_pfl(request: Measurement) -> tuple[list[str], list[str]]:
    hidden = ["--hidden", "200"] if request.work == "mlp" else []
    processes = ["--standalone", f"--nproc_per_node={request.processes}"]
    return processes, [*hidden, "--threads", "1", "--no-warn", "--json"]


PEERS = {
    "pfl": Peer("pfl-research", "bench_pfl.py", ("pfl",), "torchrun", _of_pfl),
    "flower": Peer("Flower on Ray", "bench_flower.py", ("flwr", "ray"), "", lambda _: ([], [])),
}


def run(
    command: Sequence[str],
    title: str,
    folder: Path | None = None,
    limit: float = LIMIT,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Runs a program and returns its output.

    Args:
        command: The program and its options.
        title: The name of the program in errors.
        folder: Where it runs.
        limit: The seconds that it may take.
        environment: Variables beside those of this process.

    Raises:
        PeerError: if it fails or takes too long.
    """
    with subprocess.Popen(
        command,
        cwd=folder,
        env=_environment() | dict(environment or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # so that all that it starts ends with it
    ) as process:
        try:
            output, error = process.communicate(timeout=limit)
        except BaseException as stopped:
            os.killpg(process.pid, signal.SIGKILL)
            if isinstance(stopped, subprocess.TimeoutExpired):
                raise PeerError(f"{title} took more than {limit:g} s") from stopped
            raise
    if process.returncode:
        message = (error or output).strip()[-1500:]
        raise PeerError(f"{title} ended with exit code {process.returncode}: {message}")
    return output


def _environment() -> dict[str, str]:
    """Without what belongs to our own interpreter; one thread of arithmetic in each process."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return inherited | {"OMP_NUM_THREADS": "1", "FLWR_TELEMETRY_ENABLED": "0"}
