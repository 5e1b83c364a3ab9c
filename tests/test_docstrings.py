"""`Args` of docstrings name parameters of the function, or fields of the class, that they document."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("fedprivacy", "clients", "server", "scenarios", "benchmarks", "docs")
Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@cache
def definitions() -> list[tuple[Path, Definition]]:
    """All functions and classes, with the file of each; every test process would parse them if it were a constant."""
    return [
        (path.relative_to(ROOT), node)
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, Definition)
    ]


@cache
def classes() -> dict[str, ast.ClassDef]:
    """The classes by their names."""
    return {node.name: node for _, node in definitions() if isinstance(node, ast.ClassDef)}


def described(node: Definition) -> set[str]:
    """The names in the `Args` of a docstring."""
    section = re.search(r"^Args:\n((?:(?: {4}.*)?\n?)*)", ast.get_docstring(node) or "", re.MULTILINE)
    return set(re.findall(r"^ {4}\*{0,2}(\w+):", section[1], re.MULTILINE)) if section else set()


def accepted(node: ast.AST) -> set[str]:
    """The parameters of a function, or the fields of a class and of its bases."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}
    names: set[str] = set()
    for part in node.body if isinstance(node, ast.ClassDef) else ():
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            names.add(part.target.id)
        if isinstance(part, ast.FunctionDef) and part.name == "__init__":
            names |= accepted(part)
    bases = node.bases if isinstance(node, ast.ClassDef) else []
    known = [classes()[base.id] for base in bases if isinstance(base, ast.Name) and base.id in classes()]
    return names.union(*map(accepted, known))


def test_args_are_parameters_or_fields() -> None:
    wrong = [(str(path), node.name, described(node) - accepted(node)) for path, node in definitions()]
    assert sum(bool(described(node)) for _, node in definitions()) > 900  # and they are seen
    assert [each for each in wrong if each[2]] == []
