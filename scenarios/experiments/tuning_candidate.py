"""One candidate of a choice of settings: trained through the real apps, and scored."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from clients.app import make_app
from clients.fleet import Fleet
from fedprivacy.errors import InputError, RunError
from fedprivacy.guarantees.ledger import Ledger
from fedprivacy.io.processes import use_one_thread
from fedprivacy.mechanisms.central import CentralMechanism
from fedprivacy.models.by_name import unflatten
from fedprivacy.models.evaluation import evaluate
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.plan.run_streams import run_streams
from fedprivacy.population.clients import Population, population
from fedprivacy.population.partition import Partition
from fedprivacy.randomness.streams import Streams
from fedprivacy.sampling.cohorts import FixedSampling, SeparatedSampling
from fedprivacy.scenario import Scenario
from fedprivacy.scenario.tune import TuneScenario
from fedprivacy.scenario.tune.sections import StoppingTune
from fedprivacy.training.model_spec import model_of
from fedprivacy.tuning.scores import NoisyScore, shares
from scenarios.engines.embedded import EmbeddedGrid
from server.app import federation_of

LEAST_PUBLIC = 10  # simulated clients; fewer do not represent many


@dataclass(frozen=True)
class Trained:
    """A trained model: its flat weights and its evaluator.

    Args:
        weights: Shape (parameters,).
        module: The model to evaluate them with.
    """

    weights: NDArray[np.float32]
    module: torch.nn.Module

    def accuracy(self, x: NDArray[np.float32], y: NDArray[np.int64]) -> float:
        """The share of records that it names rightly."""
        return evaluate(self.module, self.weights, x, y).accuracy

    def shares(self, people: Population) -> NDArray[np.float64]:
        """Of each client's own records, shape (clients,)."""
        return shares(self.right(people, people.partition.order), people.partition.offsets)

    def right(self, people: Population, order: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether it names each record of a data set rightly, shape (records,)."""
        right = np.empty(len(order), dtype=np.bool_)
        parameters = torch.from_numpy(self.weights)
        for start in range(0, len(order), 8192):
            rows = order[start : start + 8192]
            right[start : start + 8192] = _right(self.module, parameters, people, rows)
        return right


@torch.no_grad()
def _right(
    module: torch.nn.Module, weights: torch.Tensor, people: Population, rows: NDArray[np.int64]
) -> NDArray[np.bool_]:
    logits = torch.func.functional_call(
        module, unflatten(module, weights), torch.from_numpy(np.asarray(people.dataset.x[rows]))
    )
    return np.asarray(logits.argmax(dim=1).numpy() == people.dataset.y[rows])


def train(scenario: Scenario, plan: Plan, people: Population, *, allow_code: bool = False) -> Trained:
    """Runs all rounds of a scenario in this process, and keeps its final model alone.

    Args:
        scenario: What is trained.
        plan: Its plan.
        people: The clients, with their records.
        allow_code: Whether the scenario may run code (`--allow-code`).
    """
    use_one_thread()
    fleet = Fleet.of(scenario, people, plan, allow_code=allow_code)
    grid = EmbeddedGrid(make_app(fleet), [{"partition-id": 0, "num-partitions": 1}])
    federation, module = federation_of(grid, scenario, Ledger(plan), people, fleet.model)
    for number in range(plan.rounds):
        federation.round(number)
    return Trained(np.asarray(federation.released, dtype=np.float32), module)


@dataclass(frozen=True)
class PublicSplit:
    """The public records as stand-ins for clients' data: one half trains, the other half scores.

    Args:
        people: Clients of as many records as the private ones have in the mean.
        x: The records that score, shape (records, *features).
        y: Their labels, shape (records,).
    """

    people: Population
    x: NDArray[np.float32]
    y: NDArray[np.int64]

    @classmethod
    def of(cls, people: Population, seed: int) -> PublicSplit:
        """The halves of the public records, drawn by a seed.

        Raises:
            InputError: they make too few clients.
        """
        shuffled = Streams(seed).stream("tune/public").permutation(people.partition.public)
        size = max(1, round(float(people.partition.sizes.mean())))
        clients = len(shuffled) // 2 // size
        if clients < LEAST_PUBLIC:
            raise InputError(
                f"data.public_fraction: half of the {len(shuffled)} public records make {clients} clients of "
                f"{size} records, and it takes {LEAST_PUBLIC}: set a larger one."
            )
        training, held = shuffled[: clients * size], shuffled[clients * size :]
        offsets = np.arange(clients + 1) * size
        stand_ins = Partition(training, offsets, np.arange(0))
        data = people.dataset
        return cls(Population(data, stand_ins), np.asarray(data.x[held]), data.y[held])

    def plan(self, plan: Plan) -> Plan:
        """A plan for so few clients, with the noise in the mean update that the real one has.

        Raises:
            InputError: there are fewer clients than rounds that keep them apart.
        """
        share = self.people.partition.clients / plan.population
        sampler = plan.sampler
        if isinstance(sampler, FixedSampling):
            sampler = FixedSampling(max(1, round(sampler.cohort * share)))
        if isinstance(sampler, SeparatedSampling):
            clients = self.people.partition.clients
            room = clients // sampler.separation
            if not room:
                raise InputError(
                    f"sampling.separation = {sampler.separation}: candidates are tried on {clients} clients "
                    f"of public records, who cannot come so far apart: at most {clients}, or set a larger "
                    "data.public_fraction."
                )
            sampler = replace(sampler, cohort=max(1, min(room, round(sampler.cohort * share))))
        mechanism = plan.mechanism
        if isinstance(mechanism, CentralMechanism):
            mechanism = mechanism.scaled(share)
        return replace(plan, population=self.people.partition.clients, sampler=sampler, mechanism=mechanism)


def by_public(scenario: TuneScenario, number: int, plan: Plan, allow_code: bool) -> dict[str, Any]:
    """Trains a candidate on the public split, in any process.

    Returns:
        Its accuracy on the other half, and the sum of the shares of each client's records that it names
        rightly, which is private.
    """
    people = population(scenario.data)
    split = PublicSplit.of(people, scenario.seed)
    trained = train(scenario.candidate(number), split.plan(plan), split.people, allow_code=allow_code)
    private = 0.0 if scenario.tune.method == "public" else float(trained.shares(people).sum())
    accuracy, records = trained.accuracy(split.x, split.y), len(split.y)
    return {"candidate": number, "accuracy": accuracy, "records": records, "private": private}


def by_clients(
    scenario: TuneScenario, number: int, seed: int, plan: Plan, allow_code: bool
) -> dict[str, Any]:
    """Trains a candidate on the clients and scores it there, in any process: both are charged for.

    Returns:
        Its noisy score, or None where the training failed, and then why: a try that fails is the worst of
        all. If it ended the choice instead, that would reveal a try that must stay secret.
    """
    assert isinstance(scenario.tune, StoppingTune)
    people = population(scenario.data)
    candidate = scenario.candidate(number, seed)
    try:
        trained = train(candidate, plan, people, allow_code=allow_code)
    except RunError as error:
        return {"candidate": number, "score": None, "failed": str(error)[:500]}
    stream = run_streams(candidate, people, model_of(candidate, people, allow_code=allow_code).code).noise(
        f"tune/score/{scenario.tune.score_noise}"
    )
    score = NoisyScore(scenario.tune.score_noise).draw(trained.shares(people), stream)
    return {"candidate": number, "score": score}
