"""Norms and products of gradients that are never formed, held against those of formed ones."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from fedprivacy.attacks.signals import Probe
from fedprivacy.models.by_name import unflatten
from fedprivacy.training.linear_gradients import LinearGradients, is_linear, linear_gradients

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


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("own", [False, True], ids=["shared", "own"])
def test_clients_together_are_as_each_alone(name: str, own: bool) -> None:
    chain, made = CHAINS[name], torch.Generator().manual_seed(5)
    x, y = torch.randn(3, 4, 2, 3, generator=made), torch.randint(0, 3, (3, 4), generator=made)
    shares = torch.rand(3, 4, generator=made)
    shares[1, 2] = 0.0
    size = sum(p.numel() for p in chain.parameters())
    weights = torch.randn((3, size) if own else (size,), generator=made)
    together = linear_gradients(chain, unflatten(chain, weights), x, y)
    for client in range(3):
        of_client = unflatten(chain, weights[client] if own else weights)
        alone = linear_gradients(chain, of_client, x[client], y[client])
        given = linear_gradients(chain, of_client, x[client], y[client], shares[client]).total()
        assert torch.allclose(together.norms()[client], alone.norms(), rtol=1e-5)
        assert torch.allclose(alone.norms(), alone.squares().sqrt().double(), rtol=1e-5)
        for key, total in together.scaled(shares).total().items():
            assert torch.allclose(total[client], given[key], rtol=1e-4, atol=1e-6)


def test_a_share_of_zero_takes_out_whatever_there_is() -> None:
    chain, weights = CHAINS["logistic"], torch.ones(21)
    x, y = torch.ones(3, 6), torch.zeros(3, dtype=torch.int64)
    x[1], x[2, 0] = torch.nan, 1e17
    gradients = linear_gradients(chain, unflatten(chain, weights), x, y)
    assert torch.isinf(gradients.norms()).tolist() == [False, True, True]
    # Neither do tiny numbers vanish: their squares are below the least float32.
    tiny = LinearGradients(
        CHAINS["logistic"], {"1": torch.full((1, 6), 1e-30)}, {"1": torch.full((1, 3), 1e-25)}
    )
    assert tiny.norms().item() == pytest.approx(1e-25 * 3**0.5, rel=1e-6, abs=0)
    only = linear_gradients(chain, unflatten(chain, weights), x[:1], y[:1]).total()
    found = gradients.scaled(torch.tensor([1.0, 0.0, 0.0])).total()
    assert all(torch.allclose(found[key], only[key]) for key in only)


def test_other_networks_are_left_to_plain_gradients() -> None:
    layer = nn.Linear(3, 3)
    assert not is_linear(nn.Sequential(layer, nn.Tanh(), layer))
    assert not is_linear(nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3)))
    assert not is_linear(nn.Sequential(nn.Linear(3, 3), nn.Softmax(dim=0)))
    assert not is_linear(layer)
    again = nn.ReLU()  # would be passed once only
    assert not is_linear(nn.Sequential(nn.Linear(3, 4), again, nn.Linear(4, 3), again))
    assert not is_linear(nn.Sequential(nn.Linear(3, 4), nn.Flatten(), nn.Linear(8, 3)))  # two rows a record
    assert not is_linear(nn.Sequential(nn.Flatten(0), nn.Linear(3, 3)))
    assert not is_linear(nn.Sequential(nn.Flatten()))
    tied = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3))
    assert is_linear(tied)
    tied[2].weight = tied[0].weight
    assert not is_linear(tied)


class Doubled(nn.Sequential):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * super().forward(x)


def test_a_class_of_ones_own_is_asked_for_its_own_forward() -> None:
    assert not is_linear(Doubled(nn.Linear(3, 3)))
