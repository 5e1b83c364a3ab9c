"""The local federation for fault injection: started once, restarted after it breaks.

Noise comes from the scenario's seed, so that what is claimed can be compared with a simulation.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import tempfile
from pathlib import Path
from typing import Any

from fedprivacy.scenario import Scenario
from scenarios.engines import superlink
from scenarios.federation import local
from scenarios.federation.state import Federation, read, target_of

NODES = 2
_ROOT = Path(__file__).parents[1]  # where its nodes find `benchmarks.faulty`, the model by code


class Wire:
    """A SuperLink and its nodes, up while they are needed.

    It is started in the process that asks for it first (`up`), and used in forks of that.
    """

    def __init__(self) -> None:
        self._folder: Path | None = None

    def up(self) -> None:
        """Starts it, unless it is up."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="fedprivacy-faults-"))
            paths = [str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
            os.environ["PYTHONPATH"] = os.pathsep.join(paths)
        if read(self._folder) is None:
            local.up(self._folder, NODES, seeded=True, port=_free_ports(NODES + 1))

    def run(self, scenario: Scenario, out: Path, *, kill: bool = False) -> dict[str, Any]:
        """A run on it.

        Args:
            scenario: What to run; it may run code.
            out: Where its record goes.
            kill: Whether the SuperNode of the last partition is killed when the first round is over.
        """
        assert self._folder is not None
        document = read(self._folder)
        assert document is not None
        victims = [document] if kill else []

        def after(event: dict[str, Any]) -> None:
            while victims:
                kill_node(victims.pop(), NODES - 1)

        target = target_of(None, None, self._folder)
        return superlink.run(scenario, out, target, allow_code=True, on_event=after)

    def down(self) -> None:
        """Ends it, so that the next `up` starts it anew."""
        if self._folder is not None:
            local.down(self._folder)

    def end(self) -> None:
        """Ends it for good."""
        self.down()
        if self._folder is not None:
            shutil.rmtree(self._folder)
            self._folder = None


def kill_node(there: Federation, number: int) -> None:
    """Ends a SuperNode by force, as a machine that fails does."""
    [node] = [process for process in there.processes if process.name == f"node-{number}"]
    os.kill(node.pid, signal.SIGKILL)


def _free_ports(count: int) -> int:
    """The first of so many free ports in a row."""
    for first in range(18000, 60000, count):
        try:
            for port in range(first, first + count):
                with socket.socket() as tried:
                    tried.bind(("127.0.0.1", port))
        except OSError:
            continue
        return first
    raise RuntimeError("no ports are free")
