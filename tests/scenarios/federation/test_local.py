"""A federation for trying: its folder, keys and processes. The whole of it runs in engines/test_superlink.py."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_ssh_private_key, load_ssh_public_key
from flwr.common.config import parse_config_args
from typer.testing import CliRunner

from clients.app import app as client_app
from fedprivacy.errors import InputError, RunError
from fedprivacy.messages.protocol import TrainReply, TrainRequest, parts_of
from fedprivacy.plan.from_scenario import plan_of
from fedprivacy.secure_sum.roster import read_node_key, read_roster
from scenarios.cli.federation import app
from scenarios.engines.embedded import EmbeddedGrid
from scenarios.engines.superlink import check_masks
from scenarios.federation import local
from scenarios.federation.control import check_certificate
from scenarios.federation.keys import make_certificates, make_node_key, make_roster
from scenarios.federation.processes import MARK, Started, end, living, start, tail
from scenarios.federation.state import Federation, Target, read, target_of
from server.messages import request_to

STATE = Federation("127.0.0.1:18000", None, 2, "system", None, "a" * 32, (Started("superlink", 999999),))


# ------------------------------------------------------------------ local.json


def test_the_state_is_read_as_it_was_written_and_for_its_owner_alone(tmp_path: Path) -> None:
    STATE.write(tmp_path)
    assert read(tmp_path) == STATE
    assert (tmp_path / "federation.json").stat().st_mode & 0o777 == 0o600
    assert read(tmp_path / "nothing") is None


@pytest.mark.parametrize(
    "spoil",
    [
        lambda document: "{" + json.dumps(document)[:50],
        lambda document: "[]",
        lambda document: "",
        lambda document: json.dumps({**document, "mark": "short"}),
        lambda document: json.dumps({**document, "noise": "none"}),
        lambda document: json.dumps(
            {**document, "processes": [{"name": "superlink", "pid": "x", "began": 1}]}
        ),
        lambda document: json.dumps({key: value for key, value in document.items() if key != "address"}),
    ],
)
def test_a_damaged_state_says_so_and_ends_nothing(
    tmp_path: Path, spoil: Callable[[dict], str], free_ports
) -> None:
    STATE.write(tmp_path)
    path = tmp_path / "federation.json"
    path.write_text(spoil(json.loads(path.read_text())))
    for what in (read, local.down, local.status):
        with pytest.raises(InputError, match=r"federation\.json: damaged, so which processes"):
            what(tmp_path)
    with pytest.raises(InputError, match="damaged"):
        local.up(tmp_path, 1, port=free_ports(2))
    assert path.exists()


def test_a_run_needs_a_federation_that_is_up(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no federation is up in"):
        target_of(None, None, tmp_path)
    STATE.write(tmp_path)
    with pytest.raises(RunError, match="has ended, or part of it"):
        target_of(None, None, tmp_path)
    with pytest.raises(InputError, match="give one of them"):
        target_of("127.0.0.1:1", None, tmp_path)
    with pytest.raises(InputError, match="--root-certificates: only with --superlink"):
        target_of(None, tmp_path, None)
    with pytest.raises(InputError, match="--pinned: only with --superlink"):
        target_of(None, None, tmp_path, pinned=True)


# ------------------------------------------------------------------ up and down, before anything is started


def test_a_port_that_is_taken_is_named(tmp_path: Path, free_ports) -> None:
    port = free_ports(3)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port + 2))
        taken.listen()
        with pytest.raises(InputError, match=f"port {port + 2} of 127.0.0.1: .*Choose others with --port"):
            local.up(tmp_path / "f", 2, port=port)
    assert not (tmp_path / "f").exists()


def test_two_in_one_folder_are_refused(tmp_path: Path, free_ports) -> None:
    STATE.write(tmp_path)
    with pytest.raises(InputError, match=r"there is a federation here\. End it first"):
        local.up(tmp_path, 1, port=free_ports(2))
    assert read(tmp_path) == STATE


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path, free_ports) -> None:
    for name in ("keys/own", "README.txt", "scenario.toml", ".fedprivacy-federation"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    mode = tmp_path.stat().st_mode
    with pytest.raises(InputError, match="holds other files"):
        local.up(tmp_path, 1, port=free_ports(2))
    assert sorted(tmp_path.rglob("*")) == before
    assert tmp_path.stat().st_mode == mode


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"nodes": 0}, "--nodes 0: must be from 1 to 64"),
        ({"nodes": 65}, "--nodes 65"),
        ({"port": 80}, "--port 80: must be from 1024"),
        ({"port": 65535}, "--port 65535"),
        ({"folder": "it's"}, "has a quote"),
        ({"data": [Path("x.npz")]}, "--data: goes with --scenario"),
    ],
)
def test_what_cannot_be_started_is_said_first(tmp_path: Path, options: dict, said: str) -> None:
    folder = tmp_path / options.pop("folder", "f")
    with pytest.raises(InputError, match=said):
        local.up(folder, options.pop("nodes", 1), **options)
    assert not folder.exists()


SHARES = ("privacy.trust=distributed", "privacy.adjacency=zero-out", "federation.hosts=12")


@pytest.mark.parametrize(("nodes", "overrides"), [(3, ()), (12, ("federation.hosts=3",))])
def test_nodes_that_sum_under_masks_are_one_for_each_client(
    tmp_path: Path, make_scenario, nodes: int, overrides: tuple[str, ...]
) -> None:
    asked = make_scenario(*SHARES, *overrides)
    with pytest.raises(InputError, match="counts nodes as clients, and the scenario has 12 clients"):
        local.up(tmp_path / "f", nodes, scenario=asked)
    assert not (tmp_path / "f").exists()


def test_a_run_under_masks_needs_the_keys_before_it_is_submitted(tmp_path: Path, make_scenario) -> None:
    asked, link = make_scenario(*SHARES), STATE.link
    for target, remedy in (
        (Target(link, pinned=True), "Give both: --pinned --roster FILE"),
        (Target(link, pinned=True, on_this_machine=True), "federation up --nodes 12 --scenario"),
    ):
        with pytest.raises(InputError, match=remedy):
            check_masks(asked, target)
    check_masks(asked, Target(link, pinned=True, roster=tmp_path / "roster"))
    check_masks(asked, Target(link))  # these nodes follow the run, whose sum is an ideal one
    check_masks(make_scenario(), Target(link, pinned=True))


def test_down_twice_and_of_nothing_is_no_error(tmp_path: Path) -> None:
    assert local.down(tmp_path) == 0
    Federation("127.0.0.1:1", None, 1, "system", None, "b" * 32).write(tmp_path)
    (tmp_path / "home").mkdir()
    assert local.down(tmp_path) == 0
    assert read(tmp_path) is None
    assert (tmp_path / "home").is_dir()  # what clients have left of their budgets stays
    assert local.down(tmp_path) == 0


def test_a_superlink_that_is_slow_once_is_waited_for(tmp_path: Path) -> None:
    class Slow:
        calls = 0

        def nodes(self, limit: float) -> list[dict]:
            self.calls += 1
            if self.calls == 1:
                raise RunError("did not answer within 30 s")
            return [{"status": "online"}] * 2

    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    superlink = start(
        "superlink",
        command,
        log=tmp_path / "log",
        cwd=tmp_path,
        environment={**os.environ, MARK: STATE.mark},
    )
    state = replace(STATE, processes=(superlink,))
    try:
        local._wait_for_nodes(tmp_path, state, Slow(), time.monotonic() + 20)
    finally:
        end(STATE.mark)


def test_with_another_number_of_nodes_each_client_has_the_account_that_it_had(
    tmp_path: Path, make_scenario, base_text, monkeypatch
) -> None:
    """A client lives on another node then; it must not answer again."""
    (tmp_path / "home").mkdir()
    asked = make_scenario("privacy.trust=local", "federation.hosts=6", text=base_text)
    (tmp_path / "scenario.toml").write_text(asked.to_toml())
    plan = plan_of(asked)
    answers = []
    for nodes in (3, 2):
        state = replace(STATE, nodes=nodes, scenario=str(tmp_path / "scenario.toml"))
        said = [local._node_config(tmp_path, state, node, [], False) for node in range(nodes)]
        grid = EmbeddedGrid(client_app, [parse_config_args([one]) for one in said])
        clients = np.array([2])  # on node 2 of 3, on node 0 of 2
        request = TrainRequest(0, 2, 0, clients, np.zeros(10, np.float32), plan, "sum")
        [reply] = grid.send_and_receive([request_to(2 % nodes + 1, "train", "0/0", *request.parts())])
        assert not reply.has_error(), reply.error.reason
        answers.append(TrainReply.of(*parts_of(reply), parameters=10, observe="sum").clients.tolist())
    assert answers == [[2], []]


@pytest.mark.exhaustive
def test_a_program_that_ends_at_once_leaves_nothing_and_shows_its_log(
    tmp_path: Path, monkeypatch, free_ports
) -> None:
    said = tmp_path / "says-no"
    said.write_text("#!/bin/sh\necho the SuperLink says no >&2\nsleep 0.3\nexit 3\n")
    said.chmod(0o755)
    monkeypatch.setattr(local, "program", lambda name: str(said))
    with pytest.raises(RunError, match=r"(?s)superlink ended at once.*the SuperLink says no"):
        local.up(tmp_path / "f", 1, tls=True, port=free_ports(2))
    assert read(tmp_path / "f") is None
    assert not (tmp_path / "f" / "keys").exists()
    with pytest.raises(RunError, match="ended at once"):  # the folder is ours, and may be taken again
        local.up(tmp_path / "f", 1, port=free_ports(2))


def test_the_command_says_what_the_port_takes_and_that_noise_is_seeded(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(local, "up", lambda *args, **options: STATE)
    done = CliRunner().invoke(app, ["up", "--seeded-noise", "--dir", str(tmp_path / "f")])
    assert "SEEDED NOISE, FOR TESTS ONLY" in done.stderr
    assert "no login: every account of this machine can submit" in done.stdout
    assert f"--federation {tmp_path / 'f'}" in done.stdout


# ------------------------------------------------------------------ keys


def test_the_certificate_is_the_superlinks_of_this_machine_alone(tmp_path: Path) -> None:
    make_certificates(tmp_path)
    assert (tmp_path / "server.key").stat().st_mode & 0o777 == 0o600
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
    assert greet(server, tmp_path / "ca.crt", "localhost")
    assert greet(server, tmp_path / "ca.crt", "127.0.0.1")
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        greet(server, tmp_path / "ca.crt", "hospital.example")
    other = tmp_path / "other"
    other.mkdir()
    make_certificates(other)
    with pytest.raises(ssl.SSLCertVerificationError):
        greet(server, other / "ca.crt", "localhost")
    assert b"PRIVATE" not in (tmp_path / "ca.crt").read_bytes()
    authority = x509.load_pem_x509_certificate((tmp_path / "ca.crt").read_bytes())
    assert authority.extensions.get_extension_for_class(x509.BasicConstraints).value.path_length == 0


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl here")
def test_the_certificates_of_the_guide_are_good_for_both_of_its_names(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "deployment.md").read_text()
    begin = page.index("umask 077")
    lines = page[begin : page.index("```", begin)]
    done = subprocess.run(["bash", "-e"], input=lines, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "server.crt: OK" in done.stdout
    assert {(tmp_path / name).stat().st_mode & 0o777 for name in ("ca.key", "server.key")} == {0o600}
    check_certificate(tmp_path / "ca.crt")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
    for name in ("server.example", "localhost", "127.0.0.1"):
        assert greet(server, tmp_path / "ca.crt", name)
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        greet(server, tmp_path / "ca.crt", "hospital.example")


def greet(server: ssl.SSLContext, authority: Path, name: str) -> bool:
    """A handshake in memory."""
    client = ssl.create_default_context(cafile=authority)
    client.verify_flags |= ssl.VERIFY_X509_STRICT  # as from Python 3.13 on
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    here = client.wrap_bio(to_client, to_server, server_hostname=name)
    there = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):
        for side in (here, there):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return here.version() is not None


def test_a_node_key_is_a_p384_pair_that_nobody_else_reads(tmp_path: Path) -> None:
    public = make_node_key(tmp_path, "node-0")
    assert (tmp_path / "node-0").stat().st_mode & 0o777 == 0o600
    private = load_ssh_private_key((tmp_path / "node-0").read_bytes(), password=None)
    assert isinstance(private, ec.EllipticCurvePrivateKey)
    assert private.curve.name == "secp384r1"
    words = load_ssh_public_key(public.read_bytes())
    assert words.public_numbers() == private.public_key().public_numbers()
    with pytest.raises(FileExistsError):
        make_node_key(tmp_path, "node-0")


def test_a_roster_has_the_public_keys_of_the_nodes_in_their_order(tmp_path: Path) -> None:
    public = [make_node_key(tmp_path, f"node-{node}") for node in range(3)]
    roster = read_roster(make_roster(tmp_path, public))
    for node in range(3):
        assert roster[node] == read_node_key(tmp_path / f"node-{node}").public_key()
    done = CliRunner().invoke(app, ["roster", *map(str, public)])
    assert (done.exit_code, done.stdout) == (0, (tmp_path / "roster").read_text())


def test_a_roster_of_files_that_are_no_keys_or_equal_ones_is_refused(tmp_path: Path) -> None:
    public = make_node_key(tmp_path, "node-0")
    for files, problem in (
        ([public, public], "line 2: clients 0 and 1 have one key"),
        ([tmp_path / "nothing"], "nothing: No such file"),
        ([tmp_path / "node-0"], "public key of client 0: holds no public key"),
        ([tmp_path], "a folder, not a file"),
    ):
        done = CliRunner().invoke(app, ["roster", *map(str, files)])
        assert isinstance(done.exception, InputError)
        assert problem in str(done.exception)
        assert done.stdout == ""


def test_keys_of_nodes_go_with_pinned_nodes_elsewhere(tmp_path: Path) -> None:
    roster = tmp_path / "roster"
    with pytest.raises(InputError, match="--roster: only with --pinned"):
        target_of("127.0.0.1:1", None, None, roster=roster)
    with pytest.raises(InputError, match="--roster: only with --superlink"):
        target_of(None, None, tmp_path, roster=roster)
    assert target_of("127.0.0.1:1", None, None, True, roster).roster == roster


# ------------------------------------------------------------------ processes

FAMILY = """
import subprocess, sys, signal, time
if sys.argv[1] == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if sys.argv[2] != "0":
    subprocess.Popen([sys.executable, "-c", sys.argv[3], sys.argv[1], "0", ""], start_new_session=True)
print("ready", flush=True)
time.sleep(120)
"""


@pytest.fixture
def family(tmp_path: Path) -> Iterator[Callable[[str, str], Started]]:
    """Starts a process whose child is in a session of its own, as Flower's helpers are."""
    marks: list[str] = []

    def begin(mark: str, temper: str) -> Started:
        log = tmp_path / f"{mark}.log"
        command = [sys.executable, "-c", FAMILY, temper, "1", FAMILY]
        marks.append(mark)
        process = start("parent", command, log=log, cwd=tmp_path, environment={**os.environ, MARK: mark})
        until(lambda: log.read_text().count("ready") == 2)
        return process

    yield begin
    for mark in marks:
        end(mark, grace=0.0)


def until(true: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_all_of_a_family_is_found_and_ended_also_when_the_parent_is_gone(family) -> None:
    mark, other = "c" * 32, "d" * 32
    parent, spared = family(mark, "kind"), family(other, "kind")
    assert len(living(mark)) == 2
    os.kill(parent.pid, signal.SIGKILL)  # Flower's own parent dies, its helper does not
    until(lambda: len(living(mark)) == 1)
    assert not parent.runs(mark)  # a zombie
    assert end(mark) == 1
    assert living(mark) == []
    assert spared.runs(other)
    assert not spared.runs(mark)
    assert len(living(other)) == 2
    assert end(other) == 2
    assert end(other) == 0


def test_who_does_not_listen_is_ended_by_force(family) -> None:
    family("e" * 32, "deaf")
    assert end("e" * 32, grace=0.5) == 2
    assert living("e" * 32) == []


def test_a_pid_that_was_given_away_again_is_left_alone() -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as stranger:
        reused = Started("superlink", stranger.pid)
        assert not reused.runs("f" * 32)
        assert end("f" * 32, grace=0.2) == 0
        assert stranger.poll() is None
        stranger.kill()


def test_a_state_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    STATE.write(tmp_path)
    document = json.loads((tmp_path / "federation.json").read_text())
    document["processes"][0]["began"] = 7
    (tmp_path / "federation.json").write_text(json.dumps(document))
    assert read(tmp_path) == STATE


def test_the_end_of_a_log_is_shown(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    assert "No such file" in tail(log)
    log.write_bytes(b"\xff\n" + b"".join(b"line %d\n" % i for i in range(9000)))
    assert tail(log, 2) == "line 8998\nline 8999"
