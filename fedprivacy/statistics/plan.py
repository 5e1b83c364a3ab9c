"""The privacy plan of a statistics run: a mechanism for each query, and the total event."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

from dp_accounting import dp_event as dp

from fedprivacy.accounting.epsilon import epsilon as cost
from fedprivacy.accounting.epsilon import noise_multiplier as least_noise
from fedprivacy.errors import InputError
from fedprivacy.io.tolerance import other_plan
from fedprivacy.mechanisms.bits import RandomizedResponse
from fedprivacy.mechanisms.categories import ORACLES, FrequencyOracle, best_oracle
from fedprivacy.mechanisms.laplace import DiscreteLaplace, Laplace
from fedprivacy.mechanisms.pure import MAX_EPSILON
from fedprivacy.mechanisms.selection import ExponentialMechanism, NoisyMax
from fedprivacy.mechanisms.sensitivity import histogram_sensitivity
from fedprivacy.scenario.statistics import Statistics
from fedprivacy.statistics.population import People, people
from fedprivacy.statistics.query_values import Question, questions_of
from fedprivacy.statistics.shuffling import message_epsilon

QueryMechanism = (
    RandomizedResponse | FrequencyOracle | Laplace | DiscreteLaplace | ExponentialMechanism | NoisyMax
)
_ORACLES = {kind.name: kind for kind in ORACLES}


@dataclass(frozen=True)
class PlannedQuery:
    """One query and its mechanism.

    Args:
        question: The query.
        mechanism: By a client, by the server, or None by nobody.
        times: How often the mechanism is applied to the same answers: once for each of several quantiles.
    """

    question: Question
    mechanism: QueryMechanism | None
    times: int = 1

    def event(self, adjacency: str) -> dp.DpEvent:
        """Its event, for the accountant."""
        if self.mechanism is None:
            return dp.NonPrivateDpEvent()
        additive = isinstance(self.mechanism, Laplace | DiscreteLaplace)
        event = self.mechanism.event(adjacency) if additive else self.mechanism.event()  # type: ignore[call-arg]
        return event if self.times == 1 else dp.SelfComposedDpEvent(event, self.times)

    def to_json(self) -> dict[str, Any]:
        """The request as a JSON object; equal if a client need not distinguish two requests."""
        mechanism = (
            None if self.mechanism is None else {"name": self.mechanism.name, **asdict(self.mechanism)}
        )
        query = self.question.query.model_dump(mode="json", exclude_none=True)
        return {"name": self.question.name, "query": query, "mechanism": mechanism, "times": self.times}


@dataclass(frozen=True)
class StatisticsPlan:
    """The privacy plan of a statistics run: everything that determines its privacy, nothing else.

    Args:
        trust: Who adds the noise: "none", "local" (each client), "shuffled" (each client, and a shuffler
            takes the senders off the messages) or "central" (the server).
        unit: The unit of privacy, "client".
        adjacency: "replace-one", "add-remove" or "zero-out".
        population: The number of clients; each answers each query once.
        delta: The delta of every guarantee; 0 is pure epsilon-DP.
        asks: The queries.
    """

    trust: str
    unit: str
    adjacency: str
    population: int
    delta: float
    asks: tuple[PlannedQuery, ...]

    @property
    def clients_randomise(self) -> bool:
        """Whether each client randomises its own answers."""
        return self.trust in ("local", "shuffled")

    def event(self) -> dp.DpEvent:
        """The event of all queries together, of one client or of everybody's totals."""
        return dp.ComposedDpEvent([ask.event(self.adjacency) for ask in self.asks])

    def totals_of(self, ask: PlannedQuery) -> int:
        """The number of totals that a query's answers are summed to."""
        if isinstance(ask.mechanism, FrequencyOracle):
            return ask.mechanism.categories
        return ask.question.cells or (
            2 if not self.clients_randomise and self.adjacency != "replace-one" else 1
        )

    def to_json(self) -> dict[str, Any]:
        """The plan as a JSON object; clients compare it with their own."""
        return self._json

    @cached_property
    def _json(self) -> dict[str, Any]:
        plain = {key: getattr(self, key) for key in ("trust", "unit", "adjacency", "population", "delta")}
        return {**plain, "asks": [ask.to_json() for ask in self.asks]}

    def refusal(self, requested: Any) -> str | None:
        """Explains why a client with this plan refuses a request for another one."""
        return other_plan(self.to_json(), requested)


def people_of(scenario: Statistics, plan: StatisticsPlan) -> People:
    """The people of a scenario, with the columns that its plan needs.

    Raises:
        InputError: if a file does not match the scenario.
    """
    return people(scenario.data, [column for ask in plan.asks for column in ask.question.columns()])


def plan_of(scenario: Statistics, population: int | None = None) -> StatisticsPlan:
    """The plan of a scenario, with the budget shared by weight.

    With a delta above 0 the shares grow until their composition fills the budget.

    Args:
        scenario: The scenario.
        population: The number of clients, if it is known without reading the data.

    Raises:
        InputError: if a mechanism is impossible at its part of the budget.
    """
    privacy, questions = scenario.privacy, questions_of(scenario)
    plan = StatisticsPlan(
        trust=privacy.trust,
        unit=privacy.unit,
        adjacency=privacy.adjacency,
        population=scenario.population if population is None else population,
        delta=privacy.delta,
        asks=tuple(PlannedQuery(question, None) for question in questions),
    )
    if privacy.epsilon is None:
        return plan
    weights = [question.query.weight for question in questions]
    shares = [privacy.epsilon * weight / math.fsum(weights) for weight in weights]

    def stretched(noise: float) -> StatisticsPlan:
        asks = (
            _ask(question, plan, share / noise) for question, share in zip(questions, shares, strict=True)
        )
        return replace(plan, asks=tuple(asks))

    if plan.trust == "shuffled":
        return stretched(privacy.epsilon / message_epsilon(privacy.epsilon, plan.population, plan.delta))
    if plan.delta == 0:
        return stretched(1.0)
    try:
        if plan.trust == "local":
            # Randomised response has a largest epsilon, so a larger budget cannot be spent.
            richest = stretched(min(shares) / MAX_EPSILON)
            if cost(richest.event(), plan.delta, plan.adjacency).epsilon <= privacy.epsilon:
                return richest
        least = least_noise(
            lambda noise: stretched(noise).event(), privacy.epsilon, plan.delta, plan.adjacency
        )
    except InputError as error:
        raise InputError(
            f"privacy.delta = {plan.delta:g}: epsilon = {privacy.epsilon:g} cannot be shared at it: {error} "
            "With privacy.delta = 0 epsilons add up, and need no accountant."
        ) from error
    return stretched(least)


def _ask(question: Question, plan: StatisticsPlan, epsilon: float) -> PlannedQuery:
    """The mechanism of one query for its part of the budget."""
    try:
        if plan.clients_randomise:
            return PlannedQuery(question, _local(question, min(epsilon, MAX_EPSILON), plan.trust))
        times = len(question.query.quantiles) if question.kind == "quantile" else 1
        mechanism = _central(question, plan.adjacency, epsilon, times)
        return PlannedQuery(question, mechanism, times if isinstance(mechanism, ExponentialMechanism) else 1)
    except InputError as error:
        raise InputError(f"queries.{question.name}: {error}") from error


def _local(question: Question, epsilon: float, trust: str) -> QueryMechanism:
    mechanism = question.query.local
    assert (trust, mechanism) != ("shuffled", "laplace"), "the rules of scenarios refuse it"
    if question.cells:
        cells = question.cells + (question.votes > 1)  # and none of them
        return best_oracle(cells, epsilon) if mechanism == "auto" else _ORACLES[mechanism](cells, epsilon)
    coin, noise = RandomizedResponse(epsilon), Laplace(epsilon, 1.0)
    if mechanism == "auto" and trust == "shuffled":
        return coin
    if mechanism == "auto":
        # For bits randomised response has the least error; rounding a number to a bit first adds variance.
        by_coin = question.kind != "mean" or coin.variance(1) <= noise.variance
        return coin if by_coin else noise
    return coin if mechanism == "randomized-response" else noise


def _central(question: Question, adjacency: str, epsilon: float, times: int) -> QueryMechanism:
    mechanism, monotone = question.query.central, adjacency != "replace-one"
    if question.kind == "most-common" and mechanism != "all-counts":
        if mechanism == "exponential-mechanism":
            return ExponentialMechanism(epsilon, 1.0, monotone)
        return NoisyMax.for_counts(
            epsilon, adjacency, "laplace" if mechanism == "noisy-max" else "permute-and-flip"
        )
    if question.kind == "quantile" and mechanism != "all-counts":
        # Of the clients at or below a candidate, less the share that should be there, one client moves 1.
        return ExponentialMechanism(epsilon / times, 1.0)
    if question.kind == "best-price" and mechanism != "all-counts":
        return ExponentialMechanism(epsilon, max(question.query.prices), monotone)
    # The sum of one number in [0, 1] each changes by 1 when a client is replaced. Otherwise the number of
    # clients is itself private: the sum and its complement change by 1 together.
    # A client that counts in several categories changes each of them by 1.
    cells = question.cells
    sensitivity = min(histogram_sensitivity(adjacency) * question.votes, cells) if cells else 1
    kind = Laplace if mechanism == "laplace" or not question.whole else DiscreteLaplace
    return kind(epsilon, sensitivity)
