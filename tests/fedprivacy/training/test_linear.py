"""Norms and products of gradients that are never formed, held against those of formed ones."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from fedprivacy.attacks.signals import Probe
from fedprivacy.training.linear import is_linear

CHAINS = {
    "logistic": nn.Sequential(nn.Flatten(), nn.Linear(6, 3)),
    "without bias": nn.Sequential(nn.Flatten(), nn.Linear(6, 5, bias=False), nn.ReLU(), nn.Linear(5, 3)),
    "deep": nn.Sequential(
        nn.Flatten(), nn.Linear(6, 5), nn.GELU(), nn.Linear(5, 4), nn.Sigmoid(), nn.Linear(4, 3, bias=False)
    ),
}


@pytest.mark.parametrize("name", CHAINS)
def test_they_are_those_of_formed_gradients(name: str) -> None:
    chain, made = CHAINS[name], torch.Generator().manual_seed(4)
    x, y = torch.randn(9, 2, 3, generator=made), torch.arange(9) % 3
    size = sum(p.numel() for p in chain.parameters())
    weights, updates = torch.randn(size, generator=made), torch.randn(4, size, generator=made)
    wrapped = nn.Sequential(chain)
    assert is_linear(chain)
    assert not is_linear(wrapped)
    for fast, plain in zip(
        Probe(chain, x, y).alignment(weights, updates),
        Probe(wrapped, x, y).alignment(weights, updates),
        strict=True,
    ):
        assert fast == pytest.approx(plain, rel=1e-4, abs=1e-6)


def test_other_networks_are_left_to_plain_gradients() -> None:
    layer = nn.Linear(3, 3)
    assert not is_linear(nn.Sequential(layer, nn.Tanh(), layer))
    assert not is_linear(nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3)))
    assert not is_linear(nn.Sequential(nn.Linear(3, 3), nn.Softmax(dim=0)))
    assert not is_linear(layer)
    tied = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3))
    assert is_linear(tied)
    tied[2].weight = tied[0].weight
    assert not is_linear(tied)


class Doubled(nn.Sequential):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * super().forward(x)


def test_a_class_of_ones_own_is_asked_for_its_own_forward() -> None:
    assert not is_linear(Doubled(nn.Linear(3, 3)))
