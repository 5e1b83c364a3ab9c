"""Each module lives in a room; what may stand beside the rooms is listed here. And walks through them are short."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("package", "loose"),
    [("fedprivacy", {"__init__", "__main__", "errors"}), ("scenarios", {"__init__", "runner"})],
)
def test_modules_live_in_rooms(package: str, loose: set[str]) -> None:
    assert {path.stem for path in (ROOT / package).glob("*.py")} == loose


@pytest.mark.parametrize("package", ["fedprivacy", "scenarios"])
def test_each_room_states_its_purpose(package: str) -> None:
    for room in (path for path in (ROOT / package).iterdir() if list(path.glob("*.py"))):
        assert (room / "__init__.py").read_text().startswith('"""'), room


@pytest.mark.parametrize("package", ["fedprivacy", "scenarios"])
def test_contributing_shows_each_room(package: str) -> None:
    picture = (ROOT / "CONTRIBUTING.md").read_text().split("## Rules")[0]
    for room in (path for path in (ROOT / package).iterdir() if list(path.glob("*.py"))):
        assert room.name in picture, room


# The most files of each walk in CONTRIBUTING: epsilon to noise, a target to its ROC, an update to the sum. The
# first has one more than its goal of 14: the clients make the plan in a file of theirs, `clients/fleet.py`, after
# the checks that are faster than calibration, and a scenario is read in three files, of which each also has
# another use.
LONGEST_WALKS = (14, 16, 12)


def walks() -> list[list[tuple[str, list[str]]]]:
    """The walks in CONTRIBUTING: of each its files, each with the functions named there."""
    text = (ROOT / "CONTRIBUTING.md").read_text().split("## Three walks")[1].split("## ")[0]
    steps = [(row.split("`: `")[0], row) for row in re.findall(r"^\d+\. .*$", text, re.MULTILINE)]
    paths: list[list[tuple[str, list[str]]]] = []
    for start, row in steps:
        number, file = start.split(". `")
        if number == "1":
            paths.append([])
        paths[-1].append((file, re.findall(r"`([^`]+)`", row)[1:]))
        assert len(paths[-1]) == int(number), row
    return paths


def defined(file: Path) -> set[str]:
    """The functions and classes of a module, those of a class after its name."""
    names = set()
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{item.name}" for item in node.body if isinstance(item, ast.FunctionDef)}
    return names


def test_walks_in_contributing_are_short_and_name_what_exists() -> None:
    assert len(walks()) == len(LONGEST_WALKS)
    for walk, longest in zip(walks(), LONGEST_WALKS, strict=True):
        files = [file for file, _ in walk]
        assert len(files) == len(set(files)) <= longest
        for file, names in walk:
            assert names, file
            assert set(names) <= defined(ROOT / file), (file, names)


def test_paths_in_texts_exist() -> None:
    pattern = re.compile(
        r"(?<![\w/.-])(?:\.\./)?((?:tests|fedprivacy|scenarios|clients|server|benchmarks)/[\w/-]+\.(?:py|toml|css|js))"
    )
    listed = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *(ROOT / "fedprivacy").rglob("*.py")]
    texts = [file for file in listed if file.name != "CHANGELOG.md" and "_build" not in file.parts]
    missing = {(file.name, path) for file in texts for path in pattern.findall(file.read_text())}
    assert not {(name, path) for name, path in missing if not (ROOT / path).exists()}
