"""The ready scenarios of private estimates, played smaller: each shows what it says it shows."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from warm import ENVIRONMENT, warm

from fedprivacy.scenario.erm import ErmScenario
from fedprivacy.scenario.loading import load
from scenarios.authoring.catalogue import ready
from scenarios.experiments.erm_study import fit


def fedprivacy(*args: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*warm(), *args], capture_output=True, text=True, env=ENVIRONMENT, timeout=300, check=False
    )
    assert "Traceback" not in done.stderr + done.stdout
    return done


def played(name: str, out: Path, *overrides: str) -> dict[str, Any]:
    scenario = load(ready()[name], overrides)
    assert isinstance(scenario, ErmScenario)
    return fit(scenario, out)


def mean(document: dict[str, Any], approach: str, epsilon: float) -> float:
    [found] = [c for c in document["cells"] if (c["approach"], c["epsilon"]) == (approach, epsilon)]
    return float(found["excess"]["mean"])


def coefficient(document: dict[str, Any], approach: str, epsilon: float) -> dict[str, float]:
    [found] = [c for c in document["cells"] if (c["approach"], c["epsilon"]) == (approach, epsilon)]
    return next(t for t in found["theta"] if t["name"] == "educ")


@pytest.mark.exhaustive
def test_losses_fall_with_the_square_of_epsilon_and_objective_perturbation_loses_least(
    tmp_path: Path,
) -> None:
    few = ("approaches.grid.points=5", "approaches.gradient.steps=5", "approaches.silos-gradient.steps=5")
    document = played("private-erm", tmp_path, "study.records=[2000]", "study.repeats=16", *few)
    slopes = {one["approach"]: one["slope"] for one in document["slopes"] if one["over"] == "epsilon"}
    for name in ("output", "output-gaussian", "objective", "objective-gaussian"):
        assert slopes[name] == pytest.approx(-2, abs=0.4)
        for cell in document["cells"]:
            if cell["approach"] == name:
                assert cell["excess"]["high"] < cell["bound"]
    for epsilon in (0.25, 1.0, 4.0):
        assert mean(document, "objective", epsilon) < mean(document, "output", epsilon) / 3
        assert mean(document, "output", epsilon) < mean(document, "silos-average", epsilon)


@pytest.mark.exhaustive
def test_who_is_married_by_education(tmp_path: Path, real_data: Any) -> None:
    path = real_data("pums_fulton.npz")
    document = played(
        "married-by-education",
        tmp_path,
        f'data.path="{path}"',
        "study.epsilons=[1.0]",
        "approaches.grid.points=5",
    )
    [truth] = [one["value"] for one in document["exact"][0]["theta"] if one["name"] == "educ"]
    assert truth == pytest.approx(0.128, abs=2e-3)
    for name in ("output", "objective"):
        found = coefficient(document, name, 1.0)
        assert found["low"] < truth < found["high"]
    assert document["surface"]["approach"] == "gradient"


@pytest.mark.exhaustive
def test_education_and_income(tmp_path: Path, real_data: Any) -> None:
    path = real_data("pums_fulton.npz")
    document = played("education-and-income", tmp_path, f'data.path="{path}"', "study.epsilons=[1.0]")
    [truth] = [one["value"] for one in document["exact"][0]["theta"] if one["name"] == "educ"]
    assert truth == pytest.approx(6032, abs=10)  # dollars a year for one more step of education
    found = coefficient(document, "sufficient-statistics", 1.0)
    assert found["low"] < truth < found["high"]
    best = mean(document, "sufficient-statistics", 1.0)
    assert best < mean(document, "gradient", 1.0) < mean(document, "output", 1.0)


@pytest.mark.exhaustive
def test_the_command_runs_shows_and_renders_it_again(tmp_path: Path) -> None:
    small = ("--set", "study.records=[200]", "--set", "study.repeats=2", "--set", "approaches.grid.points=3")
    done = fedprivacy(
        "run",
        "private-erm",
        "--verbose",
        *small,
        "--set",
        "study.epsilons=[1.0, 2.0]",
        "--out",
        str(tmp_path),
    )
    assert done.returncode == 0, done.stderr
    for words in ("objective", "at most epsilon = 2 at delta = 0", "every silo adds its noise", "report: "):
        assert words in done.stdout
    [path] = tmp_path.iterdir()
    document = json.loads((path / "run.json").read_text())
    assert document["command"].startswith("fedprivacy run private-erm")
    (path / "report.html").unlink()
    assert fedprivacy("report", str(path)).returncode == 0
    assert (path / "report.html").exists()
    again = fedprivacy("run", "--resume", str(path))
    assert again.returncode == 2
    assert "private estimates cannot be resumed" in again.stderr


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("command", ["compare", "audit"])
def test_other_commands_say_which_one_it_is_for(command: str) -> None:
    done = fedprivacy(command, "private-erm")
    assert done.returncode == 2
    assert "does not support. Use `fedprivacy run private-erm`" in done.stderr


def test_no_node_holds_a_study(tmp_path: Path) -> None:
    options = ("--engine", "superlink", "--superlink", "127.0.0.1:1", "--pinned")
    done = fedprivacy("run", "private-erm", *options, "--out", str(tmp_path / "runs"))
    assert done.returncode == 2
    assert "--pinned: nodes cannot pin a study of private estimates" in done.stderr
    assert not (tmp_path / "runs").exists()
