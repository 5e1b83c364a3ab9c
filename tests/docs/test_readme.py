"""README.md: every command in its code blocks runs, and prints what the README says.

The commands of the `sh` blocks run in the order of the page, in one new folder, in bash. By rule:

- `NOT_RUN` install software, change the reader's shell, run all of it, or start a cluster or a federation, as tests of
  these engines do. That what they name exists is checked.
- `SHORTER` are run with options after them that make them quick, and change nothing else.

A `text` block is what the command above it prints; `...` in it stands for anything.
"""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from warm import ENVIRONMENT, write_command

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
NOT_RUN = (
    "make demo",
    ". .venv/bin/activate",
    "fedprivacy --install-completion",
    "pip install -c constraints.txt -e '.[ray]'",
    "fedprivacy run digits --engine ray --workers 2",
    "fedprivacy federation up --nodes 3 --tls",
    "fedprivacy run digits --engine superlink --set server.rounds=2",
    "fedprivacy federation down",
    "export FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION=1",
    "flwr run . --stream",
)
SHORTER = {
    "fedprivacy run digits --set privacy.epsilon=8": "--set server.rounds=2",
    "fedprivacy run mine.toml": "--set server.rounds=2",
    "fedprivacy compare star-wars-survey": "--set compare.repeats=2 --set 'compare.clients=[100, 1000]'",
    "fedprivacy replay active-gradient-ascent": "--attack passive --set game.members=20 "
    "--set game.nonmembers=40 --set server.rounds=2 --set attacks.passive.rounds=2 --set 'model.hidden=[16]'",
    "fedprivacy compare local-vs-central": "--set 'compare.seeds=[1]' --set 'compare.epsilons=[8.0]' "
    "--set compare.none.server.rounds=2 --set compare.central.server.rounds=2",
    'fedprivacy compare mine.toml --set "compare={epsilons=[2.0], seeds=[1, 2]}"': "--set server.rounds=2",
}


def blocks() -> list[tuple[str, str]]:
    """The (command, expected output) of the page, in order; no expectation is an empty text."""
    found: list[tuple[str, str]] = []
    for kind, body in re.findall(r"(?ms)^```(\w+)\n(.*?)^```$", README):
        if kind == "sh":
            found += [(re.split(r"\s+# ", line)[0], "") for line in body.splitlines()]
        elif kind == "text":
            found[-1] = (found[-1][0], body)
    return found


@pytest.mark.slow
def test_every_command_runs_and_prints_what_the_page_says(tmp_path: Path) -> None:
    shim = tmp_path / "bin" / "fedprivacy"
    shim.parent.mkdir()
    write_command(shim)
    work = tmp_path / "work"
    work.mkdir()
    environment = ENVIRONMENT | {"PATH": f"{shim.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    for command, expected in blocks():
        if command in NOT_RUN:
            continue
        done = subprocess.run(
            ["bash", "-c", f"{command} {SHORTER.get(command, '')}"],
            cwd=work, env=environment, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        refused = expected.startswith("--set")
        assert done.returncode == (2 if refused else 0), (command, done.stderr)
        if expected:
            printed = " ".join((done.stderr if refused else done.stdout).split())
            pattern = ".*".join(map(re.escape, re.split(r" ?\.\.\. ?", " ".join(expected.split()))))
            assert re.fullmatch(pattern, printed), (command, printed)


def test_every_command_that_is_not_run_or_shortened_stands_on_the_page() -> None:
    commands = [command for command, _ in blocks()]
    assert set(NOT_RUN) | set(SHORTER) <= set(commands)
    assert len(commands) - len(NOT_RUN) >= 10


def test_what_is_not_run_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"(?m)(?:^|`)make (\w+)", README):
        assert re.search(rf"(?m)^{target}:", makefile), target
    assert "VENV := .venv" in makefile
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "ray" in project["project"]["optional-dependencies"]
    assert (ROOT / "constraints.txt").exists()
    scenario = project["tool"]["flwr"]["app"]["config"]["scenario"]
    assert (ROOT / scenario).exists()


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "CONTRIBUTING.md",
        "docs/sharp-edges.md",
        "docs/python.md",
        "docs/data.md",
        "docs/statistics.md",
        "docs/attacks.md",
        "docs/units.md",
        "docs/speed.md",
        *(
            f"docs/{name}.md"
            for name in ("deployment", "engines", "faults", "nodes", "resume", "scale", "security")
        ),
    ],
)
def test_every_link_and_picture_leads_somewhere(page: str) -> None:
    text = (ROOT / page).read_text()
    for target in re.findall(r"\]\(([^)]+)\)", text):
        if not target.startswith("https://"):
            assert ((ROOT / page).parent / target.split("#")[0]).exists(), target
