"""The closed form of logistic regression beside the factors of any linear chain."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from fedprivacy.models.by_name import flat_weights
from fedprivacy.training.clipped_gradients import _factored, clipped_sums
from fedprivacy.training.logistic_gradients import is_logistic, logistic_sums

MODELS = {
    "flat": nn.Sequential(nn.Linear(6, 3)),
    "flattened": nn.Sequential(nn.Flatten(), nn.Linear(6, 3)),
    "without bias": nn.Sequential(nn.Flatten(), nn.Linear(6, 3, bias=False)),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("own", [False, True], ids=["shared", "own"])
@pytest.mark.parametrize("clipping_norm", [0.5, None])
def test_both_ways_agree(name: str, own: bool, clipping_norm: float | None) -> None:
    module, made = MODELS[name], torch.Generator().manual_seed(1)
    x, y = torch.randn(4, 5, 6, generator=made), torch.randint(0, 3, (4, 5), generator=made)
    x[0, 1], x[2, 3, 0], x[3, 0] = torch.nan, 1e17, torch.inf
    size = len(flat_weights(module))
    weights = torch.randn((4, size) if own else (size,), generator=made)
    used = torch.ones(4, 5, dtype=torch.bool)
    used[1, 2:] = False
    assert is_logistic(module)
    sums, zeroed = logistic_sums(module, weights, x, y, used, clipping_norm)
    others, also = _factored(module, weights, x, y, used, clipping_norm)
    assert torch.allclose(sums, others, rtol=1e-5, atol=1e-6)
    assert zeroed.tolist() == also.tolist() == [1, 0, 1, 1]


def test_other_modules_go_other_ways() -> None:
    assert not is_logistic(nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 3)))
    assert not is_logistic(nn.Sequential(nn.Linear(6, 3), nn.Tanh()))
    assert not is_logistic(nn.Sequential(nn.Tanh(), nn.Linear(6, 3)))
    assert not is_logistic(nn.Linear(6, 3))


def test_records_are_flattened_only_where_the_module_does_so() -> None:
    module, used = MODELS["flat"], torch.ones(2, 4, dtype=torch.bool)
    weights = torch.from_numpy(flat_weights(module))
    found = clipped_sums(module, weights, torch.ones(2, 4, 2, 3), torch.zeros_like(used).long(), used, 1.0)
    assert found.zeroed.tolist() == [4, 4]  # the module itself raises
    assert not found.sums.any()


def test_tiny_factors_do_not_vanish_from_the_norm() -> None:
    """Logits 57 apart leave probabilities of 2e-25, whose squares are below the least float32."""
    module = MODELS["flat"]
    weights = torch.zeros(21)
    weights[18] = 57.0  # the bias of the record's own class
    x, y = torch.full((1, 1, 6), 1e15), torch.zeros(1, 1, dtype=torch.int64)
    found = clipped_sums(module, weights, x, y, torch.ones(1, 1, dtype=torch.bool), 1e-12)
    assert found.sums.double().norm().item() == pytest.approx(1e-12, rel=1e-5, abs=0)
