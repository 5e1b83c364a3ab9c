"""One audited run: a scenario trained with canary clients, and each observer's view of them.

The scenario is trained twice through the real apps: with canaries, and as a rehearsal without canaries and
noise. The auditor subtracts the rehearsal's movement, and scores each canary for each observer from that
observer's view alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clients.app import make_app
from clients.fleet import Fleet
from clients.worker_pool import WorkerPool
from fedprivacy.attacks.audited_plan import audited_plan
from fedprivacy.attacks.canaries import Canaries, at_most, draw_canaries, with_canaries
from fedprivacy.attacks.measured_sensitivity import Neighbours
from fedprivacy.attacks.targets import Flags, Scores
from fedprivacy.guarantees.ledger import Ledger
from fedprivacy.io.processes import use_one_thread
from fedprivacy.mechanisms.catalogue import ClipOnly
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.population.clients import Population, population
from fedprivacy.randomness.streams import Streams
from fedprivacy.sampling.cohorts import CyclicPoissonSampling
from fedprivacy.scenario import Scenario
from scenarios.engines.embedded import EmbeddedGrid
from scenarios.experiments.neighbouring_runs import neighbours, with_partition
from server.adversary import Interposed
from server.app import federation_of
from server.audit import Auditor, Overheard

Vector = NDArray[np.float64]
_APART = 2**63  # above all seeds


@dataclass(frozen=True)
class Audited:
    """A run that is audited.

    Args:
        scenario: With the seed of this run.
        plan: The scenario's, without canaries.
        canaries: How many clients are added.
        workers: Processes that train clients.
        allow_code: Whether the scenario may run code.
        neighbours: Whether neighbouring data sets are compared too.
    """

    scenario: Scenario
    plan: Plan
    canaries: int
    workers: int = 1
    allow_code: bool = False
    neighbours: bool = False

    def fleet(self) -> Fleet:
        """The scenario's clients, and after them the canaries with all records that they may have.

        Raises:
            InputError: the canaries' directions do not fit into memory.
        """
        people = population(self.scenario.data)
        stream = Streams(self.scenario.seed).stream("canary-records")
        more = replace(people, partition=with_canaries(people.partition, self.canaries, stream))
        plan = audited_plan(self.plan, self.canaries)
        fleet = Fleet.of(self.scenario, more, plan, allow_code=self.allow_code)
        # With the noise of the scenario's own run, an observer of both could subtract it and read the coins.
        streams = replace(fleet.streams, run=f"{fleet.streams.run}/audit")
        canaries = draw_canaries(
            self.plan.population,
            self.canaries,
            fleet.parameters,
            plan.clipping_norm,
            plan.adjacency,
            streams,
        )
        return replace(fleet, canaries=canaries, streams=streams)


@dataclass(frozen=True)
class Heard:
    """The observations of an audited run.

    Args:
        scores: For each observer one score for each canary: larger means rather present.
        present: The coins, shape (canaries,).
        ledger: The releases of the run, as JSON.
        neighbours: The comparison of neighbouring data sets, if requested.
    """

    scores: dict[str, Scores]
    present: Flags
    ledger: dict[str, Any]
    neighbours: Neighbours | None = None


@dataclass(frozen=True)
class _Seen:
    """Observed rounds: the released sum, the sum of all others, and the participating canaries.

    `models` are those before the first round and after the last.
    """

    released: list[Scores]
    others: list[Scores]
    participated: list[Flags]
    messages: Scores
    moved: Scores
    models: tuple[Vector, Vector]
    ledger: dict[str, Any]


def listen(job: Audited) -> Heard:
    """Trains an audited run, in any process."""
    use_one_thread()
    fleet = job.fleet()
    assert fleet.canaries is not None
    people, canaries, plan = fleet.people, fleet.canaries, fleet.plan
    # The server's setup must not depend on the coins, so it gets all records that canaries may have.
    real = _train(job, with_partition(fleet, canaries.owned(people.partition)), people)
    # A guarantee assumes that the observer knows all other data. The auditor does, and subtracts the movement
    # of a rehearsal without canaries and noise.
    rehearsed = _train(job, _rehearsal(fleet), people)
    # If messages have no noise, the others' sum is known exactly; with cohorts of fixed size it would reveal
    # the number of canaries in the cohort, so the rehearsal's is used.
    exact = plan.trust != "local" and plan.sampler.name != "fixed"
    known = real.others if exact else rehearsed.released
    along = [released - others for released, others in zip(real.released, known, strict=True)]
    if plan.banded is not None:
        # The movement by a canary's answer in all the rounds that share its noise.
        matrix = plan.banded.strategy.matrix()
        along = list(matrix.T @ (matrix @ np.array(along)))
    cyclic = plan.sampler if isinstance(plan.sampler, CyclicPoissonSampling) else None
    rate = cyclic.rate_in_group if cyclic is not None else getattr(plan.sampler, "rate", 1.0)
    rate = rate if plan.trust == "central" else 1.0
    noise = plan.noise_multiplier if exact else None
    evidence = [_evidence(vector, rate, noise, canaries) for vector in along]
    if plan.sampler.name == "separated":  # cohorts are public here
        evidence = [
            np.where(came, vector, 0.0) for came, vector in zip(real.participated, evidence, strict=True)
        ]
    if cyclic is not None:  # groups are public
        ids = canaries.first + np.arange(canaries.count)
        evidence = [
            np.where(np.isin(ids, cyclic.members(plan.population, number)), vector, 0.0)
            for number, vector in enumerate(evidence)
        ]
    scores = {
        "server": real.messages,
        "participant": np.sum(evidence, axis=0),
        "outsider": real.moved - rehearsed.moved,
    }
    difference = None
    if job.neighbours:
        # At the initial model and at a trained one: gradients differ between them.
        both = [neighbours(fleet, canaries.first, model, job.scenario) for model in rehearsed.models]
        difference = both[0] if both[0] is None or both[1] is None else both[0].worst(both[1])
    return Heard(scores, canaries.present, real.ledger, difference)


def _evidence(along: Scores, rate: float, noise: float | None, canaries: Canaries) -> Scores:
    """The log likelihood ratio of each canary's presence in one round, shape (canaries,).

    An observer without the cohort weighs both answers by `rate`. The score is optimal by Neyman and Pearson
    if the noise is as planned, and still a valid score if it is not.

    Args:
        along: Components of the released sum, in units of C, shape (canaries,).
        rate: The probability that a canary is sampled.
        noise: The noise multiplier; None or 0: the deviation of the components.
        canaries: Their canaries.
    """
    spread = noise or max(float(along.std()), 1e-6)
    away = -1.0 if canaries.opposite else 0.0

    def likelihood(answer: float) -> Scores:
        gain = (answer * along - answer**2 / 2) / spread**2
        with np.errstate(divide="ignore"):
            return np.logaddexp(np.log1p(-rate), np.log(rate) + gain)

    return likelihood(1.0) - likelihood(away)


def _rehearsal(fleet: Fleet) -> Fleet:
    """The same clients without noise and with silent canaries: nothing in it depends on a coin.

    Canaries have one record each.
    """
    assert fleet.canaries is not None
    sizes = fleet.people.partition.sizes
    limits = np.where(np.arange(len(sizes)) < fleet.canaries.first, sizes, 1)
    fleet = with_partition(fleet, at_most(fleet.people.partition, limits))
    assert fleet.canaries is not None
    norm = fleet.plan.clipping_norm
    plan = replace(
        fleet.plan,
        trust="none",
        mechanism=None if norm is None else ClipOnly(norm),
        delta=None,
        max_participations=None,
        noise_draw=None,
    )
    # With cohorts of fixed size the others in a cohort reveal its number of canaries, so the rehearsal draws
    # its own cohorts.
    apart = _APART if plan.sampler.name == "fixed" else 0
    streams = Streams(fleet.streams.seed + apart, f"{fleet.streams.run}/rehearsal")
    return replace(fleet, plan=plan, canaries=fleet.canaries.silent(), streams=streams)


def _train(job: Audited, fleet: Fleet, people: Population) -> _Seen:
    """Trains all rounds through the real apps; `people` is the server's knowledge of the data."""
    assert fleet.canaries is not None
    canaries = fleet.canaries
    # Single messages, so that the auditor can subtract the others; with one draw of noise for a sum there are
    # only sums. `scenarios.experiments.neighbouring_runs` checks the summation on nodes.
    observe = "sum" if fleet.plan.noise_draw == "sum" else "each"
    federation_settings = job.scenario.federation.model_copy(update={"observe": observe})
    scenario = job.scenario.model_copy(update={"federation": federation_settings})
    ledger = Ledger(fleet.plan, tested=people.tests_clients(scenario.evaluation.on))
    auditor = Auditor(canaries, fleet.parameters)
    released: list[Scores] = []
    others: list[Scores] = []
    with WorkerPool(job.workers) as pool:
        grid = EmbeddedGrid(make_app(fleet, pool=pool), [{"partition-id": 0, "num-partitions": 1}])
        federation, _ = federation_of(Interposed(grid, auditor), scenario, ledger, people, fleet.model)
        federation.streams = fleet.streams

        def see(average: Vector) -> None:
            released.append(canaries.along(average * federation.denominator))
            others.append(canaries.along(auditor.others()))

        federation.optimizer = Overheard(federation.optimizer, see)
        before = federation.model.astype(np.float64)
        ids, participants = canaries.first + np.arange(canaries.count), []
        for number in range(fleet.plan.rounds):
            cohort, _ = federation.round(number)
            participants.append(np.isin(ids, cohort))
        moved = canaries.along(federation.released - before)
        models = (before, federation.model.astype(np.float64))
    return _Seen(released, others, participants, auditor.messages, moved, models, ledger.to_json())
