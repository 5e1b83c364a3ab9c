"""The notebooks run from top to bottom, and no output is kept in them."""

from __future__ import annotations

import ast
import inspect
import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

import fedprivacy as fp

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


# What is run in place of what a notebook has: fewer rounds of the same calls.
SHORTER = {
    "attack-and-audit-my-model": {
        "epsilon=8, rounds=10": "epsilon=8, rounds=2",
        "rounds=5,": "rounds=2,",
        '"attacks.isolating.rounds": 10': '"attacks.isolating.rounds": 2',
    },
    "first-run-and-comparison": {
        'fp.run("digits", epsilon=2)': 'fp.run("digits", epsilon=2, rounds=2)',
        "rounds=20)": "rounds=2)",
    },
    "hospitals": {"rounds=20)": "rounds=2)"},
}


def test_there_are_three() -> None:
    assert {path.stem for path in NOTEBOOKS} == set(SHORTER)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_output_is_stored(path: Path) -> None:
    notebook = nbformat.read(path, 4)
    for cell in notebook.cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_call_of_a_notebook_has_arguments_that_the_function_takes(path: Path) -> None:
    cells = [cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
    calls = [
        node
        for node in ast.walk(ast.parse("\n".join(cells)))
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("fp.")
    ]
    assert len(calls) > 2
    for call in calls:
        function = getattr(fp, ast.unparse(call.func).removeprefix("fp."))
        inspect.signature(function).bind(*call.args, **{str(each.arg): each.value for each in call.keywords})


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    notebook = nbformat.read(path, 4)
    for long, short in SHORTER[path.stem].items():
        assert any(long in cell.source for cell in notebook.cells), long
        for cell in notebook.cells:
            cell.source = cell.source.replace(long, short)
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert any("text/html" in output.get("data", {}) for output in outputs)
    assert not [output for output in outputs if "Traceback" in output.get("text", "")]
