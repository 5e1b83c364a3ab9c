"""Signals: against probabilities in float64, and finite where these say nothing more."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from fedprivacy.attacks.released import thresholds
from fedprivacy.attacks.released.gradients import last_layer
from fedprivacy.attacks.released.signals import ROWS, confidences, log_probabilities, losses
from fedprivacy.errors import InputError
from fedprivacy.models.by_name import flat_weights, unflatten

MODULE = nn.Sequential(nn.Flatten(), nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 4))


def asked(records: int, models: int = 3, scale: float = 1.0):
    torch.manual_seed(0)
    weights = scale * torch.randn(models, len(flat_weights(MODULE)))
    return weights, torch.randn(records, 5), torch.randint(0, 4, (records,))


def logits_of(weights, x):
    parameters = {name: value.double() for name, value in unflatten(MODULE, weights).items()}
    return torch.func.functional_call(MODULE, parameters, x.double())


def test_confidences_and_losses_are_those_of_the_probabilities() -> None:
    weights, x, y = asked(2 * ROWS + 5)
    found = confidences(MODULE, weights, x, y)
    for row, own in zip(found, weights, strict=True):
        p = logits_of(own, x).softmax(dim=1)[torch.arange(len(y)), y].numpy()
        assert np.allclose(row, np.log(p) - np.log1p(-p), atol=1e-4)
        assert np.allclose(losses(row), -np.log(p), atol=1e-4)
    logs = log_probabilities(MODULE, weights[1], x)
    assert np.allclose(logs, logits_of(weights[1], x).log_softmax(dim=1).numpy(), atol=1e-4)


def test_each_model_and_record_is_asked_by_itself() -> None:
    weights, x, y = asked(50)
    whole = confidences(MODULE, weights, x, y)
    order, some = np.array([2, 0, 1]), np.arange(50)[::-3].copy()
    part = confidences(MODULE, weights[order], x[some], y[some])
    assert np.allclose(part, whole[order][:, some], atol=1e-5)


def test_signals_are_finite_where_the_probability_is_one_or_nothing() -> None:
    weights, x, y = asked(200, scale=100.0)
    found = confidences(MODULE, weights, x, y)
    sure = logits_of(weights[0], x).float().softmax(dim=1)[torch.arange(len(y)), y].numpy()
    assert (sure == 1).any()
    assert (sure == 0).any()
    assert np.isfinite(found).all()
    assert np.isfinite(losses(found)).all()
    assert len(np.unique(found[0, sure == 1])) > 0.5 * (sure == 1).sum()  # told apart where p is not
    logs = log_probabilities(MODULE, weights[0], x)
    labels = y.numpy()
    for scores in (
        thresholds.loss(logs, labels),
        thresholds.confidence(logs),
        thresholds.entropy(logs),
        thresholds.modified_entropy(logs, labels),
    ):
        assert np.isfinite(scores).all()


def test_a_model_that_diverged_or_has_one_output_is_refused() -> None:
    weights, x, y = asked(4)
    with pytest.raises(InputError, match="NaN or infinite"):
        confidences(MODULE, weights * torch.nan, x, y)
    single = nn.Sequential(nn.Linear(5, 1))
    with pytest.raises(InputError, match="two or more"):
        confidences(single, torch.from_numpy(flat_weights(single))[None], x, y)


def test_last_layer_gradients_are_those_of_each_record() -> None:
    weights, x, y = asked(ROWS + 3, models=1)
    found = last_layer(MODULE, weights[0], x, y)
    for at in (0, ROWS - 1, ROWS + 2):
        point = {name: value.requires_grad_(True) for name, value in unflatten(MODULE, weights[0]).items()}
        logits = torch.func.functional_call(MODULE, point, x[at : at + 1])
        loss = nn.functional.cross_entropy(logits, y[at : at + 1])
        by_weight, by_bias = torch.autograd.grad(loss, [point["3.weight"], point["3.bias"]])
        formed = found.backs[at][:, None] * found.inputs[at][None, :]
        assert torch.allclose(formed, torch.cat([by_weight, by_bias[:, None]], dim=1), atol=1e-6)
        assert torch.allclose(found.norms()[at], formed.norm(), atol=1e-6)
    assert not MODULE[3]._forward_hooks


def test_a_model_without_a_linear_layer_has_no_last_layer_gradients() -> None:
    image = nn.Sequential(nn.Unflatten(1, (1, 5)), nn.Conv1d(1, 4, 5), nn.Flatten())
    _, x, y = asked(3)
    with pytest.raises(InputError, match="leave out network-gradients"):
        last_layer(image, torch.from_numpy(flat_weights(image)), x, y)
