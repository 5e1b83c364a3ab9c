"""The commands about stored results and `import`, as a user types them."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from warm import ENVIRONMENT, warm

import fedprivacy as fp
from fedprivacy.errors import InputError
from scenarios.cli import stored_commands


def command(*words: object, folder: Path, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*warm(), *map(str, words)],
        cwd=folder,
        env=ENVIRONMENT,
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `runs/first` and `runs/second`."""
    folder = tmp_path_factory.mktemp("work")
    for name, epsilon in (("first", 2), ("second", 8)):
        result = fp.run("digits", epsilon=epsilon, rounds=1, out=folder / "runs", progress=False, workers=1)
        result.path.rename(folder / "runs" / name)
    return folder


def test_list_prints_a_line_for_each_run(work: Path) -> None:
    done = command("list", folder=work)
    assert done.returncode == 0, done.stderr
    assert "first" in done.stdout
    assert "  central             client/replace-one   -/2/2             1e-05" in done.stdout
    assert "epsilon against server/participant/outsider" in done.stdout
    assert "No stored results fit." in command("list", "--filter", "trust=local", folder=work).stdout


@pytest.mark.exhaustive
def test_list_for_programs_holds_no_seed(work: Path) -> None:
    document = json.loads(command("list", "--json", "--sort", "epsilon_outsider", folder=work).stdout)
    assert [row["run"] for row in document["runs"]] == ["first", "second"]
    assert not [key for key in document["runs"][0] if key in ("seed", "noise_key", "command")]
    rows = list(csv.DictReader(io.StringIO(command("list", "--csv", folder=work).stdout)))
    assert {row["run"] for row in rows} == {"first", "second"}
    assert not any("path" in row for row in (*document["runs"], *rows))
    both = command("list", "--csv", "--json", folder=work)
    assert (both.returncode, both.stderr) == (2, "--csv, --json, --page: give one of them.\n")


@pytest.mark.exhaustive
def test_operator_adds_what_only_the_operator_may_see(work: Path, tmp_path: Path) -> None:
    (row,) = json.loads(
        command("list", "--json", "--operator", "--filter", "run=first", folder=work).stdout
    )["runs"]  # fmt: skip
    assert (row["seed"], row["command"].split()[:3]) == (1, ["fedprivacy", "run", "digits"])
    assert "operator-only: seed 1, command" in command("list", "--operator", folder=work).stdout
    page = command("list", "--page", "--operator", folder=work).stdout.strip()
    assert page == "runs/operator.html"
    assert "do not pass this page on" in (work / page).read_text()
    shown = command("diff", "runs/first", "runs/second", "--operator", folder=work).stdout
    assert "noise_key" in shown
    assert "noise_key" not in command("diff", "runs/first", "runs/second", folder=work).stdout
    done = command("export", "runs/first", "--csv", "--operator", "--out", str(tmp_path), folder=work)
    assert done.returncode == 0
    assert {file.name for file in tmp_path.iterdir()} == {
        "first-operator-rounds.csv", "first-operator-values.csv",
    }  # fmt: skip


@pytest.mark.exhaustive
def test_report_merges_both_pages_into_that_of_the_operator(work: Path) -> None:
    folder = work / "runs" / "second"
    apart = (folder / "operator.html").read_text()
    done = command("report", "runs/second", "--operator", folder=work)
    assert done.stdout == "runs/second/operator.html\n"
    merged = (folder / "operator.html").read_text()
    for text in (apart, merged):
        assert "do not pass this page on" in text
        assert "fedprivacy run digits" in text
    assert ["Who is protected from whom" in text for text in (apart, merged)] == [False, True]
    assert "fedprivacy run digits" not in (folder / "report.html").read_text()
    assert command("report", "runs/second", folder=work).stdout == "runs/second/report.html\n"
    assert (folder / "operator.html").read_text() == apart


@pytest.mark.exhaustive
def test_names_in_records_steer_no_terminal(work: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(work / "runs" / "first", tmp_path / "runs" / "a"))
    document = json.loads((path / "run.json").read_text())
    document |= {"name": "=cmd()\x1b[2J", "status": "\x1b[31mfailed"}
    (path / "run.json").write_text(json.dumps(document))
    for words in (("list",), ("list", "--csv"), ("list", "--json")):
        done = command(*words, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "\x1b" not in done.stdout
    assert "'=cmd()" in command("list", "--csv", folder=tmp_path).stdout


def test_show_and_diff(work: Path) -> None:
    shown = command("show", "runs/first", folder=work)
    assert "participant: epsilon = 2 (by the server's noise) " in " ".join(shown.stdout.split())
    assert "delta = 1e-05, unit client, replace-one" in shown.stdout
    document = json.loads(command("show", "runs/first", "--json", folder=work).stdout)
    assert document["kind"] == "run"
    assert "path" not in document
    whole = json.loads(command("show", "runs/first", "--json", "--operator", folder=work).stdout)
    assert whole["path"] == "runs/first"
    done = command("diff", "runs/first", "runs/second", folder=work)
    assert "privacy.epsilon" in done.stdout
    assert "the first is stronger" in done.stdout
    assert command("diff", "runs/first", "runs", folder=work).returncode == 2


def test_a_run_is_named_as_list_names_it(work: Path) -> None:
    names = [row["run"] for row in json.loads(command("list", "--json", folder=work).stdout)["runs"]]
    for name in (*names, f"{names[0]}/"):
        done = command("show", name, folder=work)
        assert done.returncode == 0, done.stderr
        assert done.stdout.endswith(f"report: runs/{name.rstrip('/')}/report.html\n")
    assert "the first is stronger" in command("diff", "first", "runs/second", folder=work).stdout
    assert command("report", "first", folder=work).stdout == "runs/first/report.html\n"
    assert command("tag", "first", folder=work).stdout == "no tags\n"
    for words in (("show",), ("diff", "first"), ("rm", "--yes", "first"), ("report",)):
        done = command(*words, "secon", folder=work)
        assert (done.returncode, done.stderr) == (
            2,
            "secon: no such run, here or in runs. Did you mean second?\n",
        )
    assert (work / "runs" / "first").is_dir()


def test_export(work: Path, tmp_path: Path) -> None:
    done = command("export", "runs/first", "--csv", "--out", tmp_path, folder=work)
    assert done.stdout == f"Wrote {tmp_path}/first-rounds.csv.\n"
    again = command("export", "runs/first", "--csv", "--out", tmp_path, folder=work)
    assert (again.returncode, "already exists" in again.stderr) == (2, True)
    assert command("export", "runs/first", folder=work).stderr == "--csv, --parquet: give one of them.\n"


@pytest.mark.exhaustive
def test_tag_and_rm(work: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        shutil.copytree(work / "runs" / "first", tmp_path / "runs" / name)
    assert command("tag", "runs/a", "paper", folder=tmp_path).stdout == "paper\n"
    assert command("tag", "runs/a", folder=tmp_path).stdout == "paper\n"
    assert command("tag", "runs/a", "--remove", "paper", folder=tmp_path).stdout == "no tags\n"
    wrong = command("rm", "--yes", "runs/a", "runs/nope", "runs", folder=tmp_path)
    assert (wrong.returncode, len(wrong.stderr.splitlines())) == (2, 2)
    silent = command("rm", "runs/a", folder=tmp_path)
    assert (silent.returncode, "Give --yes" in silent.stderr) == (2, True)
    assert command("rm", "runs/a", folder=tmp_path, text="n\n").returncode == 0
    assert (tmp_path / "runs" / "a").is_dir()
    assert (
        command("rm", "--yes", "runs/a", "runs/b", folder=tmp_path).stdout
        == "Removed runs/a.\nRemoved runs/b.\n"
    )
    assert not list((tmp_path / "runs").iterdir())


@pytest.mark.exhaustive
def test_import_makes_a_scenario_that_runs(tmp_path: Path) -> None:
    rows = [
        f"{20 + at},{'fm'[at % 2]},{['Ulm', 'Bern', 'Linz', 'Graz'][at % 4]},{'yes' if at > 30 else 'no'}"
        for at in range(60)
    ]
    (tmp_path / "heart.csv").write_text("\n".join(["age,sex,hospital,sick", *rows]))
    done = command("import", "heart.csv", "--label", "sick", "--client", "hospital", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (
        done.stdout.splitlines()[-1]
        == "Wrote heart.npz and heart.toml. Run it with: fedprivacy run heart.toml"
    )
    assert "The bounds of age were read off the records: a release that no epsilon covers" in done.stdout
    run = command("run", "heart.toml", "--set", "server.rounds=1", "--json", folder=tmp_path)
    assert run.returncode == 0, run.stderr
    report = (tmp_path / json.loads(run.stdout)["path"] / "report.html").read_text()
    assert "The clients are Bern, Graz, Linz, Ulm." in report


@pytest.mark.exhaustive
def test_a_folder_whose_name_is_no_utf_8_is_listed(work: Path, tmp_path: Path) -> None:
    shutil.copytree(work / "runs" / "first", tmp_path / "runs" / os.fsdecode(b"a\xff"))
    for words in (("list",), ("list", "--csv"), ("list", "--json"), ("list", "--page")):
        done = command(*words, folder=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
    assert "a%FF/report.html" in (tmp_path / "runs" / "index.html").read_text()
    done = command("list", "--page", os.fsdecode(b"runs/a\xff"), folder=tmp_path)
    assert "Traceback" not in done.stderr


def test_a_difference_lists_the_assumptions_that_differ(capsys: pytest.CaptureFixture[str]) -> None:
    from scenarios.cli.display_stored import show_difference

    stated = {"stated": ["a", "b"], "verdict": "v", "assumptions": [["one of the first"], []]}
    cell = {"cell": {"trust": "central", "epsilon": 2.0}, "results": {"accuracy": [0.5, None]}}
    cells = [{**cell, "guarantees": {"outsider": stated}}]
    document = {
        "names": ["x", "y"],
        "settings": {},
        "results": {},
        "guarantees": {"server": stated},
        "cells": cells,
    }
    show_difference(document)
    text = capsys.readouterr().out
    assert "one of the first" not in text
    assert text.count("assumptions differ: --verbose") == 2
    show_difference(document, verbose=True)
    text = capsys.readouterr().out
    assert text.count("one of the first") == 2
    assert "trust central, epsilon 2.0" in text
    assert "0.5" in text


def shown(capsys: pytest.CaptureFixture[str], *rows: dict[str, object]) -> list[str]:
    from scenarios.cli.display_stored import show_list

    show_list({"runs": list(rows)})
    return capsys.readouterr().out.splitlines()


ROW = {
    "run": "20261125-071943-local-vs-central-08eb58",
    "path": "runs/20261125-071943-local-vs-central-08eb58",
    "answer": None,
    "kind": "run",
    "status": "finished",
    "trust": "distributed",
    "unit": "example, replace-one",
    "delta": 1.5e-6,
    "guarantees": "whole",
    "epsilon_server": 2.001,
    "epsilon_participant": 2.001,
    "epsilon_outsider": 10.37,
    "accuracy": 0.5,
    "tags": [],
}


def test_list_states_the_terms_of_an_epsilon_in_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    _, name, line, legend = shown(capsys, ROW)
    assert name == ROW["path"]  # which `show` takes
    assert line.split() == ["distributed", "example/replace-one", "2.001/2.001/10.37", "1.5e-06", "50.0", "%"]
    assert len(line) <= 80
    assert legend.endswith("-: no guarantee")


def test_list_states_the_epsilon_against_an_analyst_behind_a_shuffler(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "analyst" not in "".join(shown(capsys, ROW))
    *_, line, _ = shown(capsys, {**ROW, "trust": "shuffled", "epsilon_analyst": 0.51234})
    assert line == "  analyst behind the shuffler: epsilon 0.5124"


@pytest.mark.parametrize("state", ["by cell", "not stated"])
def test_list_shows_no_dash_where_a_guarantee_is_only_not_stated(
    capsys: pytest.CaptureFixture[str], state: str
) -> None:
    none = dict.fromkeys(["unit", "delta", "epsilon_server", "epsilon_participant", "epsilon_outsider"])
    row = {**ROW, **none, "guarantees": state, "trust": None, "kind": "compare", "accuracy": None}
    _, _, line, *legend = shown(capsys, row)
    assert line.split() == ["compare", *state.split()]
    assert (len(legend) == 2) == (state == "by cell")


@pytest.mark.exhaustive
def test_rm_of_the_folder_that_one_is_in_takes_nothing(work: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(work / "runs" / "first", tmp_path / "first"))
    done = command("rm", "--yes", ".", folder=path)
    assert (done.returncode, "the folder that you are in" in done.stderr) == (2, True)
    assert (path / "run.json").is_file()
    assert command("rm", "--yes", "first", "first/", folder=tmp_path).stdout == "Removed first.\n"


@pytest.mark.exhaustive
def test_figures_are_not_written_through_a_link(work: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(work / "runs" / "first", tmp_path / "first"))
    (tmp_path / "mine").mkdir()
    (path / "figures").symlink_to(tmp_path / "mine")
    done = command("report", "first", "--figures", "svg", folder=tmp_path)
    assert (done.returncode, "not a folder of its own" in done.stderr) == (2, True)
    assert not list((tmp_path / "mine").iterdir())


@pytest.mark.parametrize(
    "read",
    [
        stored_commands.show,
        stored_commands.list_runs,
        partial(stored_commands.diff, second=Path("nowhere")),
        partial(stored_commands.export, csv=True),
    ],
)
def test_a_command_that_reads_records_names_its_wait(
    monkeypatch: pytest.MonkeyPatch, read: Callable[[Path], None]
) -> None:
    named = []

    @contextmanager
    def waiting(what: str) -> Iterator[None]:
        named.append(what)
        yield

    monkeypatch.setattr(stored_commands, "waiting", waiting)
    with pytest.raises(InputError, match="nowhere"):
        read(Path("nowhere"))
    assert len(named) == 1
