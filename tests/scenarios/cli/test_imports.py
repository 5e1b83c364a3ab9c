"""What each command imports: start-up time is the user's, and torch alone takes over a second of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from warm import ENVIRONMENT, warm

from fedprivacy.io.processes import CAN_FORK, cores

SLOW = (
    "torch", "flwr", "scipy.stats", "scipy.signal", "scipy.optimize", "sklearn", "pandas", "pyarrow",
    "matplotlib", "jinja2", "numpy",
)  # fmt: skip
CODE = """
import json, sys
from scenarios.cli.main import main
sys.argv = ["fedprivacy", *sys.argv[1:]]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print(json.dumps([name for name in {slow} if name in sys.modules]))
"""


def imported(*arguments: str, cache: Path) -> set[str]:
    """The slow modules that a command has imported when it ends."""
    command = [sys.executable, "-c", CODE.format(slow=SLOW), *arguments]
    environment = {
        "XDG_CACHE_HOME": str(cache),
        "PATH": "/usr/bin:/bin",
        "HOME": str(cache),
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.exhaustive
def test_lists_and_budgets_need_neither_torch_nor_the_slow_half_of_scipy(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    assert imported("scenarios", cache=tmp_path) <= {"numpy"}
    assert imported("list", str(tmp_path / "runs"), cache=tmp_path) <= {"numpy"}
    budget = imported("budget", "gaussian", "--epsilon", "1", "--delta", "1e-5", cache=tmp_path)
    assert budget <= {"numpy", "scipy.optimize"}


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.skipif(
    not CAN_FORK or cores() == 1, reason="the page is drawn in a process beside, on a second core"
)
def test_a_run_imports_torch_and_flower_alone_and_its_record_is_shown_without_them(tmp_path: Path) -> None:
    run = ("run", "digits", "--set", "server.rounds=1", "--out", str(tmp_path / "out"))
    makes_the_copy_of_the_digits = [*warm(), *run]
    subprocess.run(
        makes_the_copy_of_the_digits,
        env={**ENVIRONMENT, "XDG_CACHE_HOME": str(tmp_path)},
        check=True,
        capture_output=True,
    )
    assert imported(*run, cache=tmp_path) <= {"torch", "flwr", "numpy", "jinja2"}
    assert imported("list", str(tmp_path / "out"), cache=tmp_path) <= {"numpy"}
    stored = max((tmp_path / "out").iterdir())
    assert imported("show", str(stored), cache=tmp_path).isdisjoint({"torch", "flwr", "pandas", "sklearn"})
