"""The Ray cluster of a run's workers: started on this machine, or an existing one."""

from __future__ import annotations

import logging
import math
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from fedprivacy.errors import InputError, RunError
from fedprivacy.io.waiting import waiting

# Read when Ray is imported, by its processes too. No statistics are sent to Ray's makers, and num_gpus=0
# leaves CUDA_VISIBLE_DEVICES alone without a warning about it.
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
_LONGEST_PATH = 40  # of our folder: Ray's sockets lie deep in it, and their paths may have 107 letters

OPEN_PORTS = (
    "Ray's processes listen on this machine's network without a password, and run what they are sent there: "
    "use --engine ray only where a firewall or a private network keeps others out (docs/engines.md)."
)


@dataclass(frozen=True)
class Cluster:
    """Where workers run.

    Args:
        workers: How many there may be.
        gpus_per_worker: The share of a GPU of each.
    """

    workers: int
    gpus_per_worker: float = 0.0


@contextmanager
def cluster(workers: int, gpus_per_worker: float = 0.0, address: str | None = None) -> Iterator[Cluster]:
    """A Ray cluster for a run, to be used as a context. One that it starts ends with it; others stay.

    Args:
        workers: How many actors; 0 for as many as an existing cluster has CPUs (and GPUs) for.
        gpus_per_worker: The share of a GPU of each.
        address: Of an existing cluster, `host:port` or `auto`; None starts one on this machine, unless this
            process is in one already.

    Raises:
        InputError: if nothing answers at `address`, or the cluster has no such CPUs or GPUs.
        RunError: if Ray does not start.
    """
    _check_address(address)
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    hook = sys.excepthook
    import ray

    sys.excepthook = hook  # Ray puts its own there
    if ray.is_initialized():
        yield _slots(ray.cluster_resources(), workers, gpus_per_worker)
        return
    folder = None if address else _folder()
    try:
        with _signals_restored(), waiting("starting Ray" if address is None else f"connecting to {address}"):
            _init(ray, workers, gpus_per_worker, address, folder)
        yield _slots(ray.cluster_resources(), workers, gpus_per_worker)
    finally:
        with _signals_restored():
            ray.shutdown()
        if folder is not None:
            _remove(folder)


def _init(ray: Any, workers: int, gpus_per_worker: float, address: str | None, folder: str | None) -> None:
    logging.getLogger("ray").setLevel(logging.CRITICAL)
    # Ray prints messages about dead workers to standard output, regardless of its log settings.
    ray._private.worker.print_to_stdstream = lambda *args, **options: None
    quiet = {"log_to_driver": False, "configure_logging": False, "logging_level": logging.CRITICAL}
    if address is not None:
        try:
            ray.init(address=address, **quiet)
        except (ConnectionError, ValueError, RuntimeError) as error:
            reason = str(error).strip().splitlines()[0].rstrip(".")
            raise InputError(
                f"--ray-address {address}: {reason}. Start a cluster with `ray start --head`, or leave "
                "it out."
            ) from error
        return
    try:
        ray.init(
            address="local",
            num_cpus=workers,
            num_gpus=None if gpus_per_worker else 0,  # None: those that there are
            include_dashboard=False,
            _node_ip_address="127.0.0.1",
            _temp_dir=os.path.join(folder or "", "r"),
            **quiet,
        )
    except (ConnectionError, RuntimeError, TimeoutError, OSError) as error:
        raise RunError(f"Ray does not start here: {type(error).__name__}: {error}") from error


def _check_address(address: str | None) -> None:
    """Ray itself tries for minutes."""
    if address is None or address == "auto":
        return
    host, _, port = address.rpartition(":")
    try:
        if not port.isdigit() or "/" in host:
            raise ValueError("it is not HOST:PORT")
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, OverflowError, ValueError) as error:
        raise InputError(
            f"--ray-address {address}: no Ray cluster there ({error}). Start one with `ray start --head`, or "
            "leave the option out."
        ) from error


def _slots(resources: dict[str, float], workers: int, gpus_per_worker: float) -> Cluster:
    """The number of workers that fit."""
    room = int(resources.get("CPU", 0))
    if gpus_per_worker:
        gpus = resources.get("GPU", 0.0)
        if gpus < gpus_per_worker:
            raise InputError(f"--gpus-per-worker {gpus_per_worker:g}: Ray finds {gpus:g} GPUs here.")
        each = math.floor(1 / gpus_per_worker) if gpus_per_worker <= 1 else 1 / gpus_per_worker
        room = min(room, int(gpus * each))
    if not room:
        raise InputError("--engine ray: the cluster has no CPU for a worker.")
    return Cluster(min(workers or room, room), gpus_per_worker)


def _folder() -> str:
    """A folder that nobody else can read; Ray's own in it is open to all, since Ray makes it so."""
    for base in (tempfile.gettempdir(), "/tmp"):
        folder = tempfile.mkdtemp(prefix="fp-ray-", dir=base)
        if len(folder) <= _LONGEST_PATH:
            return folder
        os.rmdir(folder)
    raise RunError(f"Ray does not start here: {tempfile.gettempdir()} is too long a path for its sockets.")


def _remove(folder: str) -> None:
    """Ray's last processes may write a word to their logs while they end."""
    until = time.monotonic() + 5
    shutil.rmtree(folder, ignore_errors=True)
    while os.path.exists(folder) and time.monotonic() < until:
        time.sleep(0.1)
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _signals_restored() -> Iterator[None]:
    """Ray takes over SIGTERM, which ends a run kindly."""
    here = threading.current_thread() is threading.main_thread()  # elsewhere neither Ray nor we may
    handlers = (
        {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)} if here else {}
    )
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
