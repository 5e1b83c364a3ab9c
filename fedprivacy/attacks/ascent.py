"""Gradient ascent on targets: Nasr, Shokri and Houmansadr 2019, section IV."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from fedprivacy.attacks.signals import Probe


@dataclass(frozen=True)
class Ascent:
    """Gradient ascent by which an attacker raises the loss on its targets.

    Args:
        level: Repeat steps until every target's loss is at this level; None: one raw step, the paper's
            theta + step * dL/dtheta, which gains little once the model has converged.
        step: The length of a step to a level; of a raw step the factor gamma of the gradient.
        tries: The most steps to a level.
    """

    level: float | None = 3.0
    step: float = 0.1
    tries: int = 60

    def climb(self, probe: Probe, weights: Tensor) -> Tensor:
        """The weights after the ascent on all records of the probe, shape (parameters,)."""
        if self.level is None:
            return weights + self.step * probe.mean_gradient(weights)[0]
        for _ in range(self.tries):
            gradient, losses = probe.mean_gradient(weights, below=self.level)
            length = float(gradient.norm())
            if float(losses.min()) >= self.level or length == 0.0:
                break
            weights = weights + (self.step / length) * gradient
        return weights
