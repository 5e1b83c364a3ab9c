"""The benchmark of populations, at a small size: what it measures and what it says. No times are judged here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.population import main


def test_every_part_is_measured_for_each_population(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([20_000, 200_000], tmp_path / "figures.json")
    rows = json.loads((tmp_path / "figures.json").read_text())["rows"]
    held = {(row["what"], row["population"]): row["held"] for row in rows}
    parts = {what for what, _ in held}
    assert len(held) == 2 * len(parts) == 10
    assert all(row["nanoseconds"] > 0 for row in rows)
    # Two int64 a client; 2 int32 of budgets and one of the ledger.
    for part, least in {"index of records, one a client": 16, "checkpoint of budgets (local)": 12}.items():
        assert all(least <= held[part, population] < 3 * least for population in (20_000, 200_000))
    # A float64 and a bool for each coin, in blocks that do not grow with the population.
    assert held["Poisson cohort", 200_000] < 9 <= held["Poisson cohort", 20_000] < 27
    said = " ".join(capsys.readouterr().out.split())
    assert "asked or not" in said
    assert "200,000" in said
