"""The public names of `import fedprivacy`."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import subprocess
import sys
import typing
from pathlib import Path

import pytest

import fedprivacy as fp

CALLS = [name for name in fp.__all__ if inspect.isfunction(getattr(fp, name))]


def test_the_public_names_are_these() -> None:
    assert set(fp.__all__) == {
        "FedPrivacyError", "InputError", "__version__", "ask", "audit", "compare", "noise", "people", "read", "replay",
        "run", "runs", "scenario_for", "track", "tune",
    }  # fmt: skip
    assert set(fp.__all__) <= set(dir(fp))
    with pytest.raises(AttributeError, match="epsilon"):
        _ = fp.epsilon


def test_no_public_name_is_a_room() -> None:
    """An import of the room would replace the function of its name."""
    rooms = {path.stem for path in Path(fp.__file__).parent.iterdir()}
    assert not rooms & set(fp.__all__)


def test_type_checkers_see_each_public_name() -> None:
    tree = ast.parse(Path(fp.__file__).read_text())
    aliases = [alias for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert {alias.asname for alias in aliases} - {None} == set(fp.__all__) - {"__version__"}


def test_every_argument_of_every_call_has_a_type() -> None:
    for name in CALLS:
        function = getattr(fp, name)
        hints = function.__annotations__
        assert set(inspect.signature(function).parameters) | {"return"} == set(hints), name


@pytest.mark.exhaustive(every=3)
@pytest.mark.parametrize("name", CALLS)
def test_the_example_of_each_call_runs(name: str) -> None:
    function = getattr(fp, name)
    examples = doctest.DocTestFinder(recurse=False).find(
        function, name, globs=dict(vars(sys.modules[function.__module__]))
    )
    assert sum(len(each.examples) for each in examples) > 0
    runner = doctest.DocTestRunner()
    assert sum(runner.run(each).failed for each in examples) == 0


def test_an_import_loads_no_large_library() -> None:
    code = "import sys, fedprivacy; print([name for name in ('torch', 'flwr', 'pandas', 'numpy', 'scenarios') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_list_of_runs_loads_neither_torch_nor_flower(tmp_path: Path) -> None:
    code = f"import sys, fedprivacy; fedprivacy.runs({str(tmp_path)!r}); print([name for name in ('torch', 'flwr') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_errors_are_those_of_the_library() -> None:
    errors = importlib.import_module("fedprivacy.errors")
    assert fp.InputError is errors.InputError
    assert issubclass(fp.InputError, fp.FedPrivacyError)
    assert typing.get_type_hints(fp.InputError) is not None
