"""Losses of single records: their gradients against autograd and finite differences."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from fedprivacy.data.tasks import CLASSIFICATION, MULTI_LABEL, NEXT_TOKEN, REGRESSION
from fedprivacy.models.losses import (
    CROSS_ENTROPY,
    Huber,
    LabelCrossEntropy,
    Loss,
    NextToken,
    SquaredError,
    loss_of,
)

LOSSES = {
    "cross-entropy": CROSS_ENTROPY,
    "squared": SquaredError(),
    "huber": Huber(0.3),
    "labels": LabelCrossEntropy(),
    "tokens": NextToken(),
}


def drawn(loss: Loss, records: int = 7, outputs: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    stream = np.random.default_rng(5)
    logits = torch.from_numpy(stream.normal(size=(records, outputs)).astype(np.float32))
    if loss.task == CLASSIFICATION:
        return logits, torch.from_numpy(stream.integers(0, outputs, records))
    if loss.task == NEXT_TOKEN:
        logits = torch.from_numpy(stream.normal(size=(records, 4, outputs)).astype(np.float32))
        return logits, torch.from_numpy(stream.integers(0, outputs, (records, 4)))
    if loss.task == MULTI_LABEL:
        return logits, torch.from_numpy(stream.integers(0, 2, (records, outputs)).astype(np.float32))
    return logits, torch.from_numpy(stream.normal(size=(records, outputs)).astype(np.float32))


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_gradients_are_those_of_autograd_and_of_finite_differences(loss: Loss) -> None:
    outputs, targets = drawn(loss)
    at = outputs.clone().requires_grad_(True)
    shares = torch.arange(len(outputs)) / 10
    [expected] = torch.autograd.grad((loss.losses(at, targets) * shares).sum(), at)
    torch.testing.assert_close(loss.gradient(outputs, targets, shares), expected)
    exact = outputs.double()
    for place in ((0, 0), (3, 2)):
        place = place if exact.ndim == 2 else (*place, 1)
        step = torch.zeros_like(exact)
        step[place] = 1e-5
        slope = (loss.total(exact + step, targets) - loss.total(exact - step, targets)) / 2e-5
        assert loss.gradient(outputs, targets)[place] == pytest.approx(float(slope), abs=1e-4)


def test_losses_are_those_of_torch() -> None:
    for loss, theirs in (
        (SquaredError(), nn.MSELoss()),
        (Huber(0.3), nn.HuberLoss(delta=0.3)),
        (LabelCrossEntropy(), nn.BCEWithLogitsLoss()),
        (CROSS_ENTROPY, nn.CrossEntropyLoss()),
    ):
        outputs, targets = drawn(loss)
        assert float(loss.losses(outputs, targets).mean()) == pytest.approx(float(theirs(outputs, targets)))
        assert float(loss.total(outputs, targets)) / 7 == pytest.approx(float(theirs(outputs, targets)))


def test_the_loss_of_a_text_is_the_mean_over_its_positions() -> None:
    outputs, targets = drawn(NextToken())
    each = nn.functional.cross_entropy(outputs.movedim(2, 1), targets, reduction="none")
    torch.testing.assert_close(NextToken().losses(outputs, targets), each.mean(dim=1))
    assert float(NextToken().total(outputs, targets)) == pytest.approx(float(each.mean(dim=1).sum()))
    targets[0, 1] = -100
    with pytest.raises(IndexError, match="token is below 0"):
        NextToken().check(targets)


def test_the_slope_of_hubers_loss_is_bounded() -> None:
    outputs = torch.tensor([[-100.0], [0.1], [100.0]])
    assert Huber(0.5).gradient(outputs, torch.zeros(3, 1)).flatten().tolist() == pytest.approx(
        [-0.5, 0.1, 0.5]
    )


def test_each_task_has_its_loss() -> None:
    assert loss_of(CLASSIFICATION) is CROSS_ENTROPY
    assert loss_of(REGRESSION) == SquaredError()
    assert loss_of(REGRESSION, "huber", 0.1) == Huber(0.1)
    assert loss_of(MULTI_LABEL) == LabelCrossEntropy()
    for loss in LOSSES.values():
        assert loss_of(loss.task).task == loss.task
        outputs = torch.zeros(4, 3, 2) if loss.task == NEXT_TOKEN else torch.zeros(4, 2)
        assert loss.losses(outputs, loss.example_targets(torch.zeros(4, 3), 2)).shape == (4,)
