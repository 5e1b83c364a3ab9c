"""Kills runs, comparisons and replays with SIGKILL at random moments, then resumes them.

    python -m benchmarks.kill_and_resume --kills 36

Each task is played once without a break. Then it is played again and again, killed at random moments of
its start and of its work (half of the time with its workers, else alone), and gone on with by `--resume`,
until so many kills are counted. What then lies in the directory has to be what lies in the first one, times
apart:

    a run          the arrays of its last checkpoint (model, optimiser, ledger, what each client has counted)
                   bit for bit, the ledger, the guarantees, the events, the final figures
    a comparison   its document
    a replay       its document, the trained runs bit for bit, and the account of what clients have answered

docs/resume.md has a result.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.killing import Broken, Killer, Task, leftovers, timeless
from fedprivacy.records.run_directory import RunDirectory

RUN = "from scenarios.cli.main import main; main()"
RUN_TEXT = """name = "killed"
seed = 7
[data]
name = "synthetic"
records = 400
test_records = 200
features = 8
partition = "iid"
clients = 40
[model]
name = "logistic"
[training]
learning_rate = 0.5
[server]
rounds = {rounds}
optimizer = "adam"
learning_rate = 0.1
[sampling]
name = "poisson"
rate = 0.5
[privacy]
trust = "{trust}"
clipping_norm = 1.0
epsilon = 4.0
delta = 1e-3
[federation]
hosts = 2
chunk_size = 5
[compare]
epsilons = [4.0]
seeds = [1, 2]
"""
STATISTICS = """name = "killed"
seed = 5
[data]
name = "bits"
clients = 200
share = 0.6
[queries.seen]
kind = "mean-of-bits"
[queries.many]
kind = "count"
[privacy]
trust = "central"
epsilon = 1.0
[compare]
epsilons = [0.5, 2.0]
clients = [100, 2000]
repeats = 30
"""
ATTACKED = """name = "killed"
seed = 1
[data]
name = "purchase-like"
records = 300
test_records = 50
features = 40
classes = 20
partition = "iid"
clients = 3
public_fraction = 0.4
[model]
name = "logistic"
[training]
learning_rate = 0.3
batch_size = 16
[server]
rounds = 12
[sampling]
name = "all"
[privacy]
trust = "local"
clipping_norm = 1.0
epsilon = 8.0
delta = 1e-3
[federation]
chunk_size = 1
[game]
members = 40
nonmembers = 50
repeats = 2
warm_up = 2
[attacks.look]
kind = "passive"
rounds = 3
[attacks.climb]
kind = "active-gradient-ascent"
targets_per_round = 30
tries = 10
"""
MOST = 8  # kills of one directory


def tasks(rounds: int) -> dict[str, Task]:
    """The tasks to kill, by name.

    Args:
        rounds: Of a run.
    """
    local = RUN_TEXT.format(trust="local", rounds=rounds)
    capped = local.replace('trust = "local"', f'trust = "local"\nmax_participations = {rounds // 3}')
    jobs = [
        Task("central run", "run", RUN_TEXT.format(trust="central", rounds=rounds), ("--workers", "1")),
        Task("local run", "run", capped, ("--workers", "2")),
        Task("comparison", "compare", RUN_TEXT.format(trust="central", rounds=20), ("--workers", "2")),
        Task("statistics", "compare", STATISTICS, ("--workers", "2")),
        Task("replay", "replay", ATTACKED, ("--workers", "2")),
    ]
    return {task.name: task for task in jobs}


def torture(
    task: Task,
    kills: int,
    killer: Killer,
    folder: Path,
    say: Callable[[str], object] = lambda line: None,
) -> list[str]:
    """Kills a task repeatedly, and compares each resumed directory with an uninterrupted one.

    Args:
        task: What.
        kills: How often at least.
        killer: Who kills.
        folder: An empty folder for all of it.
        say: Told how far it is.

    Returns:
        What each kill left behind, in words.

    Raises:
        Broken: something differs, or could not be gone on with.
    """
    killer.where = []
    try:
        _torture(task, kills, killer, folder, say)
    finally:
        killer.close()
    return killer.where


def _torture(task: Task, kills: int, killer: Killer, folder: Path, say: Callable[[str], object]) -> None:
    whole, times = killer.whole(task, folder)
    expected, done = facts_of(whole), 0
    while done < kills:
        path, more = killer.broken(task, folder, times, min(MOST, kills - done))
        done += more
        facts = facts_of(path)
        for what in expected:
            if facts[what] != expected[what]:
                raise Broken(f"{task.name}: {path}: other {what} than {whole}")
        left = list(leftovers(path))
        if left:
            raise Broken(f"{task.name}: {left[0]} was left behind")
        say(f"{task.name}: {done} of {kills} kills; the same end after {more}")


def facts_of(path: Path) -> dict[str, Any]:
    """All that has to be the same of a finished directory, by what it is."""
    document = json.loads((path / "run.json").read_text())
    facts: dict[str, Any] = {"status": document["status"], "document": timeless(document)}
    if document["status"] != "finished":
        raise Broken(f"{path}: {document['status']}: {document['error']}")
    facts["arrays"] = {str(folder.relative_to(path)): _hash(folder) for folder in [path, *path.glob("run-*")]}
    facts["accounts"] = [json.loads(file.read_text()) for file in sorted(path.glob("run-*/spent.json"))]
    if document["kind"] == "run":
        lines = (path / "events.jsonl").read_text().splitlines()
        facts["events"] = [timeless(json.loads(line)) for line in lines]
        if facts["events"] != timeless(document["rounds"]):
            raise Broken(f"{path}: events.jsonl and run.json tell of other rounds")
    return facts


def _hash(folder: Path) -> str | None:
    """Of the newest checkpoint's arrays."""
    checkpoint = RunDirectory(folder).load_checkpoint()
    if checkpoint is None:
        return None
    digest = hashlib.blake2b(digest_size=16)
    for name, array in sorted(checkpoint.tensors.items()):
        digest.update(f"{name}{array.dtype.str}{array.shape}".encode() + array.tobytes())
    return digest.hexdigest()


def shares(kills: int, names: Sequence[str]) -> dict[str, int]:
    """The number of kills of each task: runs twice as often as jobs made of runs."""
    weights = {name: 2 if name.endswith("run") else 1 for name in names}
    total = sum(weights.values())
    return {name: -(-kills * weight // total) for name, weight in weights.items()}


def main(
    kills: Annotated[int, typer.Option(help="How many in all, at least.")] = 36,
    seed: Annotated[int, typer.Option(help="Of the moments.")] = 1,
    rounds: Annotated[int, typer.Option(help="Of a run.")] = 60,
    only: Annotated[list[str] | None, typer.Option(help="One of the tasks. May be repeated.")] = None,
) -> None:
    """Kills and resumes; exit code 1 if anything differs from an unbroken one."""
    every = tasks(rounds)
    chosen = {name: every[name] for name in only or every}
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "NO_COLOR": "1"}
    killer = Killer([sys.executable, "-c", RUN], environment, random.Random(seed))
    table = Table()
    for column in ("what", "kills", "what they left (how often)"):
        table.add_column(column)
    began, counted = time.monotonic(), 0
    for name, count in shares(kills, list(chosen)).items():
        with tempfile.TemporaryDirectory(prefix="killed-") as folder:
            left = torture(chosen[name], count, killer, Path(folder), lambda line: print(line, flush=True))
        words = Counter(problem.split(": ", 1)[1] for problem in left)
        table.add_row(name, str(len(left)), "; ".join(f"{what} ({n})" for what, n in sorted(words.items())))
        counted += len(left)
    Console().print(table)
    print(f"{counted} kills, all gone on with to the same end, in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    try:
        typer.run(main)
    except Broken as broken:
        sys.exit(str(broken))
