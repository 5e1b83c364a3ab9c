"""Edits of stored replays: each is refused, or changes nothing that is printed as a guarantee."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from edits import a_tenth_or_all, hold

from fedprivacy.errors import InputError
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.verification.verify import checked_document
from scenarios.attacks.replay import replay

GAME = """
name = "who-was-in"
seed = 3
[data]
name = "purchase-like"
partition = "iid"
clients = 3
records = 200
test_records = 100
public_fraction = 0.4
features = 20
classes = 2
[model]
name = "logistic"
[training]
batch_size = 16
learning_rate = 0.1
[server]
rounds = 3
[sampling]
name = "all"
[federation]
chunk_size = 1
[game]
warm_up = 1
members = 20
nonmembers = 30
[attacks.listening]
kind = "passive"
rounds = 2
[privacy]
trust = "local"
epsilon = 4.0
delta = 1e-5
clipping_norm = 1.0
"""
ARMS = '[arms.noisy]\n[arms.bare]\nprivacy = { trust = "none" }\n'
# Figures of attacks and models, and the counts that they were made of.
MEASURED = (
    r"attacks\[\d+\]\.(observed|rounds_refused|targets_lost|members|nonmembers|fitted|auc|advantage"
    r"|balanced_accuracy|tpr_at_fpr|points|per_class|thresholds|roc|score|single_score|scores|histograms"
    r"|supervised|story|blind|model_accuracy|seconds|empirical_epsilon|epsilon_lower_bound)\b.*"
    r"|arms\[\d+\]\.(accuracy|accuracies|rounds_played|strongest)\b.*"
)
SETTINGS = {"settings": "data, training and game: what decides privacy is in the guarantees"}


def played(text: str, out: Path, stored: Path | None = None) -> Path:
    document = replay(AttackScenario.from_text(text), out, workers=1, stored=stored, report=False)
    return Path(document["path"])


# Figures that nothing is computed from: their many numbers are left as they are.
FIGURES = r"(?!attacks\[0\]\.(histograms|roc|scores|supervised|per_class)\b).*"
# An arm has its own plan, ledger, bounds and guarantees; its attacks are those of a replay without arms.
OF_ARMS = (
    r"(arms|plans|ledgers)(\[0\]((?!\.accurac).*))?|verdict.*"
    r"|scenario\.arms.*|attacks\[1\]\.(arm|epsilon|ledger|trust|mechanism)"
)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A replay of which every edit is held; of the others those of what they share with it once."""
    return played(GAME, tmp_path_factory.mktemp("alone"))


def moved(attack: dict[str, Any], **counts: int) -> None:
    attack["points"]["balanced"][0].update(counts)


COUNTS: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "hits": (lambda d: moved(d["attacks"][0], hits=99), r"attacks\[0\].points.*more hits than members"),
    "alarms": (lambda d: moved(d["attacks"][0], alarms=99), "more alarms than nonmembers"),
    "members": (lambda d: moved(d["attacks"][0], members=21), "counts more targets than .* 30 at most"),
    "others": (lambda d: moved(d["attacks"][0], nonmembers=30), "counts more targets than"),
    "unlike": (
        lambda d: moved(d["attacks"][0], members=1, hits=0),
        "counts other targets than another point",
    ),
    "name": (
        lambda d: d["attacks"][0]["points"].update({"0.3": d["attacks"][0]["points"]["balanced"]}),
        r"points\.0\.3: is no operating point",
    ),
    "none": (lambda d: d["attacks"][0].update(points={}), "points: has no balanced"),
    "learned": (lambda d: d["attacks"][0]["supervised"].pop("points"), "supervised.points: are missing"),
    "score": (lambda d: d["attacks"][0]["score"].pop(), "score: has 4 entries, its scenario implies 5"),
    "single": (
        lambda d: d["attacks"][0].update(single_score=[]),
        "single_score: has 0 entries, its scenario implies 1",
    ),
    "trials": (
        lambda d: d["attacks"][0]["empirical_epsilon"]["guesses"].update(trials=21),
        "guesses.trials: has 21, its scenario and its plans imply at most 20",
    ),
    "folds": (
        lambda d: d["arms"][0]["strongest"]["server"]["attacks"][0].update(folds=9),
        r"arms\[0\]\.strongest\.server\.attacks: is of .* folds in place of 5",
    ),
    "stranger": (
        lambda d: d["arms"][0]["strongest"]["server"]["attacks"][0].update(name="shouting"),
        "names an attack that its scenario lacks",
    ),
    "seat": (
        lambda d: d["arms"][0]["strongest"].update(outsider=d["arms"][0]["strongest"]["server"]),
        "names an attack that this seat cannot run",
    ),
}


@pytest.fixture(scope="module")
def armed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return played(GAME + ARMS, tmp_path_factory.mktemp("armed"))


@pytest.mark.parametrize("edit", COUNTS)
def test_counts_that_no_attack_of_the_scenario_has_are_refused(armed: Path, edit: str) -> None:
    change, message = COUNTS[edit]
    file, whole = armed / "run.json", (armed / "run.json").read_text()
    document = json.loads(whole)
    change(document)
    try:
        file.write_text(json.dumps(document))
        with pytest.raises(InputError, match=message):
            checked_document(armed)
    finally:
        file.write_text(whole)
    assert checked_document(armed)["verdict"] == json.loads(whole)["verdict"]


@a_tenth_or_all
@pytest.mark.slow
def test_an_edited_replay_is_refused_or_guarantees_the_same(every: int, alone: Path) -> None:
    assert hold(alone, results=SETTINGS, measured=MEASURED, only=FIGURES, every=every).refused > 500 // every


@pytest.mark.exhaustive
@pytest.mark.slow
def test_an_edited_replay_with_arms_is_refused_or_guarantees_the_same(alone: Path, armed: Path) -> None:
    assert hold(armed, results=SETTINGS, measured=MEASURED, only=OF_ARMS, like=alone).refused > 300


@a_tenth_or_all
def test_an_edited_attack_on_a_stored_run_is_refused_or_guarantees_the_same(
    every: int, alone: Path, tmp_path: Path
) -> None:
    folder = played(GAME, tmp_path, stored=alone)
    only = r"(plans|verdict|attacks\[0\]\.(epsilon|seat|trust|ledger)).*"
    assert (
        hold(folder, results=SETTINGS, measured=MEASURED, only=only, like=alone, every=every).refused
        > 35 // every
    )
