"""Python run in a process of its own: what it imports may be broken, end the process, or never return."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

PATIENCE = 90.0  # seconds
_MARK = "fedprivacy-doctor:"


class ProbeFailed(Exception):
    """The process ended otherwise than it should; says how."""


def probe(code: str, patience: float = PATIENCE) -> Any:
    """What a piece of Python leaves in `found`, as JSON; it has the import path of this process.

    Args:
        code: Python, which sets `found`.
        patience: Seconds that it may take.

    Raises:
        ProbeFailed: it raised an error, was ended, or took longer.
    """
    path = os.pathsep.join(os.path.abspath(part) for part in sys.path)
    environment = {**os.environ, "PYTHONPATH": path, "FLWR_TELEMETRY_ENABLED": "0", "PYTHONSAFEPATH": "1"}
    text = f"import json\n{code}\nprint({_MARK!r} + json.dumps(found), flush=True)\nimport os; os._exit(0)"
    try:
        ended = subprocess.run(
            [sys.executable, "-c", text],
            env=environment, capture_output=True, text=True, errors="replace", timeout=patience,
            stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise ProbeFailed(f"no answer after {patience:.0f} s") from None
    for line in reversed(ended.stdout.splitlines()):
        if line.startswith(_MARK):
            return json.loads(line.removeprefix(_MARK))
    if ended.returncode < 0:
        raise ProbeFailed(f"the process was ended by {signal.Signals(-ended.returncode).name}")
    said = ended.stderr.strip().splitlines()
    raise ProbeFailed(said[-1][:300] if said else f"the process ended with code {ended.returncode}")
