"""Completions for the shell, asked for as a shell does."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest
from typer.testing import CliRunner

from scenarios.authoring import completion
from scenarios.cli.main import app


def complete(words: str) -> list[str]:
    """The completions that bash gets for a command line."""
    count = len(words.split()) - (0 if words.endswith(" ") else 1)
    environment = {
        "_FEDPRIVACY_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(count),
    }  # fmt: skip
    result = CliRunner().invoke(app, prog_name="fedprivacy", env=environment)
    return result.stdout.split()


def test_examples() -> None:
    assert doctest.testmod(completion).failed == 0


def test_keys_are_those_of_the_scenario() -> None:
    assert "privacy.epsilon=" in completion.settings("digits", "privacy.")
    assert "game.seeds=" not in completion.settings("digits", "")
    assert any(key.startswith("game.") for key in completion.settings("active-gradient-ascent", ""))
    assert any(key.startswith("queries.") for key in completion.settings("star-wars-survey", ""))
    assert completion.settings("no-such-scenario", "server.rounds") == ["server.rounds="]


def test_values_are_the_choices_of_a_key() -> None:
    assert completion.settings(None, "sampling.name=") == [
        "sampling.name=poisson", "sampling.name=fixed", "sampling.name=all", "sampling.name=separated",
        "sampling.name=cyclic-poisson",
    ]  # fmt: skip
    assert completion.settings(None, "training.averaging=") == [
        "training.averaging=true", "training.averaging=false",
    ]  # fmt: skip
    assert completion.settings(None, "privacy.epsilon=") == []
    assert completion.settings(None, "no.such=") == []


def test_attacks_are_those_of_the_scenario() -> None:
    assert "ascent" in completion.attacks("active-gradient-ascent", "asc")
    assert completion.attacks("digits", "") == []


def test_run_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("runs/a-digits", "runs/b-heart", "elsewhere/c"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "scenario.toml").write_text("")
    (tmp_path / "runs" / "other").mkdir()
    assert completion.runs("") == ["runs/a-digits", "runs/b-heart"]
    assert completion.runs("runs/b") == ["runs/b-heart"]
    assert completion.runs("elsewhere/") == ["elsewhere/c"]
    assert completion.runs("nowhere/") == []


def test_a_shell_completes_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert complete("fedprivacy run digits --set privacy.tru") == ["privacy.trust="]
    assert complete("fedprivacy replay active-gradient-ascent --attack asc") == ["ascent"]
