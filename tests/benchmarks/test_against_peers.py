"""The benchmark beside peers, with scripts that stand in for theirs: turns, ratios, and errors that show."""

from __future__ import annotations

import json
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from typer import Typer
from typer.testing import CliRunner
from warm import write_command

from benchmarks import peers
from benchmarks.against_peers import Row, main
from benchmarks.machine import processor, versions_in
from benchmarks.peers import PEERS, Measurement, PeerError, run
from benchmarks.speed_table import MARK

FINE = 'import json, sys\nprint("noise")\nprint(json.dumps({"clients_per_s": 50.0, "asked": sys.argv[1:]}))\n'
BROKEN = 'import sys\nsys.exit("the peer fell over")\n'


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """An interpreter that has both peers' modules and nothing else installed, with a torchrun beside it."""
    folder = tmp_path / "bin"
    (tmp_path / "modules").mkdir()
    folder.mkdir()
    for module in ("pfl", "flwr", "ray"):
        (tmp_path / "modules" / f"{module}.py").touch()
    begin = f'#!/bin/sh\nexport PYTHONPATH="{tmp_path / "modules"}"\n'
    for name, skip in (("python", ""), ("torchrun", "shift 2\n")):
        (folder / name).write_text(f'{begin}{skip}exec "{sys.executable}" -S "$@"\n')
        (folder / name).chmod(0o755)
    return folder / "python"


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    """The folder of the scripts; both work."""
    folder = tmp_path / "bench"
    folder.mkdir()
    for peer in PEERS.values():
        (folder / peer.script).write_text(FINE)
    return folder


def command(*options: object) -> tuple[int, str]:
    """The exit code of the command, and all that it said."""
    app = Typer()
    app.command()(main)
    result = CliRunner().invoke(app, [str(option) for option in options], env={"COLUMNS": "300"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def row(*theirs: float | None, work: str = "lr", cohort: int = 1000, peer: str = "pfl") -> Row:
    return Row(work, cohort, peer, cohort, (100.0, 300.0, 200.0)[: len(theirs)], theirs)


def test_a_ratio_is_of_medians_and_has_the_spread_of_turns() -> None:
    found = row(2.0, 1.0, 4.0)
    assert (found.ratio, found.ratios) == (100.0, [50.0, 300.0, 50.0])
    assert found.reached
    assert not row(5.0, 5.0, 5.0).reached  # 40 of 60
    assert row(5.0, 5.0, 5.0, cohort=100).target is None


def test_a_turn_in_which_a_peer_failed_has_no_ratio_and_a_peer_that_always_fails_misses_its_target() -> None:
    assert row(None, 1.0).ratios == [300.0]
    found = row(None, None)
    assert (found.speed, found.ratio, found.reached) == (None, None, False)


@pytest.mark.parametrize("name", PEERS)
def test_a_peer_does_the_work_that_it_is_asked_for(
    name: str, python: Path, bench: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(peers, "run", lambda *given, **more: said.append(run(*given, **more)) or said[-1])
    PEERS[name].check(python, bench)
    assert PEERS[name].measure(python, bench, Measurement("mlp", 100, 7, 2, 2)) == 50.0
    options = json.loads(said[0].splitlines()[-1])["asked"]
    pairs = dict(pairwise(options))
    wanted = {"--model": "mlp", "--features": "784", "--cohort": "100", "--rounds": "7", "--warmup": "2"}
    assert wanted.items() <= pairs.items()


@pytest.mark.parametrize(("device", "clients"), [("cpu", 0.0), ("cuda", 3.0)])
def test_a_peer_sees_no_gpu_unless_it_is_measured_there(
    device: str, clients: float, python: Path, bench: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    monkeypatch.setattr(peers, "ON_GPU", bench / "bench_pfl.py")
    (bench / "bench_pfl.py").write_text(
        'import os\nprint(\'{"clients_per_s": %s}\' % (os.environ["CUDA_VISIBLE_DEVICES"] or 0))\n'
    )
    assert PEERS["pfl"].measure(python, bench, Measurement("lr", 10, 1, 1, 1, device)) == clients


@pytest.mark.parametrize(
    ("script", "limit", "words"),
    [
        (BROKEN, 60.0, "exit code 1: the peer fell over"),
        ('print("{}")', 60.0, "printed no clients_per_s"),
        ("import time; time.sleep(60)", 1.0, "took more than 1 s"),
    ],
)
def test_a_peer_that_fails_says_why(
    script: str, limit: float, words: str, python: Path, bench: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (bench / "bench_flower.py").write_text(script)
    monkeypatch.setattr(peers, "run", lambda given, title, **more: run(given, title, limit=limit, **more))
    with pytest.raises(PeerError, match=words):
        PEERS["flower"].measure(python, bench, Measurement("lr", 10, 1, 1, 1))


def test_a_missing_peer_ends_with_exit_code_2_and_what_is_missing(python: Path, bench: Path) -> None:
    nowhere = python.with_name("no-python")
    code, said = command("--peers", nowhere, "--bench", bench)
    assert (code, "no-python is not there" in said) == (2, True)
    (python.parents[1] / "modules" / "ray.py").unlink()
    code, said = command("--peers", python, "--bench", bench)
    assert (code, "has no module ray. Install it there." in said) == (2, True)
    (bench / "bench_pfl.py").unlink()
    code, said = command("--peers", python, "--bench", bench)
    assert (code, "bench_pfl.py is not there" in said) == (2, True)


def test_an_unknown_peer_is_refused(python: Path, bench: Path) -> None:
    code, said = command("--peers", python, "--bench", bench, "--peer", "tff")
    assert (code, "none of pfl, flower" in said) == (2, True)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_all_take_turns_and_errors_of_a_peer_are_shown(
    python: Path, bench: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_command(tmp_path / "python")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))  # of our own process
    (bench / "bench_flower.py").write_text(BROKEN)
    file = tmp_path / "figures.json"
    small = ("--work", "lr", "--cohort", 10, "--turns", 3, "--rounds", 1, "--warmup", 1, "--workers", 1)
    table = tmp_path / "speed.md"
    table.write_text(f"| machine | |\n|---|---|\n{MARK}\nThe end.\n")
    beside = ("--flower-cohort", 5, "--append", table)
    code, said = command("--peers", python, "--bench", bench, *small, "--json", file, *beside)
    assert code == 1
    assert "the peer fell over" in said
    assert "Flower on Ray had 5" in said
    document = json.loads(file.read_text())
    first, second = document["rows"]
    assert (first["peer"], first["theirs"], first["errors"]) == ("pfl", [50.0] * 3, [])
    assert first["ours"] == [own["clients_per_second"] for own in document["ours"]]
    assert first["ratio"] == pytest.approx(sorted(first["ours"])[1] / 50.0)
    assert (second["peer"], second["theirs"], second["peer_cohort"]) == ("flower", [None] * 3, 5)
    assert ["the peer fell over" in error for error in second["errors"]] == [True] * 3
    turns = [line.rsplit(", ", 1)[1] for line in said.splitlines() if line.startswith("turn ")]
    assert turns == ["ours", "pfl", "flower", "flower", "pfl", "ours", "ours", "pfl", "flower"]
    assert f"{processor()}, 1 cores; python" in said
    assert "Matrix products beside lr: " in said
    added = table.read_text().splitlines()
    assert len(added) == 5  # a peer that always failed has no row
    assert (
        f"| lr, 10 | {sorted(first['ours'])[1]:,.0f} | pfl-research, 10 | {first['ratio']:,.3g} (" in added[2]
    )
    assert added[3:] == [MARK, "The end."]


def test_a_table_needs_three_turns_and_a_mark(python: Path, bench: Path, tmp_path: Path) -> None:
    table = tmp_path / "speed.md"
    table.write_text(f"{MARK}\n")
    given = ("--peers", python, "--bench", bench, "--append", table)
    code, said = command(*given, "--turns", 2)
    assert (code, "at least 3 turns" in said) == (2, True)
    table.write_text("No mark.\n")
    code, said = command(*given)
    assert (code, "no file with the line" in said) == (2, True)


def test_versions_are_those_of_the_other_interpreter() -> None:
    assert versions_in(Path(sys.executable), ["pytest", "no-such-package"]) == {"pytest": pytest.__version__}
