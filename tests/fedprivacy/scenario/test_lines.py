"""Where keys stand in a TOML text, with tomllib as the judge of which keys there are."""

from __future__ import annotations

import tomllib
from typing import Any

import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st

from fedprivacy.scenario.lines import key_lines

EVERYTHING = '''# a comment = with a sign
plain = 1
"quoted # key".inner = """three
[not.a.table]
lines""""  # the text ends in a quote of its own
[ spaced . 'table' ]  # comment
array = [ 1, # ]
  {deep.key = "}", list = [2,
    3]},
  "]",
]
date = 1979-05-27 07:32:00
[[many]]
first = 1
[[many]]
second = \'\'\'
[still.text]
\'\'\'
[many.below]
third = "a \\" b = c"
[spaced.other]
empty = {}
[spaced]
late = true
'''


def test_every_way_to_write_a_key() -> None:
    assert key_lines(EVERYTHING) == {
        ("plain",): 2,
        ("quoted # key",): 3,
        ("quoted # key", "inner"): 3,
        ("spaced",): 23,
        ("spaced", "table"): 6,
        ("spaced", "table", "array"): 7,
        ("spaced", "table", "array", 0): 7,
        ("spaced", "table", "array", 1): 8,
        ("spaced", "table", "array", 1, "deep"): 8,
        ("spaced", "table", "array", 1, "deep", "key"): 8,
        ("spaced", "table", "array", 1, "list"): 8,
        ("spaced", "table", "array", 1, "list", 0): 8,
        ("spaced", "table", "array", 1, "list", 1): 9,
        ("spaced", "table", "array", 2): 10,
        ("spaced", "table", "date"): 12,
        ("many",): 13,
        ("many", 0): 13,
        ("many", 0, "first"): 14,
        ("many", 1): 15,
        ("many", 1, "second"): 16,
        ("many", 1, "below"): 19,
        ("many", 1, "below", "third"): 20,
        ("spaced", "other"): 21,
        ("spaced", "other", "empty"): 22,
        ("spaced", "late"): 24,
    }


def test_windows_line_ends_count_once() -> None:
    assert key_lines("a = 1\r\n\r\nb = '''x\r\ny'''\r\nc = 2\r\n") == {("a",): 1, ("b",): 3, ("c",): 5}


def test_text_without_a_final_line_end() -> None:
    assert key_lines("a = 1\n[b]\nc = 'x'") == {("a",): 1, ("b",): 2, ("b", "c"): 3}


def paths(value: Any, path: tuple[str | int, ...] = ()) -> set[tuple[str | int, ...]]:
    """All paths of a parsed TOML text."""
    if isinstance(value, dict):
        inside = value.items()
    elif isinstance(value, list):
        inside = enumerate(value)
    else:
        return {path}
    return {path} | {deeper for key, item in inside for deeper in paths(item, (*path, key))}


text = st.text(st.characters(codec="utf-8"), max_size=8)
values = st.recursive(
    st.booleans() | st.integers(-99, 99) | st.floats(allow_nan=False) | text | st.datetimes() | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=10,
)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(text, values, max_size=4), st.booleans())
def test_finds_exactly_the_keys_that_tomllib_finds(document: dict[str, Any], long_strings: bool) -> None:
    written = tomli_w.dumps(document, multiline_strings=long_strings)
    assert set(key_lines(written)) == paths(tomllib.loads(written)) - {()}


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(text, values, max_size=4))
def test_each_key_stands_on_its_line(document: dict[str, Any]) -> None:
    written = tomli_w.dumps(document)
    rows = written.split("\n")
    for path, line in key_lines(written).items():
        if isinstance(key := path[-1], str):
            [spelt] = tomli_w.dumps({key: 0}).split("\n")[:1]
            assert spelt.removesuffix(" = 0") in rows[line - 1]
