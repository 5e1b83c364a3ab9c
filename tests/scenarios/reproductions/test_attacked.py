"""Rows on attacks: the scenario that they replay, the command that repeats it, and the figure that they take."""

from __future__ import annotations

import shlex
import tomllib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from fedprivacy.errors import RunError
from scenarios.authoring.catalogue import find
from scenarios.reproductions import attacked
from scenarios.reproductions.attacked import ROWS, Game
from scenarios.reproductions.row import Place

GAME = Game("white-box-location30", ("references",), ('attacks.references.methods=["lira"]',))
GAMES = [
    *(value for value in vars(attacked).values() if isinstance(value, Game)),
    *(Game("white-box-federation", (each[0],), ("game.repeats=1",)) for each in attacked._ON_PICTURES),
]


def some_file(folder: Path) -> Path:
    """A file of data; scenarios check that it is there, and read it later."""
    file = folder / "data.npz"
    records, labels = np.zeros((5000, 446), np.float32), np.arange(5000) % 30
    np.savez(file, x_train=records[:4500], y_train=labels[:4500], x_test=records[4500:], y_test=labels[4500:])
    return file


def test_a_game_has_the_attacks_and_settings_of_its_row(tmp_path: Path) -> None:
    file = tmp_path / "a file's name.npz"
    some_file(tmp_path).rename(file)
    scenario = GAME.load(Place(tmp_path, file))
    assert scenario.data.path == str(file)
    assert list(scenario.attacks) == ["references"]
    assert scenario.attacks["references"].methods == ("lira",)
    assert GAME.data(Place(tmp_path, file)) == file
    assert GAME.data(Place(tmp_path)) == Path("../shared/data/location30.npz")


@pytest.mark.parametrize("game", GAMES, ids=lambda game: game.scenario)
def test_the_command_replays_the_same(game: Game) -> None:
    words = shlex.split(game.command)
    assert words[:3] == ["fedprivacy", "replay", game.scenario]
    given = list(zip(words[3::2], words[4::2], strict=True))
    assert [value for option, value in given if option == "--attack"] == list(game.attacks)
    assert [value for option, value in given if option == "--set"] == list(game.overrides)
    tables = tomllib.loads(find(game.scenario).read_text())
    assert set(game.attacks) <= set(tables["attacks"])


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_without_its_file_is_skipped_before_torch_is_imported(row, tmp_path: Path) -> None:
    result = row.reproduce(Place(tmp_path, tmp_path / "none.npz"))
    assert result["status"] == "skipped"
    assert "none.npz. Bring the file, or name it: --data FILE" in result["reason"]


def test_a_replay_that_did_not_finish_is_an_error(monkeypatch, tmp_path: Path) -> None:
    replay = pytest.importorskip("scenarios.attacks.replay")
    document = {"status": "failed", "path": "runs/x", "error": "operator's"}
    monkeypatch.setattr(replay, "replay", lambda *given, **named: document)
    with pytest.raises(RunError) as failed:
        GAME.replay(Place(tmp_path, some_file(tmp_path)))
    assert str(failed.value) == "white-box-location30: did not finish; runs/x has the reason."


def test_the_figure_of_lira_is_the_ratio_of_two_rates() -> None:
    def attack(name: str, rate: float) -> SimpleNamespace:
        return SimpleNamespace(name=name, tpr_at_fpr={"0.01": SimpleNamespace(value=rate)})

    result = SimpleNamespace(attacks=[attack("black-box", 0.0075), attack("references", 0.285)])
    assert attacked._advantage_of_lira(result) == pytest.approx(38)
    for loss in (attack("black-box", 0.0), SimpleNamespace(name="black-box", tpr_at_fpr={"0.01": None})):
        without = SimpleNamespace(attacks=[loss, attack("references", 0.285)])
        with pytest.raises(RunError, match="no ratio exists"):
            attacked._advantage_of_lira(without)
    with pytest.raises(RunError, match="no balanced accuracy"):
        attacked._balanced_accuracy(SimpleNamespace(attacks=[SimpleNamespace(balanced_accuracy=None)]))
