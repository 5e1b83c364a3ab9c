"""Clipped gradients of single records in logistic regression, in closed form.

With one linear layer the gradient of a record's cross-entropy is the outer product of softmax(logits) minus
the label's one-hot vector with the record, and with 1 for the bias. No backward pass is needed. The time of
such a small model is the overhead of calls, not arithmetic: with few calls a step of DP-SGD on 64 or 256
records of 64 features takes half as long as by the factors of a chain
(`fedprivacy.training.linear_gradients`).
Classes come before records in memory, since short rows are slow to sum.
"""

from __future__ import annotations

from typing import TypeGuard

import numpy as np
import torch
from torch import Tensor, nn

from fedprivacy.training.clipping_factors import shares_of
from fedprivacy.training.linear_gradients import FACTOR_LIMIT, is_linear


def is_logistic(module: nn.Module) -> TypeGuard[nn.Sequential]:
    """Whether a module is one linear layer, maybe with flattening before it, and nothing more."""
    return is_linear(module) and [type(layer) for layer in module] in ([nn.Linear], [nn.Flatten, nn.Linear])


def logistic_sums(
    module: nn.Sequential, weights: Tensor, x: Tensor, y: Tensor, used: Tensor, clipping_norm: float | None
) -> tuple[Tensor, Tensor]:
    """The clipped sums of clients with such a model, and how many records counted as zero.

    Arguments and results as in `fedprivacy.training.clipped_gradients.clipped_sums`; records that do not
    count hold finite numbers.

    Raises:
        IndexError: A label is out of range.
    """
    *_, layer = module
    assert isinstance(layer, nn.Linear)
    classes, features = layer.out_features, layer.in_features
    parts, inputs, labels, size = weights.numpy(), x.numpy(), y.numpy(), classes * features
    if np.maximum.reduce(labels.view(np.uint64), axis=None) >= classes:  # those below 0 are huge there
        raise IndexError("a label is out of range")
    if len(module) > 1:
        inputs = inputs.reshape(*labels.shape, -1)
    matrix = torch.from_numpy(parts[..., :size].reshape(-1, classes, features))
    if weights.ndim == 1:
        matrix = matrix.expand(len(y), -1, -1)
    columns, has_bias = torch.from_numpy(inputs.swapaxes(1, 2)), parts.shape[-1] > size
    if has_bias:
        logits = torch.baddbmm(torch.from_numpy(parts[..., size:, None]), matrix, columns)
    else:
        logits = torch.bmm(matrix, columns)
    # A few numbers for each record: numpy's calls take a fraction of torch's.
    back = torch.softmax(logits, 1)
    backs = back.numpy()
    backs -= labels[:, None] == np.arange(classes)[:, None]
    outer = np.add.reduce(np.square(backs, dtype=np.float64), axis=1)  # at most 2, or NaN
    inner = np.einsum("cri,cri->cr", inputs, inputs, dtype=np.float64)
    norms = np.sqrt(outer * (inner + has_bias))
    norms = np.where(inner <= FACTOR_LIMIT**2, norms, np.inf)  # not so for NaN
    shares, zeroed = shares_of(torch.from_numpy(norms), used, clipping_norm)
    each = shares.numpy()
    backs *= each[:, None]
    if np.count_nonzero(each) < each.size:  # 0 * NaN would be NaN
        np.copyto(backs, 0.0, where=each[:, None] == 0)
        if zeroed.numpy().any():
            inputs = np.where(each[..., None] == 0, np.float32(0), inputs)
    sums = torch.bmm(back.double(), torch.from_numpy(inputs).double()).numpy().reshape(len(y), size)
    if has_bias:
        sums = np.concatenate((sums, np.add.reduce(backs, axis=2, dtype=np.float64)), axis=1)
    return torch.from_numpy(sums), zeroed
