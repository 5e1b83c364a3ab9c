"""Rows on models with an epsilon: the run that they start, its accuracy and its guarantee."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedprivacy.errors import RunError
from scenarios.reproductions.row import Place
from scenarios.reproductions.trained import ROWS, accuracy

GUARANTEE = {
    "observer": "participant", "epsilon": 3.0, "delta": 1e-5, "unit": "example", "adjacency": "add-remove",
    "sampling": "", "rounds": 600, "accountant": "PLD",
}  # fmt: skip


def with_result(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> list[Any]:
    runner = pytest.importorskip("scenarios.runner")
    document = {
        "status": "finished", "final": {"accuracy": 0.9864}, "path": "runs/x",
        "privacy": {"guarantees": [{**GUARANTEE, "observer": "server", "epsilon": None}, GUARANTEE]},
    }  # fmt: skip
    started: list[Any] = []

    def run(scenario: Any, out: Path, **named: Any) -> dict[str, Any]:
        started.append((scenario, out, named["command"]))
        return {**document, **changes}

    monkeypatch.setattr(runner, "run", run)
    return started


def some_images(folder: Path) -> Path:
    file = folder / "images.npz"
    images, labels = np.zeros((60, 28, 28), np.uint8), np.arange(60) % 10
    np.savez(file, x_train=images[:50], y_train=labels[:50], x_test=images[50:], y_test=labels[50:])
    return file


def test_the_scenario_runs_on_the_named_file_and_states_its_epsilon(monkeypatch, tmp_path: Path) -> None:
    started = with_result(monkeypatch)
    place = Place(tmp_path, some_images(tmp_path))
    (row,) = ROWS
    result = row.reproduce(place)
    ((scenario, out, command),) = started
    assert (scenario.name, out, command) == ("mnist-records", tmp_path, "fedprivacy run mnist-records")
    assert scenario.data.path == str(place.data)
    assert (scenario.privacy.epsilon, scenario.privacy.delta) == (3.0, 1e-5)
    assert (result["status"], result["run"]) == ("as expected", "runs/x")
    assert result["ours"] == pytest.approx(98.64)
    assert result["reason"] == "ours agrees with the published figure"
    assert (result["cost"]["epsilon"], result["cost"]["unit"]) == (3.0, "example")


@pytest.mark.parametrize("changes", [{"status": "failed"}, {"final": None}, {"final": {"accuracy": None}}])
def test_a_run_without_an_accuracy_is_an_error(monkeypatch, tmp_path: Path, changes: dict[str, Any]) -> None:
    with_result(monkeypatch, **changes)
    with pytest.raises(RunError, match="mnist-records: did not finish; runs/x has the reason"):
        accuracy(Place(tmp_path, some_images(tmp_path)))


def test_without_the_images_the_row_is_skipped(tmp_path: Path) -> None:
    result = ROWS[0].reproduce(Place(tmp_path, tmp_path / "none.npz"))
    assert result["status"] == "skipped"
    assert "none.npz. Bring the file, or name it: --data FILE" in result["reason"]
