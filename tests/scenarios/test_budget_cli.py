"""The `fedprivacy budget` commands, as a person types them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-c", "from scenarios.cli import main; main()"]
ENVIRONMENT = {**os.environ, "NO_COLOR": "1", "COLUMNS": "120", "PYTHONPATH": str(ROOT)}
COMMANDS = {
    "gaussian": ["--epsilon", "1"],
    "compose": ["--rounds", "100", "--epsilon", "0.1"],
    "group": ["--size", "4", "--epsilon", "0.5"],
    "shuffle": ["--clients", "1000", "--local-epsilon", "1"],
    "randomized-response": ["--gamma", "0.25"],
    "categories": ["--items", "100", "--epsilon", "1"],
    "laplace": ["--epsilon", "0.1", "--count"],
    "geometric": ["--scale", "10", "--histogram"],
    "norm": ["--epsilon", "1", "--dimension", "10"],
    "exponential": ["--epsilon", "0.1"],
    "noisy-max": ["--epsilon", "0.1", "--noise", "gumbel"],
}


def budget(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, "budget", *args], env=ENVIRONMENT, capture_output=True, text=True, timeout=120, check=False
    )


def test_help_names_every_command_without_loading_anything_heavy() -> None:
    done = budget("--help")
    assert done.returncode == 0
    for name in COMMANDS:
        assert name in done.stdout
    loaded = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "import scenarios.budget_cli"],
        capture_output=True, text=True, env=ENVIRONMENT, check=True,
    ).stderr  # fmt: skip
    assert not any(heavy in loaded for heavy in ("numpy", "scipy", "dp_accounting", "torch"))


@pytest.mark.parametrize("name", COMMANDS)
def test_each_says_its_guarantee_in_words_and_as_json(name: str) -> None:
    said, document = budget(name, *COMMANDS[name]), budget(name, *COMMANDS[name], "--json")
    assert (said.returncode, said.stderr, document.stderr) == (0, "", "")
    result = json.loads(document.stdout)
    assert said.stdout.splitlines()[-1] == result["words"]
    assert result["mechanism"] == name
    if "table" in result:
        for row in result["table"]:
            assert next(iter(row.values())) in said.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_what_is_wrong_ends_with_exit_code_2(name: str) -> None:
    done = budget(name, *COMMANDS[name], "--epsilon", "-1")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--epsilon -1.0: must be " in done.stderr


def test_compose_shows_all_theorems() -> None:
    shown = budget("compose", "--rounds", "100", "--epsilon", "0.1").stdout
    for row in ("basic    │ 10 ", "advanced │ 5.851", "optimal  │ 4.307"):
        assert row in shown
