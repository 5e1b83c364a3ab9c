"""The `fedprivacy budget` commands, as a person types them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fedprivacy.errors import InputError
from scenarios.cli.main import app

ROOT = Path(__file__).parents[3]
ENVIRONMENT = {**os.environ, "NO_COLOR": "1", "PYTHONPATH": str(ROOT)}
COMMANDS = {
    "gaussian": ["--epsilon", "1"],
    "dp-sgd": ["--records", "1000", "--batch-size", "10", "--steps", "50", "--noise-multiplier", "2"],
    "compose": ["--rounds", "100", "--epsilon", "0.1"],
    "group": ["--size", "4", "--epsilon", "0.5"],
    "tuning": ["--candidates", "10", "--noise-multiplier", "8"],
    "shuffle": ["--clients", "1000", "--local-epsilon", "1"],
    "randomized-response": ["--gamma", "0.25"],
    "categories": ["--items", "100", "--epsilon", "1"],
    "laplace": ["--epsilon", "0.1", "--count"],
    "geometric": ["--scale", "10", "--histogram"],
    "norm": ["--epsilon", "1", "--dimension", "10"],
    "exponential": ["--epsilon", "0.1"],
    "noisy-max": ["--epsilon", "0.1", "--noise", "gumbel"],
}
RUNNER = CliRunner()


def test_help_names_every_command_without_loading_anything_heavy() -> None:
    done = RUNNER.invoke(app, ["budget", "--help"])
    assert done.exit_code == 0
    for name in COMMANDS:
        assert name in done.stdout
    loaded = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "import scenarios.cli.budget"],
        capture_output=True, text=True, env=ENVIRONMENT, check=True,
    ).stderr  # fmt: skip
    assert not any(heavy in loaded for heavy in ("numpy", "scipy", "dp_accounting", "torch"))


@pytest.mark.parametrize("name", COMMANDS)
def test_each_says_its_guarantee_in_words_and_as_json(name: str) -> None:
    said = RUNNER.invoke(app, ["budget", name, *COMMANDS[name]])
    document = RUNNER.invoke(app, ["budget", name, *COMMANDS[name], "--json"])
    assert (said.exit_code, said.stderr, document.stderr) == (0, "", "")
    result = json.loads(document.stdout)
    assert said.stdout.splitlines()[-1] == result["words"]
    assert result["mechanism"] == name
    for row in result.get("table", []):
        assert next(iter(row.values())) in said.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_what_is_wrong_ends_with_exit_code_2(name: str) -> None:
    done = RUNNER.invoke(app, ["budget", name, *COMMANDS[name], "--epsilon", "-1"])
    assert done.stdout == ""
    assert isinstance(done.exception, InputError)  # which `main` prints, test_main.py
    assert done.exception.exit_code == 2
    assert "--epsilon -1.0: must be " in str(done.exception)


def test_compose_shows_all_theorems() -> None:
    shown = RUNNER.invoke(app, ["budget", "compose", "--rounds", "100", "--epsilon", "0.1"]).stdout
    for row in ("basic    │ 10 ", "advanced │ 5.851", "optimal  │ 4.307"):
        assert row in shown


def test_a_library_shows_its_figures_and_a_guarantee_for_each_observer() -> None:
    words = ["budget", "flower", "epsilon=8", "delta=1e-5", "clipping_norm=1", "sensitivity=1", "rounds=100"]
    brief, full = (RUNNER.invoke(app, [*words, *more]) for more in ([], ["--verbose"]))
    document = json.loads(RUNNER.invoke(app, [*words, "--json"]).stdout)
    assert (brief.exit_code, full.exit_code, brief.stderr) == (0, 0, "")
    assert document["words"] in brief.stdout
    for text in (
        "18.9",
        "685.3",
        "- Against the server",
        "- Against an outsider",
        "Provided that each client",
    ):
        assert text in brief.stdout
    for guarantee in document["guarantees"]:
        assert f"- {guarantee['words']}" in full.stdout
    assert "Flower 1.41: mechanism = local, epsilon = 8.0" in full.stdout


def test_figures_of_a_library_that_differ_look_different() -> None:
    shown = RUNNER.invoke(app, ["budget", "nvflare", "weights=7033282"]).stdout
    assert "70,333 " in shown
    assert "70,334 " in shown
    assert "epsilon = 70,333 at" in shown


def test_a_library_without_a_guarantee_gives_the_reason_and_assumes_nothing() -> None:
    shown = RUNNER.invoke(app, ["budget", "nvflare", "percentile=10"]).stdout
    assert shown.count("- No guarantee against ") == 3
    assert "Provided that" not in shown


def test_a_file_cannot_act_on_the_terminal(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text('{"percentile": 10, "\\u001b[31mred": 1}')
    shown = RUNNER.invoke(app, ["budget", "nvflare", str(file)])
    assert shown.exit_code == 0
    assert "\x1b[31m" not in shown.stdout
    assert "red" in shown.stdout
