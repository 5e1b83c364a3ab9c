"""From a scenario to the privacy plan that it asks for."""

from __future__ import annotations

from fedprivacy.candidates import Candidate, best, calibrated, described, unscaled
from fedprivacy.data.population import Population, population
from fedprivacy.mechanisms.catalogue import ClipOnly, Mechanism
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.models import build, flat_weights
from fedprivacy.plan import Plan
from fedprivacy.sampling import AllSampling, FixedSampling, PoissonSampling, Sampler
from fedprivacy.scenario import Scenario


def plan_of(scenario: Scenario, people: Population | None = None) -> Plan:
    """The plan of a scenario, calibrated where the scenario gives an epsilon.

    Args:
        scenario: What is asked for.
        people: Its data, where it is not what the scenario names; the dimension of an update, which
            some mechanisms depend on, follows from its features and classes.

    Raises:
        UnsupportedEvent: if no accountant answers for this sampler and adjacency.
        InputError: if no noise gives this epsilon.
    """
    privacy = scenario.privacy
    plan = _without_noise(scenario, people)
    if privacy.epsilon is None:
        return plan
    if privacy.mechanism == "auto":
        dimension = dimension_of(scenario, people)
        return best(calibrated(plan, privacy.epsilon, dimension, privacy.direction or "lifted"), dimension)
    return plan.calibrate(privacy.epsilon)


def candidates_of(scenario: Scenario, people: Population | None = None) -> list[Candidate] | None:
    """The mechanisms that `mechanism = "auto"` chose from, or None where a scenario names one."""
    privacy = scenario.privacy
    if privacy.mechanism != "auto" or privacy.epsilon is None:
        return None
    dimension, plan = dimension_of(scenario, people), _without_noise(scenario, people)
    plans = calibrated(plan, privacy.epsilon, dimension, privacy.direction or "lifted")
    return described(plans, dimension)


def dimension_of(scenario: Scenario, people: Population | None = None) -> int:
    """The number of coordinates of an update: the model's parameters."""
    people = people or population(scenario.data)
    return len(flat_weights(build(scenario.model, people.features, people.dataset.classes, seed=0)))


def _without_noise(scenario: Scenario, people: Population | None) -> Plan:
    """The plan before it is calibrated: the noise is the scenario's where it gives one."""
    privacy = scenario.privacy
    return Plan(
        trust=privacy.trust,
        unit=privacy.unit,
        adjacency=privacy.adjacency,
        population=scenario.population,
        rounds=scenario.server.rounds,
        sampler=_sampler(scenario),
        mechanism=_mechanism(scenario, people),
        delta=None if privacy.trust == "none" else privacy.delta,
        max_participations=privacy.max_participations,
        noise_draw=privacy.noise_draw,
    )


def _mechanism(scenario: Scenario, people: Population | None) -> Mechanism | None:
    privacy = scenario.privacy
    if privacy.trust == "none":
        return None if privacy.clipping_norm is None else ClipOnly(privacy.clipping_norm)
    if privacy.mechanism in ("gaussian", "auto"):
        return Gaussian(privacy.clipping_norm, privacy.noise_multiplier or 0.0)
    dimension = dimension_of(scenario, people) if privacy.mechanism == "sign-bits" else 0
    return unscaled(privacy.mechanism, privacy.clipping_norm, dimension, privacy.direction or "lifted")


def _sampler(scenario: Scenario) -> Sampler:
    options = scenario.sampling
    if options.name == "poisson":
        return PoissonSampling(options.rate)
    if options.name == "fixed":
        return FixedSampling(options.cohort)
    return AllSampling()
