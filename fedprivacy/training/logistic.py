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
    *_, layer = module
    parts, labels = weights.numpy(), y.numpy()
    classes, features = layer.out_features, layer.in_features
    size = classes * features
    if labels.view(np.uint64).max() >= classes:  # those below 0 are huge then
        raise IndexError("a label is out of range")
    inputs, biased = x.flatten(2) if len(module) > 1 else x, parts.shape[-1] > size
    matrix = torch.from_numpy(parts[..., :size].reshape(-1, classes, features))
    logits = torch.bmm(matrix.expand(len(y), -1, -1), inputs.mT)
    if biased:
        logits += torch.from_numpy(parts[..., size:, None])
    back = torch.softmax(logits, 1)
    # A few numbers for each record: numpy's calls take a fraction of torch's.
    backs, inner = back.numpy(), lengths(inputs)
    backs -= labels[:, None] == np.arange(classes)[:, None]
    outer = np.add.reduce(np.square(backs, dtype=np.float64), axis=1)  # at most 2, or NaN
    norms = np.where(inner <= FACTOR_LIMIT, np.sqrt(outer * (inner * inner + biased)), np.inf)  # not so for NaN
    shares, zeroed = shares_of(torch.from_numpy(norms), used, clipping_norm)
    each = shares.numpy()[:, None]
    backs *= each
    if not each.all():  # 0 * NaN would be NaN
        np.copyto(backs, 0.0, where=each == 0)
        if zeroed.numpy().any():
            inputs = inputs.masked_fill(shares[..., None] == 0, 0.0)
    sums = np.empty((len(y), parts.shape[-1]), dtype=np.float32)
    sums[:, :size] = torch.bmm(back, inputs).numpy().reshape(len(y), size)
    if biased:
        np.add.reduce(backs, axis=2, out=sums[:, size:])
    return torch.from_numpy(sums), zeroed
