"""The superlink engine: what is checked before a run leaves, what comes home, and one whole federation."""

from __future__ import annotations

import io
import json
import os
import subprocess
import tomllib
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from flwr.app import Context, RecordDict
from flwr.cli.build import build_fab_from_disk
from warm import COLD, ENVIRONMENT, flower_environment, warm

import server.record_upload
from clients.app import app as client_app
from fedprivacy.account.account import Account
from fedprivacy.account.charge import Charge
from fedprivacy.account.entering import create
from fedprivacy.account.policy import Policy
from fedprivacy.account.statement import statement
from fedprivacy.errors import InputError, RunError
from fedprivacy.guarantees.so_far import message
from fedprivacy.io.log_transfer import Arrivals, Result, new_token
from fedprivacy.records.receipt import ChargedRun
from scenarios.budgets.planned_work import planned
from scenarios.engines import superlink
from scenarios.engines.bundle import make_app, with_absolute_paths, write_run_config
from scenarios.engines.embedded import EmbeddedGrid
from scenarios.engines.run_follower import Following
from scenarios.engines.superlink import _RecordWriter
from scenarios.federation import control
from scenarios.federation.control import Control, Link, check_certificate
from scenarios.federation.keys import make_certificates
from scenarios.federation.state import Target
from scenarios.runner import run
from server.app import app as server_app
from server.app import statement_of
from tests.scenarios.engines.hashes import SCENARIO, final_hash

ROOT = Path(__file__).parents[3]
TARGET = Target(Link("127.0.0.1:1"), "system")


def fedprivacy(
    *args: str, cwd: Path, cold: bool = False, more: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    command, more = [*(COLD if cold else warm()), *args], more or {}
    paths = os.pathsep.join(filter(None, [str(ROOT), more.get("PYTHONPATH"), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=cwd, timeout=400, check=False,
        env=ENVIRONMENT | {**more, "PYTHONPATH": paths},
    )  # fmt: skip
    assert "Traceback" not in done.stderr + done.stdout
    return done


class FakeRun:
    """Stands in for Flower's commands and the log of a run: one round, then the SuperLink is gone."""

    def __init__(self, *arguments: object) -> None:
        self.run, self.arrivals = 7, Arrivals(new_token())
        self.on_event = arguments[-1]

    def submit(self, app: Path, config: Path) -> int:
        return 7

    def status(self, run: int) -> tuple[str, str]:
        return "finished:failed", ""

    def follow(self) -> Result:
        assert callable(self.on_event)
        self.on_event({"round": 0})
        raise RunError("the SuperLink is gone")


@pytest.mark.parametrize(("trust", "pinned"), [("central", False), ("local", False), ("local", True)])
def test_a_run_is_charged_before_it_is_submitted_and_shows_the_epsilon_so_far(
    tmp_path: Path, make_scenario, monkeypatch: pytest.MonkeyPatch, trust: str, pinned: bool
) -> None:
    submitted: list[FakeRun] = []
    monkeypatch.setattr(superlink, "Control", FakeRun)
    monkeypatch.setattr(
        superlink, "Following", lambda *words: submitted.append(FakeRun(*words)) or submitted[-1]
    )
    path, events = tmp_path / "clients.account", list[dict]()
    create(path, Policy.of_options(4.0, 1e-5, "client", "replace-one"))
    charge, target = Charge(path, "run"), replace(TARGET, pinned=pinned)
    privacy = f"privacy={{trust='{trust}', clipping_norm=1.0, epsilon=1.0, delta=1e-5}}"
    scenario = make_scenario(privacy)
    with pytest.raises(RunError, match="the SuperLink is gone"):
        superlink.run(scenario, tmp_path / "out", target, on_event=events.append, charge=charge)
    account = Account.read(path)
    (entry,) = account.entries.values()
    assert entry["parts"][0]["cohorts"] is None  # the server draws them from its operating system
    assert [end["outcome"] for end in account.ended.values()] == ["interrupted"]
    shown = "; ".join(statement(account)["claims"][0]["assumptions"])
    assert "entropy" in shown
    assert "simulation-grade" not in shown
    line = message(events[0])
    assert "participant, outsider: epsilon at most" in line or "server, participant, outsider" in line
    assert ("server: no guarantee" in line) == (trust == "central")
    dear = make_scenario(privacy.replace("epsilon=1.0", "epsilon=3.9"))
    with pytest.raises(InputError, match=r"Nothing was entered\. The largest plan that fits"):
        superlink.run(dear, tmp_path / "out", target, charge=charge)
    assert len(submitted) == 1
    assert not (tmp_path / "out").exists()


def test_records_on_nodes_cannot_be_compared_so_the_submitter_states_that_they_are_the_same(
    tmp_path: Path, make_scenario
) -> None:
    data = "data={name='on-nodes', features=4, classes=2, clients=20}"
    scenario = make_scenario(data, "privacy={trust='central', clipping_norm=1.0, epsilon=1.0, delta=1e-5}")
    path = tmp_path / "clients.account"
    create(path, Policy.of_options(4.0, 1e-5, "client", "replace-one"))
    stated = statement_of(scenario, "system", pinned=True)
    Charge(path, "run").enter([planned(scenario, stated=stated)])
    with pytest.raises(InputError, match="are about other data"):
        Charge(path, "run").enter([planned(scenario, stated=stated)])
    Charge(path, "run", same_population=True).enter([planned(scenario, stated=stated)])
    assert len(Account.read(path).entries) == 2


# ------------------------------------------------------------------ before it leaves


@pytest.mark.parametrize(
    "address", ["", "host", "host:", ":80", "host:0", "host:65536", "http://h:1", "a b:1"]
)
def test_an_address_is_host_and_port(address: str) -> None:
    with pytest.raises(InputError, match="not an address"):
        Link.of(address, None)


def test_another_machine_is_spoken_to_through_tls_alone(tmp_path: Path) -> None:
    for address in ("127.0.0.1:18000", "localhost:18000", "[::1]:18000"):
        assert Link.of(address, None).loopback
    for address in ("hospital.example:18000", "127.evil.example:18000", "10.0.0.1:18000", "[2001::1]:18000"):
        with pytest.raises(InputError, match="through TLS only"):
            Link.of(address, None)
    make_certificates(tmp_path)
    link = Link.of("hospital.example:18000", tmp_path / "ca.crt")
    assert not link.loopback
    assert link.root_certificates == tmp_path / "ca.crt"


def test_a_certificate_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        check_certificate(tmp_path / "ca.crt")
    with pytest.raises(InputError, match="a folder, not a file"):
        check_certificate(tmp_path)
    (tmp_path / "ca.crt").write_text("-----BEGIN CERTIFICATE-----\nnot one\n-----END CERTIFICATE-----\n")
    with pytest.raises(InputError, match="holds no certificate"):
        check_certificate(tmp_path / "ca.crt")


@pytest.mark.exhaustive(every=3)
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--engine", "superlink"], "no federation is up in federation. Start one"),
        (["--engine", "superlink", "--superlink", "far.example:1"], "through TLS only"),
        (["--engine", "superlink", "--superlink", "127.0.0.1:1", "--root-certificates", "x"], "No such file"),
        (["--engine", "superlink", "--superlink", "x"], "not an address"),
        (["--engine", "superlink", "--federation", "nowhere"], "no federation is up in nowhere"),
        (["--engine", "superlink", "--workers", "2"], "whose nodes do the work"),
        (["--superlink", "127.0.0.1:1"], "--superlink: only with --engine superlink"),
        (["--federation", "f"], "--federation: only with --engine superlink"),
        (["--pinned"], "--pinned: only with --engine superlink"),
        (["--roster", "r"], "--roster: only with --engine superlink"),
    ],
)
def test_wrong_input_ends_with_code_2_and_writes_nothing(
    tmp_path: Path, base_text: str, options: list[str], said: str
) -> None:
    (tmp_path / "small.toml").write_text(base_text)
    done = fedprivacy("run", "small.toml", *options, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["small.toml"]


@pytest.mark.exhaustive
def test_a_superlink_that_is_not_there_ends_with_code_1(tmp_path: Path, base_text: str) -> None:
    (tmp_path / "small.toml").write_text(base_text)
    done = fedprivacy(
        "run", "small.toml", "--engine", "superlink", "--superlink", "127.0.0.1:9", cwd=tmp_path
    )
    assert done.returncode == 1
    assert done.stderr.startswith("the SuperLink 127.0.0.1:9: Connection to the SuperLink is unavailable.")
    assert not (tmp_path / "runs").exists()


def test_a_run_of_a_federation_is_not_resumed(tmp_path: Path, make_scenario: Callable) -> None:
    document = run(make_scenario(), tmp_path)
    path = Path(document["path"])
    (path / "run.json").write_text(json.dumps(document | {"federation": {}}))
    done = fedprivacy("run", "--resume", str(path), cwd=tmp_path)
    assert done.returncode == 2
    assert "made on a federation" in done.stderr
    done = fedprivacy("run", "--resume", str(path), "--engine", "superlink", cwd=tmp_path)
    assert done.returncode == 2
    assert "--resume with --engine superlink" in done.stderr


def test_paths_are_found_from_any_folder(tmp_path: Path, make_table, make_scenario, monkeypatch) -> None:
    table = make_table(a=[1.0, 2.0, 3.0, 4.0])
    monkeypatch.chdir(tmp_path)
    asked = make_scenario(f'data={{name="npz",path="{table.name}"}}')
    assert with_absolute_paths(asked).data.path == str(table)
    assert with_absolute_paths(make_scenario()) == make_scenario()
    table.unlink()
    with pytest.raises(InputError, match="no such file here"):
        with_absolute_paths(asked)


@pytest.mark.filterwarnings("ignore:GitWildMatchPattern:DeprecationWarning")  # Flower's own
def test_the_bundle_is_one_that_flower_takes_with_all_our_code(tmp_path: Path) -> None:
    app = make_app(tmp_path)
    bundle = build_fab_from_disk(app)
    assert len(bundle) < 10 * 2**20
    names = set(zipfile.ZipFile(io.BytesIO(bundle)).namelist())
    for package in ("fedprivacy", "clients", "server"):
        ours = {str(path.relative_to(ROOT)) for path in (ROOT / package).rglob("*.py")}
        assert ours <= names
    config = tomllib.loads((app / "pyproject.toml").read_text())["tool"]["flwr"]["app"]["config"]
    own = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["flwr"]["app"]["config"]
    assert own.keys() <= config.keys()
    with pytest.raises(KeyError):
        write_run_config(tmp_path / "x.toml", scenery="x")


def test_the_run_config_carries_any_scenario(tmp_path: Path, make_scenario) -> None:
    text = make_scenario("""description='quotes " and \\\\ and\u2028 all'""").to_toml()
    path = write_run_config(tmp_path / "run.toml", scenario=text, allow_code=True)
    assert tomllib.loads(path.read_text(encoding="utf-8")) == {"scenario": text, "allow-code": True}


def test_flowers_commands_know_one_superlink_and_nothing_of_the_users(tmp_path: Path) -> None:
    make_certificates(tmp_path)
    Control(Link("127.0.0.1:1", tmp_path / "ca.crt"), tmp_path / "home")
    config = tomllib.loads((tmp_path / "home" / "config.toml").read_text())["superlink"]
    assert config == {
        "default": "federation",
        "federation": {"address": "127.0.0.1:1", "root-certificates": str(tmp_path / "ca.crt")},
    }
    assert (tmp_path / "home").stat().st_mode & 0o777 == 0o700


@pytest.fixture
def answers(monkeypatch, tmp_path: Path) -> Callable[..., Control]:
    """Flower's command, of which each call does what a shell says."""

    def of(shell: str) -> Control:
        path = tmp_path / "flwr"
        path.write_text(f"#!/bin/sh\n{shell}\n")
        path.chmod(0o755)
        monkeypatch.setattr(control, "program", lambda name: str(path))
        return Control(TARGET.link, tmp_path / "home")

    return of


@pytest.mark.parametrize("said", ['{"runs": []}', '{"runs": [{}]}', '{"runs": 7}', '{"success": true}'])
def test_an_answer_that_says_nothing_of_the_run_is_an_error_of_ours(answers, said: str) -> None:
    with pytest.raises(RunError, match="reports no run 7"):
        answers(f"echo '{said}'").status(7)


def test_a_run_that_may_have_begun_is_said_to(answers, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr(control.Control._ask, "__defaults__", (0.5,))
    with pytest.raises(RunError, match=r"did not answer within .* may have begun all the same: `flwr list`"):
        answers("exec sleep 20").submit(tmp_path, tmp_path)
    with pytest.raises(RunError, match="answered without run-id"):
        answers("echo '{\"success\": true}'").submit(tmp_path, tmp_path)


# ------------------------------------------------------------------ what comes home


@pytest.fixture
def far(tmp_path: Path, make_scenario) -> tuple[_RecordWriter, Result, Path]:
    """What would come home of a real run, and where it goes."""
    asked = make_scenario("server.rounds=2")
    path = Path(run(asked, tmp_path / "far", report=False)["path"])
    names = ["scenario.toml", "run.json", "events.jsonl", "checkpoint/round-000002.safetensors"]
    events = [json.loads(line) for line in (path / "events.jsonl").read_text().splitlines()]
    result = Result("/far", {name: (path / name).read_bytes() for name in names}, events, "finished")
    return (
        _RecordWriter(asked, tmp_path / "runs", "fedprivacy run x", TARGET, ChargedRun(None, list)),
        result,
        tmp_path / "runs",
    )


def test_a_record_that_came_home_is_a_run_directory_like_any(far, tmp_path: Path) -> None:
    writer, result, _ = far
    document = writer.write_complete(result)
    path = Path(document["path"])
    assert sorted(item.name for item in path.iterdir()) == [
        "checkpoint", "events.jsonl", "operator.html", "report.html", "run.json", "scenario.toml",
    ]  # fmt: skip
    assert (document["command"], document["federation"]["path"]) == ("fedprivacy run x", "/far")
    for name in ("scenario.toml", "events.jsonl", "checkpoint/round-000002.safetensors"):
        assert (path / name).read_bytes() == result.files[name]
    done = fedprivacy("report", str(path), cwd=tmp_path)
    assert done.returncode == 0


def test_a_run_that_failed_there_fails_here_with_its_words(far) -> None:
    writer, result, runs = far
    result.status, result.error = "failed", "round 1: all 12 clients failed\x1b]0;x"
    document = json.loads(result.files["run.json"]) | {"status": "failed", "error": result.error}
    result.files["run.json"] = json.dumps(document).encode()
    with pytest.raises(
        RunError,
        match=r"(?s)SuperLink's side: round 1: all 12 clients failed\\x1b\]0;x.Its record until then",
    ):
        writer.write_complete(result)
    assert len(list(runs.iterdir())) == 1
    result.files.clear()
    with pytest.raises(RunError, match="SuperLink's side: round 1"):
        writer.write_complete(result)


def test_a_record_that_does_not_say_finished_is_no_success(far) -> None:
    writer, result, _ = far
    document = json.loads(result.files["run.json"]) | {"status": "running"}
    result.files["run.json"] = json.dumps(document).encode()
    with pytest.raises(RunError, match="the run's record has status running"):
        writer.write_complete(result)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda files: files.pop("run.json"), "without a record"),
        (lambda files: files.update({"scenario.toml": b"name = 1"}), "of another scenario"),
        (lambda files: files.update({"run.json": b"{"}), "no record"),
        (lambda files: files.update({"run.json": b"[]"}), "no record"),
        (lambda files: files.update({"run.json": b'{"schema": 1, "kind": "run"}'}), "no record"),
        (
            lambda files: files.update(
                {"run.json": files["run.json"].replace(b'"epsilon": ', b'"epsilon": 0')}
            ),
            "no record",
        ),
    ],
)
def test_what_is_no_record_of_this_run_is_refused(far, spoil: Callable, said: str) -> None:
    writer, result, runs = far
    spoil(result.files)
    with pytest.raises(RunError, match=said):
        writer.write_complete(result)
    assert not runs.exists() or not list(runs.iterdir())


@pytest.mark.parametrize("rounds", [0, 1])
def test_of_a_run_that_broke_off_all_that_was_planned_is_charged(
    tmp_path: Path, make_scenario, monkeypatch, capsys, rounds: int
) -> None:
    """As when the SuperLink dies, or the user ends the run: the record says no less than what may have happened."""
    asked, token, log = make_scenario("server.rounds=5"), new_token(), []
    monkeypatch.setattr(server.record_upload, "_to_log", log.append)
    config = {"scenario": asked.to_toml(compare=False), "out": str(tmp_path / "far"), "record": token}
    grid = EmbeddedGrid(client_app, [{}], config)
    server_app(grid, Context(run_id=1, node_id=0, node_config={}, state=RecordDict(), run_config=config))
    whole = json.loads(next((tmp_path / "far").glob("*/run.json")).read_text())
    following = Following(Control(TARGET.link, tmp_path / "flower"), 7, token, None)
    writer = _RecordWriter(asked, tmp_path / "runs", "", TARGET, ChargedRun(None, list))
    following.arrivals.feed(log[0])
    writer.write_partial(following, "interrupted", "by the user")
    assert "Nothing of the record of run 7 arrived" in capsys.readouterr().err
    events = [at for at, line in enumerate(log) if " event " in line]
    for line in log[: events[rounds]]:
        following.arrivals.feed(line)
    writer.write_partial(following, "interrupted", "by the user")
    document = json.loads(next((tmp_path / "runs").glob("*/run.json")).read_text())
    assert (document["status"], document["error"], len(document["rounds"])) == (
        "interrupted",
        "by the user",
        rounds,
    )
    for kept, stated in zip(document["privacy"]["guarantees"], whole["privacy"]["guarantees"], strict=True):
        assert kept["epsilon"] == stated["epsilon"]


# ------------------------------------------------------------------ a whole one


LOCAL = """
name = "two-hosts"
seed = 3
[data]
name = "synthetic"
records = 120
test_records = 50
features = 4
partition = "iid"
clients = 12
[model]
name = "logistic"
[training]
learning_rate = 0.5
[server]
rounds = 1
[sampling]
name = "all"
[privacy]
trust = "local"
mechanism = "gaussian"
clipping_norm = 1.0
noise_multiplier = 2.0
delta = 1e-3
[federation]
hosts = 2
"""


# Two steps, of two messages each: each starts a process.
SILOS = """
name = "silos"
seed = 3
[data]
name = "logistic-model"
records = 200
features = 2
[objective]
regularisation = 0.05
[approaches.local]
kind = "gradient-perturbation"
steps = 2
silos = 4
trust = "local"
[federation]
hosts = 2
[study]
repeats = 2
"""


# In two messages a round.
CENTRAL = SCENARIO.replace("hosts = 3\nchunk_size = 16", "hosts = 2\nchunk_size = 400").replace(
    "rounds = 3", "rounds = 2"
)


DISTRIBUTED = CENTRAL.replace('trust = "central"', 'trust = "distributed"').replace(
    'name = "poisson"\nrate = 0.5', 'name = "fixed"\ncohort = 200'
)


# Of each setting of a group one; the nodes apply the weight, and the server draws by the rate.
GROUPS = CENTRAL.replace(
    "[federation]",
    """[privacy.groups.light]
share = 0.2
weight = 0.5
[privacy.groups.rare]
clients = "0-49"
rate = 0.1
[federation]""",
)


def left(folder: Path) -> list[str]:
    """Processes that name a folder in their command line."""
    lines = []
    for entry in Path("/proc").iterdir():
        try:
            command = (entry / "cmdline").read_bytes().decode().replace("\0", " ")
        except (OSError, ValueError):
            continue
        if entry.name.isdigit() and str(folder) in command and int(entry.name) != os.getpid():
            lines.append(command)
    return lines


FAR = ("run", "--engine", "superlink", "--json", "--operator")
TO_COMPARE = {
    "local": LOCAL,
    "central": CENTRAL,
    "distributed": DISTRIBUTED,
    "silos": SILOS,
    "groups": GROUPS,
}


@pytest.fixture
def federation(tmp_path: Path, free_ports) -> Iterator[Path]:
    """The folder of one with TLS and two nodes that have keys; noise is seeded, which is said. Nothing of it is left."""
    folder, port = tmp_path / "federation", str(free_ports(3))
    up = ("federation", "up", "--nodes", "2", "--tls", "--seeded-noise", "--port", port)
    try:
        started = fedprivacy(*up, cwd=tmp_path, cold=True, more=flower_environment())
        assert started.returncode == 0, started.stderr
        assert "SEEDED NOISE, FOR TESTS ONLY" in started.stderr
        assert "2 nodes online" in started.stdout
        yield folder
    finally:
        down = fedprivacy("federation", "down", cwd=tmp_path, cold=True)
    assert down.returncode == 0, down.stderr
    assert "none is left" in down.stdout
    assert left(folder) == []
    assert not (folder / "keys").exists()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
@pytest.mark.exhaustive  # a federation costs 40 s of processor time, and a run on it 30
@pytest.mark.parametrize("work", TO_COMPARE)
def test_a_federation_with_tls_runs_bit_for_bit_as_embedded(
    tmp_path: Path, federation: Path, work: str
) -> None:
    (tmp_path / "work.toml").write_text(TO_COMPARE[work])
    done = fedprivacy(*FAR, "work.toml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    near = fedprivacy("run", "work.toml", "--out", "here", "--json", "--operator", cwd=tmp_path)
    there, here = json.loads(done.stdout), json.loads(near.stdout)
    if work == "silos":
        for cell, same in zip(there["cells"], here["cells"], strict=True):
            assert (cell["theta"], cell["excess"], cell["absent"]) == (same["theta"], same["excess"], 0)
        assert there["performance"]["engine"] == "superlink"
        return
    assert "SEEDED NOISE" in done.stderr
    assert final_hash(there, tmp_path, nodes=False) == final_hash(here, tmp_path, nodes=False)
    assert [event["accuracy"] for event in there["rounds"]] == [event["accuracy"] for event in here["rounds"]]
    assert (there["status"], there["ledger"]["held"]) == ("finished", False)
    assert there["final"].get("groups") == here["final"].get("groups")
    epsilons = [
        [
            (group["name"], [g["epsilon"] for g in group["guarantees"]])
            for group in run["privacy"].get("groups") or ()
        ]
        for run in (there, here)
    ]
    assert epsilons[0] == epsilons[1]
    assert len(epsilons[0]) == (3 if work == "groups" else 0)
    assert there["randomness"]["clients"].startswith("simulation-grade")
    assert fedprivacy("report", there["path"], cwd=tmp_path).returncode == 0


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
@pytest.mark.exhaustive
def test_a_federation_has_a_status_and_shows_why_a_run_failed_there(tmp_path: Path, federation: Path) -> None:
    assert federation.stat().st_mode & 0o777 == 0o700
    status = fedprivacy("federation", "status", "--json", cwd=tmp_path)
    assert status.returncode == 0
    assert (json.loads(status.stdout)["online"], json.loads(status.stdout)["whole"]) == (2, True)
    (tmp_path / "two.toml").write_text(LOCAL)
    code = ("--allow-code", "--set", 'model={name="code",factory="not_there:make"}')
    failed = fedprivacy(*FAR, "two.toml", *code, cwd=tmp_path)
    assert failed.returncode == 1
    assert "failed on the SuperLink's side: model.factory" in failed.stderr
    assert "there is no module not_there" in failed.stderr
