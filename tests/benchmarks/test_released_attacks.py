"""The benchmark of attacks on released models, at a small size: what it measures and what it says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import typer

from benchmarks import released_attacks
from benchmarks.released_attacks import Data, Results, attack, main, missed
from fedprivacy.attacks.released.battery import ATTACKS, NETWORKS

RUN = [name for name in ATTACKS if name not in NETWORKS]  # which take longest, and have tests of their own


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    stream = np.random.default_rng(0)
    prototypes, y = stream.integers(0, 2, (3, 20)), stream.integers(0, 3, 1300)
    x = (prototypes[y] ^ (stream.random((1300, 20)) < 0.3)).astype(np.uint8)
    file = tmp_path_factory.mktemp("data") / "bits.npz"
    np.savez(file, x_train=x[:1200], y_train=y[:1200], x_test=x[1200:], y_test=y[1200:])
    return file


@pytest.fixture(scope="module")
def found(path: Path) -> Results:
    return attack(Data.read(path), references=8, targets=2, epochs=2, seed=1, attacks=RUN)


def test_every_attack_has_its_row(found: Results) -> None:
    assert [row.attack for row in found.rows] == RUN
    for row in found.rows:
        assert 0 <= row.auc.low <= row.auc.value <= row.auc.high <= 1
        assert row.auc.covers == "training seeds too"
        assert 0.3 < row.balanced.value < 1
    assert 0.3 < found.test < 1
    assert 0.3 < found.train < 1
    assert found.exposure.models[0] + found.exposure.others[0] == 8


def test_what_is_not_reached_is_named(found: Results) -> None:
    rows = {row.attack: row for row in found.rows}

    def with_rows(**areas: tuple[float, float]) -> Results:
        changed = {
            name: replace(row, auc=replace(row.auc, value=0.8), tpr=replace(row.tpr, value=0.01))
            for name, row in rows.items()
        }
        for name, (area, tpr) in areas.items():
            row = changed[name]
            changed[name] = replace(row, auc=replace(row.auc, value=area), tpr=replace(row.tpr, value=tpr))
        return replace(found, rows=list(changed.values()), train=1.0)

    assert missed(with_rows(lira=(0.95, 0.05))) == []
    assert missed(with_rows(rmia=(0.95, 0.05))) == []
    assert missed(with_rows(lira=(0.95, 0.04))) == ["lira: TPR 0.040, to reach 5 x 0.010"]
    assert missed(with_rows(lira=(0.89, 0.05))) == ["lira: AUC 0.890, to reach 0.9"]
    less = missed(with_rows(lira=(0.95, 0.05), entropy=(0.96, 0.01)))
    assert less == ["lira: AUC not above that of entropy"]
    untrained = replace(with_rows(lira=(0.95, 0.05)), train=0.9)
    assert missed(untrained) == ["the targets know 90.0% of their records, to reach 100 %"]


def test_it_prints_and_writes_all_figures(
    path: Path,
    found: Results,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(released_attacks, "attack", lambda *_: found)
    with pytest.raises(typer.Exit):
        main(path, 8, 2, 2, 1, tmp_path / "figures.json")
    told = json.loads((tmp_path / "figures.json").read_text())
    assert [row["attack"] for row in told["rows"]] == RUN
    assert told["exposure"]["models"] == 8
    said = capsys.readouterr().out
    assert "lira-offline" in said
    assert "Less than aimed at" in said


def test_data_that_cannot_be_used_are_refused_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken.npz"
    broken.write_bytes(b"nothing")
    with pytest.raises(typer.Exit) as stopped:
        main(broken)
    assert stopped.value.exit_code == 2
    assert str(broken) in capsys.readouterr().out


def test_without_the_data_nothing_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(tmp_path / "nothing.npz")
    assert "nothing was measured" in capsys.readouterr().out
