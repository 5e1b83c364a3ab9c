"""The benchmark of faults: a few of them for real, and the page that has them all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.fault_rows import table
from benchmarks.faults import BEGIN, END, ENGINES, FAULTS, LYING, merged, rows
from fedprivacy.messages.faults import KINDS

PAGE = Path(__file__).parents[2] / "docs" / "faults.md"
MISSING = "0.975 of the whole; not unbiased"
SHARP = "central: the same; local: outsider 1.18 becomes 12.1"


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("name", "engine", "expected"),
    [
        (
            "a client kills its process each time",
            "embedded, 2 workers",
            ("`worker_died` 1, `retried` 1 a round", "yes", MISSING, "the same"),
        ),
        (
            "a client kills its process once",
            "embedded, 1 worker",
            ("nothing", "no: the run died with it, `--resume` completed it", "unbiased", "the same"),
        ),
        (
            "a node's sum is NaN",
            LYING,
            ("`reply_not_finite` 20 a round", "yes", "0.5 of the whole; not unbiased", SHARP),
        ),
    ],
)
def test_a_fault_is_seen_as_the_page_says(name: str, engine: str, expected: tuple[str, ...]) -> None:
    [fault] = [one for one in FAULTS if one.name == name]
    [row] = rows([fault], [engine])
    assert row.cells == (name, engine, *expected)
    assert table([row]).splitlines()[-1] in PAGE.read_text()


def test_the_page_has_a_row_for_each_fault() -> None:
    page = PAGE.read_text()
    said = page[page.index(BEGIN) : page.index(END)]
    found = {
        tuple(line.split(" | ")[:2])
        for line in said.splitlines()
        if line.startswith("| a ") or "drop" in line
    }
    for fault in FAULTS:
        for engine in filter(fault.runs_on, ENGINES):
            assert (f"| {fault.name}", engine) in found, (fault.name, engine)
    assert "WRONG" not in said


def test_rows_of_engines_that_were_not_played_stay() -> None:
    page = PAGE.read_text()
    said = page[page.index(BEGIN) + len(BEGIN) : page.index(END)].strip()
    head, line, *rest = said.splitlines()
    [old] = [row for row in rest if row.startswith("| a client raises an error | embedded, 2 workers |")]
    new = old.replace("`raised` 1", "`raised` 7")
    assert merged(said, "\n".join([head, line, new])) == said.replace(old, new)


def test_the_page_explains_every_kind() -> None:
    assert set(KINDS) <= set(re.findall(r"^\| `(\w+)`", PAGE.read_text(), flags=re.M))
