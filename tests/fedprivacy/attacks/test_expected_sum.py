"""What an attacker expects of the clients that it does not attack."""

from __future__ import annotations

import doctest

import pytest
import torch

from fedprivacy.attacks import expected_sum as module
from fedprivacy.attacks.expected_sum import expected_sum


def drawn(clients: int, mean: float, seed: int = 1, parameters: int = 400) -> torch.Tensor:
    return mean + torch.randn(clients, parameters, generator=torch.Generator().manual_seed(seed))


def test_a_known_mean_is_multiplied_by_the_clients() -> None:
    assert not doctest.testmod(module).failed
    many = drawn(400, mean=1.0)
    assert torch.allclose(expected_sum(many, 63), 63 * many.mean(dim=0), rtol=0.01)
    assert not expected_sum(many, 0).any()


def test_one_reference_counts_as_it_is() -> None:
    assert torch.equal(expected_sum(torch.tensor([[1.0, -2.0]]), 2), torch.tensor([2.0, -4.0]))
    assert not expected_sum(torch.zeros(3, 5), 7).any()


@pytest.mark.parametrize("mean", [0.0, 0.1, 0.3])
def test_the_error_of_few_references_is_shrunk(mean: float) -> None:
    """Closer to the true sum than the mean times the clients, over seeds fixed beforehand."""
    truth = torch.full((400,), 15 * mean)
    errors = {"plain": 0.0, "shrunk": 0.0}
    for seed in range(20):
        few = drawn(8, mean, seed)
        errors["plain"] += float((15 * few.mean(dim=0) - truth).norm())
        errors["shrunk"] += float((expected_sum(few, 15) - truth).norm())
    assert errors["shrunk"] < (0.4 if mean == 0 else 1.0) * errors["plain"]
