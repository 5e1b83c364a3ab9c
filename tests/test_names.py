"""Names are terms of the field, and summary lines are short: both counts may fall and never rise.

A change that lowers a count lowers its limit here too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("fedprivacy", "clients", "server", "scenarios", "benchmarks")
EMPTY = frozenset(["said", "told", "found", "one", "own", "asked", "begun", "played", "kept", "made"])
MOST_EMPTY = 7  # of some 29,000 names that the code binds: fields of documents, whose keys they are
MOST_LONG = 0  # summary lines over `LONGEST` characters
LONGEST = 100


def trees() -> Iterator[ast.Module]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            yield ast.parse(path.read_text(encoding="utf-8"))


def bound(node: ast.AST) -> str:
    """The name that a node binds, or nothing."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            return name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case ast.arg(arg=name) | ast.alias(asname=str(name)):
            return name
    return ""


def summary(node: ast.AST) -> str:
    """The first line of a docstring, or nothing."""
    if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return ""
    return (ast.get_docstring(node) or "").partition("\n")[0]


def test_names_are_terms_of_the_field() -> None:
    empty = [name for tree in trees() for name in map(bound, ast.walk(tree)) if name.strip("_") in EMPTY]
    assert len(empty) <= MOST_EMPTY


def test_summary_lines_are_short() -> None:
    long = [line for tree in trees() for line in map(summary, ast.walk(tree)) if len(line) > LONGEST]
    assert len(long) <= MOST_LONG, long[:5]


def test_the_counts_see_each_way_to_bind_a_name() -> None:
    code = "import a as said\ndef told(asked, *own): found = [one for one in asked]; own.kept = 1\nclass made: pass"
    names = sorted(name for name in map(bound, ast.walk(ast.parse(code))) if name)
    assert names == ["asked", "found", "kept", "made", "one", "own", "said", "told"]
