"""docs/text.md and the ready scenario: every `--set` line that they show can be run."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from fedprivacy.scenario import Scenario

ROOT = Path(__file__).parents[2]
FILES = (ROOT / "scenarios" / "next-character.toml", ROOT / "docs" / "text.md")
LINES = sorted(
    {
        line.strip().removeprefix("#").strip()
        for file in FILES
        for line in file.read_text().splitlines()
        if "fedprivacy run next-character" in line
    }
)


def test_both_show_a_file_of_ones_own_and_no_privacy() -> None:
    assert any("data.path=plays.txt" in line for line in LINES)
    assert any("privacy.trust=none" in line for line in LINES)


@pytest.mark.parametrize("line", LINES)
def test_each_line_is_a_valid_scenario(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    speech = "Once upon a time there was more to be told.\n" * 20
    (tmp_path / "plays.txt").write_text("\n".join(f"NAME {n}:\n{speech}" for n in range(30)))
    words = shlex.split(line, comments=True)[3:]
    assert set(words[::2]) <= {"--set"}
    overrides = words[1::2]
    scenario = Scenario.from_text(FILES[0].read_text(), overrides=overrides)
    keys = dict(each.split("=", 1) for each in overrides)
    assert scenario.data.population == (30 if "data.path" in keys else int(keys.get("data.roles", 100)))
    if "data.path" in keys:
        assert scenario.data.secrets == 0  # no made-up codes in a text of one's own
