"""Calls that send their results to a tracker."""

from __future__ import annotations

from pathlib import Path

import pytest

import fedprivacy as fp

pytest.importorskip("tensorboard")


def scalars(folder: Path) -> list[str]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    [events] = (folder / "tensorboard").iterdir()
    return EventAccumulator(str(events)).Reload().Tags()["scalars"]


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore")
def test_a_run_and_a_comparison_are_logged(tmp_path: Path) -> None:
    fp.run("digits", rounds=2, out=tmp_path / "a", progress=False, track="tensorboard")
    assert {"accuracy", "loss"} < set(scalars(tmp_path / "a"))
    few = {"trusts": ["none", "central"], "epsilons": [2], "seeds": [1], "rounds": 1}
    fp.compare("digits", **few, out=tmp_path / "b", progress=False, workers=1, track="tensorboard")
    assert {"accuracy/none", "accuracy/central/2.0"} < set(scalars(tmp_path / "b"))


@pytest.mark.filterwarnings("ignore")
def test_a_stored_result_is_logged(tmp_path: Path) -> None:
    result = fp.run("digits", rounds=2, out=tmp_path, progress=False)
    fp.track(fp.read(result.path), "tensorboard")
    assert {"accuracy", "loss"} < set(scalars(tmp_path))
    assert not [name for name in scalars(tmp_path) if name.startswith("operator/")]


def test_an_unknown_tracker_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(fp.InputError, match="no such tracker"):
        fp.run("digits", out=tmp_path / "runs", track="paper")
    assert not list((tmp_path).glob("runs/*"))
