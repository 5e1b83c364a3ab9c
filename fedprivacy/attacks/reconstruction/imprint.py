"""Rebuilds many records of one update by imprints: bins of a public quantile (Fowl et al. 2022).

"Robbing the Fed: directly obtaining private data in federated learning with modified models". A malicious
server gives the first layer the same weights for every output, so that all measure the brightness of a
picture, and minus a quantile of public pictures as its bias. Output i passes the pictures brighter than
quantile i. The next layer treats all outputs alike, so that a record has the same gradient d at each output
that passes it. The difference of the gradients of neighbouring outputs is then of the records of one bin, and
of a record that is alone there d x and d.

With k bins of equal mass a record is alone among n with probability (1 - 1/k)^(n - 1).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import nn

from fedprivacy.attacks.reconstruction.analytic import FirstLayer, Vector
from fedprivacy.errors import InputError


def quantiles(public: NDArray[np.float64], bins: int) -> Vector:
    """The lower edges of bins of equal mass by brightness, rising, shape (bins,).

    Args:
        public: Public pictures, shape (pictures, pixels).
        bins: The number of bins.

    Raises:
        InputError: more bins than public pictures.
    """
    if bins > len(public):
        raise InputError(
            f"bins = {bins}: there are {len(public)} public pictures to take quantiles of. At most as many."
        )
    brightness = public.mean(axis=1)
    edges = np.quantile(brightness, np.arange(bins) / bins)
    edges[0] = min(0.0, 2 * brightness.min() - brightness.max())  # the lowest bin takes all that are darker
    return edges


def imprinted(weights: NDArray[np.float32], module: nn.Module, edges: Vector) -> NDArray[np.float32]:
    """The weights of a model whose first layer is an imprint: any model of its architecture takes them.

    Args:
        weights: The global model, whose other layers stay, float32, shape (parameters,).
        module: An MLP whose first layer has an output for each bin, and a ReLU behind it.
        edges: The lower edges of the bins.

    Raises:
        InputError: the model has another architecture.
    """
    layer = FirstLayer.of(module)
    reason = unfit(module, len(edges))
    if reason:
        raise InputError(f"the model: {reason}.")
    sent = weights.astype(np.float32)
    first, bias = layer.parts(sent)
    first[:] = 1.0 / layer.inputs
    bias[:] = -edges
    assert isinstance(module, nn.Sequential)
    second = [part for part in module if isinstance(part, nn.Linear)][1]
    start = layer.outputs * (layer.inputs + 1)
    # Signs in turn: no mean of the rows is that of a row, so that each class has a gradient.
    signs = np.where(np.arange(second.out_features) % 2, -1.0, 1.0)
    rows = sent[start : start + second.weight.numel()].reshape(second.weight.shape)
    rows[:] = signs[:, None] / layer.outputs
    return sent


def unfit(module: nn.Module, bins: int) -> str:
    """The reason why an imprint needs another architecture than a model has; empty if it needs none."""
    layers = [part for part in module.children() if not isinstance(part, nn.Flatten)]
    if [type(part) for part in layers[:3]] != [nn.Linear, nn.ReLU, nn.Linear]:
        return "an imprint needs a linear layer with a ReLU, and a linear layer behind them"
    outputs = layers[0].out_features
    if outputs != bins:
        return f"an imprint of {bins} bins needs a first layer of {bins} outputs, and it has {outputs}"
    return ""


def rebuild_records(update: Vector, layer: FirstLayer) -> Vector:
    """A picture for each bin, shape (bins, inputs): that of its record, if it holds one alone.

    Args:
        update: Flat, as the attacker received it, shape (parameters,).
        layer: The imprint, with its outputs in the order of rising edges.
    """
    weights, bias = layer.parts(update)
    pictures = weights - np.vstack([weights[1:], np.zeros((1, layer.inputs))])
    sizes = bias - np.append(bias[1:], 0.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return pictures / sizes[:, None]
