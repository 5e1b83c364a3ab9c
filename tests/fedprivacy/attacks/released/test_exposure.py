"""Exposure: which records are found is told, and that nothing leaks where nothing does."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import binom, fisher_exact

from fedprivacy.attacks.released.exposure import exposure, in_turn
from fedprivacy.attacks.released.lira import lira
from fedprivacy.attacks.released.references import draw_coins, draw_halves
from fedprivacy.attacks.roc import auc
from fedprivacy.data.groups import Grouping
from fedprivacy.errors import InputError

RECORDS, MODELS = 300, 40


def game(shifts: np.ndarray, seed: int = 0, models: int = MODELS):
    """Scores of records that members have `shifts` more of; record 0 looks like a member to everybody."""
    stream = np.random.default_rng(seed)
    members = draw_coins(models, RECORDS, stream)
    scores = shifts * members + stream.normal(size=(models, RECORDS))
    scores[:, 0] += 50.0
    return scores, members, np.arange(RECORDS) % 3


def test_counts_are_those_of_models_with_and_without_a_record() -> None:
    shifts = np.where(np.arange(RECORDS) < 20, 6.0, 0.0)
    scores, members, y = game(shifts)
    found = exposure(scores, members, y, fpr=0.05)

    def called(own: np.ndarray, inside: np.ndarray, record: int) -> bool:
        """Compared with the others who are no members."""
        rest = np.sort(np.delete(own, record)[~np.delete(inside, record)])[::-1]
        return bool(own[record] > rest[int(0.05 * (len(rest) + 1)) - 1])

    above = np.array(
        [
            [called(own, inside, at) for at in range(RECORDS)]
            for own, inside in zip(scores, members, strict=True)
        ]
    )
    assert (found.hits == (above & members).sum(axis=0)).all()
    assert (found.alarms == (above & ~members).sum(axis=0)).all()
    assert (found.models + found.others == MODELS).all()
    assert (found.alarms.sum() / found.others.sum()) <= 0.05
    record = found.most(1)[0]
    assert record.hits == found.hits[record.place]
    assert record.rate.value == record.hits / record.models
    assert record.advantage.value == pytest.approx(record.rate.value - record.alarms / record.others)
    assert record.advantage.low <= record.advantage.value <= record.advantage.high


def test_the_most_exposed_are_those_that_are_influenced_not_those_that_look_like_members() -> None:
    shifts = np.where((np.arange(RECORDS) > 0) & (np.arange(RECORDS) <= 20), 7.0, 0.0)
    found = exposure(*game(shifts), fpr=0.05)
    assert found.hits[0] == found.models[0]
    assert {record.place for record in found.most(20)} == set(range(1, 21))
    assert set(found.proved()) == set(range(1, 21))
    lows = [record.advantage.low for record in found.most(50)]
    assert lows == sorted(lows, reverse=True)


def test_where_nothing_leaks_no_record_is_proved_exposed() -> None:
    """Each of 12 runs proves any with probability .05 at most; false-alarm rate 1e-6."""
    wrong = 0
    for seed in range(12):
        scores, members, _ = game(np.zeros(RECORDS), seed)
        wrong += len(exposure(scores, members, np.zeros(RECORDS, dtype=int), fpr=0.1).proved()) > 0
    assert wrong <= binom.isf(1e-6, 12, 0.05)
    found = exposure(*game(np.zeros(RECORDS)), fpr=0.1)
    assert np.sum(found.hits) / np.sum(found.models) == pytest.approx(0.1, abs=0.02)


def test_proof_is_by_the_exact_test_of_fisher() -> None:
    found = exposure(*game(np.linspace(0, 4, RECORDS), seed=3), fpr=0.1)
    tables = np.stack(
        [found.hits, found.alarms, found.models - found.hits, found.others - found.alarms], axis=1
    )
    tails = [fisher_exact(row.reshape(2, 2), alternative="greater").pvalue for row in tables]
    expected = np.flatnonzero(np.array(tails) <= 0.05 / RECORDS)
    assert 0 < len(expected) < RECORDS
    assert (found.proved() == expected).all()


def test_classes_are_told_each_by_itself() -> None:
    scores, members, y = game(np.where(np.arange(RECORDS) % 3 == 1, 3.0, 0.0))
    found = exposure(scores, members, y, fpr=0.05)
    areas = [
        auc(own[inside & (y == 1)], own[~inside & (y == 1)]).value
        for own, inside in zip(scores, members, strict=True)
    ]
    assert found.classes[1].auc.value == pytest.approx(np.mean(areas))
    assert found.classes[1].rate.value > 0.5 > 0.2 > found.classes[2].rate.value
    assert found.classes[2].auc.low < 0.5 < found.classes[2].auc.high
    assert sum(one.records for one in found.classes.values()) == RECORDS
    few = exposure(scores, members, np.where(np.arange(RECORDS) < 6, 9, 0), fpr=0.05)
    assert few.classes[9].auc is None


def test_references_are_attacked_in_turn_each_with_the_help_of_the_others() -> None:
    stream = np.random.default_rng(5)
    members = draw_halves(16, 50, stream)
    signals = 2.0 * members + stream.normal(size=(16, 50))
    found = in_turn(lira, signals, members)
    rest = np.arange(16) != 3
    assert (found[3] == lira(signals[3], signals[rest], members[rest])).all()
    assert auc(found[members], found[~members]).value > 0.7


def test_the_document_holds_places_and_figures_alone() -> None:
    told = exposure(*game(np.full(RECORDS, 3.0))).to_json(most=5)
    assert json.loads(json.dumps(told)) == told
    assert len(told["most_exposed"]) == 5
    assert set(told["most_exposed"][0]) == {
        *("record", "advantage", "rate", "hits", "models", "alarms", "others"),
    }
    assert told["models"] == MODELS


def test_wrong_scores_are_refused() -> None:
    scores, members, y = game(np.zeros(RECORDS))
    with pytest.raises(InputError, match="must be"):
        exposure(scores[1:], members, y)
    with pytest.raises(InputError, match="NaN or infinite"):
        exposure(scores * np.nan, members, y)
    with pytest.raises(InputError, match="between 0 and 1"):
        exposure(scores, members, y, fpr=1.0)
    with pytest.raises(InputError, match="needs 999 non-members"):
        exposure(scores, members, y, fpr=0.001)


def test_scores_that_know_nothing_of_members_expose_nobody() -> None:
    """Also a record that scores high on every model, as one of rare content may."""
    for seed in range(3):
        stream = np.random.default_rng(seed)
        members = stream.random((64, 250)) < 0.5
        scores = stream.normal(size=(64, 250))
        scores[:, 7] += 50.0
        found = exposure(scores, members, np.zeros(250, np.int64))
        assert not found.proved().any()
        assert found.hits[7] == found.models[7]
        assert found.alarms[7] == 64 - found.models[7]


def test_groups_are_judged_as_classes_are() -> None:
    shifts = np.where(np.arange(RECORDS) % 3 == 0, 4.0, 0.0)
    scores, members, y = game(shifts)
    codes = np.array([-1, *(np.arange(1, RECORDS) % 3 > 0).astype(int)])  # record 0 is in no group
    found = exposure(scores, members, y, fpr=0.05, groups=[Grouping("town", ("Oslo", "Rome"), codes)])
    towns = found.groups["town"]
    assert [towns[name].records for name in ("Oslo", "Rome")] == [99, 200]
    assert towns["Oslo"].auc.value > 0.95 > 0.55 > towns["Rome"].auc.value
    # Of the same records as a class, a group has the same figures.
    same = exposure(scores, members, y, fpr=0.05, groups=[Grouping("label", ("0", "1", "2"), y)])
    assert same.groups["label"]["1"] == same.classes[1]
    assert same.to_json()["groups"]["label"]["1"] == same.to_json()["classes"]["1"]
    assert "groups" not in exposure(scores, members, y, fpr=0.05).to_json()
