"""The list of ready scenarios."""

from __future__ import annotations

import pytest

from scenarios.authoring.catalogue import GROUPS, describe, ready
from scenarios.cli.display_scenarios import show_scenario, show_scenarios


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("width", [40, 60, 80])
def test_each_scenario_is_listed_whole_in_its_group_at_any_width(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    entries = [describe(name, file) for name, file in ready().items()]
    show_scenarios({"scenarios": entries})
    shown = capsys.readouterr().out
    lines = shown.splitlines()
    assert "…" not in shown
    listed = [line.split()[0] for line in lines if line.startswith("  ")]
    assert sorted(listed) == sorted(ready())
    purposes = [entry["purpose"].removesuffix(".") for entry in entries]
    assert all(f"  {purpose}\n" in shown for purpose in purposes)
    assert len(set(purposes)) == len(purposes)
    assert [line for line in lines if line in GROUPS] == list(GROUPS)


def test_a_list_has_a_line_of_80_columns_for_each_scenario(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    show_scenarios({"scenarios": [describe(name, file) for name, file in ready().items()]})
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


def test_one_scenario_is_described_with_the_whole_path_of_missing_data(
    capsys: pytest.CaptureFixture[str],
) -> None:
    entry = describe("hospitals", ready()["hospitals"]) | {
        "data": "/a/" + "long/" * 40,
        "data_is_here": False,
    }
    show_scenario(entry)
    shown = capsys.readouterr().out
    assert entry["data"] + ", which is not here" in shown
    assert entry["command"] in shown
    assert entry["file"] in shown
