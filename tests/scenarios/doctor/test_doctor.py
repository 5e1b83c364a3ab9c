"""`fedprivacy doctor` says whether a machine is able, on machines that are broken in many ways, and never fails."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fedprivacy.io.install_hint import install
from scenarios.doctor import Examination, libraries, machine
from scenarios.doctor import packages as doctor_packages
from scenarios.doctor.check import Check, ProbeFailed, Step, probe
from scenarios.doctor.examination import steps
from scenarios.doctor.libraries import clashes
from scenarios.doctor.packages import Needed, installation, packages, requirements, version_check

ROOT = Path(__file__).parents[3]
RUN = [sys.executable, "-c", "from scenarios.cli.main import main; main()", "doctor"]


def doctor(
    folder: Path, *options: str, path: tuple[Path, ...] = (), **environment: str
) -> tuple[int, str, str]:
    """Runs the command in a folder, with folders before ours on the import path."""
    paths = os.pathsep.join(map(str, (*path, ROOT)))
    known = {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "PYTHONSAFEPATH": "1"}
    ended = subprocess.run(
        [*RUN, *options], cwd=folder, env={**os.environ, **known, **environment},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    return ended.returncode, ended.stdout, ended.stderr


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        one.listen(1)
        yield int(one.getsockname()[1])


@pytest.mark.exhaustive
@pytest.mark.slow
def test_a_machine_that_is_able(tmp_path: Path) -> None:
    code, out, err = doctor(tmp_path, "--json", "--ports", str(free_port()))
    document = json.loads(out)
    found = {check["name"]: check for check in document["checks"]}
    failed = {name: check for name, check in found.items() if check["status"] == "failure"}
    assert (code, failed, err) == (0, {}, "")
    assert (document["schema"], document["kind"], document["able"]) == (1, "doctor", True)
    assert {
        "python",
        "torch",
        "flwr",
        "flwr internals",
        "numpy",
        "dp-accounting",
        "extra ray",
        "cores",
    } <= set(found)
    assert {"memory", "fork", "folder of runs", "ports", "names"} <= set(found)
    assert all(set(check) == {"name", "status", "found", "remedy"} for check in found.values())
    assert all(check["remedy"] for check in found.values() if check["status"] != "ok")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, str, str]:
    """The command where torch raises, Flower ends the process, a port is taken, and a folder has our name."""
    folder = tmp_path_factory.mktemp("broken")
    for name, text in (
        ("torch", "raise OSError('libtorch.so: cannot open shared object file')"),
        ("flwr", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"),
        ("numpy", "import nothing_of_that_name"),
    ):
        (folder / "path" / name).mkdir(parents=True)
        (folder / "path" / name / "__init__.py").write_text(text)
    (folder / "here" / "server").mkdir(parents=True)
    (folder / "here" / "server" / "__init__.py").touch()
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        one.listen(1)
        return doctor(
            folder / "here",
            "--ports",
            str(one.getsockname()[1]),
            path=(folder / "path",),
            OMP_NUM_THREADS="many",
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        "torch/__init__.py, does not work: OSError: libtorch.so",
        "flwr/__init__.py, does not work: the process was ended by SIGSEGV",
        "cannot be imported: ModuleNotFoundError: No module named 'nothing_of_that_name'",
        "OMP_NUM_THREADS = 'many' is no number of threads",
        ": address already in use",
        "server/__init__.py, in the current folder, has the name of our package",
        "checks failed",
        "pip install --force-reinstall 'torch",
        "Set it to 1, or unset it.",
    ],
)
def test_a_broken_machine_is_told_what_is_wrong_and_what_to_do(
    broken: tuple[int, str, str], words: str
) -> None:
    code, out, err = broken
    assert (code, err) == (1, "")
    assert words in out
    assert "Traceback" not in out


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("ports", ["70000", "x", "1,,2", "-1", "9" * 50])
def test_ports_that_are_none_are_refused(ports: str, tmp_path: Path) -> None:
    code, out, err = doctor(tmp_path, f"--ports={ports}")
    assert (code, out) == (2, "")
    assert "--ports" in err
    assert "Traceback" not in err


def test_a_check_that_fails_is_a_failure_and_those_before_it_stay() -> None:
    def look() -> Iterator[Check]:
        yield Check("one", "ok", "well")
        raise ZeroDivisionError("by nothing")

    one, other = Step("two", look).checks()
    assert (one.name, other.name, other.status) == ("one", "two", "failure")
    assert other.found == "this check failed: ZeroDivisionError: by nothing"


def test_ray_is_started_only_where_asked() -> None:
    assert [step.name for step in steps(Examination(ray=True))] == [
        *(step.name for step in steps(Examination())),
        "ray",
    ]


@pytest.mark.exhaustive
@pytest.mark.slow
def test_ray_starts_whatever_cluster_the_environment_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    assert [(one.name, one.status, one.found) for one in libraries.ray()] == [
        ("ray", "ok", "started, and answered 42")
    ]


@pytest.mark.parametrize(
    ("version", "allowed", "fits"),
    [
        ("2.13.0+cpu", "<3,>=2.6", True),
        ("2.5.1", "<3,>=2.6", False),
        ("3.0.0rc1", "<3,>=2.6", False),
        ("1.43", "<1.43,>=1.38", False),
        ("1.42.9", "<1.43,>=1.38", True),
        ("2.55.1", "==2.55.1", True),
        ("2.55", "==2.55.0", True),
        ("2.55.2", "==2.55.1", False),
        ("1.0", "!=1.0", False),
        ("7", "", True),
    ],
)
def test_ranges_of_versions(version: str, allowed: str, fits: bool) -> None:
    assert Needed.of(f"x{allowed}").fits(version) is fits


def test_requirements_are_those_of_the_project() -> None:
    needed = {one.name: one for one in requirements() if one.extra is None}
    assert needed["flwr"].range.replace(" ", "") in ("<1.43,>=1.38", ">=1.38,<1.43")
    line = 'flwr[simulation]<1.43,>=1.38; extra == "ray"'
    ray = Needed.of(line)
    assert (ray.name, ray.range, ray.extra) == ("flwr", "<1.43,>=1.38", "ray")
    assert ray.requirement.extras == {"simulation"}


def test_without_an_installation_requirements_are_read_from_the_project(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def none(name: str) -> None:
        raise doctor_packages.metadata.PackageNotFoundError(name)

    listed = {(one.name, one.extra) for one in requirements()}
    monkeypatch.setattr(doctor_packages.metadata, "requires", none)
    assert {(one.name, one.extra) for one in requirements()} == listed


def test_a_package_out_of_range_is_a_failure_with_its_remedy() -> None:
    check = version_check(Needed.of("numpy>=99"))
    assert check is not None
    assert (check.status, check.remedy) == ("failure", "pip install 'numpy>=99'")
    gone = version_check(Needed.of("no-such-distribution>=1"))
    assert gone is not None
    assert (gone.status, gone.found) == ("failure", "not installed")


def test_a_stale_installation_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scenarios.doctor.packages.__version__", "99.0")
    [check] = installation()
    assert (check.status, install() in check.remedy) == ("failure", True)
    assert "stale" in check.found


def test_another_distribution_of_our_name_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    both = {"server": ["fedprivacy", "django-server"], "clients": ["fedprivacy"]}
    monkeypatch.setattr("scenarios.doctor.libraries.metadata.packages_distributions", lambda: both)
    [check] = [check for check in clashes() if check.status == "failure"]
    assert (check.name, "django-server" in check.found) == ("name server", True)
    assert "pip uninstall django-server" in check.remedy


def test_what_comes_before_our_packages_is_a_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "clients.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "clients", raising=False)
    found = [check for check in clashes() if check.name == "name clients"]
    assert [check.status for check in found] == ["failure"]
    assert str(tmp_path) in found[0].found


def test_ports(taken_port: int) -> None:
    free = free_port()
    failed, fine = machine.ports([taken_port, free])
    assert (failed.status, failed.name, fine.status) == ("failure", f"port {taken_port}", "ok")
    assert str(free) in fine.found


def test_a_folder_that_cannot_be_written_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    [check] = machine.out(tmp_path / "file" / "runs")
    assert (check.status, "--out" in check.found) == ("failure", True)
    assert check.remedy


def test_little_memory_and_few_cores_are_warned_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(machine, "_GROUP", tmp_path)
    monkeypatch.setattr(machine.os, "cpu_count", lambda: 64)
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda process: set(range(64)))
    (tmp_path / "cpu.max").write_text("150000 100000\n")
    (tmp_path / "memory.max").write_text(f"{2**29}\n")
    (tmp_path / "memory.current").write_text("0\n")
    first = next(iter(machine.cores()))
    assert (first.status, first.name) == ("warning", "cores")
    assert [check.status for check in machine.memory()] == ["warning"]
    (tmp_path / "memory.current").write_text(f"{2**29 - 1}\n")
    assert [check.status for check in machine.memory()] == ["failure"]


def test_a_probe_that_never_answers_is_ended() -> None:
    with pytest.raises(ProbeFailed, match="no answer after"):
        probe("import time; time.sleep(60)", patience=0.5)


def test_packages_that_end_the_process_are_told_apart(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "tomli_w.py").write_text("import os; os._exit(3)")
    monkeypatch.syspath_prepend(str(tmp_path))
    few = [one for one in requirements() if one.name in ("rich", "tomli-w")]
    monkeypatch.setattr("scenarios.doctor.packages.requirements", lambda: few)
    assert {check.name: check.status for check in packages()} == {"rich": "ok", "tomli-w": "failure"}


@pytest.mark.parametrize("name", ["psutil", "packaging"])
def test_a_check_up_starts_without_the_packages_that_it_reports(name: str, tmp_path: Path) -> None:
    (tmp_path / f"{name}.py").write_text(f"raise ModuleNotFoundError('not here', name={name!r})\n")
    code = "import scenarios.cli.main, scenarios.doctor.examination"
    paths = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[3])])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": paths},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
