"""The `fedprivacy` command as a process that need not import the heavy libraries first.

One server process for each pytest process has them imported and forks for every command. What a test then
meets is a process of its own, with the arguments, folder, environment and open files of whoever called the
client (`client.py`), and its exit code; it calls the same `main`. The fork happens in the server
and not in pytest: torch's autograd does not work in a fork of a process that has used it.

What differs from a cold start: the modules are loaded, the hash seed is the server's, the interpreter is not taken
apart at the end, and signals sent to the client are not passed on (one that is killed takes its command with it):
with GROUP_FILE in the environment a command leads a group of processes, and writes its id there, before it begins.
What is about one of these uses `COLD`, and so does one of two runs that have to give the same bits.
"""

from __future__ import annotations

import atexit
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RUN = "from scenarios.cli.main import main; main()"
RUN_AND_END = """
try:
    if sys.argv[1:2] == ["-m"]:
        import runpy
        del sys.argv[:2]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        from scenarios.cli.main import main; main()
    sys.exit()
except SystemExit as ended:
    server_of_forks.end(ended.code)
"""
RUN_FLOWER_AND_END = """
import os
from flwr.superlink.cli import flwr_serverapp
from flwr.supernode.cli import flwr_clientapp
try:
    sys.argv = sys.argv[1:]
    {"flwr-clientapp": flwr_clientapp, "flwr-serverapp": flwr_serverapp}[os.path.basename(sys.argv[0])]()
    server_of_forks.end(None)
except SystemExit as ended:
    server_of_forks.end(ended.code)
"""
COLD = [sys.executable, "-c", RUN]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "120", "NO_COLOR": "1"}


@cache
def warm() -> list[str]:
    """The first words of the command: a client of this process's server, which is started by the first call."""
    return [
        sys.executable,
        "-I",
        "-S",
        str(HERE / "client.py"),
        _serving(RUN_AND_END, "OURS + server_of_forks.HEAVY"),
    ]


@cache
def flower_environment() -> dict[str, str]:
    """Variables under which Flower's processes for a run and for a message are forks of a server.

    Only libraries are imported there: the code of the bundle is loaded by each process, as ever.
    """
    address = _serving(RUN_FLOWER_AND_END, "FLOWER")
    paths = {"PYTHONPATH": str(HERE / "flower"), "SERVER_OF_FORKS": address}
    return {**paths, "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.2"}


def _serving(run: str, modules: str) -> str:
    """Starts a server that has imported modules, and returns its address.

    The server ends with this process, however that ends: its standard input is a pipe from here.
    """
    folder = Path(tempfile.mkdtemp(prefix="fedprivacy-"))  # short: the path of a socket has at most 107 bytes
    address = str(folder / "socket")
    code = (
        # Nor is the current folder where modules are found, as it is not for the installed command.
        f"import sys; sys.path[0] = {str(HERE)!r}; import server_of_forks; del sys.path[0]\n"
        f"server_of_forks.serve({address!r}, server_of_forks.{modules})\n{run}"
    )
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    server = subprocess.Popen(
        [sys.executable, "-c", code], env=ENVIRONMENT | {"PYTHONPATH": paths}, start_new_session=True, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert server.stdin is not None
    assert server.stdout is not None
    atexit.register(_end, server, folder)
    assert server.stdout.readline() == "ready\n", "the server of forks did not start"
    return address


def write_command(file: Path) -> None:
    """Writes an executable that stands for the installed `fedprivacy`, and with `-m MODULE` for Python."""
    file.write_text(f'#!/bin/sh\nexec {shlex.join(warm())} "$@"\n')
    file.chmod(0o755)


def _end(server: subprocess.Popen[str], folder: Path) -> None:
    server.stdin.close()
    server.stdout.close()
    server.wait(timeout=60)
    shutil.rmtree(folder)
