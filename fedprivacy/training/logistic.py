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

from fedprivacy.training.linear import FACTOR_LIMIT, is_linear, lengths
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
    layer, clients, labels = module[-1], len(y), y.numpy()
    classes, features = layer.out_features, layer.in_features
    if labels.min() < 0 or labels.max() >= classes:
        raise IndexError("a label is out of range")
    inputs = x.flatten(2) if len(module) > 1 else x
    matrix = weights[..., : classes * features].unflatten(-1, (classes, features))
    if weights.ndim == 1:
        matrix = matrix.expand(clients, -1, -1)
    # A few numbers for each record: numpy's calls take a fraction of torch's.
    logits = torch.bmm(matrix, inputs.mT)
    if layer.bias is not None:
        with np.errstate(invalid="ignore"):
            logits.numpy()[:] += weights.numpy()[..., classes * features :, None]
    back = torch.softmax(logits, 1)
    backs = back.numpy()
    backs -= labels[:, None] == np.arange(classes)[:, None]
    with np.errstate(invalid="ignore"):
        inner = lengths(inputs)
        outer = np.square(backs, dtype=np.float64).sum(axis=1)  # at most 2, or NaN
        norms = np.sqrt(outer * (inner * inner + (layer.bias is not None)))
    norms[~(inner <= FACTOR_LIMIT)] = np.inf
    shares, zeroed = shares_of(torch.from_numpy(norms), used, clipping_norm)
    each = shares.numpy()[:, None]
    backs *= each
    if not each.all():  # 0 * NaN would be NaN
        np.copyto(backs, 0.0, where=each == 0)
        if zeroed.numpy().any():
            inputs = inputs.masked_fill(shares[..., None] == 0, 0.0)
    sums = np.empty((clients, weights.shape[-1]), dtype=np.float32)
    sums[:, : classes * features] = torch.bmm(back, inputs).numpy().reshape(clients, -1)
    if layer.bias is not None:
        backs.sum(axis=2, out=sums[:, classes * features :])
    return torch.from_numpy(sums), zeroed
