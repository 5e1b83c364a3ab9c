"""A scenario file alone never runs code: not from any command, process or engine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from flwr.app import ConfigRecord, Context, Message, RecordDict
from warm import ENVIRONMENT, warm

from clients.app import app as client_app
from fedprivacy.errors import InputError
from scenarios.engines.embedded import EmbeddedGrid
from scenarios.experiments.comparison import compare
from scenarios.runner import resume, run
from server.app import app as server_app

MODULE = "allow_code_nets"
NET = """
from pathlib import Path
from torch import nn

Path("was-run").touch()

def make(features, classes, width=3):
    return nn.Sequential(nn.Linear(features[0], width), nn.Tanh(), nn.Linear(width, classes))
"""
REFUSED = "a scenario file alone never runs code"


@pytest.fixture
def folder(tmp_path: Path, base_text: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder with a scenario and the code that it names."""
    (tmp_path / f"{MODULE}.py").write_text(NET)
    text = base_text.replace('name = "logistic"', f'name = "code"\nfactory = "{MODULE}:make"')
    text = text.replace("noise_multiplier = 2.0", "epsilon = 2.0")
    (tmp_path / "mine.toml").write_text(text + "[compare]\nepsilons = [2.0]\nseeds = [1, 2]\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    sys.modules.pop(MODULE, None)
    return tmp_path


@pytest.fixture
def asked(folder: Path, make_scenario):
    return make_scenario(text=(folder / "mine.toml").read_text())


def fedprivacy(*args: str, cold: bool = False) -> subprocess.CompletedProcess[str]:
    cold_start = [
        sys.executable,
        "-c",
        "import sys; sys.path.remove(''); from scenarios.cli.main import main; main()",
    ]
    paths = os.pathsep.join([str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")])
    environment = {**ENVIRONMENT, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": paths}
    done = subprocess.run(
        [*(cold_start if cold else warm()), *args],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert "Traceback" not in done.stderr
    return done


def was_run(folder: Path) -> bool:
    marker = folder / "was-run"
    found = marker.exists()
    marker.unlink(missing_ok=True)
    return found


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("command", ["run", "compare"])
def test_a_command_without_the_flag_runs_no_code_and_writes_nothing(command: str, folder: Path) -> None:
    done = fedprivacy(command, "mine.toml")
    assert (done.returncode, done.stdout) == (2, "")
    assert REFUSED in done.stderr
    assert "add --allow-code" in done.stderr
    assert not was_run(folder)
    assert not (folder / "runs").exists()


def test_the_flag_cannot_be_set_by_the_scenario(folder: Path) -> None:
    done = fedprivacy(
        "run", "mine.toml", "--set", "model.options.allow_code=true", "--set", "allow_code=true"
    )
    assert done.returncode == 2
    assert not was_run(folder)


@pytest.mark.exhaustive
@pytest.mark.slow
def test_with_the_flag_a_run_and_its_resumption_take_the_code_of_the_current_folder(folder: Path) -> None:
    first = json.loads(fedprivacy("run", "mine.toml", "--allow-code", "--json", "--operator").stdout)
    assert first["status"] == "finished"
    assert was_run(folder)
    path = Path(first["path"])
    (path / "checkpoint" / "round-000003.safetensors").unlink()
    (path / "run.json").write_text(json.dumps(first | {"status": "running"}))
    refused = fedprivacy("run", "--resume", str(path))
    assert (refused.returncode, REFUSED in refused.stderr) == (2, True)
    assert not was_run(folder)
    again = json.loads(fedprivacy("run", "--resume", str(path), "--allow-code", "--json", cold=True).stdout)
    assert [e["accuracy"] for e in again["rounds"]] == [e["accuracy"] for e in first["rounds"]]


@pytest.mark.exhaustive
@pytest.mark.slow
def test_with_the_flag_a_comparison_runs_it_in_every_process_alike(folder: Path) -> None:
    options = ["compare", "mine.toml", "--allow-code", "--json", "--workers"]
    one, two = (json.loads(fedprivacy(*options, workers).stdout) for workers in "12")
    assert one["status"] == two["status"] == "finished"
    assert [cell["accuracies"] for cell in one["cells"]] == [cell["accuracies"] for cell in two["cells"]]
    assert len(two["cells"]) == 3


def test_who_calls_the_library_must_allow_it_too(asked, folder: Path) -> None:
    for call in (lambda: run(asked, folder / "runs"), lambda: compare(asked, folder / "runs", workers=2)):
        with pytest.raises(InputError, match=REFUSED):
            call()
    assert not was_run(folder)
    assert not (folder / "runs").exists()


def test_code_that_cannot_be_trained_is_refused_before_anything_is_written(asked, folder: Path) -> None:
    (folder / f"{MODULE}.py").write_text(NET.replace("nn.Tanh()", "nn.BatchNorm1d(width)"))
    for call in (run, lambda *args, **options: compare(*args, workers=2, **options)):
        with pytest.raises(InputError, match=r"BatchNorm1d.* use GroupNorm"):
            call(asked, folder / "runs", allow_code=True)
    assert not (folder / "runs").exists()


class Stop(Exception):
    """A fault in the middle of a run."""


def test_a_run_does_not_go_on_with_changed_code(asked, folder: Path) -> None:
    """Its rounds so far, and those that were played but not kept, had the noise of the first code."""

    def stop(event: dict) -> None:
        if event["round"] == 1:
            raise Stop

    with pytest.raises(Stop):
        run(asked, folder / "runs", allow_code=True, on_round=stop)
    (path,) = (folder / "runs").iterdir()
    (folder / f"{MODULE}.py").write_text(NET.replace("nn.Tanh()", "nn.Sigmoid()"))
    sys.modules.pop(MODULE)
    with pytest.raises(InputError, match="the code of its model changed since the run began"):
        resume(path, allow_code=True)
    (folder / f"{MODULE}.py").write_text(NET)
    sys.modules.pop(MODULE)
    assert resume(path, allow_code=True)["status"] == "finished"


def test_who_interrupts_is_told_the_whole_command(asked, folder: Path, capsys) -> None:
    def stop(event: dict) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(asked, folder / "runs", allow_code=True, on_round=stop)
    assert capsys.readouterr().err.splitlines()[0].endswith(" --allow-code")


@pytest.mark.parametrize("value", [None, False, "true", 1])
def test_flowers_own_apps_refuse_code_unless_the_run_config_allows_it(asked, folder: Path, value) -> None:
    config = {"scenario": asked.to_toml(), "out": str(folder / "runs")}
    if value is not None:
        config["allow-code"] = value
    question = Message(RecordDict({"ask": ConfigRecord()}), dst_node_id=1, message_type="query")
    (reply,) = EmbeddedGrid(client_app, [{}], run_config=config).send_and_receive([question])
    assert REFUSED in reply.error.reason
    grid = EmbeddedGrid(client_app, [{}], run_config=config)
    context = Context(
        run_id=grid.run.run_id, node_id=0, node_config={}, state=RecordDict(), run_config=config
    )
    with pytest.raises(InputError, match=REFUSED):
        server_app(grid, context)
    assert not was_run(folder)
    assert not (folder / "runs").exists()


def test_flowers_own_apps_run_code_that_the_run_config_allows(asked, folder: Path, capsys) -> None:
    """To the bits of the embedded engine."""
    config = {"scenario": asked.to_toml(), "out": str(folder / "runs"), "allow-code": True}
    grid = EmbeddedGrid(client_app, [{}], run_config=config)
    context = Context(
        run_id=grid.run.run_id, node_id=0, node_config={}, state=RecordDict(), run_config=config
    )
    server_app(grid, context)
    (path,) = (folder / "runs").iterdir()
    document = json.loads((path / "run.json").read_text())
    assert document["status"] == "finished"
    embedded = run(asked, folder / "runs", allow_code=True, report=False)
    assert [e["loss"] for e in document["rounds"]] == [e["loss"] for e in embedded["rounds"]]
    assert document["noise_key"] == embedded["noise_key"]
