"""The ray engine: the same bits as embedded, workers that die, and the command with it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import ray
from flwr.app import ArrayRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from warm import ENVIRONMENT, warm

from benchmarks.faults import CLIENTS, TEXT, write_records
from benchmarks.faulty import TRIGGER
from clients.state_merge import changes, merged
from fedprivacy.errors import InputError
from fedprivacy.scenario import Scenario
from scenarios.engines.dependency_contract import RAY_PROMISES, Promise
from scenarios.engines.flower_internals import NODE_UNAVAILABLE
from scenarios.engines.launch import Engine, engine_of
from scenarios.engines.ray_cluster import Cluster, _slots
from scenarios.engines.ray_grid import RayGrid
from scenarios.engines.ray_worker_pool import LATE, Workers
from scenarios.experiments.erm_study import fit
from scenarios.runner import run
from tests.clients.test_erm import made as silos_of_study
from tests.scenarios.engines.hashes import KINDS, SCENARIO, final_hash

RAY = Engine("ray", workers=2)
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Runs a kind on one worker, and says what it ends with."""
    from tests.conftest import scenario

    @cache
    def of_kind(kind: str, workers: int = 1) -> str:
        asked, out = scenario(*KINDS[kind], text=SCENARIO), tmp_path_factory.mktemp("out")
        return final_hash(run(asked, out, report=False, engine=Engine(workers=workers)))

    return of_kind


def test_no_two_kinds_end_alike_and_four_workers_change_no_bit(embedded: Callable[..., str]) -> None:
    """`test_worker_pool.py` has all kinds with several workers."""
    ends = {embedded(kind) for kind in (CLIPPED, SHARED, KILLED)}
    assert len(ends) == 3
    assert embedded(CLIPPED, 4) in ends


# A run on Ray starts two workers, which import for seconds: each kind is run in one test, most of them in one below.
CLIPPED, SHARED, KILLED = "adaptive clipping", "distributed", "local noise"
FROZEN = "frozen encoder"
COMMANDED, INTERRUPTED = "records", "sum of local noise"


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("kind", [CLIPPED, SHARED, FROZEN])
def test_ray_ends_with_the_same_bits_as_the_embedded_engine(
    embedded: Callable[[str], str],
    ray_room: Cluster,
    make_scenario: Callable[..., Any],
    tmp_path: Path,
    kind: str,
) -> None:
    # Central noise is in adaptive clipping.
    assert {CLIPPED, SHARED, FROZEN, KILLED, COMMANDED, INTERRUPTED} == set(KINDS) - {"central"}
    document = run(make_scenario(*KINDS[kind], text=SCENARIO), tmp_path, report=False, engine=RAY)
    assert final_hash(document) == embedded(kind)
    assert [one["failures"] + one["refusals"] for one in document["rounds"]] == [0] * 3
    assert (document["performance"]["engine"], document["performance"]["workers"]) == ("ray", 2)


def test_a_killed_worker_is_replaced_and_the_run_ends_with_the_same_bits(
    embedded: Callable[[str], str],
    ray_room: Cluster,
    make_scenario: Callable[..., Any],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    killed: list[int] = []

    def kill(event: dict[str, Any]) -> None:
        if event["round"] == 0:
            killed.extend(worker_pids())
            os.kill(killed[0], signal.SIGKILL)

    asked = make_scenario(*KINDS[KILLED], text=SCENARIO)
    document = run(asked, tmp_path, report=False, engine=RAY, on_round=kill)
    assert killed
    said = capfd.readouterr()
    assert said.out == ""
    assert all("without a password" in line for line in said.err.splitlines())  # ours; nothing of Ray's
    assert final_hash(document) == embedded(KILLED)
    assert [one["failures"] for one in document["rounds"]] == [0] * 3


def worker_pids() -> list[int]:
    """The processes of workers, of this process's cluster and of nobody else's."""
    workers = [
        process
        for process in psutil.process_iter(["cmdline"])
        if (process.info["cmdline"] or [""])[0].startswith("ray::Worker")
    ]
    mine = psutil.Process()
    return sorted(worker.pid for worker in workers if mine in worker.parents()[:2])


def harmed_app() -> ClientApp:
    app = ClientApp()

    @app.query()
    def query(message: Message, context: Context) -> Message:
        return Message(RecordDict(), reply_to=message)

    @app.train()
    def train(message: Message, context: Context) -> Message:
        context.state["seen"] = ArrayRecord()
        return Message(RecordDict(), reply_to=message)

    @app.train("die")
    def die(message: Message, context: Context) -> Message:
        """Dies as often as the group id says, counting in a file."""
        file, times = Path(message.metadata.group_id.rpartition("=")[0]), message.metadata.group_id[-1]
        with file.open("a") as tally:
            tally.write("x")
        if file.stat().st_size <= int(times):
            os.kill(os.getpid(), signal.SIGKILL)
        return Message(RecordDict(), reply_to=message)

    @app.train("hang")
    def hang(message: Message, context: Context) -> Message:
        time.sleep(600)
        return Message(RecordDict(), reply_to=message)

    return app


@pytest.fixture(scope="module")
def harmed(ray_room: Cluster) -> Iterator[Workers]:
    """One worker for all that is done to it: each that starts imports for seconds."""
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with Workers(Cluster(1), harmed_app) as workers:
        yield workers


@pytest.mark.exhaustive
def test_a_message_whose_worker_dies_is_tried_once_more_and_others_are_none_the_wiser(
    harmed: Workers, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    grid = RayGrid(harmed, [{}] * 4)
    before = grid.retried
    kinds = ["train", "train.die", "train.die", "train"]
    groups = ["", f"{tmp_path}/once=1", f"{tmp_path}/twice=2", ""]
    asked = [
        Message(RecordDict(), node, kind, group_id=group)
        for node, (kind, group) in enumerate(zip(kinds, groups, strict=True), start=1)
    ]
    replies = list(grid.send_and_receive(asked))
    assert [reply.metadata.src_node_id for reply in replies] == [1, 2, 3, 4]
    assert [reply.has_error() for reply in replies] == [False, False, True, False]
    assert replies[2].error.code == NODE_UNAVAILABLE
    assert replies[2].error.reason == "the worker died twice on it"
    assert grid.retried - before == 2
    assert [bool(state) for state in grid.states.values()] == [True, False, False, True]
    assert capfd.readouterr() == ("", "")


@pytest.mark.exhaustive
def test_a_worker_that_hangs_is_ended_when_its_time_is_over_and_replaced(harmed: Workers) -> None:
    """What waits behind it was not begun, and gets no reply."""
    grid = RayGrid(harmed, [{}] * 3)
    assert len(list(grid.send_and_receive([Message(RecordDict(), 1, "query")]))) == 1
    began = time.monotonic()
    asked = [Message(RecordDict(), node, "train.hang") for node in (1, 2, 3)]
    [reply] = list(grid.send_and_receive(asked, timeout=1.0))
    assert 2.0 <= time.monotonic() - began < 60.0
    assert reply.error.code == NODE_UNAVAILABLE
    assert reply.error.reason == LATE
    assert reply.metadata.reply_to_message_id == asked[0].metadata.message_id
    assert len(list(grid.send_and_receive([Message(RecordDict(), 1, "query")]))) == 1


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("harm", "trust", "faults"),
    [
        ("hang", "central", {"node_error": 20}),
        ("kill", "local", {"worker_died": 1, "retried": 1}),  # and the adversary does not even see that
    ],
)
def test_a_client_that_hangs_or_kills_its_process_ends_no_run(
    ray_room: Cluster, tmp_path: Path, harm: str, trust: str, faults: dict[str, int]
) -> None:
    """Without `client_timeout`. The client is in the second of two messages."""
    write_records(tmp_path, bad=False)
    records = dict(np.load(tmp_path / "records.npz"))
    records["x_train"][-1, 0] = TRIGGER
    np.savez(tmp_path / "records.npz", **records)
    asked = Scenario.from_text(
        TEXT.format(folder=tmp_path, harm=harm, trust=trust),
        overrides=("federation.timeout=4.0", "server.rounds=1"),
    )
    document = run(asked, tmp_path / "runs", allow_code=True, report=False, engine=Engine("ray", 1))
    [round] = document["rounds"]
    assert document["status"] == "finished"
    assert round["faults"] == faults
    assert round["contributed"] == (20 if trust == "central" else CLIENTS - 1)


def test_a_grid_and_its_workers_merge_together_or_not_at_all(ray_room: Cluster) -> None:
    with pytest.raises(ValueError, match="if and only if"):
        RayGrid(Workers(ray_room, harmed_app, changes), [{}])
    with pytest.raises(ValueError, match="if and only if"):
        RayGrid(Workers(ray_room, harmed_app), [{}], merge=merged)


def test_nobody_else_can_read_what_ray_writes(ray_room: Cluster) -> None:
    folder = Path(ray._private.worker._global_node.get_temp_dir_path()).parent
    assert folder.name.startswith("fp-ray-")
    assert folder.stat().st_mode & 0o077 == 0


@pytest.mark.exhaustive
def test_the_command_runs_on_a_cluster_that_is_up_and_leaves_it_as_it_was(
    embedded: Callable[[str], str],
    ray_room: Cluster,
    make_scenario: Callable[..., Any],
    tmp_path: Path,
) -> None:
    file = tmp_path / "engines.toml"
    file.write_text(make_scenario(*KINDS[COMMANDED], text=SCENARIO).to_toml())
    address = ray.get_runtime_context().gcs_address
    done = command(
        "run", str(file), "--out", str(tmp_path), "--engine", "ray", "--workers", "2", "--ray-address", address,
        "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert final_hash(document) == embedded(COMMANDED)
    assert document["performance"]["workers"] == 2
    said = [line for line in done.stderr.splitlines() if "ray" in line.lower()]
    assert len(said) == 1, done.stderr
    assert "without a password" in said[0]
    assert ray.cluster_resources()["CPU"] == 4


@pytest.mark.exhaustive
def test_an_interrupted_run_frees_all_that_it_started_and_goes_on_elsewhere(
    embedded: Callable[[str], str], make_scenario: Callable[..., Any], tmp_path: Path
) -> None:
    """On a cluster of its own; what is left is done without Ray."""
    file = tmp_path / "engines.toml"
    file.write_text(make_scenario(*KINDS[INTERRUPTED], text=SCENARIO).to_toml())
    stop = (
        "import os, signal, scenarios.runner as r; from scenarios.cli.main import main; play = r.run\n"
        "def run(*a, on_round=None, **k):\n"
        "    def tick(event): on_round(event); os.killpg(0, signal.SIGINT)\n"
        "    return play(*a, on_round=tick, **k)\n"
        "r.run = run; main()"
    )
    words = ["run", str(file), "--out", str(tmp_path / "runs"), "--engine", "ray", "--workers", "1"]
    with tempfile.TemporaryDirectory() as short:  # Ray's sockets lie there: their paths must not be long
        done = subprocess.run(
            [sys.executable, "-c", stop, *words], capture_output=True, text=True, timeout=300,
            start_new_session=True, env={**os.environ, "TMPDIR": short},
        )  # fmt: skip
        assert not list(Path(short).iterdir())
        until = time.monotonic() + 20
        while (left := processes_with(f"TMPDIR={short}")) and time.monotonic() < until:
            time.sleep(0.2)
        assert not left
    assert done.returncode == 130, done.stderr
    assert "Resume with: fedprivacy run --resume" in done.stderr
    assert "Traceback" not in done.stderr
    [path] = (tmp_path / "runs").iterdir()
    assert json.loads((path / "run.json").read_text())["status"] == "interrupted"
    rest = command("run", "--resume", str(path), "--json")
    assert final_hash(json.loads(rest.stdout)) == embedded(INTERRUPTED)


def processes_with(setting: str) -> list[str]:
    """Processes that were started with this in their environment."""
    name, _, value = setting.partition("=")
    return [
        " ".join(process.info["cmdline"] or [])
        for process in psutil.process_iter(["cmdline", "environ"])
        if (process.info["environ"] or {}).get(name) == value
    ]


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*warm(), *words], capture_output=True, text=True, timeout=300, env=ENVIRONMENT)


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nonsense", "ray://127.0.0.1:10001", "127.0.0.1:99999"])
def test_an_address_where_no_cluster_is_ends_it_at_once(
    make_scenario: Callable[..., Any], tmp_path: Path, address: str
) -> None:
    with pytest.raises(InputError, match=f"--ray-address {address}: no Ray cluster there"):
        run(make_scenario(), tmp_path / "out", engine=engine_of("ray", 2, None, address))
    assert not (tmp_path / "out").exists()


def test_room_is_counted_in_cpus_and_shares_of_gpus() -> None:
    assert _slots({"CPU": 4.0}, 8, 0) == Cluster(4)
    assert _slots({"CPU": 4.0}, 0, 0) == Cluster(4)
    assert _slots({"CPU": 4.0, "GPU": 1.0}, 8, 0.5) == Cluster(2, 0.5)
    assert _slots({"CPU": 40.0, "GPU": 5.0}, 8, 2) == Cluster(2, 2)
    with pytest.raises(InputError, match="Ray finds 0 GPUs"):
        _slots({"CPU": 4.0}, 2, 0.5)
    with pytest.raises(InputError, match="no CPU"):
        _slots({}, 2, 0)


@pytest.mark.parametrize("promise", RAY_PROMISES, ids=lambda promise: promise.words)
def test_ray_keeps_the_promise(promise: Promise, monkeypatch: pytest.MonkeyPatch) -> None:
    assert promise.broken() is None
    monkeypatch.delattr(ray._private.worker, "print_to_stdstream")
    assert "print_to_stdstream" in (promise.broken() or "")


def test_options_that_do_not_fit_are_refused(make_scenario: Callable[..., Any], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"--gpus-per-worker 0\.5: only with --engine ray"):
        engine_of("embedded", 2, 0.5)
    with pytest.raises(InputError, match=r"--gpus-per-worker 1\.5: must be a share"):
        engine_of("ray", 2, 1.5)
    assert engine_of("ray", None, None, "auto").workers == 0
    with pytest.raises(
        InputError, match=r'set it exactly if training.device = "cuda"; here the device is "cpu"'
    ):
        run(make_scenario(), tmp_path / "out", engine=engine_of("ray", 2, 0.5))
    assert not (tmp_path / "out").exists()


@pytest.mark.exhaustive
def test_silos_on_ray_end_with_the_same_bits(ray_room: Cluster, tmp_path: Path) -> None:
    """Each logical host is a node of its own here, and with two workers two are asked side by side."""
    scenario = silos_of_study("federation.hosts=3")
    document = fit(scenario, tmp_path / "ray", engine=RAY)
    embedded = fit(scenario, tmp_path / "embedded")
    assert [cell["silos"] for cell in document["cells"]] == [1, 5, 5, 5, 5]
    assert document["cells"] == embedded["cells"]


def test_silos_ask_for_no_gpu(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="silos compute on CPUs"):
        fit(silos_of_study(), tmp_path, engine=Engine("ray", workers=1, gpus_per_worker=0.5))
    assert not list(tmp_path.iterdir())
