"""Attack networks on made-up outputs: what each branch sees, and what teaches it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedprivacy.attacks.metrics import area as area_of
from fedprivacy.attacks.released.gradients import LastLayer
from fedprivacy.attacks.released.network import Fitting, Seen, network
from fedprivacy.attacks.released.shadow import fit_shadow
from fedprivacy.attacks.roc import auc
from fedprivacy.attacks.targets import FOLDS, Targets, draw_folds
from fedprivacy.errors import InputError
from fedprivacy.randomness.streams import Streams

RECORDS, CLASSES = 300, 3
QUICK = Fitting(epochs=12, batch_size=32, filters=8)
HASTY = Fitting(epochs=1)


def outputs(stream, shape: tuple[int, ...]):
    logits = 2 * stream.normal(size=(*shape, CLASSES))
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def game(seed: int = 0):
    stream = np.random.default_rng(seed)
    members, folds = stream.random(RECORDS) < 0.5, draw_folds(RECORDS, stream)
    y, logs = stream.integers(0, CLASSES, RECORDS), outputs(stream, (RECORDS,))
    factors = [torch.from_numpy(stream.normal(size=(RECORDS, width))).float() for width in (CLASSES, 5)]
    return logs, y, factors, members, folds


def area(scores, members, folds) -> float:
    return area_of(Targets(scores, members, folds)).value


@pytest.mark.exhaustive
@pytest.mark.slow
def test_only_the_gradient_branch_finds_what_stands_in_the_gradients_alone() -> None:
    """Members' gradients are shorter; an area of 300 has a deviation of .033."""
    logs, y, (backs, inputs), members, folds = game()
    shorter = torch.from_numpy(np.where(members, 0.1, 1.0)).float()[:, None]
    seen = Seen(logs, y, LastLayer(backs * shorter, inputs))
    found = area(network(seen, members, folds, Streams(1), QUICK), members, folds)
    blind = area(network(Seen(logs, y), members, folds, Streams(1), QUICK), members, folds)
    assert found > 0.85
    assert blind == pytest.approx(0.5, abs=5 * 0.034)


@pytest.mark.exhaustive
@pytest.mark.slow
def test_the_loss_means_something_else_for_each_label_and_the_network_learns_it() -> None:
    stream = np.random.default_rng(1)
    _, y, _, members, folds = game()
    sure = np.where(members == (y == 0), 3.0, 0.0) + stream.normal(size=RECORDS)
    logits = np.zeros((RECORDS, CLASSES))
    logits[np.arange(RECORDS), y] = sure
    logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    scores = network(Seen(logs, y), members, folds, Streams(1), QUICK)
    assert area(scores, members, folds) > 0.9
    assert area(sure, members, folds) < 0.5


def test_it_repeats_with_the_seed_and_draws_nothing_from_the_common_stream() -> None:
    logs, y, _, members, folds = game()
    torch.manual_seed(3)
    before = torch.random.get_rng_state()
    found = [network(Seen(logs, y), members, folds, Streams(seed), HASTY) for seed in (1, 1, 2)]
    assert torch.equal(before, torch.random.get_rng_state())
    assert (found[0] == found[1]).all()
    assert (found[0] != found[2]).any()


def test_a_network_is_fitted_once_for_each_set_of_known_folds() -> None:
    """Five of four folds, ten of three, and of the single direction one of two folds and two of one."""
    logs, y, _, members, folds = game()
    seen = Seen(logs, y)
    scores = network(seen, members, folds, Streams(1), HASTY)
    assert scores.shape == (FOLDS + 1, RECORDS)
    for first, second in ((0, 1), (2, 4)):
        # Without both folds one network serves both directions, for the targets of the other fold.
        poisoned = network(seen, members ^ np.isin(folds, (first, second)), folds, Streams(1), HASTY)
        assert (poisoned[first, folds == second] == scores[first, folds == second]).all()
        assert (poisoned[first, folds == first] != scores[first, folds == first]).any()
        alone = network(seen, members ^ (folds == first), folds, Streams(1), HASTY)
        assert (alone[first] == scores[first]).all()


def test_no_members_to_learn_from_are_refused() -> None:
    logs, y, _, members, folds = game()
    with pytest.raises(InputError, match="there are no members"):
        network(Seen(logs, y), members & (folds == 0), folds, Streams(1), QUICK)


def test_shadows_teach_a_network_for_each_class() -> None:
    """Members have a large second output in class 0 and a small one in class 1; class 2 tells nothing."""
    stream = np.random.default_rng(2)

    def told(shape):
        members = stream.random(shape) < 0.5
        logits = stream.normal(size=(*shape, CLASSES))
        logits[..., 1] += 3.0 * members * np.array([1, -1, 0])[y]
        return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True)), members

    y = stream.integers(0, CLASSES, RECORDS)
    logs, members = told((12, RECORDS))
    shadow = fit_shadow(logs, y, members, Streams(1))
    target, truth = told((RECORDS,))
    scores = shadow.scores(target, y)
    areas = [auc(scores[truth & (y == c)], scores[~truth & (y == c)]).value for c in range(CLASSES)]
    assert min(areas[:2]) > 0.9
    assert areas[2] == pytest.approx(0.5, abs=5 * 0.058)
    order = stream.permutation(RECORDS)
    assert np.allclose(shadow.scores(target[order], y[order]), scores[order], atol=1e-5)


def test_a_class_that_no_shadow_was_asked_of_scores_nothing() -> None:
    stream = np.random.default_rng(3)
    logs, members = outputs(stream, (2, 40)), stream.random((2, 40)) < 0.5
    shadow = fit_shadow(logs, np.arange(40) % 2, members, Streams(1))
    assert (shadow.scores(logs[0], np.full(40, 2)) == 0).all()
    with pytest.raises(InputError, match="must be"):
        fit_shadow(logs, np.arange(39), members, Streams(1))
