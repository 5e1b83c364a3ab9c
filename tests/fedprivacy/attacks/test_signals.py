"""Losses, gradients and cosines, held against plain autograd record by record."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from fedprivacy.attacks import signals
from fedprivacy.attacks.signals import Probe
from fedprivacy.models.by_name import flat_weights

RECORDS, FEATURES, CLASSES = 7, 5, 3


def module() -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(nn.Flatten(), nn.Linear(FEATURES, 4), nn.Tanh(), nn.Linear(4, CLASSES))


@pytest.fixture
def probe() -> Probe:
    stream = np.random.default_rng(2)
    x = torch.from_numpy(stream.normal(size=(RECORDS, FEATURES)).astype(np.float32))
    return Probe(module(), x, torch.from_numpy(stream.integers(0, CLASSES, RECORDS)))


@pytest.fixture
def weights() -> torch.Tensor:
    """Other weights than the module's own, which must not be read."""
    return torch.from_numpy(flat_weights(module()) * 2 + 0.1)


def plain(probe: Probe, weights: torch.Tensor, place: int) -> tuple[float, torch.Tensor]:
    """Loss and gradient of one record by a module that holds the weights."""
    net = module()
    nn.utils.vector_to_parameters(weights, net.parameters())
    loss = nn.functional.cross_entropy(net(probe.x[place : place + 1]), probe.y[place : place + 1])
    loss.backward()
    return loss.item(), torch.cat([p.grad.reshape(-1) for p in net.parameters()])


def test_losses_and_gradients_are_those_of_plain_autograd(probe: Probe, weights: torch.Tensor) -> None:
    expected = [plain(probe, weights, place) for place in range(RECORDS)]
    losses = probe.losses(weights)
    assert torch.allclose(losses, torch.tensor([loss for loss, _ in expected]), atol=1e-6)
    assert not losses.requires_grad
    [(part, gradients)] = list(probe.gradients(weights))
    assert part == slice(0, RECORDS)
    assert torch.allclose(gradients, torch.stack([gradient for _, gradient in expected]), atol=1e-6)


def test_the_gradient_of_the_mean_loss(probe: Probe, weights: torch.Tensor) -> None:
    each = torch.stack([plain(probe, weights, place)[1] for place in range(RECORDS)])
    gradient, losses = probe.mean_gradient(weights)
    assert torch.allclose(gradient, each.mean(dim=0), atol=1e-6)
    assert torch.allclose(losses, probe.losses(weights))
    middle = float(losses.median())
    below, _ = probe.mean_gradient(weights, below=middle)
    assert torch.allclose(below, each[losses < middle].mean(dim=0), atol=1e-6)
    nothing, _ = probe.mean_gradient(weights, below=0.0)
    assert torch.equal(nothing, torch.zeros_like(weights))


def test_cosines_are_positive_where_an_update_lowers_the_loss(probe: Probe, weights: torch.Tensor) -> None:
    each = torch.stack([plain(probe, weights, place)[1] for place in range(RECORDS)])
    updates = torch.stack([-each[3], each[3], torch.ones_like(weights)])
    cosines, norms = probe.alignment(weights, updates)
    assert cosines.shape == (RECORDS, 3)
    assert cosines[3, :2] == pytest.approx([1, -1], abs=1e-5)
    expected = nn.functional.cosine_similarity(-each[:, None], updates[None], dim=2)
    assert cosines == pytest.approx(expected.numpy(), abs=1e-5)
    assert norms == pytest.approx(each.norm(dim=1).numpy(), rel=1e-5)


def test_blocks_give_what_one_block_gives(probe: Probe, weights: torch.Tensor, monkeypatch) -> None:
    updates = torch.randn(2, len(weights), generator=torch.Generator().manual_seed(3))
    probe.module = nn.Sequential(probe.module)  # which is no plain chain of linear layers any more
    whole = probe.alignment(weights, updates)
    monkeypatch.setattr(signals, "_NUMBERS", 2 * probe.parameters)  # two records at a time
    assert [part for part, _ in probe.gradients(weights)] == [
        slice(0, 2),
        slice(2, 4),
        slice(4, 6),
        slice(6, 7),
    ]
    for cut, one in zip(probe.alignment(weights, updates), whole, strict=True):
        assert cut == pytest.approx(one, abs=1e-6)


def test_no_gradient_and_no_update_have_the_cosine_zero(probe: Probe, weights: torch.Tensor) -> None:
    cosines, _ = probe.alignment(weights, torch.zeros(1, len(weights)))
    assert (cosines == 0).all()
    # So sure of every label that float32 has no gradient left.
    sure = Probe(nn.Sequential(nn.Linear(1, 2)), torch.ones(2, 1), torch.zeros(2, dtype=torch.int64))
    cosines, norms = sure.alignment(torch.tensor([500.0, -500.0, 0.0, 0.0]), torch.ones(1, 4))
    assert (norms == 0).all()
    assert (cosines == 0).all()


def test_a_probe_of_some_records_asks_about_these_alone(probe: Probe, weights: torch.Tensor) -> None:
    places = np.array([5, 1])
    assert torch.allclose(probe.at(places).losses(weights), probe.losses(weights)[[5, 1]])
