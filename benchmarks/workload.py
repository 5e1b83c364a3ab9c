"""The workload of training benchmarks: synthetic users, a model, and rounds of a real run."""

from __future__ import annotations

import json
import statistics
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from fedprivacy.io.processes import cores
from fedprivacy.randomness.streams import Streams
from fedprivacy.scenario import Scenario
from fedprivacy.training.model_spec import model_spec
from scenarios.engines.launch import Engine
from scenarios.runner import run

CLASSES = 10
EPOCHS, BATCH = 1, 10
CORES = cores()


@dataclass(frozen=True)
class Workload:
    """Federated averaging with clipping 1.0 and central Gaussian noise of multiplier 1.0 once a round.

    Args:
        features: The numbers of a record.
        model: The model, as the section of a scenario says it.
        users: The population.
        records: The records of each user.
        cohort: The clients of a round.
        device: Where they are trained, "cpu" or "cuda".
    """

    features: int
    model: str
    users: int = 1000
    records: int = 20
    cohort: int = 100
    device: str = "cpu"

    def write_data(self, folder: Path) -> Path:
        """Gaussian records, labelled by a random linear teacher, as an .npz file; the users have them IID."""
        stream, count = Streams(1).stream("benchmark-data"), self.users * self.records
        teacher = stream.standard_normal((self.features, CLASSES), dtype=np.float32)
        x = stream.standard_normal((count + 2 * CLASSES, self.features), dtype=np.float32)
        y = (x @ teacher).argmax(axis=1)
        path = folder / f"{self.features}-{count}.npz"
        np.savez(path, x_train=x[:count], y_train=y[:count], x_test=x[count:], y_test=y[count:])
        return path

    def train(self, data: Path, out: Path, workers: int, rounds: int) -> Timing:
        """Runs it.

        Args:
            data: What `write_data` wrote.
            out: Where the run's directory goes.
            workers: Processes that train clients.
            rounds: How many.
        """
        scenario = Scenario.from_text(self._text(data, rounds))
        with torch.device("meta"):
            module = model_spec(scenario.model, (self.features,), CLASSES).build(0)
        start = last = time.perf_counter()
        seconds = []

        def tick(_: object) -> None:
            nonlocal last
            now = time.perf_counter()
            seconds.append(now - last)
            last = now

        document = run(scenario, out, on_round=tick, report=False, engine=Engine(workers=workers))
        total, parameters = time.perf_counter() - start, sum(each.numel() for each in module.parameters())
        return Timing(tuple(seconds), total, parameters, document["performance"]["way"])

    def _text(self, data: Path, rounds: int) -> str:
        """The scenario; nothing is evaluated before its last round."""
        device = f'device = "{self.device}"'
        training = f"batch_size = {BATCH}, epochs = {EPOCHS}, learning_rate = 0.1, {device}"
        return f"""
            name = "benchmark"
            seed = 1
            model = {{{self.model}}}
            training = {{{training}}}
            server = {{rounds = {rounds}}}
            sampling = {{name = "fixed", cohort = {self.cohort}}}
            evaluation = {{every = 1_000_000}}

            [data]
            name = "npz"
            path = {json.dumps(str(data))}
            classes = {CLASSES}
            partition = "iid"
            clients = {self.users}

            [privacy]
            trust = "central"
            clipping_norm = 1.0
            noise_multiplier = 1.0
            delta = 1e-4
        """


@dataclass(frozen=True)
class Timing:
    """The times of a run.

    Args:
        rounds: The seconds of each; the first has all that came before it too.
        total: The seconds of all, from the scenario to the finished record.
        parameters: The numbers of an update.
        way: How clients were trained, in words.
    """

    rounds: tuple[float, ...]
    total: float
    parameters: int
    way: str

    def after(self, warmup: int) -> Timing:
        """Without the first rounds."""
        return replace(self, rounds=self.rounds[warmup:])

    @property
    def median(self) -> float:
        """The seconds of a round in the middle."""
        return statistics.median(self.rounds)
