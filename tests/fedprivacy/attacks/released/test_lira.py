"""LiRA: against the exact likelihood ratio of Gaussian signals, and knowing nothing where there is nothing."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from fedprivacy.attacks.released.lira import lira
from fedprivacy.attacks.released.references import draw_coins, draw_halves
from fedprivacy.attacks.roc import auc
from fedprivacy.errors import InputError

RECORDS = 400


def gaussian(models: int, shift: float = 2.0, seed: int = 0, spread: float = 0.0):
    """Signals with known means and deviations, and one target among them."""
    stream = np.random.default_rng(seed)
    members = draw_halves(models, RECORDS, stream)
    target = draw_coins(1, RECORDS, stream)[0]
    out = 5 * stream.normal(size=RECORDS)
    inside = out + shift
    deviation = np.exp(spread * stream.normal(size=(2, RECORDS)))  # with and without the record

    def told(flags):
        means = np.where(flags, inside, out)
        return means + np.where(flags, deviation[0], deviation[1]) * stream.normal(size=flags.shape)

    return told(target), told(members), members, target, (inside, out, deviation)


def exact(signals, known):
    inside, out, deviation = known
    return norm.logpdf(signals, inside, deviation[0]) - norm.logpdf(signals, out, deviation[1])


def area(scores, members):
    return auc(scores[members], scores[~members]).value


def test_with_many_models_it_is_the_exact_likelihood_ratio() -> None:
    target, references, members, _, known = gaussian(4000, spread=0.5)
    found, truth = lira(target, references, members), exact(target, known)
    assert np.corrcoef(found, truth)[0, 1] > 0.99
    usual = abs(truth) < 5
    assert np.abs(found - truth)[usual].mean() < 0.15


def test_a_common_variance_is_the_exact_ratio_where_it_is_true_with_few_models() -> None:
    target, references, members, truth, known = gaussian(16)
    found = lira(target, references, members, variance="global")
    own = lira(target, references, members)
    # the deviation of a mean of 8 is .35, which each of the two means has
    assert np.corrcoef(found, exact(target, known))[0, 1] > 0.9
    assert area(own, truth) < area(found, truth) <= area(exact(target, known), truth) + 0.02


@pytest.mark.parametrize("variance", ["per-record", "global"])
def test_it_is_the_formula_record_by_record(variance) -> None:
    target, references, members, _, _ = gaussian(12, spread=0.5)
    told = {}
    for kind, flags in (("with", members), ("without", ~members)):
        groups = [references[flags[:, x], x] for x in range(RECORDS)]
        means, own = [group.mean() for group in groups], [group.var(ddof=1) for group in groups]
        # of groups of the same size the pooled variance is the mean of their variances
        variances = own if variance == "per-record" else np.full(RECORDS, np.mean(own))
        told[kind] = norm.logpdf(target, means, np.sqrt(variances))
    found = lira(target, references, members, variance=variance)
    assert np.allclose(found, told["with"] - told["without"])


def test_offline_counts_deviations_above_the_models_without_the_record() -> None:
    target, references, members, truth, (_, out, deviation) = gaussian(4000, spread=0.5)
    found = lira(target, references, members, offline=True)
    assert np.allclose(found, (target - out) / deviation[1], atol=0.4)
    other = references + 100 * members  # models with the record are not looked at
    assert np.allclose(lira(target, other, members, offline=True), found)
    assert area(found, truth) > 0.7


@pytest.mark.parametrize("options", [{}, {"variance": "global"}, {"offline": True}])
def test_without_any_influence_it_is_at_chance(options) -> None:
    """20 runs of 400 targets: the deviation of the mean area is .029/sqrt(20); bounds at 5 of them."""
    areas = []
    for seed in range(20):
        target, references, members, truth, _ = gaussian(32, shift=0.0, seed=seed)
        areas.append(area(lira(target, references, members, **options), truth))
    assert np.mean(areas) == pytest.approx(0.5, abs=5 * 0.029 / np.sqrt(20))


@pytest.mark.parametrize("options", [{}, {"variance": "global"}, {"offline": True}])
def test_neither_the_order_of_models_nor_of_records_matters(options) -> None:
    target, references, members, _, _ = gaussian(24)
    found = lira(target, references, members, **options)
    stream = np.random.default_rng(1)
    models, records = stream.permutation(24), stream.permutation(RECORDS)
    again = lira(target[records], references[models][:, records], members[models][:, records], **options)
    assert np.allclose(again, found[records])


def test_scores_are_finite_where_models_agree_to_the_bit() -> None:
    target, references, members, _, _ = gaussian(8)
    references[:, 0] = 3.0
    assert np.isfinite(lira(target, references, members)).all()


def test_wrong_signals_are_refused() -> None:
    target, references, members, _, _ = gaussian(8)
    with pytest.raises(InputError, match="must be"):
        lira(target[1:], references, members)
    with pytest.raises(InputError, match="NaN or infinite"):
        lira(np.full(RECORDS, np.nan), references, members)
    members[1:, 0] = False
    with pytest.raises(InputError, match="train more references"):
        lira(target, references, members)
