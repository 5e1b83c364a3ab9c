"""The command as a user meets it: real processes."""

from __future__ import annotations

import html
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from warm import COLD, ENVIRONMENT, warm

import fedprivacy as fedprivacy_package
from fedprivacy.io.lock import alone
from fedprivacy.mechanisms.registry import title


def fedprivacy(*args: str, cwd: Path | None = None, cold: bool = False) -> subprocess.CompletedProcess[str]:
    command = [*(COLD if cold else warm()), *args]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=cwd, env=ENVIRONMENT, timeout=300, check=False
    )
    assert "Traceback" not in done.stderr + done.stdout
    return done


@pytest.fixture
def small(tmp_path: Path, base_text: str) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(base_text)
    return path


def test_help_is_instant_and_names_every_command() -> None:
    done = fedprivacy("--help", cold=True)
    assert done.returncode == 0
    for name in ("run", "compare", "budget", "scenarios", "new", "report"):
        assert name in done.stdout
    loaded = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "import scenarios.cli.main"],
        capture_output=True, text=True, env=ENVIRONMENT, check=True,
    ).stderr  # fmt: skip
    assert not any(heavy in loaded for heavy in ("torch", "flwr", "dp_accounting", "numpy", "matplotlib"))


@pytest.mark.exhaustive
def test_python_m_is_the_command() -> None:
    for words in (["budget", "compose", "--help"], ["budget", "compose", "--nothing"]):
        module, command = (
            subprocess.run([*first, *words], capture_output=True, text=True, env=ENVIRONMENT, check=False)
            for first in ([sys.executable, "-m", "fedprivacy"], COLD)
        )
        assert (module.returncode, module.stdout, module.stderr) == (
            command.returncode, command.stdout, command.stderr,
        )  # fmt: skip
        assert module.returncode == (0 if "--help" in words else 2)


def test_python_m_takes_no_module_from_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "scenarios.py").write_text("raise SystemExit('code that nobody allowed')")
    words = [sys.executable, "-m", "fedprivacy", "--version"]
    done = subprocess.run(words, capture_output=True, text=True, env=ENVIRONMENT, cwd=tmp_path, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_python_m_where_the_command_is_not_installed_says_so(tmp_path: Path) -> None:
    """As in the bundle that Flower brings to a node."""
    source, copied = Path(fedprivacy_package.__file__).parent, tmp_path / "fedprivacy"
    (copied / "io").mkdir(parents=True)
    for name in ("__init__.py", "__main__.py", "io/__init__.py", "io/deferred.py"):
        shutil.copy(source / name, copied / name)
    alone = [sys.executable, "-S", "-m", "fedprivacy", "--help"]  # without installed packages
    done = subprocess.run(alone, capture_output=True, text=True, cwd=tmp_path, env={}, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "not installed here" in done.stderr
    assert "Traceback" not in done.stderr


def test_run_prints_a_result_and_its_guarantees_in_words(small: Path, tmp_path: Path) -> None:
    done = fedprivacy("run", str(small), "--out", str(tmp_path / "runs"), "--verbose")
    assert done.returncode == 0
    assert "accuracy" in done.stdout
    assert "Against an outsider" in done.stdout
    assert "No guarantee against the server" in done.stdout
    assert done.stderr == ""


def test_a_run_ends_in_six_lines_of_at_most_90_words(tmp_path: Path) -> None:
    done = fedprivacy("run", "digits", "--set", "server.rounds=1", "--out", str(tmp_path / "runs"))
    assert len(done.stdout.splitlines()) <= 6
    assert len(done.stdout.split()) <= 90
    assert "delta = 1e-05, unit client, replace-one. Assumptions: --verbose" in done.stdout


@pytest.mark.exhaustive
def test_json_is_the_document_alone(small: Path, tmp_path: Path) -> None:
    words = ("run", str(small), "--out", str(tmp_path / "runs"), "--json", "--seed", "7")
    document = json.loads(fedprivacy(*words).stdout)
    assert (document["kind"], document["public"]) == ("run", True)
    assert not {"seed", "command", "noise_key"} & set(document)
    whole = json.loads(fedprivacy(*words, "--operator").stdout)
    assert (whole["seed"], "public" in whole) == (7, False)
    assert whole["command"].startswith("fedprivacy run")


@pytest.mark.exhaustive
def test_operator_is_refused_where_it_changes_nothing() -> None:
    for words in (("run", "digits"), ("compare", "digits"), ("replay", "white-box"), ("tune", "tuned")):
        done = fedprivacy(*words, "--operator")
        assert (done.returncode, done.stdout) == (2, "")
        assert "fedprivacy report RUN --operator" in done.stderr


def test_compare_prints_a_table_and_a_finding(small: Path, tmp_path: Path) -> None:
    done = fedprivacy(
        "compare", str(small), "--out", str(tmp_path / "runs"), "--workers", "1",
        "--set", "compare={epsilons=[2.0], seeds=[1, 2]}",
    )  # fmt: skip
    assert done.returncode == 0
    assert "central" in done.stdout
    assert "Not having to trust the server (local) " in done.stdout
    assert "Equal epsilon is not equal observer" in done.stdout


@pytest.mark.exhaustive(every=6)
@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["run", "digitz"], "digits"),
        (["run"], "give a SCENARIO"),
        (
            ["run", "digits", "--engine", "rey"],
            "--engine rey: unknown engine. Choose one of: embedded, ray, superlink.",
        ),
        (
            ["compare", "digits", "--engine", "ray"],
            "--engine ray: `fedprivacy compare` runs on the embedded engine",
        ),
        (
            ["replay", "active-participant", "--engine", "ray"],
            "--engine ray: `fedprivacy replay` runs on the",
        ),
        (
            ["run", "first-names", "--engine", "ray"],
            "--engine ray: statistics run on the embedded engine only",
        ),
        (
            ["run", "digits", "--ray-address", "auto"],
            "--ray-address auto: only with --engine ray; here it is",
        ),
        (
            ["run", "digits", "--engine", "ray", "--gpus-per-worker", "3.5"],
            "must be a share above 0 and up to 1",
        ),
        (["run", "digits", "--set", "server.round=3"], "Did you mean rounds?"),
        (["run", "digits", "--set", "nonsense"], "--set nonsense"),
        (["run", "digits", "--out", "/proc/nowhere"], "--out /proc/nowhere"),
        (["run", "--resume", "nowhere"], "not a run directory"),
        (
            ["run", "--resume", "nowhere", "--out", "x"],
            "Leave out --set, --seed, --out and --stop-at-epsilon",
        ),
        (["run", "digits", "--resume", "x"], "give a SCENARIO"),
        (["compare"], "fedprivacy compare: give a SCENARIO to start"),
        (["compare", "--resume", "nowhere"], "nowhere: not a run directory"),
        (
            ["compare", "--resume", "x", "--seed", "1"],
            "a comparison is resumed with its own scenario, in its own directory",
        ),
        (["replay", "x", "--resume", "y"], "or --resume DIR to resume one"),
        (["replay", "--resume", "nowhere"], "nowhere: not a run directory"),
        (["replay", "--resume", "x", "--attack", "y"], "Leave out --set, --attack, --seed and --out"),
        (["report", "./no/where"], "Name a run directory: `fedprivacy list` lists them."),
        (["compare", "digits", "--workers", "0"], "workers"),
        (["budget", "gaussian"], "--epsilon, --noise-multiplier: give exactly one"),
        (["budget", "gaussian", "--epsilon", "-1"], "--epsilon -1.0: must be above 0"),
        (["budget", "gaussian", "--epsilon", "1", "--delta", "2"], "--delta 2.0"),
        (
            ["budget", "gaussian", "--epsilon", "1", "--delta", "1e-300"],
            "--delta 1e-300: must be at least 1e-12 and below 1; below 1/(number of clients).",
        ),
        (["budget", "gaussian", "--epsilon", "1", "--adjacency", "any"], "must be one of replace-one"),
        (["run", "digits", "--no-such-option"], "fedprivacy run: no such option"),
        (["run", "digits", "--epsilon", "4"], "a key of the scenario. Give it as --set privacy.epsilon=4."),
        (["compare", "digits", "--epsilon=4"], "Give it as --set privacy.epsilon=4."),
        (["run", "private-erm", "--epsilon", "4"], "Give it as --set 'study.epsilons=[4]'."),
        (["run", "private-erm", "--epsilon=4"], "Give it as --set 'study.epsilons=[4]'."),
        (["run", "private-erm", "--learning-rate", "4"], "no such option '--learning-rate'. `fedprivacy run"),
        (["run", "census-statistics", "--epsilon", "4"], "Give it as --set privacy.epsilon=4."),
        (["replay", "--epsilon", "--json", "white-box"], "Give it as --set privacy.epsilon=VALUE."),
        (["run", "digits", "--epsilon=4\nForged: x"], "Give it as --set 'privacy.epsilon=4\\nForged: x'."),
        (["run", "digits", "--nothing\nForged: x"], "no such option '--nothing\\nForged: x'."),
        (["run", "digits", "--privacy.delta", "1e-6", "--json"], "Give it as --set privacy.delta=1e-6."),
        (
            ["run", "digits", "--learning-rate", "0.1"],
            "--set training.learning_rate=0.1 or --set server.learning_rate=0.1.",
        ),
        (["run", "digits", "--out", "a" * 300], f"--out {'a' * 300}: File name too long. Choose a folder"),
        (["run", "--resume", "a" * 300], "a/scenario.toml: File name too long. Choose another name."),
        (
            ["run", "digits", "--set", "privacy.delta=1e-300"],
            "must be at least 1e-12. Below it no accountant",
        ),
        (["run", "/dev/zero"], "/dev/zero: a device, not a file. Save the text in a file, and name that."),
        (
            ["run", "mnist-people", "--set", "data.path=/dev/zero"],
            "data.path=/dev/zero: a device, not a file. Save the arrays in an .npz file, and name that.",
        ),
        (["no-such-command"], "fedprivacy: no such command 'no-such-command'"),
        (["rnu", "digits"], "no such command 'rnu'. Did you mean 'run'? `fedprivacy --help`"),
        (["scenarios", "digitz"], "'digitz': no ready scenario. Did you mean digits?"),
        (["run", "digits", "--seed", "-1"], "--seed -1: must be a whole number from 0 to"),
        (["run", "digits", "--seed", "x"], "--seed x: must be a whole number from 0 to"),
        (["run", "digits", "--workers", "x"], "`fedprivacy run --help`"),
        (["compare", "digits", "--workers", "x"], "'x' is not a whole number. `fedprivacy compare --help`"),
        (
            ["run", "digits", "--set", "data.partition=dirichlet"],
            "--set data.partition=dirichlet: data.clients: missing",
        ),
        (["compare", "digits", "--seed", str(2**63 - 1)], f"from 0 to {2**63 - 3}, or random."),
        (["run", "digits", "--set", "a.b=1"], "--set a.b=1: unknown key."),
        (["compare", "digits", "--out", "/proc/nowhere"], "--out /proc/nowhere"),
        (["compare", "digits", "--out", "/dev/null"], "--out /dev/null: not a folder"),
        (["new", "mine"], "fedprivacy new: missing option '--from'"),
        (["new", "a b", "--from", "digits"], "'a b': not a valid name"),
        (["new", "mine", "--from", "digitz"], "Did you mean digits?"),
        (["new", "mine", "--from", "digits", "--out", "no/where.toml"], "no/where.toml: No such file"),
    ],
)
def test_what_is_wrong_is_said_with_exit_code_2_and_nothing_is_written(args, message, tmp_path: Path) -> None:
    done = fedprivacy(*args, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stdout == ""
    assert not list(tmp_path.iterdir())


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize(
    ("args", "where"),
    [
        (["run", "loop"], "loop"),
        (["report", "loop"], "loop/run.json"),
        (["run", "mnist-people", "--set", "data.path=loop"], "--set data.path=loop"),
    ],
)
def test_a_loop_of_links_is_named(args: list[str], where: str, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    done = fedprivacy(*args, cwd=tmp_path)
    message = f"{where}: a link that leads back to itself. Correct the path.\n"
    assert (done.returncode, done.stderr) == (2, message)


def test_all_mistakes_of_a_file_are_named_at_once_with_their_lines(tmp_path: Path, base_text: str) -> None:
    text = base_text.replace("learning_rate", "learning_rat").replace("delta = 1e-3", "delta = 0.5")
    path = tmp_path / "wrong.toml"
    path.write_text(text)
    done = fedprivacy("run", str(path))
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 2
    for line in done.stderr.strip().splitlines():
        assert line.startswith(f"{path}:")


@pytest.mark.exhaustive
def test_budget_goes_both_ways_and_says_it_in_words() -> None:
    options = ["--delta", "1e-5", "--rounds", "100", "--sampling-rate", "0.1", "--json"]
    noise = json.loads(fedprivacy("budget", "gaussian", "--epsilon", "2", *options).stdout)
    assert noise["noise_multiplier"] == pytest.approx(3.982, rel=1e-3)
    back = ["budget", "gaussian", "--noise-multiplier", str(noise["noise_multiplier"]), *options]
    assert json.loads(fedprivacy(*back).stdout)["epsilon"] == pytest.approx(2.0, rel=1e-3)
    words = fedprivacy("budget", "gaussian", "--epsilon", "1").stdout
    for part in ("epsilon = 1", "delta = 1e-05", "replace-one", "unit client", "analytic Gaussian"):
        assert part in words


@pytest.mark.exhaustive
def test_scenarios_says_what_each_is_for_and_how_long_it_takes() -> None:
    listed = json.loads(fedprivacy("scenarios", "--json").stdout)["scenarios"]
    assert {"digits", "local-vs-central", "synthetic-million"} <= {entry["name"] for entry in listed}
    shown = " ".join(fedprivacy("scenarios").stdout.replace("│", " ").split())
    for entry in listed:
        assert entry["name"] in shown
        assert entry["command"].split()[0] == "fedprivacy"
        assert "cores" in entry["duration"]


@pytest.mark.exhaustive
def test_new_writes_a_file_that_runs_and_never_writes_over_one(tmp_path: Path) -> None:
    done = fedprivacy("new", "mine", "--from", "digits", cwd=tmp_path)
    assert done.stdout == "Wrote mine.toml. Start it with: fedprivacy run mine.toml\n"
    written = (tmp_path / "mine.toml").read_text()
    again = fedprivacy("new", "mine", "--from", "digits", cwd=tmp_path)
    assert again.returncode == 2
    assert again.stderr.startswith("mine.toml: already exists")
    assert (tmp_path / "mine.toml").read_text() == written
    run = fedprivacy("run", "mine.toml", "--set", "server.rounds=1", "--json", cwd=tmp_path)
    assert json.loads(run.stdout)["name"] == "mine"


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("fedprivacy run dig", ["digital-goods-auction", "digits"]),
        ("fedprivacy compare local", ["local-vs-central"]),
        ("fedprivacy new mine --from syn", ["synthetic-million"]),
        ("fedprivacy run mi", ["mine.toml"]),
        ("fedprivacy compa", ["compare"]),
    ],
)
def test_the_shell_completes_commands_and_scenarios(words: str, expected: list[str], tmp_path: Path) -> None:
    (tmp_path / "mine.toml").touch()
    (tmp_path / "more.txt").touch()
    done = subprocess.run(
        warm(), cwd=tmp_path, capture_output=True, text=True, check=False,
        env=ENVIRONMENT | {
            "_FEDPRIVACY_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" ")),
        },
    )  # fmt: skip
    assert done.stdout.split() == expected


def test_the_completion_script_calls_the_command_by_its_name() -> None:
    asked = [
        "bash",
        "-c",
        shlex.join([*COLD, "--show-completion"]) + "; true",
    ]  # it asks which shell calls
    shown = subprocess.run(asked, capture_output=True, text=True, env=ENVIRONMENT, check=False).stdout
    assert "complete -o default -F _fedprivacy_completion fedprivacy" in shown


@pytest.mark.exhaustive
def test_the_terminal_and_the_report_say_the_same_finding(small: Path, tmp_path: Path) -> None:
    only = "compare={epsilons=[2.0], seeds=[1, 2]}"
    done = fedprivacy("compare", str(small), "--out", str(tmp_path / "runs"), "--workers", "1", "--set", only)
    (path,) = (tmp_path / "runs").iterdir()
    document = json.loads((path / "run.json").read_text())
    # The page keeps a number and its % on one line by a no-break space.
    page = html.unescape((path / "report.html").read_text()).replace("\u00a0%", " %")
    assert document["finding"] in done.stdout
    assert document["finding"] in page
    for cell in document["cells"]:
        assert f"{100 * cell['accuracy']['mean']:.1f}" in done.stdout


@pytest.mark.exhaustive
def test_the_terminal_shows_each_local_mechanism_and_the_one_that_ran(small: Path, tmp_path: Path) -> None:
    small.write_text(small.read_text().replace("noise_multiplier = 2.0", "epsilon = 2.0"))
    only = "compare={trusts=['local'], epsilons=[8.0], seeds=[1], mechanisms=['auto', 'gaussian']}"
    options = ("--out", str(tmp_path / "runs"), "--workers", "1", "--set", only, "--verbose")
    done = fedprivacy("compare", str(small), *options)
    (path,) = (tmp_path / "runs").iterdir()
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in done.stdout.splitlines()]
    shown = {row[0]: row[4] for row in rows if row and row[0].startswith("local")}
    assert shown.keys() == {"local, auto", "local, gaussian"}
    for cell in json.loads((path / "run.json").read_text())["cells"]:
        ran, _, noise = shown[f"local, {cell['asked']}"].partition(", ")
        assert ran == title(cell["mechanism"])
        assert noise[:4] in ("z = ", "e = ")
        assert noise[4:] in cell["noise"].split()


@pytest.mark.exhaustive
def test_compare_takes_a_seed(small: Path, tmp_path: Path) -> None:
    only = "compare={trusts=['none'], epsilons=[1.0], seeds=[1, 2]}"
    done = fedprivacy(
        "compare",
        str(small),
        "--out",
        str(tmp_path / "runs"),
        "--workers",
        "1",
        "--seed",
        "7",
        "--set",
        only,
        "--json",
        "--operator",
    )
    assert json.loads(done.stdout)["cells"][0]["seeds"] == [7, 8]


@pytest.mark.exhaustive
def test_a_random_seed_is_in_the_command_that_gives_the_same_again(small: Path, tmp_path: Path) -> None:
    out = ["--out", str(tmp_path / "runs"), "--json", "--operator"]
    first = json.loads(fedprivacy("run", str(small), "--seed", "random", *out).stdout)
    assert f"--seed {first['seed']}" in first["command"]
    assert first["scenario"]["seed"] == first["seed"] > 1000


def test_no_word_at_all_gives_help_and_no_empty_complaint() -> None:
    for command in ((), ("budget",)):
        done = fedprivacy(*command)
        assert "Usage" in done.stdout + done.stderr
        assert "says what there is" not in done.stderr


@pytest.mark.exhaustive
def test_a_report_of_a_changed_record_is_refused(small: Path, tmp_path: Path) -> None:
    printed = json.loads(fedprivacy("run", str(small), "--out", str(tmp_path / "runs"), "--json").stdout)
    record = Path(printed["path"]) / "run.json"
    document = json.loads(record.read_text())
    record.write_text(json.dumps(printed))
    assert "run.json: a public copy of a record" in fedprivacy("report", printed["path"]).stderr
    document["privacy"]["guarantees"][1]["epsilon"] = 0.001
    (Path(document["path"]) / "run.json").write_text(json.dumps(document))
    done = fedprivacy("report", document["path"])
    assert done.returncode == 2
    assert "run.json: privacy.guarantees[1].epsilon: says 0.001" in done.stderr


def test_version() -> None:
    assert fedprivacy("--version").stdout.strip() == "0.1.0"


@pytest.mark.exhaustive
def test_report_renders_again(small: Path, tmp_path: Path) -> None:
    document = json.loads(fedprivacy("run", str(small), "--out", str(tmp_path / "runs"), "--json").stdout)
    before = (Path(document["path"]) / "report.html").read_text()
    (Path(document["path"]) / "report.html").unlink()
    done = fedprivacy("report", document["path"])
    assert (Path(document["path"]) / "report.html").read_text() == before
    assert done.stdout.strip() == f"{document['path']}/report.html"


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "sent"), [("run", signal.SIGINT), ("compare", signal.SIGINT), ("compare", signal.SIGTERM)]
)
def test_interrupting_ends_with_130_and_a_record_that_says_how_far_it_came(
    command: str, sent: signal.Signals, small: Path, tmp_path: Path
) -> None:
    runs, group = tmp_path / "runs", tmp_path / "group"
    process = subprocess.Popen(
        [*warm(), command, str(small), "--out", str(runs), "--set", "server.rounds=100000"],
        env=ENVIRONMENT | {"GROUP_FILE": str(group)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    # `rglob` raises where a temporary folder goes while it looks.
    while not any("events.jsonl" in files for _, _, files in os.walk(runs)) and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(0.5)
    # Ctrl-C reaches the whole group
    (os.killpg if sent == signal.SIGINT else os.kill)(int(group.read_text()), sent)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in errors
    (path,) = runs.iterdir()
    assert f"Interrupted. {'Resume with' if command == 'run' else 'What has finished'}" in errors
    assert f"Resume with: fedprivacy {command} --resume {path}" in errors
    assert str(path) in errors
    for record in runs.rglob("run.json"):
        assert json.loads(record.read_text())["status"] in ("interrupted", "finished")
    document = json.loads((path / "run.json").read_text())
    assert document["status"] == "interrupted"
    assert (path / "report.html").exists()


@pytest.mark.exhaustive
def test_statistics_are_computed_again_and_not_resumed(tmp_path: Path) -> None:
    out = str(tmp_path / "runs")
    done = fedprivacy(
        "run", "digital-goods-auction", "--set", "data.clients=100", "--out", out, "--allow-code", "--verbose"
    )
    assert done.returncode == 0
    assert "of at most" in done.stdout
    assert "No guarantee against the server" in done.stdout
    [path] = (tmp_path / "runs").iterdir()
    first = json.loads((path / "run.json").read_text())
    refused = fedprivacy("run", "--resume", str(path))
    assert refused.returncode == 2
    assert "statistics cannot be resumed" in refused.stderr
    command = shlex.split(refused.stderr.strip().rpartition("same answers: ")[2])
    again = json.loads(fedprivacy(*command[1:], "--out", out, "--json", "--operator", cold=True).stdout)
    assert again["queries"][0]["estimate"] == first["queries"][0]["estimate"]
    assert again["noise_key"] == first["noise_key"]
    rendered = fedprivacy("report", str(path))
    assert (rendered.returncode, rendered.stdout.strip()) == (0, str(path / "report.html"))


@pytest.mark.exhaustive
def test_new_copies_a_statistics_scenario(tmp_path: Path) -> None:
    done = fedprivacy("new", "mine", "--from", "star-wars-survey", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout == "Wrote mine.toml. Start it with: fedprivacy compare mine.toml\n"
    words = ("run", "mine.toml", "--set", "data.clients=50", "--seed", "9", "--json", "--operator")
    ran = fedprivacy(*words, cwd=tmp_path)
    document = json.loads(ran.stdout)
    assert (document["name"], document["seed"], document["plan"]["population"]) == ("mine", 9, 50)


@pytest.mark.exhaustive
def test_a_second_command_on_a_run_is_refused_and_its_report_is_not_held_up(
    small: Path, tmp_path: Path
) -> None:
    first = json.loads(fedprivacy("run", str(small), "--out", str(tmp_path / "runs"), "--json").stdout)
    path = Path(first["path"])
    with alone(path):
        refused = fedprivacy("run", "--resume", str(path))
        assert fedprivacy("report", str(path)).returncode == 0
    assert (refused.returncode, refused.stdout) == (2, "")
    assert f"{path}: process {os.getpid()} is at work on it" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.exhaustive
@pytest.mark.slow
def test_a_comparison_that_was_interrupted_goes_on(small: Path, tmp_path: Path) -> None:
    done = fedprivacy(
        "compare", str(small), "--out", str(tmp_path / "runs"), "--workers", "1", "--json", "--operator",
        "--set", "compare={epsilons=[2.0], seeds=[1, 2]}",
    )  # fmt: skip
    first = json.loads(done.stdout)
    path = Path(first["path"])
    (path / "run.json").unlink()
    for file in sorted((path / "cells").iterdir())[:2]:
        file.unlink()
    wrong = fedprivacy("run", "--resume", str(path))
    assert wrong.returncode == 2
    command = shlex.split(wrong.stderr.strip().rpartition("Resume it with: ")[2])
    again = json.loads(fedprivacy(*command[1:], "--json", "--operator").stdout)
    assert [cell["accuracies"] for cell in again["cells"]] == [cell["accuracies"] for cell in first["cells"]]
    assert (again["status"], again["command"]) == ("finished", first["command"])


@pytest.mark.exhaustive
@pytest.mark.slow
def test_resume_finishes_an_interrupted_run(small: Path, tmp_path: Path) -> None:
    words = ("run", str(small), "--out", str(tmp_path / "runs"), "--json", "--operator")
    first = json.loads(fedprivacy(*words).stdout)
    path = Path(first["path"])
    (path / "checkpoint" / "round-000003.safetensors").unlink()
    (path / "run.json").write_text(json.dumps(first | {"status": "running"}))
    again = json.loads(fedprivacy("run", "--resume", str(path), "--json", cold=True).stdout)
    assert again["status"] == "finished"
    assert [e["accuracy"] for e in again["rounds"]] == [e["accuracy"] for e in first["rounds"]]
