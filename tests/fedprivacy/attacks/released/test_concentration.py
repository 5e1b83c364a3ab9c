"""What the most exposed records carry, and how advantages spread: no luck is taken for leakage."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from fedprivacy.attacks.released.concentration import carried, spread
from fedprivacy.attacks.released.exposure import exposure, in_turn
from fedprivacy.attacks.released.lira import lira
from fedprivacy.attacks.released.references import draw_halves

RECORDS, MODELS = 300, 32


def test_what_a_few_records_give_away_is_counted_on_the_other_half_of_models() -> None:
    """Of 300 records 15 are found in each model with them, and nobody else in any."""
    stream = np.random.default_rng(1)
    members = draw_halves(MODELS, RECORDS, stream)
    told = members & (np.arange(RECORDS) >= 285)
    alarms = ~members & (np.arange(RECORDS) < 30)
    found = carried(20.0 * told + stream.normal(size=members.shape), told | alarms, members)
    assert [one.records for one in found] == [3, 15, 30]
    assert found[0].hits == pytest.approx(3 / 15, abs=0.05)  # of about as many models in either half
    assert [one.hits for one in found[1:]] == [1.0, 1.0]
    assert found[1].alarms == 0.0
    assert 0 < found[2].alarms < 0.5
    assert carried(1.0 * told, told, members)[0].alarms is None


def test_where_nothing_leaks_the_first_have_as_many_false_alarms_as_true_positives() -> None:
    """Ranked by the models that they are counted on they would seem to carry half of all."""
    shares = []
    for seed in range(5):
        stream = np.random.default_rng(seed)
        members = draw_halves(MODELS, RECORDS, stream)
        signals = stream.normal(size=members.shape)
        scores = in_turn(lira, signals, members)
        found = exposure(scores, members, np.zeros(RECORDS, np.int64), 0.02, signals).carried
        shares.append([(one.hits, one.alarms) for one in found])
    hits, alarms = np.mean(shares, axis=0).T
    assert np.abs(hits - alarms).max() < 0.06
    assert hits[2] == pytest.approx(0.1, abs=0.07)


def test_of_a_single_model_or_without_a_hit_nothing_is_told() -> None:
    members = np.ones((1, 5), dtype=bool)
    assert carried(np.zeros((1, 5)), members, members) == ()
    several = draw_halves(4, 5, np.random.default_rng(0))
    assert carried(np.zeros((4, 5)), np.zeros_like(several), several) == ()
    assert exposure(np.zeros((4, 5)), several, np.zeros(5, np.int64), 0.5).carried == ()


def test_a_record_that_one_half_of_models_tells_nothing_of_comes_last() -> None:
    members = np.array([[1, 0], [1, 0], [1, 1], [0, 1]], dtype=bool)  # record 0 is in both even models
    found = carried(np.where(members, 1.0, 0.0), members, members)
    assert found[0].records == 1
    # By the even models record 1 comes first, which one odd model calls; by the odd ones record 0, which two do.
    assert found[0].hits == pytest.approx((1 + 2) / 5)


@pytest.mark.parametrize("models", [8, 32, 128])
def test_bins_hold_equally_many_of_the_values_that_there_are(models: int) -> None:
    stream = np.random.default_rng(models)
    half = models // 2
    hits, alarms = stream.integers(0, half + 1, (2, 50))
    sizes = np.full(50, half)
    proved = np.array([3, 7, 20])
    found = spread(hits, sizes, alarms, sizes, proved)
    edges = np.array(found["edges"])
    assert edges[0] < -1 < 1 < edges[-1]
    possible = np.histogram(np.arange(-half, half + 1) / half, edges)[0]
    assert len(set(possible[1:-1].tolist())) == 1
    values = (hits - alarms) / half
    for at, (low, high) in enumerate(pairwise(edges)):
        inside = (values > low) & (values < high)
        assert found["certain"][at] == inside[proved].sum()
        assert found["others"][at] == inside.sum() - inside[proved].sum()
    assert np.abs(edges[1:] + edges[:-1]).min() == pytest.approx(0, abs=1e-12)  # the middle of a bin


def test_records_that_no_model_or_every_model_has_are_left_out() -> None:
    models = np.array([0, 4, 2, 2])
    found = spread(np.array([0, 4, 2, 0]), models, np.zeros(4, np.int64), 4 - models, np.array([2]))
    assert (sum(found["certain"]), sum(found["others"])) == (1, 1)
    assert found["certain"][-1] == 1
