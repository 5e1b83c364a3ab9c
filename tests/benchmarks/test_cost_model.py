"""The cost model, at a small size: what is changed, the law, the picture. No times are judged here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer

from benchmarks import cost_model
from benchmarks.cohort import WORKS
from benchmarks.cost_model import AXES, Law, Row, laws, main, points, show, write
from benchmarks.workload import Workload

MEASURED = [
    Row(axis, work, value, 0.01 + 1e-4 * value, 3e8 + 1e4 * value, 2e8)
    for axis in AXES
    for work in ("lr", "mlp")
    for value in (10, 100, 1000)
]


def test_a_law_is_found_again_and_has_no_part_below_zero() -> None:
    x = [10.0, 100.0, 1000.0]
    found = Law.of(x, [0.01 + 2e-4 * each for each in x])
    assert (found.fixed, found.each) == pytest.approx((0.01, 2e-4))
    assert found.at(500) == pytest.approx(0.11)
    falling = Law.of(x, [3.0, 2.0, 1.0])
    assert falling.each == 0.0
    assert 1.0 < falling.fixed < 2.0  # relative errors weigh small costs more


def test_each_axis_covers_two_orders_of_magnitude_and_changes_one_thing() -> None:
    assert all(values[-1] >= 100 * values[0] for values in AXES.values())
    base = Workload(784, WORKS["mlp"].model, users=200, cohort=100)
    changed = {axis: [work for _, _, work in points(axis, ["mlp"])] for axis in AXES}
    assert [work.cohort for work in changed["clients"]] == list(AXES["clients"])
    assert all(work.users == 1000 and work.records == 20 for work in changed["clients"])
    assert [work.records for work in changed["records"]] == list(AXES["records"])
    assert changed["rounds"] == [base] * len(AXES["rounds"])
    assert changed["parameters"][-1] == base
    assert [name for name, _, _ in points("parameters", ["lr", "mlp"])] == ["mlp"] * len(AXES["parameters"])


@pytest.mark.exhaustive
def test_laws_and_picture_are_of_what_was_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    time, memory = laws(MEASURED)["records", "mlp"]
    assert (time.fixed, time.each, memory.fixed, memory.each) == pytest.approx((0.01, 1e-4, 3e8, 1e4))
    write(MEASURED, tmp_path)
    document = json.loads((tmp_path / "cost_model.json").read_text())
    assert len(document["rows"]) == len(MEASURED)
    assert document["laws"][0] == {
        "axis": "clients",
        "work": "lr",
        "seconds": {"fixed": pytest.approx(0.01), "each": pytest.approx(1e-4)},
        "bytes": {"fixed": pytest.approx(3e8), "each": pytest.approx(1e4)},
    }
    picture = (tmp_path / "cost_model.svg").read_text()
    assert all(words in picture for words in ("clients of a round", "seconds of the run", "MB at most"))
    assert (tmp_path / "cost_model.png").stat().st_size > 20_000
    show(MEASURED)
    assert "clients, lr: 10 ms and 100 us a client; 300 MB and 10 kB a client." in capsys.readouterr().out


@pytest.mark.exhaustive
@pytest.mark.slow
def test_each_run_is_measured_in_a_process_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(WORKS, "mlp", Workload(4, 'name = "mlp", hidden = [3]', records=12))
    monkeypatch.setitem(AXES, "parameters", (3,))
    monkeypatch.setattr(cost_model, "USERS", 20)
    monkeypatch.setattr(cost_model, "COHORT", 10)
    main(tmp_path, ["parameters"], ["mlp"], 1, 1, 1)
    rows = json.loads((tmp_path / "cost_model.json").read_text())["rows"]
    assert [row["value"] for row in rows] == [55]
    assert all(0 < row["seconds"] < 60 for row in rows)
    assert all(5e7 < row["peak"] < 1e10 for row in rows)


def test_an_unknown_axis_is_refused(tmp_path: Path) -> None:
    with pytest.raises(typer.BadParameter, match="epochs: none of clients"):
        main(tmp_path, ["epochs"])
