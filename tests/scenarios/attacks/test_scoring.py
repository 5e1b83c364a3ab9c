"""What an attack amounts to on one run."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from fedprivacy.attacks.game import Game, draw_game
from fedprivacy.attacks.one_run_epsilon import guesses_of
from fedprivacy.attacks.signals import Probe
from fedprivacy.attacks.targets import Targets
from fedprivacy.data.datasets import Dataset
from fedprivacy.errors import InputError
from fedprivacy.population.clients import Population
from fedprivacy.population.partition import iid
from scenarios.attacks.scoring import AttackResult, from_json, histogram, score_attack, to_json


@pytest.fixture
def game() -> Game:
    x = np.arange(600, dtype=np.float32)[:, None]
    data = Dataset(x, np.zeros(600, dtype=np.int64), x[:1], np.zeros(1, np.int64), 2)
    return draw_game(Population(data, iid(600, 2, public_fraction=0.4, seed=3)), 0, 100, 120, seed=4)


def features_of(game: Game, seed: int = 0) -> dict[str, np.ndarray]:
    """Noise, one that knows the memberships well, and one that knows them better over the rounds."""
    stream = np.random.default_rng(seed)
    noise = stream.normal(size=(4, len(game.targets)))
    return {
        "cosine": noise[0],
        "loss": noise[1] + 1.5 * game.members,
        "gradient": noise[2],
        "rise-loss": noise[3] + 4.0 * game.members,
    }


def result_of(features: dict[str, np.ndarray], game: Game, delta: float = 1e-5) -> AttackResult:
    x = torch.from_numpy(game.people.dataset.x[game.targets])
    probe = Probe(nn.Linear(1, 2), x, torch.zeros(len(x), dtype=torch.int64))
    return score_attack(
        features, game, probe, delta=delta, ascended=None, observed=[], accuracy=(0.5, 0.5), seconds=0.0
    )


def test_poisoning_the_evaluation_half_changes_no_choice_and_no_threshold(game) -> None:
    """Here it is poisoned twice: its memberships are exchanged, and another score is made to fit it."""
    clean = result_of(features_of(game), game)
    assert clean.score == "loss"
    evaluated = ~game.calibration
    wrong = replace(game, members=game.members ^ evaluated)
    poisoned = features_of(game)
    poisoned["cosine"] = np.where(evaluated, 9.0 * wrong.members, poisoned["cosine"])
    found = result_of(poisoned, wrong)
    assert found.score == clean.score
    assert found.measured.threshold == clean.measured.threshold
    for rate, one in clean.measured.tpr_at_fpr.items():
        other = found.measured.tpr_at_fpr[rate]
        assert (one is None) == (other is None)
        assert one is None or other is None or other.threshold == one.threshold
    assert isinstance(found.guesses, type(clean.guesses))
    assert found.guesses.made == clean.guesses.made


def test_supervised_has_a_calibration_auc_by_models_that_did_not_see_the_target(game) -> None:
    """It sees that `rise-loss` tells most, which no score is chosen for; of noise it makes nothing."""
    found = result_of(features_of(game), game)
    assert found.supervised is not None
    assert found.supervised_calibration_auc > found.calibration_auc + 0.05
    assert found.supervised.auc.value > found.measured.auc.value + 0.05
    assert found.supervised.auc.value == found.scores["supervised"].value
    wrong = replace(game, members=game.members ^ ~game.calibration)
    assert result_of(features_of(game), wrong).supervised_calibration_auc == found.supervised_calibration_auc
    stream = np.random.default_rng(5)
    noise = {f"noise-{n}": stream.normal(size=len(game.targets)) for n in range(40)}
    nothing = result_of({"cosine": stream.normal(size=len(game.targets)), **noise}, game)
    assert nothing.supervised_calibration_auc < 0.62  # fitted on the same targets, above .8
    assert nothing.supervised_calibration_auc < nothing.calibration_auc


def test_coins_are_guessed_for_targets_that_were_drawn_blind_alone(game) -> None:
    """On the evaluation half, with a number of guesses that suits the delta of the claim."""
    scores = features_of(game)["loss"]
    for delta in (0.0, 0.01):
        fair = game.fair
        expected = guesses_of(Targets(scores[fair], game.members[fair], game.calibration[fair]), delta)
        assert result_of(features_of(game), game, delta).guesses == expected
    assert expected.trials == (game.fair & ~game.calibration).sum()
    assert expected != guesses_of(Targets(scores[fair], game.members[fair], game.calibration[fair]), 0.0)


def test_what_was_not_reached_is_lost_and_nothing_reached_is_refused(game) -> None:
    features = features_of(game)
    features["loss"][:30] = np.nan
    found = result_of(features, game)
    assert found.lost == 30
    assert found.measured.members + found.measured.nonmembers == 190
    with pytest.raises(InputError, match="the victim refused every round"):
        result_of({}, game)


def test_a_histogram_counts_everybody_once() -> None:
    scores = np.concatenate([np.linspace(0, 1, 500), [1e9, -1e9]])
    told = histogram({"members": scores[::2], "nonmembers": scores[1::2]})
    assert (sum(told["members"]), sum(told["nonmembers"])) == (251, 251)
    assert len(told["edges"]) == len(told["members"]) + 1
    assert max(told["edges"]) < 2
    flat = histogram({"members": np.zeros(2), "nonmembers": np.zeros(2)})
    assert sum(flat["members"]) == 2
    wide = histogram({"members": np.zeros(2), "nonmembers": np.ones(3)}, np.linspace(-9, 9, 50))
    assert wide["edges"][0] < -8
    assert (sum(wide["members"]), sum(wide["nonmembers"])) == (2, 3)


def test_results_are_stored_and_read_bit_for_bit(game) -> None:
    features = features_of(game)
    features["loss"][:3] = np.nan
    result = result_of(features, game)
    strange = replace(result, scores_of={"members": np.array([0.1, np.nan, -np.inf, -0.0])}, seconds=np.inf)
    again = from_json(json.loads(json.dumps(to_json({"one": result, "strange": strange}))))
    assert list(again) == ["one", "strange"]
    for name, before in (("one", result), ("strange", strange)):
        after = again[name]
        arrays = ("thresholds", "hits", "alarms")
        for roc, same in (
            (before.measured.roc, after.measured.roc),
            (before.supervised.roc, after.supervised.roc),
        ):
            assert all(getattr(roc, key).tobytes() == getattr(same, key).tobytes() for key in arrays)
            assert all(getattr(roc, key).dtype == getattr(same, key).dtype for key in arrays)
            assert roc.auc == same.auc
        assert {key: values.tobytes() for key, values in after.scores_of.items()} == {
            key: values.tobytes() for key, values in before.scores_of.items()
        }
        assert after.measured.per_class == before.measured.per_class
        assert after.measured.tpr_at_fpr == before.measured.tpr_at_fpr
        for field in (
            "score",
            "scores",
            "blind",
            "guesses",
            "lost",
            "accuracy",
            "seconds",
            "observed",
            "story",
        ):
            assert getattr(after, field) == getattr(before, field)


@pytest.mark.parametrize("damage", ["kind", "field", "number", "lengths", "whole", "none"])
def test_nothing_else_is_ever_made_of_what_is_read(game, damage: str) -> None:
    stored = json.loads(json.dumps(to_json({"one": result_of(features_of(game), game)})))
    roc = stored["one"]["measured"]["roc"]
    if damage == "kind":
        stored["one"]["measured"] = {"kind": "Path", "fields": {}}
    elif damage == "field":
        del stored["one"]["guesses"]
    elif damage == "number":
        roc["hits"][1] = "1"
    elif damage == "lengths":
        roc["hits"].pop()
    else:
        stored = {"whole": [stored], "none": None}[damage]
    with pytest.raises(InputError, match="not a stored result"):
        from_json(stored)
