"""Each module lives in a room; what may stand beside the rooms is listed here."""

from __future__ import annotations

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
