"""Clipped gradients of single records in logistic regression, in closed form.

With one linear layer the gradient of a record's cross-entropy is the outer product of softmax(logits) minus
the label's one-hot vector with the record, and with 1 for the bias. So nothing passes back. On a model so
small most of the time is spent in calls, and not in arithmetic: the way of chains with several layers
(`fedprivacy.training.linear`) takes three times as long for 64 records of 64 features. Classes stand before
records here, since a sum over a few classes is slow where they lie side by side.
"""

from __future__ import annotations

from typing import TypeGuard

import numpy as np
import torch
from torch import Tensor, nn

from fedprivacy.training.linear import FACTOR_LIMIT, is_linear
from fedprivacy.training.shares import shares_of


def is_logistic(module: nn.Module) -> TypeGuard[nn.Sequential]:
    """Whether a module is one linear layer, maybe with flattening before it, and nothing more."""
    return is_linear(module) and [type(layer) for layer in module] in ([nn.Linear], [nn.Flatten, nn.Linear])


def logistic_sums(
    module: nn.Sequential, weights: Tensor, x: Tensor, y: Tensor, used: Tensor, clipping_norm: float | None
) -> tuple[Tensor, Tensor]:
    """The clipped sums of clients with such a model, and how many records counted as zero.

    Arguments and results as in `fedprivacy.training.examples.clipped_sums`; records that do not count hold
    finite numbers.

    Raises:
        IndexError: A label is out of range.
    """
    *_, layer = module
    parts, inputs = weights.numpy(), x.numpy()
    if len(module) > 1:
        inputs = inputs.reshape(*y.shape, -1)
    features, size = layer.in_features, layer.in_features * layer.out_features
    matrix = torch.from_numpy(parts[..., :size].reshape(-1, layer.out_features, features))
    if weights.ndim == 1:
        matrix = matrix.expand(len(y), -1, -1)
    logits = torch.bmm(matrix, torch.from_numpy(inputs.swapaxes(1, 2)))
    has_bias = parts.shape[-1] > size
    if has_bias:
        sums = logits.numpy()
        with np.errstate(invalid="ignore"):
            sums += parts[..., size:, None]
    back, labels = torch.softmax(logits, 1), y.numpy()
    if np.minimum.reduce(labels, axis=None) < 0:
        raise IndexError("a label is below 0")
    backs, (clients, records) = back.numpy(), labels.shape
    backs[np.arange(clients)[:, None], labels, np.arange(records)] -= 1.0
    outer = np.add.reduce(np.square(backs, dtype=np.float64), axis=1)  # at most 2, or NaN
    inner = np.einsum("cri,cri->cr", inputs, inputs, dtype=np.float64)
    norms = np.where(inner <= FACTOR_LIMIT**2, np.sqrt(outer * (inner + has_bias)), np.inf)  # not so for NaN
    shares, zeroed = shares_of(torch.from_numpy(norms), used, clipping_norm)
    each = shares.numpy()
    backs *= each[:, None]
    if np.count_nonzero(each) < each.size:  # 0 * NaN would be NaN
        np.copyto(backs, 0.0, where=each[:, None] == 0)
        if zeroed.numpy().any():
            inputs = np.where(each[..., None] == 0, np.float32(0), inputs)
    sums = np.empty((len(y), parts.shape[-1]), dtype=np.float32)
    sums[:, :size] = torch.bmm(back, torch.from_numpy(inputs)).numpy().reshape(len(y), size)
    if has_bias:
        np.add.reduce(backs, axis=2, out=sums[:, size:])
    return torch.from_numpy(sums), zeroed
