"""Runs every fault of clients and nodes on each engine, and writes the table of docs/faults.md.

    python -m benchmarks.faults                        # prints the table
    python -m benchmarks.faults --write docs/faults.md # and writes it there, between its marks

Each fault is real: a model that raises, hangs or kills its process where a client's data says so
(`benchmarks.faulty`), a client that drops out, a node that lies or is killed. Each is played in a process of
its own, under central and under local trust, beside a run without it.
"""

from __future__ import annotations

import json
import multiprocessing
import signal
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from flwr.app import Array, ArrayRecord, Context, Message
from flwr.clientapp.typing import ClientAppCallable

from benchmarks.fault_rows import Row, Seen, epsilons, table
from benchmarks.faulty import TRIGGER
from benchmarks.wire import NODES, Wire
from clients.app import faults_of, make_app
from clients.fleet import Fleet
from fedprivacy.population.clients import population
from fedprivacy.records.ownership import begin_run
from fedprivacy.records.run_record import RunRecord
from fedprivacy.scenario import Scenario
from scenarios.engines.embedded import EmbeddedGrid
from scenarios.engines.launch import Engine
from scenarios.runner import resume, run
from server.app import NodeView, serve

CLIENTS, BAD = 40, 3
PATIENCE = 300.0  # seconds that a run may take
BEGIN, END = "<!-- the table, by python -m benchmarks.faults -->", "<!-- end of the table -->"
TEXT = """
name = "faulty"
seed = 1
[data]
name = "npz"
path = "{folder}/records.npz"
partition = "by-user"
[model]
name = "code"
factory = "benchmarks.faulty:make"
options = {{ harm = "{harm}", mark = "{folder}/mark" }}
[training]
learning_rate = 0.5
[server]
rounds = 2
[sampling]
name = "all"
[privacy]
trust = "{trust}"
clipping_norm = 1.0
noise_multiplier = 1.0
delta = 1e-3
[federation]
chunk_size = 20
"""
TRUSTS = ("central", "local")
Run = Callable[[Scenario, Path], object]


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong.

    Args:
        name: In words.
        harm: What the model does with the record of one client (`benchmarks.faulty.HARM`), or None.
        overrides: What else the scenario says.
        lie: What one of two messages of a node says instead of its honest reply, or None.
        holds: Whether with one worker nobody is there to end it: then it is waited for a few seconds only. A
            SuperNode is held for good.
        kills_node: Whether a SuperNode is killed between two rounds.
        rounds: How many are played.
    """

    name: str
    harm: str | None = None
    overrides: Sequence[str] = ()
    lie: Callable[[Message], None] | None = None
    holds: bool = False
    kills_node: bool = False
    rounds: int = 2

    def rounds_on(self, engine: str) -> int:
        """The number of rounds on an engine; few on a federation, where each message starts a process."""
        return min(self.rounds, 3) if engine == WIRED else self.rounds

    def runs_on(self, engine: str) -> bool:
        """Whether it is a fault of that engine."""
        if self.kills_node:
            return engine == WIRED
        return engine == LYING or self.lie is None


def _changed(reply: Message, **changed: Callable[[Any], Any]) -> None:
    arrays = {name: array.numpy() for name, array in reply.content.array_records["arrays"].items()}
    arrays_changed = {name: changed.get(name, lambda array: array)(array) for name, array in arrays.items()}
    reply.content.array_records["arrays"] = ArrayRecord(
        {name: Array(array) for name, array in arrays_changed.items()}
    )


def _fails(reply: Message) -> None:
    raise RuntimeError("the node is on fire")


WAIT = "federation.client_timeout=2.0"
FAULTS = (
    Fault("a client raises an error", "raise"),
    Fault("a client's numbers have a wrong shape", "wrong-shape"),
    Fault("a client's update is NaN", "nan"),
    Fault("a client's update is infinite", "infinite"),
    Fault("a client's update is too large", "huge"),
    Fault("a client is slow, but in time", "slow", (WAIT,)),
    Fault("a client hangs; `client_timeout` is set", "hang", (WAIT,)),
    Fault("a client hangs; only `timeout` is set", "hang", ("federation.timeout=2.0",), holds=True),
    Fault("a client kills its process once", "kill-once"),
    Fault("a client kills its process each time", "kill"),
    Fault("a client kills its process; `client_timeout` is set", "kill", (WAIT,)),
    *(
        Fault(f"clients drop out at {rate:.0%}", None, (f"federation.dropout={rate}",), rounds=10)
        for rate in (0.0, 0.1, 0.3, 0.5)
    ),
    Fault("a SuperNode is killed", None, ("federation.timeout=30.0",), kills_node=True),
    Fault("a node fails", lie=_fails),
    Fault("a node's sum is NaN", lie=partial(_changed, updates=lambda sums: sums * np.nan)),
    Fault("a node's sum has a wrong shape", lie=partial(_changed, updates=lambda sums: sums[:-1])),
    Fault("a node's sum is too large", lie=partial(_changed, updates=lambda sums: sums + 1e6)),
    Fault("a node answers for other clients", lie=partial(_changed, clients=lambda ids: ids + 1)),
)


def _on(engine: str, workers: int, scenario: Scenario, out: Path) -> object:
    return run(scenario, out, allow_code=True, report=False, engine=Engine(engine, workers))


_wire = Wire()
WIRED = f"superlink, {NODES} nodes"
ENGINES: dict[str, Run] = {
    "embedded, 1 worker": partial(_on, "embedded", 1),
    "embedded, 2 workers": partial(_on, "embedded", 2),
    "ray, 2 workers": partial(_on, "ray", 2),
    WIRED: _wire.run,
}
LYING = "embedded, 1 worker"  # a reply is looked at by the server alone, whatever brought it


def _lying(scenario: Scenario, out: Path, lie: Callable[[Message], None]) -> object:
    """A run whose node lies in its first message of each round."""

    def mod(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
        reply = call_next(message, context)
        if message.metadata.message_type == "train" and message.metadata.group_id.endswith("/0"):
            lie(reply)
        return reply

    fleet = Fleet.of(scenario, population(scenario.data), allow_code=True)
    grid = EmbeddedGrid(make_app(fleet, [mod]), [{}])
    with begin_run(out, scenario.name, scenario.to_toml()) as directory:
        record = RunRecord(scenario, fleet.plan, directory, noise_key=fleet.streams.run)
        view = NodeView(grid.node_states, lambda round: faults_of(grid.states.values(), round))
        serve(grid, record, fleet.people, fleet.model, view=view)
    return record


def rows(faults: Sequence[Fault] = FAULTS, engines: Sequence[str] | None = None) -> list[Row]:
    """Runs faults on engines, those of nodes on one.

    Args:
        faults: Which.
        engines: Names from `ENGINES`; None: all.
    """
    results = []
    _import_all()
    for fault in faults:
        for engine in engines or [name for name in ENGINES if "ray" not in name or find_spec("ray")]:
            if not fault.runs_on(engine):
                continue
            row = Row(fault.name, engine)
            for trust in TRUSTS:
                row.seen[trust] = run_with(fault, engine, trust)
                row.epsilons[trust] = _without(trust, fault.rounds_on(engine))
            results.append(row)
    return results


@cache
def _without(trust: str, rounds: int) -> dict[str, float | None]:
    """The epsilons of a run without a fault."""
    return epsilons(run_with(Fault("none", rounds=rounds), LYING, trust).document)


def run_with(fault: Fault, engine: str, trust: str) -> Seen:
    """A run with a fault, in a process of its own."""
    launch = ENGINES[engine] if fault.lie is None else partial(_lying, lie=fault.lie)
    if engine == WIRED:
        _wire.up()
        launch = partial(_wire.run, kill=fault.kills_node)
    with tempfile.TemporaryDirectory() as folder:
        write_records(Path(folder), bad=fault.harm is not None)
        text = TEXT.format(folder=folder, harm=fault.harm or "raise", trust=trust)
        slow = fault.holds and not engine.startswith("embedded")  # a worker takes seconds to begin
        overrides = ("federation.timeout=30.0",) if slow else fault.overrides
        overrides = (*overrides, f"server.rounds={fault.rounds_on(engine)}")
        if engine == WIRED:
            overrides = (*overrides, f"federation.hosts={NODES}")
        scenario, out = Scenario.from_text(text, overrides=overrides), Path(folder, "runs")
        code = _in_a_process(
            lambda: launch(scenario, out), 20.0 if fault.holds and engine == LYING else PATIENCE
        )
        if engine == WIRED and (
            fault.holds or fault.kills_node or code is None
        ):  # a node may be held for good
            _wire.down()
        if not out.exists():
            raise RuntimeError(f"{fault.name} on {engine}: the engine was not up in time")
        (path,) = out.iterdir()
        ended = "yes"
        if code is None:
            ended = "no: blocked until it is stopped"
        elif code < 0:
            again = _in_a_process(lambda: resume(path, allow_code=True), PATIENCE)
            ended = "no: the run died with it, `--resume` " + (
                "completed it" if again == 0 else "fails again"
            )
        elif code:
            ended = "no: " + json.loads((path / "run.json").read_text())["error"]
        return Seen(json.loads((path / "run.json").read_text()), ended)


def _in_a_process(work: Callable[[], object], seconds: float) -> int | None:
    """The exit code of a forked process; below 0 if it was killed, None if it did not end."""
    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    process.join(seconds)
    if process.exitcode is None:
        process.kill()
        process.join()
        return None
    return process.exitcode


def _import_all() -> None:
    """Imports the modules of a first training once, which would take seconds in each process."""
    with tempfile.TemporaryDirectory() as folder:
        write_records(Path(folder), bad=False)
        Fleet.of(Scenario.from_text(TEXT.format(folder=folder, harm="raise", trust="local")), allow_code=True)


def write_records(folder: Path, *, bad: bool) -> None:
    """Forty clients of two records; of one of them the first sets the model off (`TEXT` names the file)."""
    stream = np.random.default_rng(0)
    x = stream.normal(size=(2 * CLIENTS, 4)).astype(np.float32)
    held_out = stream.normal(size=(20, 4)).astype(np.float32)
    if bad:
        x[2 * BAD, 0] = TRIGGER
    np.savez(
        folder / "records.npz",
        x_train=x,
        y_train=np.arange(2 * CLIENTS) % 2,
        user_train=np.repeat(np.arange(CLIENTS), 2),
        x_test=held_out,
        y_test=np.arange(20) % 2,
    )


def merged(old: str, new: str) -> str:
    """Merges new rows into a table; rows of engines that did not run stay.

    Args:
        old: The table of the page.
        new: What was played now.
    """
    head, line, *fresh = new.strip().splitlines()
    at = {tuple(row.split(" | ")[:2]): row for row in [*old.strip().splitlines()[2:], *fresh]}
    places = {
        (f"| {fault.name}", engine): (number, place)
        for number, fault in enumerate(FAULTS)
        for place, engine in enumerate(ENGINES)
    }
    known = sorted((key for key in at if key in places), key=lambda key: places[key])
    return "\n".join([head, line, *(at[key] for key in known)])


def main(
    write: Annotated[Path | None, typer.Option(help="The page whose table is replaced.")] = None,
    engine: Annotated[list[str] | None, typer.Option(help="An engine; all without.")] = None,
    fault: Annotated[list[str] | None, typer.Option(help="A fault, by its name; all without.")] = None,
) -> None:
    """Runs every fault on each engine."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # else a federation would stay up
    try:
        for each in FAULTS:
            if fault and each.name not in fault:
                continue
            results = rows([each], engine)
            print("\n".join(table(results).splitlines()[2:]), flush=True)
            if write is not None and results:
                _write_rows(write, results)
    finally:
        _wire.end()


def _write_rows(page: Path, rows: Sequence[Row]) -> None:
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    old, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n{merged(old, table(rows))}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
