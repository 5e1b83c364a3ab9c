"""Server optimizers: how the averaged update moves the model (FedOpt, Reddi et al. 2021).

A schedule multiplies the learning rate by a number that depends on the round alone, and on no data.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fedprivacy.scenario.sections import AdamServer, MomentumServer, Server
from server.schedules import LearningRate

Vector = NDArray[np.float64]


class ServerOptimizer(Protocol):
    """Moves float64 weights by an averaged update; `state` is the checkpoint's part."""

    state: dict[str, Vector]

    def step(self, weights: Vector, update: Vector, number: int) -> Vector:
        """The weights after round `number`, shape (parameters,).

        `update` points downhill, as clients send it.
        """
        ...


class Sgd:
    """weights + learning_rate * update: FedAvg (McMahan et al. 2017) where the rate is 1."""

    def __init__(self, learning_rate: LearningRate) -> None:
        self.learning_rate = learning_rate
        self.state: dict[str, Vector] = {}

    def step(self, weights: Vector, update: Vector, number: int) -> Vector:
        """As `ServerOptimizer` has it."""
        return weights + self.learning_rate.at(number) * update


class Momentum:
    """FedAvgM (Hsu et al. 2019): velocity = momentum * velocity + update."""

    def __init__(self, options: MomentumServer, learning_rate: LearningRate, parameters: int) -> None:
        self.learning_rate, self.momentum = learning_rate, options.momentum
        self.state = {"velocity": np.zeros(parameters)}

    def step(self, weights: Vector, update: Vector, number: int) -> Vector:
        """As `ServerOptimizer` has it."""
        self.state["velocity"] = self.momentum * self.state["velocity"] + update
        return weights + self.learning_rate.at(number) * self.state["velocity"]


class Adam:
    """FedAdam (Reddi et al. 2021, algorithm 2): no bias correction, adaptivity tau outside the root."""

    def __init__(self, options: AdamServer, learning_rate: LearningRate, parameters: int) -> None:
        self.learning_rate, self.tau = learning_rate, options.adaptivity
        self.betas = (options.beta1, options.beta2)
        # The paper starts the second moment at tau^2, so that the first steps stay bounded.
        self.state = {"first": np.zeros(parameters), "second": np.full(parameters, self.tau**2)}

    def step(self, weights: Vector, update: Vector, number: int) -> Vector:
        """As `ServerOptimizer` has it."""
        (beta1, beta2), state = self.betas, self.state
        state["first"] = beta1 * state["first"] + (1 - beta1) * update
        state["second"] = beta2 * state["second"] + (1 - beta2) * update**2
        return weights + self.learning_rate.at(number) * state["first"] / (
            np.sqrt(state["second"]) + self.tau
        )


def server_optimizer(options: Server, rounds: int, parameters: int) -> ServerOptimizer:
    """The optimizer that a scenario names.

    Args:
        options: The section `server`.
        rounds: All planned rounds, over which a schedule falls.
        parameters: Of the model.
    """
    learning_rate = LearningRate.of(options, rounds)
    if isinstance(options, MomentumServer):
        return Momentum(options, learning_rate, parameters)
    if isinstance(options, AdamServer):
        return Adam(options, learning_rate, parameters)
    return Sgd(learning_rate)
