"""Server optimizers: how the averaged update moves the model (FedOpt, Reddi et al. 2021)."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fedprivacy.scenario.sections import AdamServer, MomentumServer, SgdServer

Vector = NDArray[np.float64]


class ServerOptimizer(Protocol):
    """Moves float64 weights by an averaged update; `state` is the checkpoint's part."""

    state: dict[str, Vector]

    def step(self, weights: Vector, update: Vector) -> Vector:
        """The next weights, shape (parameters,); `update` points downhill, as clients send it."""
        ...


class Sgd:
    """weights + learning_rate * update: FedAvg (McMahan et al. 2017) where the rate is 1."""

    def __init__(self, options: SgdServer, parameters: int) -> None:
        self.learning_rate = options.learning_rate
        self.state: dict[str, Vector] = {}

    def step(self, weights: Vector, update: Vector) -> Vector:
        """The next weights, shape (parameters,)."""
        return weights + self.learning_rate * update


class Momentum:
    """FedAvgM (Hsu et al. 2019): velocity = momentum * velocity + update."""

    def __init__(self, options: MomentumServer, parameters: int) -> None:
        self.learning_rate, self.momentum = options.learning_rate, options.momentum
        self.state = {"velocity": np.zeros(parameters)}

    def step(self, weights: Vector, update: Vector) -> Vector:
        """The next weights, shape (parameters,)."""
        self.state["velocity"] = self.momentum * self.state["velocity"] + update
        return weights + self.learning_rate * self.state["velocity"]


class Adam:
    """FedAdam (Reddi et al. 2021, algorithm 2): no bias correction, adaptivity tau outside the root."""

    def __init__(self, options: AdamServer, parameters: int) -> None:
        self.learning_rate, self.tau = options.learning_rate, options.adaptivity
        self.betas = (options.beta1, options.beta2)
        # The paper starts the second moment at tau^2, so that the first steps stay bounded.
        self.state = {"first": np.zeros(parameters), "second": np.full(parameters, self.tau**2)}

    def step(self, weights: Vector, update: Vector) -> Vector:
        """The next weights, shape (parameters,)."""
        (beta1, beta2), state = self.betas, self.state
        state["first"] = beta1 * state["first"] + (1 - beta1) * update
        state["second"] = beta2 * state["second"] + (1 - beta2) * update**2
        return weights + self.learning_rate * state["first"] / (np.sqrt(state["second"]) + self.tau)


def server_optimizer(options: SgdServer | MomentumServer | AdamServer, parameters: int) -> ServerOptimizer:
    """The optimizer that a scenario names, for a flat vector of `parameters` entries."""
    if isinstance(options, MomentumServer):
        return Momentum(options, parameters)
    if isinstance(options, AdamServer):
        return Adam(options, parameters)
    return Sgd(options, parameters)
