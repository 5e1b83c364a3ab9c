"""Attribute inference through the clients' own code, beside imputation and its bound."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedprivacy.attacks import trials
from fedprivacy.errors import InputError
from fedprivacy.scenario.loading import loads
from fedprivacy.verification.verify import checked_document
from scenarios.attacks.game_setup import GameSetup
from scenarios.attacks.replay import replay
from scenarios.attacks.victim import AttackedClient

TEXT = """name = "attribute"
seed = 1
[data]
name = "npz"
path = "PATH"
partition = "iid"
clients = 20
public_fraction = 0.6
[model]
name = "logistic"
[training]
learning_rate = 0.5
batch_size = "all"
[server]
rounds = 3
[sampling]
name = "all"
[privacy]
trust = "local"
mechanism = "gaussian"
noise_multiplier = 4.0
delta = 1e-5
clipping_norm = 0.5
[federation]
chunk_size = 1
[game]
warm_up = 1
unprotected = true
[attacks.colour]
kind = "attribute"
column = "colour"
trials = 150
[attacks.from-the-record]
kind = "attribute"
column = "colour"
knows = "record"
batch = 1
trials = 150
"""


@pytest.fixture
def text(tmp_path: Path) -> str:
    stream = np.random.default_rng(3)
    codes = stream.integers(2, size=1400)
    follows = np.where(stream.random(1400) < 0.6, codes, stream.integers(2, size=1400))
    x = np.column_stack([follows, stream.random((1400, 3)), codes == 0, codes == 1]).astype(np.float32)
    y = (x[:, 1] + 0.5 * codes > 0.75).astype(np.int64)
    names = np.array(["size", "a", "b", "c", "colour=red", "colour=green"])
    np.savez(
        tmp_path / "d.npz",
        x_train=x[:1000],
        y_train=y[:1000],
        x_test=x[1000:],
        y_test=y[1000:],
        feature_names=names,
    )
    return TEXT.replace("PATH", str(tmp_path / "d.npz"))


def test_updates_without_noise_give_the_answer_away_and_noise_leaves_imputation(
    text: str, tmp_path: Path
) -> None:
    scenario: Any = loads(text)
    document = replay(scenario, tmp_path / "runs", workers=1)
    by = {(trial["name"], trial["trust"]): trial for trial in document["trials"]}
    informed, bare = by["colour", "local"], by["colour", "none"]
    assert bare["success"]["value"] == 1.0
    assert bare["figures"]["gain over imputation"]["low"] > 0.05
    assert bare["bound"]["success"] is None
    # Imputation alone knows the colour in 80 %.
    assert 0.7 < informed["chance"] < 0.9
    assert informed["chance"] == bare["chance"]
    assert informed["bound"]["success"] > informed["without"]["success"]["high"]
    assert informed["bound"]["provided"] == "if nobody imputes better"
    assert document["verdict"]["checks"] == 0  # better imputation would refute no guarantee
    assert informed["success"]["low"] <= informed["bound"]["success"]
    assert by["from-the-record", "none"]["figures"]["gain over imputation"]["low"] > 0.05
    assert checked_document(Path(document["path"]))["trials"] == document["trials"]
    folder = tmp_path / "changed"
    folder.mkdir()
    stored = json.loads((Path(document["path"]) / "run.json").read_text())
    for trial in stored["trials"]:
        trial.pop("without")
        trial["bound"] |= {"success": None}
        for run in trial["runs"]:
            run.pop("without")
    (folder / "run.json").write_text(json.dumps(stored))
    with pytest.raises(InputError, match=r"trials\[0\].without: is missing"):
        checked_document(folder)
    page = (Path(document["path"]) / "report.html").read_text()
    assert "imputation from the other answers alone is right" in page


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("name", ["colour", "from-the-record"])
def test_answers_are_guessed_alike_in_blocks(text: str, name: str, monkeypatch) -> None:
    scenario: Any = loads(text.replace("noise_multiplier = 4.0", "noise_multiplier = 0.01"))
    setup = GameSetup(scenario.variants[0])
    model = np.zeros(setup.fleet.parameters, np.float32)
    attacked = AttackedClient(setup, "server", (model,), 1, name)
    attack = scenario.attacks[name]
    whole = attack.run(attacked)
    monkeypatch.setattr(trials, "NUMBERS", 35 * len(model))
    assert attack.run(attacked) == whole
    assert whole.without is not None
    assert whole.successes > whole.without.successes


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('column = "colour"\ntrials', 'column = "size"\nbatch = 500\ntrials', "batch = 500: the victim has"),
        ('column = "colour"\ntrials', 'column = "shape"\ntrials', "no feature of the records"),
        ('mechanism = "gaussian"', 'mechanism = "privunit"', 'knows = "others"'),
        (
            "clipping_norm = 0.5",
            'clipping_norm = 0.5\nunit = "example"\nadjacency = "add-remove"',
            'Set knows = "record"',
        ),
    ],
)
def test_impossible_attacks_are_refused_with_the_key(
    text: str, tmp_path: Path, old: str, new: str, message: str
) -> None:
    changed = text.replace(old, new)
    if "privunit" in changed:
        changed = changed.replace("noise_multiplier = 4.0", "epsilon = 4.0")
    with pytest.raises(InputError) as error:
        replay(loads(changed), tmp_path / "runs", workers=1)  # type: ignore[arg-type]
    assert message in str(error.value)
    assert not (tmp_path / "runs").exists()
