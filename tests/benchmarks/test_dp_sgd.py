"""The benchmark of DP-SGD, at a small size: that both sides do the same work. No times are judged here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import typer
from torch import nn

from benchmarks import dp_sgd
from benchmarks.dp_sgd import MODES, TARGETS, Row, main, missed, models, opacus_round, our_round
from fedprivacy.models.by_name import flat_weights

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize(
    ("name", "mode"),
    [
        *(("logistic", mode) for mode in MODES),
        *zip([name for name in TARGETS if name != "logistic"], MODES, strict=False),
    ],
)
def test_without_noise_both_change_the_weights_alike(
    monkeypatch: pytest.MonkeyPatch, name: str, mode: str
) -> None:
    monkeypatch.setattr(dp_sgd, "NOISE", 0.0)
    module, shape = models()[name]
    x, y = torch.randn(8, *shape, generator=torch.Generator().manual_seed(1)), torch.arange(8)
    start = flat_weights(module)
    theirs, changed = opacus_round(module, x, y, mode)
    moved = our_round(module, x, y)().numpy()
    theirs()
    assert abs(moved).max() > 0
    assert flat_weights(changed) - start == pytest.approx(moved, rel=1e-3, abs=1e-6)


def test_it_measures_and_says_what_is_missed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(dp_sgd, "TURN", 1e-9)
    monkeypatch.setitem(TARGETS, "logistic", 1e9)
    before = torch.get_num_threads()
    with pytest.raises(typer.Exit):
        main(["logistic"], [4], [1], ["hooks"], 0.0, tmp_path / "figures.json")
    assert torch.get_num_threads() == before
    assert "logistic, batch 4" in capsys.readouterr().out
    ours, theirs = json.loads((tmp_path / "figures.json").read_text())["rows"]
    assert theirs["ratio"] == pytest.approx(theirs["milliseconds"] / ours["milliseconds"])
    assert theirs["cpu_ratio"] == pytest.approx(theirs["cpu_milliseconds"] / ours["cpu_milliseconds"])


def test_a_target_needs_both_ratios() -> None:
    fine = Row("cnn", 64, 1, "hooks", 9.0, 1.1, 9.0, 1.1)
    assert not missed([fine])
    assert missed([Row("cnn", 64, 1, "hooks", 9.0, 1.1, 9.0, 0.9)])
    assert not missed([Row("cnn", 64, 1, "ghost", 9.0, 0.5, 9.0, 0.5)])  # beside the standard only


def test_the_models_are_those_that_are_named() -> None:
    sizes = {name: len(flat_weights(module)) for name, (module, _) in models().items()}
    assert sizes == {"logistic": 650, "mlp": 159010, "cnn": 101682}
    assert all(isinstance(module, nn.Sequential) for module, _ in models().values())
