"""Imports the heavy libraries once and forks for each command; see `warm`."""

from __future__ import annotations

import atexit
import gc
import importlib
import marshal
import multiprocessing.process
import os
import select
import signal
import socket
import struct
import sys
import threading

OURS = (
    "fedprivacy.verification.verify", "fedprivacy.report", "scenarios.experiments.statistics_run", "scenarios.cli.main", "scenarios.experiments.comparison",
    "scenarios.cli.display", "scenarios.cli.display_attacks", "scenarios.cli.display_statistics", "scenarios.authoring.new",
    "scenarios.authoring.catalogue", "scenarios.attacks.replay", "scenarios.runner", "scenarios.experiments.statistics_comparison",
)  # fmt: skip
# What those leave to the first use.
HEAVY = ("matplotlib.backends.backend_svg", "rich.progress", "rich.table", "sklearn.datasets", "torch.func")

# For Flower's processes: no module of ours, since those have to come from the bundle that the run carries.
FLOWER = (
    "dp_accounting.pld", "dp_accounting.rdp", "flwr.clientapp", "flwr.serverapp", "flwr.superlink.cli",
    "flwr.supernode.cli", "jinja2", "pydantic", "safetensors.numpy", "scipy.optimize", "scipy.stats",
    "sklearn.datasets", "tomli_w", "torch.func",
)  # fmt: skip


def serve(address: str, modules: tuple[str, ...] = OURS + HEAVY) -> None:
    """Serves until its standard input ends, and returns only in the fork that is to run a command."""
    for module in modules:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()  # the collector of a fork would else copy every page
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()
    os.write(1, b"ready\n")
    while True:
        ready, _, _ = select.select([listener, 0], [], [], 1.0)
        while _reaped():
            pass
        if 0 in ready:
            sys.exit(0)
        if listener in ready:
            client, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                return _keep(client)
            client.close()


def _reaped() -> bool:
    """Whether a keeper had ended."""
    try:
        return os.waitpid(-1, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return False


def _keep(client: socket.socket) -> None:
    """Forks the command, tells its client the exit code, and kills it when the client is gone."""
    head, files, _, _ = socket.recv_fds(client, 8, 3)
    (size,) = struct.unpack("!Q", head)
    request = b""
    while len(request) < size:
        part = client.recv(size - len(request))
        if not part:
            os._exit(1)
        request += part
    woken, wake = os.pipe()
    command = os.fork()
    if command == 0:
        for file in (woken, wake):
            os.close(file)
        client.close()
        _become(files, *marshal.loads(request))
        return
    for file in (0, 1, 2, *files):  # a pipe that the command closes has to end for its reader
        os.close(file)
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    while not (ended := os.waitpid(command, os.WNOHANG))[0]:
        ready, _, _ = select.select([woken, client], [], [], 1.0)
        if client in ready:
            os.kill(command, signal.SIGKILL)
        if woken in ready:
            os.read(woken, 64)
    code = os.waitstatus_to_exitcode(ended[1])
    try:
        client.sendall(struct.pack("!i", code))
    finally:
        os._exit(0)


def _become(files: list[int], args: tuple[str, ...], folder: str, environment: dict[str, str]) -> None:
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(environment)
    if file := os.environ.pop("GROUP_FILE", ""):
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)  # the server may have been told to ignore it
        with open(file, "w") as written:
            written.write(str(os.getpid()))
    os.chdir(folder)
    multiprocessing.process.ORIGINAL_DIR = folder  # where the relative paths of sys.path begin, for workers
    sys.argv[1:] = args


def end(code: object) -> None:
    """Ends a command as the interpreter does after SystemExit, but leaves its memory to the system.

    Taking a hundred thousand objects of the libraries apart costs half a second, and copies their pages.
    """
    threading._shutdown()
    atexit._run_exitfuncs()
    if not (code is None or isinstance(code, int)):
        print(code, file=sys.stderr)
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code or 0)
