"""The package as its users get it: an installed wheel, used from outside the checkout."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel's contents, and nothing of the checkout."""
    base = tmp_path_factory.mktemp("wheel")
    source = base / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in ("fedprivacy", "clients", "server", "scenarios"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(base), str(source)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = base.glob("*.whl")
    target = base / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target"]
    subprocess.run([*pip, str(target), str(wheel)], check=True)
    return target


@pytest.mark.exhaustive
@pytest.mark.slow
def test_a_scenario_runs_from_the_wheel_alone(installed: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(installed), "OMP_NUM_THREADS": "1"}
    code = "import fedprivacy, scenarios.cli.main; print(fedprivacy.__file__); scenarios.cli.main.main()"
    command = [sys.executable, "-c", code, "run", "digits", "--set", "server.rounds=1", "--json"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    where, _, text = done.stdout.partition("\n")
    assert Path(where).is_relative_to(installed)
    document = json.loads(text)
    assert document["status"] == "finished"
    assert (tmp_path / document["path"] / "report.html").stat().st_size > 10_000


@pytest.mark.slow
def test_the_wheel_brings_the_command_and_nothing_of_the_tests(installed: Path) -> None:
    (entry_points,) = installed.glob("fedprivacy-*.dist-info/entry_points.txt")
    assert "fedprivacy = scenarios.cli.main:main" in entry_points.read_text()
    packages = {path.name for path in installed.iterdir() if (path / "__init__.py").exists()}
    assert packages == {"fedprivacy", "clients", "server", "scenarios"}
    for package in packages:
        shipped, ours = (
            {
                file.relative_to(root)
                for file in (root / package).rglob("*")
                if file.suffix not in ("", ".pyc")
            }
            for root in (installed, ROOT)
        )
        assert shipped == ours
