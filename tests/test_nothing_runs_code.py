"""No file and no message that is read can run code: what could is not used anywhere."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = [
    file
    for name in ("fedprivacy", "clients", "server", "scenarios", "benchmarks")
    for file in sorted((ROOT / name).rglob("*.py"))
]
MODULES = {
    "pickle",
    "cPickle",
    "_pickle",
    "cloudpickle",
    "dill",
    "joblib",
    "marshal",
    "shelve",
    "yaml",
    "jsonpickle",
    "xml",
    "code",
}
CALLS = {
    "eval",
    "exec",
    "compile",
    "__import__",
    "np.load",
    "numpy.load",
    "torch.load",
    "torch.save",
    "torch.hub.load",
    "np.fromfile",
    "os.system",
}
TABLES = {
    "pd.read_csv",
    "pd.read_parquet",
}  # of pandas, whose other readers and queries may run what they read
QUERIES = {"eval", "query", "read_pickle", "to_pickle"}
KEYWORDS = {"allow_pickle", "shell", "weights_only"}


def found(source: str) -> Iterator[str]:
    """What in a piece of Python could run what it reads."""
    tables = "pandas" in source
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] in MODULES)
            # By one name, so that each of its readers is called as pd.read_...
            yield from (
                alias.name for alias in node.names if alias.name.startswith("pandas") and alias.asname != "pd"
            )
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in {*MODULES, "pandas"}:
            yield str(node.module)
        elif isinstance(node, ast.Attribute) and ((node.attr in QUERIES and tables) or _reads(node)):
            yield ast.unparse(node)
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name in CALLS:
                yield name
            yield from (f"{name}({word.arg}=)" for word in node.keywords if word.arg in KEYWORDS)


def _reads(node: ast.Attribute) -> bool:
    """Whether it is a reader of pandas other than those of tables."""
    name = ast.unparse(node)
    return name.startswith("pd.read_") and name not in TABLES


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_a_module_reads_nothing_that_runs(file: Path) -> None:
    assert list(found(file.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from pickle import loads",
        "import joblib.numpy_pickle",
        "x = eval(text)",
        "torch.load(path)",
        "np.load(path)",
        "f(a, allow_pickle=True)",
        "import yaml",
        "import pandas",
        "from pandas import read_pickle",
        "reader = pd.read_pickle",
        "pd.read_hdf(path)",
        "import pandas as pd\nframe.query(text)",
    ],
)
def test_it_would_be_found(source: str) -> None:
    assert list(found(source))
