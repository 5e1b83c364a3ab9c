"""What is measured of the environment of a run."""

from __future__ import annotations

import subprocess
import sys

from fedprivacy.io.environment import peak_memory_bytes, peak_memory_mb

MB = 1_000_000
LARGE = f"""
import subprocess, sys
block = b"1" * {300 * MB}
code = "from fedprivacy.io.environment import peak_memory_bytes; print(peak_memory_bytes())"
print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
"""


def test_peak_memory_counts_what_was_freed() -> None:
    before = peak_memory_bytes()
    assert b"1" * (200 * MB + before)  # freed at once
    assert peak_memory_bytes() >= 200 * MB + before
    assert peak_memory_mb() >= 200


def test_a_process_started_by_a_large_one_begins_with_no_peak() -> None:
    run = subprocess.run([sys.executable, "-c", LARGE], capture_output=True, text=True, check=True)
    assert 5 * MB < int(run.stdout) < 250 * MB
