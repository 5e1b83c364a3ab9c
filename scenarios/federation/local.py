"""A local federation: a SuperLink and SuperNodes on loopback, with all state in one folder.

federation.json   address, certificates, processes; there while the federation is up, with mode 0600
keys/             the authority's certificate, the SuperLink's, node keys (with TLS); the roster (with masks)
flower/           Flower's own home of each process
home/             the account of all nodes: the budgets of their clients, which outlive the federation
logs/             the output of each process
runs/             the record of each run, as the SuperLink's side wrote it
"""

from __future__ import annotations

import re
import secrets
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fedprivacy.errors import FedPrivacyError, InputError, RunError
from fedprivacy.scenario import Scenario
from fedprivacy.scenario.statistics import Statistics
from scenarios.federation.control import Control, environment, program
from scenarios.federation.folder import (
    HOST,
    check_clients,
    check_data,
    check_folder,
    check_port,
    claim,
    clear,
    needs_masks,
)
from scenarios.federation.keys import ROSTER, make_certificates, make_node_key, make_roster
from scenarios.federation.processes import MARK, end, start, tail
from scenarios.federation.state import Federation, read
from scenarios.jobs.interrupts import undisturbed

PORT = 18000
MOST_NODES = 64
_WAIT = 180.0


def up(
    folder: Path,
    nodes: int,
    *,
    tls: bool = False,
    scenario: Scenario | Statistics | None = None,
    data: Sequence[Path] = (),
    seeded: bool = False,
    port: int = PORT,
    wait: float = _WAIT,
    say: Callable[[str], None] = lambda line: None,
) -> Federation:
    """Starts a SuperLink and its nodes, and returns when all nodes are online.

    What was begun is ended again if that fails, or is interrupted.

    Args:
        folder: Where all its state goes; it is made, and for its owner alone.
        nodes: How many nodes.
        tls: Whether all connections are encrypted, and only nodes with registered keys may join.
        scenario: The plan that every node is pinned to, for any submitter of a run.
        data: The records of each node, where the plan places data on nodes.
        seeded: Whether noise comes from the scenario's seed: for tests alone.
        port: Of the SuperLink; each node listens on one of the next, on loopback.
        wait: Seconds that the nodes have to come online.
        say: Called with each progress message.

    Raises:
        InputError: if there is one in the folder, a port is taken, or the folder cannot be used.
        RunError: if the nodes do not come online.
    """
    if not 1 <= nodes <= MOST_NODES:
        raise InputError(f"--nodes {nodes}: must be from 1 to {MOST_NODES}.")
    if not 1024 <= port <= 65535 - nodes:
        raise InputError(f"--port {port}: must be from 1024 to {65535 - nodes}.")
    folder, data = folder.absolute(), [path.absolute() for path in data]
    for path in (folder, *data):
        if re.search(r"[\x00-\x1f']", str(path)):
            raise InputError(f"{path}: has a quote or a control character in its name. Choose another one.")
    check_data(data, nodes, scenario)
    check_clients(nodes, scenario)
    check_folder(folder)
    for number in range(port, port + nodes + 1):
        check_port(number)
    federation = Federation(
        address=f"{HOST}:{port}",
        root_certificates=str(folder / "keys" / "ca.crt") if tls else None,
        nodes=nodes,
        noise="seeded" if seeded else "system",
        scenario=None if scenario is None else str(folder / "scenario.toml"),
        mark=secrets.token_hex(16),
    )
    claim(folder)
    try:
        federation.write(folder)
        return _start(folder, federation, port, scenario, data, wait, say)
    except BaseException:
        with undisturbed():
            end(federation.mark)
            clear(folder)
        raise


def down(folder: Path) -> int:
    """Ends a federation: all its processes, and its keys; budgets, logs and records stay.

    Returns:
        How many processes were ended; 0 also where there was no federation.

    Raises:
        InputError: if federation.json is damaged.
        RunError: if a process is left.
    """
    federation = read(folder)
    if federation is None:
        return 0
    with undisturbed():
        ended = end(federation.mark)
        clear(folder)
    return ended


def status(folder: Path) -> dict[str, Any]:
    """The state of a federation: its processes, and the nodes that the SuperLink sees.

    Raises:
        InputError: if federation.json is damaged.
        RunError: if there is none.
    """
    federation = read(folder)
    if federation is None:
        raise RunError(f"{folder}: no federation is up here. Start one: fedprivacy federation up --nodes 3")
    processes = {process.name: process.runs(federation.mark) for process in federation.processes}
    online, problem = 0, None
    try:
        online = len(_online(_control(folder.absolute(), federation)))
    except FedPrivacyError as error:
        problem = str(error)
    return {
        "schema": 1,
        "kind": "federation",
        "path": str(folder),
        "address": federation.address,
        "root_certificates": federation.root_certificates,
        "noise": federation.noise,
        "scenario": federation.scenario,
        "nodes": federation.nodes,
        "online": online,
        "processes": processes,
        "problem": problem,
        "whole": all(processes.values()) and online >= federation.nodes,
    }


def _start(
    folder: Path,
    federation: Federation,
    port: int,
    scenario: Scenario | Statistics | None,
    data: Sequence[Path],
    wait: float,
    say: Callable[[str], None],
) -> Federation:
    for name in ("keys", "logs", "flower", "home", "runs"):
        (folder / name).mkdir(mode=0o700, exist_ok=True)
    tls, masks = federation.root_certificates is not None, needs_masks(scenario)
    names = [f"node-{number}" for number in range(federation.nodes)]
    if scenario is not None:
        (folder / "scenario.toml").write_text(scenario.to_toml(), encoding="utf-8")
    if tls:
        make_certificates(folder / "keys")
    keys, control = folder / "keys", _control(folder, federation)
    served = ["--ssl-ca-certfile", str(keys / "ca.crt"), "--ssl-certfile", str(keys / "server.crt")]
    served += ["--ssl-keyfile", str(keys / "server.key"), "--enable-supernode-auth"]
    say(f"starting the SuperLink on {federation.address}")
    deadline = time.monotonic() + wait
    command = [program("flower-superlink"), "--host", HOST, "--port", str(port)]
    command += ["--disable-runtime-dependency-installation", *(served if tls else ["--insecure"])]
    federation = _begin(folder, federation, "superlink", command)
    _wait_for_port(folder, federation, port, deadline)
    if tls or masks:
        public = [make_node_key(keys, name) for name in names]
        for key in public if tls else []:
            control.register(key)
        if masks:
            make_roster(keys, public)
    say(f"starting {federation.nodes} node{'' if federation.nodes == 1 else 's'}")
    for number, name in enumerate(names):
        known = ["--root-certificates", str(keys / "ca.crt"), "--auth-supernode-private-key"]
        known += [str(keys / name)]
        command = [program("flower-supernode"), "--superlink", federation.address, "--host", HOST]
        command += [
            "--port",
            str(port + 1 + number),
            "--node-config",
            _node_config(folder, federation, number, data, masks),
        ]
        federation = _begin(folder, federation, name, [*command, *(known if tls else ["--insecure"])])
    _wait_for_nodes(folder, federation, control, deadline)
    return federation


def _node_config(folder: Path, federation: Federation, number: int, data: Sequence[Path], masks: bool) -> str:
    """The node config of a node; paths have no quote in them (`up` refuses those)."""
    config = f"partition-id={number} num-partitions={federation.nodes} noise='{federation.noise}'"
    if federation.scenario is not None:
        # One account for all: with another number of nodes a client lives on another, and has answered.
        config += f" scenario='{federation.scenario}' home='{folder / 'home'}'"
    if masks:
        config += f" node-key='{folder / 'keys' / f'node-{number}'}' roster='{folder / 'keys' / ROSTER}'"
    if data:
        config += f" data='{data[number]}'"
    return config


def _begin(folder: Path, federation: Federation, name: str, command: list[str]) -> Federation:
    """Starts one process and notes it, so that `down` knows it whatever happens next."""
    home = folder / "flower" / name
    home.mkdir(mode=0o700, exist_ok=True)
    # One thread each: they share this machine, and the numbers are those of an embedded run, bit for bit.
    variables = {"OMP_NUM_THREADS": "1", **environment(home), MARK: federation.mark}
    process = start(name, command, log=folder / "logs" / f"{name}.log", cwd=folder, environment=variables)
    federation = replace(federation, processes=(*federation.processes, process))
    federation.write(folder)
    return federation


def _wait_for_port(folder: Path, federation: Federation, port: int, deadline: float) -> None:
    while True:
        _check_alive(folder, federation)
        with socket.socket() as tried:
            tried.settimeout(1.0)
            if tried.connect_ex((HOST, port)) == 0:
                return
        if time.monotonic() > deadline:
            raise RunError(f"the SuperLink does not listen on port {port}.\n{_log_tail(folder, 'superlink')}")
        time.sleep(0.2)


def _wait_for_nodes(folder: Path, federation: Federation, control: Control, deadline: float) -> None:
    while True:
        _check_alive(folder, federation)
        try:
            online = len(_online(control))
        except RunError:  # slow to answer while all of them start
            online = 0
        if online >= federation.nodes:
            return
        if time.monotonic() > deadline:
            raise RunError(
                f"{online} of {federation.nodes} nodes are online. The last of their logs:\n"
                + "\n".join(_log_tail(folder, process.name) for process in federation.processes[1:])
            )
        time.sleep(0.5)


def _check_alive(folder: Path, federation: Federation) -> None:
    for process in federation.processes:
        if not process.runs(federation.mark):
            raise RunError(f"{process.name} ended at once.\n{_log_tail(folder, process.name)}")


def _log_tail(folder: Path, name: str) -> str:
    log = folder / "logs" / f"{name}.log"
    return f"{log}:\n{tail(log)}"


def _online(control: Control) -> list[dict[str, Any]]:
    return [node for node in control.nodes(30.0) if node.get("status") == "online"]


def _control(folder: Path, federation: Federation) -> Control:
    return Control(federation.link, folder / "flower" / "control")
