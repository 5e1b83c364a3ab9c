"""One check of the machine, and Python code that is tried in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

OK, WARNING, FAILURE, ABSENT = "ok", "warning", "failure", "absent"
PATIENCE = 90.0  # seconds
_MARK = "fedprivacy-doctor:"


@dataclass(frozen=True)
class Check:
    """The result of a check.

    Args:
        name: The subject of the check.
        status: "ok"; "warning": something will not go, or go slowly; "failure": runs will not go;
            "absent": an extra that is not installed, which is fine.
        found: The actual state.
        remedy: An action for the user; empty where none is needed.
    """

    name: str
    status: str
    found: str
    remedy: str = ""

    def to_json(self) -> dict[str, str]:
        """As a JSON object."""
        return asdict(self)


@dataclass(frozen=True)
class Step:
    """Checks that are made together.

    Args:
        name: The subject, where the step itself fails.
        look: Makes them.
    """

    name: str
    look: Callable[[], Iterable[Check]]

    def checks(self) -> list[Check]:
        """The results; an error meanwhile is a failed check, and no traceback."""
        results: list[Check] = []
        try:
            results.extend(self.look())
        except Exception as error:
            what = f"this check failed: {type(error).__name__}: {str(error)[:500]}"
            results.append(Check(self.name, FAILURE, what, "Install fedprivacy again, or report this."))
        return results


class ProbeFailed(Exception):
    """The process ended otherwise than it should; the text describes how."""


def probe(code: str, patience: float = PATIENCE) -> Any:
    """Runs a piece of Python with this process's import path, and returns its `found`, as JSON.

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
    error_lines = ended.stderr.strip().splitlines()
    raise ProbeFailed(
        error_lines[-1][:300] if error_lines else f"the process ended with code {ended.returncode}"
    )
