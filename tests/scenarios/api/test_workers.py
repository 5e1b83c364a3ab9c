"""Worker processes are safe in a process with threads: a notebook kernel, and a program with busy threads."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import fedprivacy as fp
from fedprivacy.records.run_directory import read_document
from tests.scenarios.api.kernel import CellExecutionError, Kernel, kernel, wait_until
from tests.scenarios.engines.hashes import final_hash

pytestmark = [
    pytest.mark.slow,
    # Of the kernel's client: its sockets are closed by the collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]
# The caller has trained with torch before, so that its pool of threads and its autograd are awake.
BEFORE = """
import threading, time, numpy as np, torch, fedprivacy as fp
torch.set_num_threads(2)
layer = torch.nn.Linear(500, 500)
layer(torch.randn(500, 500)).square().sum().backward()
stop = threading.Event()
def work():
    while not stop.is_set():
        np.random.default_rng(1).standard_normal((100, 100)) @ np.ones((100, 100))
        time.sleep(0.02)
threads = [threading.Thread(target=work, daemon=True) for _ in range(2)]
for thread in threads: thread.start()
x = np.random.default_rng(1).standard_normal((400, 3))
people = fp.people(x, (x[:, 0] > 0).astype(int))
"""
RUN = 'runs = [fp.run(people, rounds=3, workers=count, out="runs", progress={shown}) for count in (1, 2)]\n'
COMPARE = (
    'both = fp.compare(people, trusts=["none", "central"], epsilons=[2], seeds=[1, 2], rounds=2, workers=2, '
    'out="runs", progress={shown})\n'
)
PRINTED = "print(runs[0].rounds.equals(runs[1].rounds), runs[1].document['performance'].get('workers'), len(both.table))\n"


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("notebook")


@pytest.fixture(scope="module")
def cells(work: Path) -> Iterator[Kernel]:
    """A kernel in which somebody has worked with torch, and threads are busy."""
    with kernel(work) as started:
        started.run(BEFORE)
        yield started


@pytest.mark.exhaustive
def test_in_a_notebook(cells: Kernel) -> None:
    cells.run(RUN.format(shown=True) + COMPARE.format(shown=True))
    assert cells.run(PRINTED).split()[0] == "True"
    assert cells.run("print(len(both.table))") == "2\n"
    cells.run("runs[1]")
    assert "<table" in cells.shown()
    cells.run("both.figure()")


@pytest.mark.exhaustive
def test_a_notebook_shows_progress(cells: Kernel) -> None:
    cells.run('fp.run("digits", rounds=2, workers=2)')
    assert re.search(r"2 of 2 rounds, accuracy [\d.]+ %", cells.shown())
    cells.run('fp.compare("digits", trusts=["central"], epsilons=[2], seeds=[1, 2], rounds=1, workers=2)')
    assert "4 of 4 " in cells.shown()
    cells.run('fp.ask("star-wars-survey")')
    assert "seen-it" in cells.shown()


@pytest.mark.exhaustive
def test_a_notebook_gives_the_bits_of_a_script(cells: Kernel, tmp_path: Path) -> None:
    printed = cells.run('print(fp.run("digits", rounds=2, workers=2, progress=False).path.absolute())')
    script = fp.run("digits", rounds=2, workers=1, progress=False, out=tmp_path)
    notebook = fp.read(printed.strip())
    assert final_hash(notebook.document) == final_hash(script.document)


@pytest.mark.exhaustive
def test_an_interrupted_notebook_closes_the_record(cells: Kernel, work: Path) -> None:
    runs = work / "interrupted"

    def interrupt() -> None:
        wait_until(lambda: any(path.read_text() for path in runs.glob("*/events.jsonl")))
        asyncio.run(cells.client.km.interrupt_kernel())

    other = threading.Thread(target=interrupt)
    other.start()
    with pytest.raises(CellExecutionError, match="KeyboardInterrupt"):
        cells.run('fp.run(people, rounds=5000, workers=2, out="interrupted")')
    other.join()
    (path,) = runs.iterdir()
    assert read_document(path / "run.json")["status"] == "interrupted"
    assert cells.run(f'print(fp.read("{path}").status)') == "interrupted\n"  # the kernel goes on


@pytest.mark.exhaustive
def test_in_a_program_with_busy_threads(tmp_path: Path) -> None:
    code = BEFORE + RUN.format(shown=False) + COMPARE.format(shown=False) + PRINTED
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.stdout.split()[0] == "True", done.stderr
    assert done.stdout.split()[-1] == "2"
