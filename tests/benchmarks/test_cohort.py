"""The benchmark of cohorts, at a small size: what it measures and what it says. No times are judged here."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import typer

from benchmarks.cohort import SHARE, WORKS, Row, main, missed
from benchmarks.workload import Workload

TINY = Workload(4, 'name = "mlp", hidden = [3]', users=20, records=12, cohort=5)
FULL = Row("mlp", 159_010, 1000, "cpu", 2, 12, 0.1, 0.1, 0.1, 1e4, 1e11, 6e10, SHARE, "")


def test_the_works_are_those_that_are_named(tmp_path: Path) -> None:
    sizes = {}
    for name, work in WORKS.items():
        assert (work.users, work.records) == (1000, 20)
        few = Workload(work.features, work.model, users=4, records=2, cohort=2)
        sizes[name] = few.train(few.write_data(tmp_path), tmp_path, workers=1, rounds=1).parameters
    assert sizes == {"lr": 650, "mlp": 159_010, "cnn": 101_682}


def test_records_are_gaussian_and_labelled_by_a_linear_teacher(tmp_path: Path) -> None:
    work = Workload(4, 'name = "logistic"', users=100, records=50)
    with np.load(work.write_data(tmp_path)) as data:
        x, y = data["x_train"], data["y_train"]
    assert x.shape == (5000, 4)
    assert abs(x.mean()) < 5 / np.sqrt(x.size)  # a false alarm in fewer than one of a million seeds
    assert x.std() == pytest.approx(1, abs=5 / np.sqrt(2 * x.size))
    alike = y[(x @ x[0]) > 0.95 * np.linalg.norm(x, axis=1) * np.linalg.norm(x[0])]
    assert np.bincount(alike).max() > 0.5 * len(alike)  # near directions, one label


def test_a_run_is_that_of_every_scenario_and_evaluates_in_its_last_round_alone(tmp_path: Path) -> None:
    timing = TINY.train(TINY.write_data(tmp_path), tmp_path, workers=1, rounds=4)
    (file,) = tmp_path.glob("*/run.json")
    document = json.loads(file.read_text())
    assert document["status"] == "finished"
    assert document["scenario"]["sampling"] == {"name": "fixed", "cohort": 5}
    assert document["scenario"]["privacy"]["trust"] == "central"
    (rounds,) = (path.read_text().splitlines() for path in tmp_path.glob("*/events.jsonl"))
    assert [json.loads(line)["cohort"] for line in rounds] == [5] * 4
    assert all(json.loads(line)["accuracy"] is None for line in rounds[:-1])
    assert len(timing.rounds) == 4
    assert sum(timing.rounds) <= timing.total
    assert timing.after(1).rounds == timing.rounds[1:]


@pytest.mark.exhaustive
def test_it_measures_and_writes_every_row(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setitem(WORKS, "lr", Workload(4, 'name = "logistic"', users=20, records=12))
    monkeypatch.setitem(WORKS, "mlp", TINY)
    main(["lr", "mlp"], [2, 5], 2, 2, 1, 0.0, tmp_path / "figures.json")
    rows = json.loads((tmp_path / "figures.json").read_text())["rows"]
    assert [(row["work"], row["cohort"], row["rounds"]) for row in rows] == [
        ("lr", 2, 2),
        ("lr", 5, 2),
        ("mlp", 2, 2),
        ("mlp", 5, 2),
    ]
    assert all(row["fastest"] <= row["seconds"] <= row["slowest"] for row in rows)
    assert all(row["products"] > 1e6 for row in rows)
    last = rows[-1]
    assert last["parameters"] == 55
    assert last["clients_per_second"] == pytest.approx(5 / last["seconds"])
    assert last["reached"] == pytest.approx(6 * 55 * 12 * last["clients_per_second"])
    assert last["share"] == pytest.approx(last["reached"] / last["products"])
    assert rows[0]["share"] is None
    said = capsys.readouterr().out
    assert "clients a second" in said
    assert f"mlp: {last['way']}." in said.replace("\n", " ")


def test_a_share_below_the_aim_is_missed_with_the_largest_cohort_alone() -> None:
    less = Row("mlp", 159_010, 1000, "cpu", 2, 12, 0.1, 0.1, 0.1, 1e4, 1e11, 5e10, 0.5, "")
    small = Row("mlp", 159_010, 100, "cpu", 2, 12, 0.1, 0.1, 0.1, 1e4, 1e11, 5e10, 0.5, "")
    assert missed([FULL, small]) == []
    assert missed([less]) == [f"mlp, cohort 1000: 50%, to reach {SHARE:.0%}"]


def test_an_unknown_work_is_refused() -> None:
    with pytest.raises(typer.BadParameter, match="rnn: none of lr, mlp, cnn"):
        main(["rnn"])
