"""The gradient of each record's loss by the last linear layer: what a white-box attacker sees of it.

By the weights and the bias of a linear layer it is an outer product (see
`fedprivacy.training.linear_gradients`), and is kept as its two factors.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call

from fedprivacy.attacks.released.signals import ROWS
from fedprivacy.errors import InputError
from fedprivacy.models.by_name import unflatten


@dataclass(frozen=True)
class LastLayer:
    """The gradients of some records, each the outer product of a row of both.

    Args:
        backs: The gradient of the loss by the layer's outputs, shape (records, outputs).
        inputs: What went into the layer, and a 1 for the bias, shape (records, inputs + 1).
    """

    backs: Tensor
    inputs: Tensor

    def norms(self) -> Tensor:
        """The norm of each gradient, shape (records,)."""
        return self.backs.norm(dim=1) * self.inputs.norm(dim=1)


def last_layer(module: nn.Module, weights: Tensor, x: Tensor, y: Tensor) -> LastLayer:
    """The gradients by the linear layer that a model comes to last.

    Args:
        module: The model; its trained weights are not read.
        weights: Shape (parameters,).
        x: The records, float32, shape (records, *features).
        y: Their labels, int64, shape (records,).

    Raises:
        InputError: the model has no linear layer that sees a record as one row.
    """
    backs, inputs = [], []
    passed: list[tuple[Tensor, Tensor]] = []

    def keep(_: nn.Module, given: tuple[Tensor, ...], output: Tensor) -> None:
        passed.append((given[0], output))

    hooks = [layer.register_forward_hook(keep) for layer in module.modules() if isinstance(layer, nn.Linear)]
    try:
        parameters = {
            name: value.detach().requires_grad_(True)
            for name, value in unflatten(module, weights.to(x.device)).items()
        }
        for start in range(0, len(x), ROWS):
            passed.clear()
            labels = y[start : start + ROWS]
            with torch.enable_grad():
                logits = functional_call(module, parameters, x[start : start + ROWS])
                loss = nn.functional.cross_entropy(logits, labels, reduction="sum")
                if not passed or passed[-1][1].ndim != 2 or len(passed[-1][1]) != len(labels):
                    raise InputError(
                        "model: no linear layer sees a record as one row, so that there are no last-layer "
                        "gradients; leave out network-gradients."
                    )
                given, output = passed[-1]
                [back] = torch.autograd.grad(loss, output)
            backs.append(back.detach())
            inputs.append(torch.cat([given.detach(), torch.ones_like(given[:, :1])], dim=1))
    finally:
        for hook in hooks:
            hook.remove()
    return LastLayer(torch.cat(backs), torch.cat(inputs))
