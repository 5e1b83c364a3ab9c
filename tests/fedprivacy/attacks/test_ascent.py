"""The ascent reaches its level, or stops; the raw step is the paper's."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from fedprivacy.attacks.ascent import Ascent
from fedprivacy.attacks.signals import Probe
from fedprivacy.models.by_name import flat_weights


@pytest.fixture
def probe() -> Probe:
    """Twenty records of four classes."""
    stream = np.random.default_rng(5)
    torch.manual_seed(5)
    module = nn.Sequential(nn.Flatten(), nn.Linear(30, 16), nn.Tanh(), nn.Linear(16, 4))
    x = torch.from_numpy(stream.normal(size=(20, 30)).astype(np.float32))
    return Probe(module, x, torch.from_numpy(stream.integers(0, 4, 20)))


@pytest.fixture
def weights(probe: Probe) -> torch.Tensor:
    """Where all records are known by heart."""
    found = torch.from_numpy(flat_weights(probe.module))
    for _ in range(600):
        found = found - 0.5 * probe.mean_gradient(found)[0]
    assert float(probe.losses(found).max()) < 0.1
    return found


def test_every_target_is_raised_to_the_level_and_hardly_further(probe: Probe, weights: torch.Tensor) -> None:
    places = np.array([0, 7, 11])
    raised = Ascent(level=3.0, step=0.1, tries=200).climb(probe.at(places), weights)
    losses = probe.at(places).losses(raised)
    assert (losses >= 3.0).all()
    assert float(losses.min()) < 4.0  # the last step of the last target took it there


def test_one_target_is_raised_and_most_others_are_left(probe: Probe, weights: torch.Tensor) -> None:
    raised = Ascent().climb(probe.at(np.array([4])), weights)
    losses = probe.losses(raised)
    others = np.delete(losses.numpy(), 4)
    assert losses[4] >= 3.0
    assert np.median(others) < 1.0


def test_targets_at_the_level_are_left_where_they_are(probe: Probe, weights: torch.Tensor) -> None:
    assert torch.equal(Ascent(level=1e-9).climb(probe, weights), weights)


def test_it_stops_after_its_tries_each_of_one_length(probe: Probe, weights: torch.Tensor) -> None:
    raised = Ascent(level=900.0, step=0.1, tries=3).climb(probe, weights)
    assert float(probe.losses(raised).min()) < 900.0
    assert 0.1 < float((raised - weights).norm()) <= 0.3 + 1e-5
    one = Ascent(level=900.0, step=0.1, tries=1).climb(probe, weights)
    assert float((one - weights).norm()) == pytest.approx(0.1, rel=1e-3)


def test_it_stops_where_there_is_no_gradient_to_climb() -> None:
    sure = Probe(nn.Sequential(nn.Linear(1, 2)), torch.ones(1, 1), torch.zeros(1, dtype=torch.int64))
    weights = torch.tensor([500.0, -500.0, 0.0, 0.0])
    assert torch.equal(Ascent().climb(sure, weights), weights)


def test_the_raw_step_is_the_gradient_times_gamma(probe: Probe, weights: torch.Tensor) -> None:
    raised = Ascent(level=None, step=0.7).climb(probe, weights)
    assert torch.allclose(raised, weights + 0.7 * probe.mean_gradient(weights)[0])


def test_neither_the_weights_nor_the_model_are_touched(probe: Probe, weights: torch.Tensor) -> None:
    before, own = weights.clone(), flat_weights(probe.module).copy()
    draws = torch.random.get_rng_state()
    for ascent in (Ascent(), Ascent(level=None)):
        first = ascent.climb(probe, weights)
        assert torch.equal(first, ascent.climb(probe, weights))
    assert torch.equal(weights, before)
    assert not weights.requires_grad
    assert np.array_equal(flat_weights(probe.module), own)
    assert all(parameter.grad is None for parameter in probe.module.parameters())
    assert torch.equal(torch.random.get_rng_state(), draws)
