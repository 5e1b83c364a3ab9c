"""Rebuilds a record from the gradient of the first linear layer, exactly if it is alone.

The gradient of a record x by the weights of output i of the layer is d_i x, and by its bias d_i (Phong et al.
2018, "Privacy-preserving deep learning via additively homomorphic encryption"). An update of plain SGD
has the same ratio, whatever the learning rate, the clipping factor or the loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import nn

from fedprivacy.errors import InputError
from fedprivacy.models.partial_training import refuse_frozen
from fedprivacy.training.linear_gradients import is_linear

Vector = NDArray[np.float64]
Floats = TypeVar("Floats", np.float32, np.float64)


@dataclass(frozen=True)
class FirstLayer:
    """The place of the first linear layer in a flat vector of weights, which it begins.

    Args:
        outputs: The number of its outputs.
        inputs: The number of its inputs, the pixels of a record.
    """

    outputs: int
    inputs: int

    @classmethod
    def of(cls, module: nn.Module) -> FirstLayer:
        """The first linear layer of a model.

        Raises:
            InputError: the model is no chain of linear layers, or the first has no bias, or a part is frozen.
        """
        refuse_frozen(module, 'reconstruction from the first layer (method = "analytic" or "imprint")')
        if not is_linear(module):
            raise InputError(
                "the model: its first layer is not linear, so that its gradient is of no record itself. "
                'Take model.name = "mlp" or "logistic", or method = "inverting".'
            )
        layer = next(layer for layer in module if isinstance(layer, nn.Linear))
        if layer.bias is None:
            raise InputError("the model: its first layer has no bias to divide by. Give it one.")
        return cls(layer.out_features, layer.in_features)

    def parts(self, update: NDArray[Floats]) -> tuple[NDArray[Floats], NDArray[Floats]]:
        """The weights, shape (outputs, inputs), and the bias, shape (outputs,), of a flat vector."""
        size = self.outputs * self.inputs
        return update[:size].reshape(self.outputs, self.inputs), update[size : size + self.outputs]


def rebuild_record(update: Vector, layer: FirstLayer) -> Vector:
    """The record that an update was made of, shape (inputs,); of several records a mean.

    Least squares over the outputs: of each the ratio of weights and bias, weighted by the squared bias, which
    averages noise.

    Args:
        update: Flat, as the attacker received it, shape (parameters,).
        layer: The first layer.
    """
    weights, bias = layer.parts(update)
    total = float(bias @ bias)
    return bias @ weights / total if total > 0 else np.zeros(layer.inputs)
