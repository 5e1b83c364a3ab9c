"""What an attack amounts to on one run."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from fedprivacy.attacks.game import Game, draw_game
from fedprivacy.attacks.metrics import known_areas, measure
from fedprivacy.attacks.one_run_epsilon import guesses_of
from fedprivacy.attacks.roc import auc, auc_within
from fedprivacy.attacks.signals import Probe
from fedprivacy.attacks.targets import FOLDS, KNOWN_FOLDS, Targets
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


def result_of(
    features: dict[str, np.ndarray], game: Game, delta: float = 1e-5, base: str = "cosine"
) -> AttackResult:
    x = torch.from_numpy(game.people.dataset.x[game.targets])
    probe = Probe(nn.Linear(1, 2), x, torch.zeros(len(x), dtype=torch.int64))
    return score_attack(
        features,
        game,
        probe,
        delta=delta,
        ascended=None,
        observed=[],
        accuracy=(0.5, 0.5),
        seconds=0.0,
        base=base,
    )


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("fold", range(FOLDS))
def test_poisoning_a_fold_changes_no_choice_and_no_threshold_of_its_own(game, fold: int) -> None:
    """Here it is poisoned twice: its memberships are exchanged, and another score is made to fit it."""
    clean = result_of(features_of(game), game)
    assert clean.score == ("loss",) * FOLDS
    there = game.folds == fold
    wrong = replace(game, members=game.members ^ there)
    poisoned = features_of(game)
    poisoned["cosine"] = np.where(there, 9.0 * wrong.members, poisoned["cosine"])
    found = result_of(poisoned, wrong)
    assert found.score[fold] == clean.score[fold]
    before, after = measure(clean.chosen), measure(found.chosen)
    assert after.thresholds[fold] == before.thresholds[fold]
    for rate, one in before.tpr_at_fpr.items():
        other = after.tpr_at_fpr[rate]
        assert (one is None) == (other is None)
        assert one is None or other is None or other.thresholds[fold] == one.thresholds[fold]
    poisoned = {**features_of(game), "cosine": np.where(there, 0.0, features_of(game)["cosine"])}
    plain = result_of({**features_of(game), "cosine": poisoned["cosine"]}, game).supervised
    wrongly = result_of(poisoned, wrong).supervised
    assert (plain.held_out[there] == wrongly.held_out[there]).all()
    assert (plain.held_out[~there] != wrongly.held_out[~there]).any()


def test_supervised_is_scored_by_models_that_did_not_see_the_target(game) -> None:
    """It sees that `rise-loss` tells most, which no score is chosen for; of noise it makes nothing."""
    found = result_of(features_of(game), game)
    learned, chosen = measure(found.supervised), measure(found.chosen)
    assert learned.auc.value > chosen.auc.value + 0.05
    assert learned.auc == found.scores["supervised"]
    stream = np.random.default_rng(5)
    noise = {f"noise-{n}": stream.normal(size=len(game.targets)) for n in range(40)}
    nothing = result_of({"cosine": stream.normal(size=len(game.targets)), **noise}, game)
    assert (
        max(area.value for area in known_areas(nothing.supervised)[:FOLDS]) < 0.62
    )  # fitted there, above .8
    assert measure(nothing.supervised).auc.value < 0.62


def test_a_fixed_score_has_the_area_of_all_pairs_and_a_chosen_one_that_within_folds(game) -> None:
    found, scores = result_of(features_of(game), game), features_of(game)["loss"]
    assert found.scores["loss"] == auc(scores[game.members], scores[~game.members])
    assert measure(found.chosen).auc == auc_within(
        [(d.members, d.nonmembers) for d in found.chosen.directions]
    )
    assert (found.chosen.held_out == scores).all()
    for kind, flags in (("members", game.members), ("nonmembers", ~game.members)):
        assert np.array_equal(found.scores_of[kind], scores[flags])


def test_a_histogram_is_of_the_folds_that_chose_the_same(game) -> None:
    found = result_of(features_of(game), game)
    mixed = replace(found, score=("loss", "cosine", "loss", "cosine", "loss"))
    alike = game.folds % 2 == 0
    assert np.array_equal(mixed.scores_of["members"], features_of(game)["loss"][alike & game.members])


def test_coins_are_guessed_for_targets_that_were_drawn_blind_alone(game) -> None:
    """In the single direction, with a number of guesses that suits the delta of the claim."""
    scores = features_of(game)["loss"]
    judged = Targets(scores, game.members, game.folds)[game.fair]
    for delta in (0.0, 0.01):
        expected = guesses_of(judged, delta)
        assert result_of(features_of(game), game, delta).guesses == expected
    assert expected.trials == (game.fair & (game.folds >= KNOWN_FOLDS)).sum()
    assert expected != guesses_of(judged, 0.0)


def test_added_targets_help_with_no_guess(game) -> None:
    """They would reveal how many of the fair ones are members: neither they nor fitted scores matter."""
    clean = result_of(features_of(game), game).guesses
    wrong = replace(game, members=game.members ^ ~game.fair)
    features = features_of(game)
    features["cosine"] = np.where(game.fair, features["cosine"], 9.0 * wrong.members)
    features = {"fitted": np.tile(9.0 * wrong.members, (FOLDS + 1, 1)), **features}
    assert result_of(features, wrong).guesses == clean
    alone = result_of({"fitted": features["fitted"]}, game)
    assert "fitted to memberships" in str(alone.guesses)


def test_scores_by_direction_are_taken_as_they_are_and_clustered_with_none(game) -> None:
    """What networks learned from memberships is no score that knows none."""
    stream = np.random.default_rng(6)
    learned = stream.normal(size=(FOLDS + 1, len(game.targets))) + 2.0 * game.members
    learned[0, 0] = np.nan
    found = result_of({**features_of(game), "network": learned}, game)
    assert found.lost == 1
    assert set(found.score) == {"network"}
    assert (found.chosen.scores == learned[:, 1:]).all()
    kept = replace(
        game, **{name: getattr(game, name)[1:] for name in ("targets", "members", "folds", "fair")}
    )
    fixed = {name: values[1:] for name, values in features_of(game).items()}
    assert found.scores["clustered"] == result_of(fixed, kept).scores["clustered"]
    alone = result_of({"network": learned}, game, base="network")
    assert "clustered" not in alone.scores


def test_what_was_not_reached_is_lost_and_nothing_reached_is_refused(game) -> None:
    features = features_of(game)
    features["loss"][:30] = np.nan
    found = result_of(features, game)
    assert found.lost == 30
    assert len(found.chosen.members) == len(found.supervised.members) == 190
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
    strange = replace(result, seconds=np.inf)
    again = from_json(json.loads(json.dumps(to_json({"one": result, "strange": strange}))))
    assert list(again) == ["one", "strange"]
    for name, before in (("one", result), ("strange", strange)):
        after = again[name]
        for targets, same in ((before.chosen, after.chosen), (before.supervised, after.supervised)):
            for array in ("scores", "members", "folds", "classes"):
                old, new = getattr(targets, array), getattr(same, array)
                assert (old.tobytes(), old.dtype, old.shape) == (new.tobytes(), new.dtype, new.shape)
            assert measure(same) == measure(targets)
        for field in (
            "score",
            "single_score",
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


@pytest.mark.parametrize(
    "damage", ["kind", "field", "number", "lengths", "infinite", "earlier", "whole", "none"]
)
def test_nothing_else_is_ever_made_of_what_is_read(game, damage: str) -> None:
    stored = json.loads(json.dumps(to_json({"one": result_of(features_of(game), game)})))
    chosen = stored["one"]["chosen"]
    if damage == "kind":
        stored["one"]["chosen"] = {"kind": "Path", "fields": {}}
    elif damage == "field":
        del stored["one"]["guesses"]
    elif damage == "number":
        chosen["folds"][1] = "1"
    elif damage == "lengths":
        chosen["scores"][1].pop()
    elif damage == "infinite":
        chosen["scores"][1][0] = float("inf")
    elif damage == "earlier":  # what earlier versions stored
        stored["one"]["measured"] = {"threshold": 0.5}
        del stored["one"]["chosen"]
    else:
        stored = {"whole": [stored], "none": None}[damage]
    with pytest.raises(InputError, match=r"not a stored result of attacks by this version.*Attack again"):
        from_json(stored)
