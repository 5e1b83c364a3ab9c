from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from fedprivacy.models import build, evaluate, flat_weights, unflatten
from fedprivacy.scenario import Logistic, Mlp

MLP = Mlp(name="mlp", hidden=(5, 4), activation="tanh")


def test_logistic_starts_at_zero_and_an_mlp_from_its_seed_alone() -> None:
    logistic = build(Logistic(name="logistic"), (8, 8), 10, seed=1)
    assert not flat_weights(logistic).any()
    assert len(flat_weights(logistic)) == 650
    torch.manual_seed(123)
    state = torch.random.get_rng_state()
    one, same, other = (flat_weights(build(MLP, (3,), 2, seed=seed)) for seed in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)
    assert torch.equal(state, torch.random.get_rng_state())


def test_unflatten_is_the_inverse_of_flat_weights() -> None:
    module = build(MLP, (3,), 2, seed=1)
    parts = unflatten(module, torch.from_numpy(flat_weights(module)))
    assert all(torch.equal(parts[name], p) for name, p in module.named_parameters())
    with pytest.raises(ValueError, match="parameters"):
        unflatten(module, torch.zeros(3))


def test_evaluate_agrees_with_torch() -> None:
    module = build(MLP, (3,), 2, seed=1)
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((20_000, 3)).astype(np.float32), rng.integers(0, 2, 20_000)
    found = evaluate(module, flat_weights(module), x, y)
    logits = module(torch.from_numpy(x)).detach()
    assert found.accuracy == pytest.approx(float((logits.argmax(1).numpy() == y).mean()))
    right = [((logits.argmax(1).numpy() == y) & (y == label)).sum() for label in (0, 1)]
    assert found.correct == tuple(right)
    assert found.records == ((y == 0).sum(), (y == 1).sum())
    assert found.loss == pytest.approx(
        float(nn.functional.cross_entropy(logits, torch.from_numpy(y))), rel=1e-5
    )


def test_a_class_without_records_has_no_accuracy() -> None:
    module = build(Logistic(name="logistic"), (2,), 3, seed=1)  # at zero it names every record class 0
    x, y = np.ones((4, 2), dtype=np.float32), np.array([0, 0, 0, 1])
    assert evaluate(module, flat_weights(module), x, y).per_class() == [
        {"class": 0, "label": None, "accuracy": 1.0, "records": 3},
        {"class": 1, "label": None, "accuracy": 0.0, "records": 1},
        {"class": 2, "label": None, "accuracy": None, "records": 0},
    ]
