"""Processes beside a command."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

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


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library keeps memory in its own way")
def test_a_worker_touches_no_page_twice_for_work_of_one_kind() -> None:
    def faults(*, keep: bool) -> int:
        code = FAULTS.format(keep=keep)
        return int(
            subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout
        )

    assert faults(keep=True) < 500  # of 98,304 pages of 4 kB
    assert faults(keep=False) > 10_000
