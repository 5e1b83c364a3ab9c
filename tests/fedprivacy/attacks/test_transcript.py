"""What an observation says of each target, and how observations are gathered."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from fedprivacy.attacks.signals import Probe
from fedprivacy.attacks.transcript import Judgement, Sight, features


@pytest.fixture
def probe() -> Probe:
    stream = np.random.default_rng(5)
    x = torch.from_numpy(stream.normal(size=(6, 30)).astype(np.float32))
    return Probe(nn.Sequential(nn.Linear(30, 4)), x, torch.from_numpy(stream.integers(0, 4, 6)))


def sight(probe: Probe, trained: list[int], others: int = 0, targets: list[int] | None = None) -> Sight:
    """What a victim that trained on some records, one step, sends back; others train on none."""
    sent = 0.01 * torch.randn(probe.parameters, generator=torch.Generator().manual_seed(1))
    update = -0.5 * probe.at(np.array(trained)).mean_gradient(sent)[0]
    rest = torch.randn(others, probe.parameters, generator=torch.Generator().manual_seed(2))
    return Sight(sent, update, rest, None if targets is None else np.array(targets))


def test_every_feature_speaks_for_the_record_that_was_trained_on(probe: Probe) -> None:
    found = features(probe, sight(probe, [2], others=3))
    assert set(found) == {"cosine", "loss", "gradient", "recovery", "relief", "excess-cosine", "fedmia"}
    for name, values in found.items():
        assert values.shape == (6,)
        assert np.isfinite(values).all()
        assert values.argmax() == 2, name
    assert found["cosine"][2] == pytest.approx(1, abs=1e-5)


def test_features_are_what_they_are_called(probe: Probe) -> None:
    seen = sight(probe, [2], others=3)
    found = features(probe, seen)
    before, after = (probe.losses(w).double().numpy() for w in (seen.sent, seen.sent + seen.update))
    assert found["loss"] == pytest.approx(-np.log(after))
    assert found["recovery"] == pytest.approx(np.log(before) - np.log(after))
    cosines, norms = probe.alignment(seen.sent, seen.others)
    mean, deviation = cosines.mean(axis=1), cosines.std(axis=1, ddof=1)
    assert found["excess-cosine"] == pytest.approx(found["cosine"] - mean, abs=1e-6)
    assert found["fedmia"] == pytest.approx((found["cosine"] - mean) / deviation, rel=1e-4)
    _, lower = probe.alignment(seen.sent + seen.update, seen.others)
    assert found["relief"] == pytest.approx(np.log(norms) - np.log(lower))


def test_comparisons_with_others_need_others(probe: Probe) -> None:
    assert "excess-cosine" not in features(probe, sight(probe, [2]))
    alone = features(probe, sight(probe, [2], others=1))
    assert "excess-cosine" in alone
    assert "fedmia" not in alone


def test_a_silent_victim_tells_nothing(probe: Probe) -> None:
    seen = sight(probe, [2])
    found = features(probe, Sight(seen.sent, torch.zeros_like(seen.update), seen.others))
    for name in ("cosine", "recovery", "relief"):
        assert (found[name] == 0).all()


def test_passive_observations_tell_of_the_trajectory_over_the_rounds(probe: Probe) -> None:
    judged = Judgement(probe)
    each = [replace(sight(probe, [number % 6]), round=10 * number) for number in range(8)]
    for seen in each:
        judged.see(seen)
    single = [features(probe, seen)["cosine"] for seen in each]
    found = judged.features()
    assert found["cosine"] == pytest.approx(np.mean(single, axis=0))
    assert found["late-cosine"] == pytest.approx(np.mean(single[6:], axis=0))
    rise = np.mean(single[4:], axis=0) - np.mean(single[:4], axis=0)
    assert found["rise-cosine"] == pytest.approx(rise)
    first = judged.features([20, 0, 10])
    assert first["cosine"] == pytest.approx(np.mean(single[:3], axis=0))
    assert first["rise-cosine"] == pytest.approx(single[2] - single[0])
    assert set(judged.features([30])) == {"cosine", "loss", "gradient", "recovery", "relief"} & set(found)
    assert judged.features([5]) == {}  # the victim refused that round


def test_attacked_targets_are_judged_by_their_own_round_and_the_others_not_at_all(probe: Probe) -> None:
    judged = Judgement(probe)
    assert judged.features() == {}
    judged.see(sight(probe, [2], targets=[2, 5]))
    judged.see(sight(probe, [0], targets=[0]))
    found = judged.features()["cosine"]
    assert np.isnan(found[[1, 3, 4]]).all()
    assert found[[0, 2]] == pytest.approx([1, 1], abs=1e-5)
    assert found[5] == pytest.approx(features(probe, sight(probe, [2]))["cosine"][5], abs=1e-6)
