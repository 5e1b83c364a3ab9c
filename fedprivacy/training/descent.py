"""Steps SGD for many clients at once: momentum, weight decay, proximal term."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from fedprivacy.training.task import LocalTraining

Weights = dict[str, Tensor]


def descended(
    steps: Weights,
    current: Mapping[str, Tensor],
    start: Mapping[str, Tensor],
    velocity: Weights,
    options: LocalTraining,
    idle: Tensor,
) -> Weights:
    """The step of the weights, before the learning rate: as `torch.optim.SGD` has it.

    Args:
        steps: The gradients, each of shape (clients, *shape); they are used up.
        current: Where the clients are.
        start: The weights that they were sent.
        velocity: The last step of each; it is replaced by this one's.
        options: Their optimiser.
        idle: Which clients have no batch left, bool, shape (clients,).
    """
    for name, direction in steps.items():
        if options.proximal:
            direction = direction + options.proximal * (current[name] - start[name])
        if options.weight_decay:
            direction = direction + options.weight_decay * current[name]
        if options.momentum:
            direction = direction + options.momentum * velocity.get(name, 0.0)
            velocity[name] = direction
        steps[name] = direction
    # A client that has no batch left stays where it is, whatever its momentum and weight decay.
    if idle.any():
        done = idle.nonzero().flatten()
        steps = {name: direction.index_fill(0, done, 0.0) for name, direction in steps.items()}
    return steps
