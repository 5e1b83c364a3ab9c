"""What the command prints: escaped whatever it comes from, and with an end when nobody takes it."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from warm import ENVIRONMENT, warm

import scenarios

EVIL = "a\x1b[2J\x1b]8;;http://x\x07\u202eb\u2066c\u200bd\rE[bold]f[/nothing]\nForged: all is well"
ACTING = "\x1b\x07\u202e\u2066\u200b\r"
ROOT = Path(scenarios.__file__).parents[1]


def command(*args: str, cwd: Path | None = None, **options: object) -> subprocess.CompletedProcess[str]:
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    done = subprocess.run(  # type: ignore[call-overload]
        [*warm(), *args], text=True, cwd=cwd, env=ENVIRONMENT, timeout=300, check=False, **given
    )
    assert "Traceback" not in (done.stderr or "") + (done.stdout or "")
    return done


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs")
    made = command("run", "digits", "--set", "server.rounds=1", "--out", str(out), "--json")
    return Path(json.loads(made.stdout)["path"])


@pytest.mark.exhaustive(every=4)
@pytest.mark.parametrize(
    ("place", "words"),
    [
        (("kind",), ["report", "run"]),
        (("versions", "torch"), ["run", "--resume", "run"]),
        (("privacy", "guarantees", 0, "words"), ["report", "run"]),
        (("name",), ["run", "--resume", "run"]),
    ],
)
def test_texts_of_a_foreign_record_do_not_act(
    run: Path, tmp_path: Path, place: tuple[str | int, ...], words: list[str]
) -> None:
    document = json.loads((run / "run.json").read_text())
    holder = document
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = EVIL
    shutil.copytree(run, tmp_path / "run")
    (tmp_path / "run" / "report.html").unlink()
    (tmp_path / "run" / "run.json").write_text(json.dumps(document))
    done = command(*words, cwd=tmp_path)
    shown = done.stdout + done.stderr
    page = tmp_path / "run" / "report.html"
    assert not set(ACTING) & set(shown)
    assert not any(line.startswith("Forged") for line in done.stderr.splitlines())
    assert not page.exists() or not set(ACTING) & set(page.read_text())
    assert "\\u202e" in shown + (page.read_text() if page.exists() else "")


@pytest.mark.exhaustive
def test_names_of_files_do_not_act(tmp_path: Path) -> None:
    name = EVIL.replace("/", "_")
    (tmp_path / name).mkdir()
    for words in (
        ["run", name], ["run", "--resume", name], ["report", name], ["run", "digits", "--set", f"{name}=1"], [name],
    ):  # fmt: skip
        done = command(*words, cwd=tmp_path)
        assert not set(ACTING) & set(done.stdout + done.stderr), words
        assert done.returncode == 2
        assert not any(line.startswith("Forged") for line in done.stderr.splitlines()), words


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize(
    "words", [["scenarios"], ["budget", "gaussian", "--epsilon", "1", "--json"], ["--help"]]
)
def test_a_full_disk_under_standard_output_ends_with_1(words: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = command(*words, stdout=full)
        assert (done.returncode, done.stderr) == (
            1,
            "standard output: No space left on device. Make room, or send it elsewhere; what was written to files "
            "is whole.\n",
        )
        assert command(words[0], "--nothing", stderr=full).returncode == 2


def started(words: str, **changes: str) -> subprocess.CompletedProcess[str]:
    """A process of its own, whose streams are as the words of the shell make them at its start."""
    line = ["sh", "-c", f'"$0" -m fedprivacy {words}', sys.executable]
    done = subprocess.run(line, capture_output=True, text=True, env=ENVIRONMENT | changes, check=False)
    assert "Traceback" not in done.stderr
    return done


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize(
    ("words", "code"),
    [("scenarios <&- >&- 2>&-", 0), ("scenarios >&-", 0), ("run nothing >&-", 2), ("run nothing 2>&-", 2)],
)
def test_closed_streams_change_no_exit_code(words: str, code: int) -> None:
    done = started(words)
    assert (done.returncode, done.stdout) == (code, "")
    assert bool(done.stderr) is (words == "run nothing >&-")


def test_characters_that_an_encoding_lacks_are_written_out() -> None:
    done = started("run 'µ\u202eé'", PYTHONIOENCODING="ascii")
    assert (done.returncode, "\\xb5\\u202e\\xe9" in done.stderr) == (2, True)


def test_who_stops_reading_hears_nothing_more() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        done = command("scenarios", stdout=closed)
    assert (done.returncode, done.stderr) == (1, "")


def test_nothing_of_the_command_goes_round_the_escape() -> None:
    """Consoles are `Terminal`s; nobody writes to a stream's bytes, nor to the streams of before."""
    allowed = {"fedprivacy/io/console.py", "fedprivacy/io/terminal.py"}
    found = []
    for package in ("fedprivacy", "scenarios"):
        for file in sorted((ROOT / package).rglob("*.py")):
            where = str(file.relative_to(ROOT))
            for node in ast.walk(ast.parse(file.read_text())) if where not in allowed else ():
                if isinstance(node, ast.alias) and node.name in ("Console", "rich.console"):
                    found.append(f"{where} imports {node.name}")
                if isinstance(node, ast.Attribute) and node.attr in ("__stdout__", "__stderr__"):
                    found.append(f"{where}:{node.lineno} {node.attr}")
                if (
                    isinstance(node, ast.Attribute)
                    and node.attr == "buffer"
                    and isinstance(node.value, ast.Attribute)
                    and node.value.attr in ("stdout", "stderr")
                ):
                    found.append(f"{where}:{node.lineno} writes bytes")
    assert found == []
