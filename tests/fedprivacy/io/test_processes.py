"""Processes beside a command."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from fedprivacy.io.processes import pool

FAULTS = """
import resource
import numpy as np
from fedprivacy.io.processes import retain_freed_memory

if {keep}:
    retain_freed_memory()

def work():
    for size in (3, 20, 9):  # MB
        arrays = [np.ones(size * 2**17) for _ in range(3)]

work()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(4):
    work()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


# Huge pages cost one fault for 512, and variables set how memory is allocated before the worker does.
ALLOCATOR = ("GLIBC_TUNABLES", "LD_PRELOAD", "MALLOC_")


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library keeps memory in its own way")
def test_a_worker_touches_no_page_twice_for_work_of_one_kind() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ALLOCATOR)}
    environment["NUMPY_MADVISE_HUGEPAGE"] = "0"

    def faults(*, keep: bool) -> int:
        command = [sys.executable, "-c", FAULTS.format(keep=keep)]
        ended = subprocess.run(command, capture_output=True, check=True, text=True, env=environment)
        return int(ended.stdout)

    assert faults(keep=True) < 0.2 * faults(keep=False)


def threads() -> list[int]:
    return [int(library["num_threads"]) for library in threadpool_info()]


def test_a_worker_computes_with_one_thread() -> None:
    with threadpool_limits(2):
        assert 2 in threads()
        with pool(1) as workers:
            assert set(workers.submit(threads).result()) == {1}
