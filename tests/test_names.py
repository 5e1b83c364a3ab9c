"""Names are terms of the field, and summary lines are short: both counts may fall and never rise.

A change that lowers a count lowers its limit here too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("fedprivacy", "clients", "server", "scenarios", "benchmarks")
EMPTY = frozenset(["one", "own"])  # as a whole name
PARTS = frozenset(  # nor as a part of a name, in any case: `_Asked`, `begun_in`
    [
        "said",
        "told",
        "found",
        "asked",
        "begun",
        "played",
        "kept",
        "made",
        "arena",
        "blueprint",
        "crew",
        "dismiss",
        "residence",
        "undertaking",
        "play",
        "plays",
        "respondents",
        "residents",
    ]
)
MOST_EMPTY = 9  # of some 32,000 names that the code binds: fields of documents, whose keys they are
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


def empty(name: str) -> bool:
    """Whether a name is one of `EMPTY`, or has a part that is one of `PARTS`."""
    parts = re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", name)
    return name.strip("_").lower() in EMPTY or any(part.lower() in PARTS for part in parts)


def summary(node: ast.AST) -> str:
    """The first line of a docstring, or nothing."""
    if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return ""
    return (ast.get_docstring(node) or "").partition("\n")[0]


def test_names_are_terms_of_the_field() -> None:
    names = [name for tree in trees() for name in map(bound, ast.walk(tree)) if empty(name)]
    assert len(names) <= MOST_EMPTY, names


def test_summary_lines_are_short() -> None:
    long = [line for tree in trees() for line in map(summary, ast.walk(tree)) if len(line) > LONGEST]
    assert len(long) <= MOST_LONG, long[:5]


def test_the_counts_see_each_way_to_bind_a_name() -> None:
    code = "import a as said\ndef told(asked, *own): found = [one for one in asked]; own.kept = 1\nclass made: pass"
    names = sorted(name for name in map(bound, ast.walk(ast.parse(code))) if name)
    assert names == ["asked", "found", "kept", "made", "one", "own", "said", "told"]


def test_parts_of_names_count_in_any_case() -> None:
    assert all(map(empty, ["_Asked", "begun_in", "KEPT_CHECKPOINTS", "toldFigures", "own", "_One", "Crew"]))
    assert not any(map(empty, ["one_run", "own_label", "OneShotAverage", "foundation", "unmade"]))
