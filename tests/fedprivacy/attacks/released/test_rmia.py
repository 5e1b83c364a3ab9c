"""RMIA: against a loop over all pairs of probabilities."""

from __future__ import annotations

import numpy as np
import pytest

from fedprivacy.attacks.released.references import draw_halves
from fedprivacy.attacks.released.rmia import rmia
from fedprivacy.attacks.roc import auc
from fedprivacy.errors import InputError


def signals(seed: int = 0, models: int = 8, records: int = 30, population: int = 25, shift: float = 1.5):
    stream = np.random.default_rng(seed)
    members = draw_halves(models, records, stream)
    hard, others = 2 * stream.normal(size=records), 2 * stream.normal(size=population)
    truth = stream.random(records) < 0.5
    target = hard + shift * truth + stream.normal(size=records)
    references = hard + shift * members + stream.normal(size=(models, records))
    known = others + stream.normal(size=population), others + stream.normal(size=(models, population))
    return target, references, members, *known, truth


def by_pairs(target, references, members, population, others, *, gamma, offline, a):
    """The definition, pair by pair."""

    def p(phi):
        return 1 / (1 + np.exp(-phi))

    def mean(values):
        return sum(values) / len(values)

    found = []
    for x in range(len(target)):
        models = range(len(references))
        out = mean([p(references[k, x]) for k in models if not members[k, x]])
        inside = mean([p(references[k, x]) for k in models if members[k, x]])
        base = (1 + a) / 2 * out + (1 - a) / 2 if offline else (out + inside) / 2
        wins = 0
        for z in range(len(population)):
            base_z = (1 + a) / 2 * mean([p(others[k, z]) for k in models]) + (1 - a) / 2
            wins += (p(target[x]) / base) / (p(population[z]) / base_z) >= gamma
        found.append(wins / len(population))
    return np.array(found)


@pytest.mark.parametrize("offline", [False, True])
@pytest.mark.parametrize(("gamma", "a"), [(1.0, 0.3), (2.0, 0.0), (0.7, 1.0)])
def test_it_is_the_share_of_pairs_that_a_record_wins(offline: bool, gamma: float, a: float) -> None:
    *seen, _ = signals()
    options = {"gamma": gamma, "offline": offline, "a": a}
    found = rmia(*seen, **options)
    assert np.allclose(found, by_pairs(*seen, **options))
    assert len(np.unique(found)) > 5


@pytest.mark.parametrize("offline", [False, True])
def test_it_tells_members_and_nothing_where_there_is_nothing(offline: bool) -> None:
    """20 runs of 400 targets, the deviation of the mean area is .029/sqrt(20); bounds at 5 of them."""
    for shift in (0.0, 2.0):
        areas = []
        for seed in range(20):
            *seen, truth = signals(seed, models=32, records=400, population=300, shift=shift)
            scores = rmia(*seen, gamma=1.0, offline=offline, a=1.0)
            areas.append(auc(scores[truth], scores[~truth]).value)
        if shift:
            assert np.mean(areas) > 0.65
        else:
            assert np.mean(areas) == pytest.approx(0.5, abs=5 * 0.029 / np.sqrt(20))


def test_offline_does_not_look_at_models_with_the_record() -> None:
    target, references, members, population, others, _ = signals()
    found = rmia(target, references, members, population, others, offline=True)
    changed = rmia(target, references + 9 * members, members, population, others, offline=True)
    assert (found == changed).all()


def test_order_does_not_matter_and_sure_models_give_finite_scores() -> None:
    target, references, members, population, others, _ = signals()
    stream = np.random.default_rng(2)
    models, records, rest = (stream.permutation(n) for n in (8, 30, 25))
    found = rmia(target, references, members, population, others)
    again = rmia(
        target[records],
        references[models][:, records],
        members[models][:, records],
        population[rest],
        others[models][:, rest],
    )
    assert np.allclose(again, found[records])
    sure = rmia(1e4 * target, 1e4 * references, members, 1e4 * population, 1e4 * others)
    assert np.isfinite(sure).all()


def test_a_pair_at_gamma_is_won() -> None:
    """Where every model is sure of every record, each ratio is 1 to the bit."""
    sure, members = np.full((2, 3), 1e3), np.array([[True] * 3, [False] * 3])
    assert (rmia(sure[0], sure, members, sure[0], sure, gamma=1.0, a=1.0) == 1).all()
    assert (rmia(sure[0], sure, members, sure[0], sure, gamma=1.1, a=1.0) == 0).all()


def test_wrong_values_are_refused() -> None:
    *seen, _ = signals()
    with pytest.raises(InputError, match="gamma = 0"):
        rmia(*seen, gamma=0.0)
    with pytest.raises(InputError, match=r"a = 1\.5"):
        rmia(*seen, offline=True, a=1.5)
    target, references, members, population, others = seen
    with pytest.raises(InputError, match="every reference"):
        rmia(target, references, members, population, others[1:])
    with pytest.raises(InputError, match="no model with it"):
        rmia(target, references, members & False, population, others)
