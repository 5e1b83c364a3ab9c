"""The list of ready scenarios."""

from __future__ import annotations

import pytest

from scenarios.authoring.catalogue import GROUPS, describe, ready
from scenarios.cli.display_scenarios import show_scenario, show_scenarios


@pytest.mark.exhaustive(beyond=2)
@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_a_scenario_takes_one_line_and_its_name_is_never_cut(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    entries = [describe(name, file) for name, file in ready().items()]
    show_scenarios({"scenarios": entries})
    lines = capsys.readouterr().out.splitlines()
    listed = [line for line in lines if line.startswith("  ")]
    assert max(map(len, listed)) <= width
    assert sorted(line.split()[0] for line in listed) == sorted(ready())
    assert [line for line in lines if line in GROUPS] == list(GROUPS)


def test_no_two_scenarios_read_alike_nor_is_one_cut_in_a_terminal_of_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    entries = [describe(name, file) for name, file in ready().items()]
    show_scenarios({"scenarios": entries})
    shown = capsys.readouterr().out
    assert "…" not in shown
    purposes = [entry["purpose"].removesuffix(".") for entry in entries]
    assert all(f"  {purpose}\n" in shown for purpose in purposes)
    assert len(set(purposes)) == len(purposes)


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
