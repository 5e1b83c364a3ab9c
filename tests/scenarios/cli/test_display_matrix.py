"""Compact tables of comparisons."""

from __future__ import annotations

import pytest

from fedprivacy.documents.cell import Figures
from fedprivacy.io.console import Terminal
from scenarios.cli.display_matrix import Line, show_matrix, with_interval


def test_many_epsilons_are_split_over_tables_that_fit(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    epsilons = [0.25 * 2**power for power in range(9)]
    lines = [
        Line(name, {epsilon: f"{epsilon:.2f} ±0.1" for epsilon in epsilons}, heading)
        for heading in ("first query", "second query")
        for name in ("central", "local, a-mechanism-of-a-very-long-name")
    ]
    show_matrix(lines, Terminal())
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    for epsilon in epsilons:
        assert shown.count(f" {epsilon:.2f} ±0.1") == 4
    assert shown.index("first query") < shown.index("central") < shown.index("second query")


def test_a_cell_missing_at_an_epsilon_stays_empty(capsys: pytest.CaptureFixture[str]) -> None:
    show_matrix([Line("central", {1.0: "80.0", 2.0: "90.0"}), Line("local", {2.0: "70.0"})], Terminal())
    central, local = capsys.readouterr().out.splitlines()[-2:]
    assert central.split() == ["central", "80.0", "90.0"]
    assert local.split() == ["local", "70.0"]
    assert local.index("70.0") == central.index("90.0")


@pytest.mark.parametrize(
    ("figures", "text"),
    [
        (Figures(mean=0.951, low=0.947, high=0.955), "95.1 ±0.4"),
        (Figures(mean=0.951, low=0.931, high=0.955), "95.1 (93.1 to 95.5)"),
        (Figures(mean=0.951), "95.1"),
        (Figures(), "-"),
    ],
)
def test_a_figure_has_its_interval(figures: Figures, text: str) -> None:
    assert with_interval(figures, scale=100) == text
