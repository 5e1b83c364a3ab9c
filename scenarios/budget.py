"""`fedprivacy budget`: epsilon to noise and back, from the same plan objects that a run uses."""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace
from typing import Any

from fedprivacy.accounting.statement import NEIGHBOURS, printed
from fedprivacy.errors import InputError
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.plan import Plan
from fedprivacy.runs import SCHEMA
from fedprivacy.sampling import AllSampling, FixedSampling, PoissonSampling, Sampler

ADJACENCIES = tuple(NEIGHBOURS)


@dataclass(frozen=True)
class GaussianQuestion:
    """What is asked of `budget gaussian`: the command's options, of which one direction is given.

    Args:
        epsilon: Find the noise for this epsilon.
        noise_multiplier: Find the epsilon of this noise (standard deviation / clipping norm).
        delta: The delta of the guarantee.
        rounds: How many releases.
        sampling_rate: Poisson sampling at this rate.
        cohort: Fixed-size sampling of this many clients.
        population: Out of this many clients.
        adjacency: "replace-one", "add-remove" or "zero-out".
    """

    epsilon: float | None = None
    noise_multiplier: float | None = None
    delta: float = 1e-5
    rounds: int = 1
    sampling_rate: float | None = None
    cohort: int | None = None
    population: int | None = None
    adjacency: str = "replace-one"


def gaussian_budget(asked: GaussianQuestion) -> dict[str, Any]:
    """The budget of rounds of Gaussian noise, in the direction that is asked for.

    Raises:
        InputError: naming every option that is out of its range, with the range.
        UnsupportedEvent: if no accountant answers for this sampling and adjacency.
    """
    problems = _problems(asked)
    if problems:
        raise InputError("\n".join(problems))
    plan = Plan(
        trust="central",
        unit="client",
        adjacency=asked.adjacency,
        population=asked.population or 1,
        rounds=asked.rounds,
        sampler=_sampler(asked),
        mechanism=Gaussian(1.0, asked.noise_multiplier or 0.0),
        delta=asked.delta,
    )
    if asked.epsilon is not None:
        plan = plan.calibrate(asked.epsilon)
    return _document(plan)


def _document(plan: Plan) -> dict[str, Any]:
    spent, once = plan.spent(), replace(plan, rounds=1).spent()
    assert plan.delta is not None
    amplified = plan.sampler.name != "all"
    words = (
        f"Gaussian noise of standard deviation {plan.noise_multiplier:.6g} x C on the sum of updates "
        f"clipped to L2 norm C, in {plan.rounds} round{'s' if plan.rounds > 1 else ''} with "
        f"{plan.sampler.words}, costs epsilon = {printed(spent.epsilon)} at delta = {plan.delta:g} for "
        f"{NEIGHBOURS[plan.adjacency]} (unit client, {plan.adjacency}; accountant {spent.accountant}). "
        f"One round alone costs epsilon = {printed(once.epsilon)}."
    )
    if amplified and "not counted" not in spent.accountant:
        words += (
            " This counts on sampling: it holds against whoever does not learn who was in a cohort "
            "(participants and outsiders), not against the server that draws it."
        )
    return {
        "schema": SCHEMA,
        "kind": "budget",
        "mechanism": "gaussian",
        "epsilon": spent.epsilon,
        "delta": plan.delta,
        "noise_multiplier": plan.noise_multiplier,
        "rounds": plan.rounds,
        "sampling": plan.to_json()["sampler"],
        "unit": plan.unit,
        "adjacency": plan.adjacency,
        "accountant": spent.accountant,
        "epsilon_of_one_round": once.epsilon,
        "words": words,
    }


def _sampler(asked: GaussianQuestion) -> Sampler:
    if asked.sampling_rate is not None:
        return PoissonSampling(asked.sampling_rate)
    return AllSampling() if asked.cohort is None else FixedSampling(asked.cohort)


def _problems(asked: GaussianQuestion) -> list[str]:
    """Everything that is wrong with the options, a line each."""
    epsilon, noise_multiplier, delta, rounds, sampling_rate, cohort, population, adjacency = astuple(asked)
    checks = [
        (
            (epsilon is None) == (noise_multiplier is None),
            "--epsilon, --noise-multiplier: give exactly one; the other one is computed.",
        ),
        (
            epsilon is not None and not 0 < epsilon <= 1e6,
            f"--epsilon {epsilon}: must be above 0; 1 to 8 is usual.",
        ),
        (
            noise_multiplier is not None and not 0.01 <= noise_multiplier <= 1e9,
            f"--noise-multiplier {noise_multiplier}: must be at least 0.01; 0.5 to 20 is usual.",
        ),
        (not 0 < delta < 1, f"--delta {delta}: must be between 0 and 1, below 1/(number of clients)."),
        (not 1 <= rounds <= 10**6, f"--rounds {rounds}: must be from 1 to 1000000."),
        (
            sampling_rate is not None and not 0 < sampling_rate <= 1,
            f"--sampling-rate {sampling_rate}: must be above 0 and at most 1.",
        ),
        (
            sampling_rate is not None and cohort is not None,
            "--sampling-rate, --cohort: give one: Poisson sampling, or a cohort of fixed size.",
        ),
        (
            cohort is not None and population is None,
            "--cohort: a cohort of fixed size needs --population too.",
        ),
        (
            cohort is not None and population is not None and not 1 <= cohort <= population,
            f"--cohort {cohort}: must be from 1 to the population, {population}.",
        ),
        (
            population is not None and delta >= 1 / max(population, 1),
            f"--delta {delta}: must be below 1/population = {1 / max(population or 1, 1):.3g}.",
        ),
        (
            adjacency not in ADJACENCIES,
            f"--adjacency {adjacency}: must be one of {', '.join(ADJACENCIES)}.",
        ),
    ]
    return [text for wrong, text in checks if wrong]
