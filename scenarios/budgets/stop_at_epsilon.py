"""Shortens a run to the rounds that an epsilon pays for, before its first round."""

from __future__ import annotations

import math
from dataclasses import replace

from fedprivacy.errors import InputError, ScenarioError
from fedprivacy.guarantees.so_far import epsilons_after, rounds_within
from fedprivacy.guarantees.statement import printed
from fedprivacy.mechanisms.catalogue import ClipOnly
from fedprivacy.plan.from_scenario import plan_of
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.population.clients import population
from fedprivacy.scenario import Scenario
from fedprivacy.scenario.loading import AnyScenario
from fedprivacy.training.model_spec import model_spec

OPTION = "--stop-at-epsilon"


def shortened(scenario: AnyScenario, epsilon: float, *, allow_code: bool = False) -> AnyScenario:
    """Returns a training with the rounds that cost at most an epsilon, and the noise that it has.

    The number of rounds follows from the plan alone, so it is chosen before any data is seen. Against no
    observer with a guarantee does it cost more.

    Args:
        scenario: The scenario of the run.
        epsilon: The limit.
        allow_code: Whether the scenario may run code (`--allow-code`).

    Returns:
        The scenario itself, where the whole plan costs no more.

    Raises:
        InputError: there is no epsilon, one round costs more, or no scenario can state the noise apart from
            the number of rounds.
    """
    named = f"{OPTION} {epsilon:g}"
    if not 0 < epsilon < math.inf:
        raise InputError(f"{named}: an epsilon is a positive number. Set another one.")
    if not isinstance(scenario, Scenario):
        raise InputError(f"{named}: only a training has rounds to end. Leave it out.")
    plan = _plan_of(scenario, allow_code)
    if plan.mechanism is None or isinstance(plan.mechanism, ClipOnly):
        raise InputError(f"{named}: there is no noise, so no observer has an epsilon. Leave it out.")
    rounds = rounds_within(plan, epsilon)
    if rounds == plan.rounds:
        return scenario
    if rounds == 0:
        costs = [value for value in epsilons_after(plan, 1).values() if value is not None]
        raise InputError(
            f"{named}: one round costs epsilon {printed(max(costs))}. Raise the limit, or add noise by a "
            "larger privacy.noise_multiplier or a smaller privacy.epsilon."
        )
    cap = plan.max_participations
    expected = replace(plan, rounds=rounds, max_participations=None if cap is None else min(cap, rounds))
    fewer = _with_noise_of(scenario, expected)
    if fewer is None or _plan_of(fewer, allow_code) != expected:
        raise InputError(
            f"{named}: the noise of {plan.mechanism.name} depends on the number of rounds. Set "
            "server.rounds and privacy.epsilon instead."
        )
    return fewer


def _with_noise_of(scenario: Scenario, plan: Plan) -> Scenario | None:
    """The scenario with rounds and noise of a plan; None where no key states this noise."""
    tables = scenario.tables()
    privacy = {key: value for key, value in tables["privacy"].items() if key != "epsilon"}
    if plan.noise_multiplier is None:
        return None
    privacy["noise_multiplier"] = plan.noise_multiplier
    if plan.max_participations is not None:
        privacy["max_participations"] = plan.max_participations
    server = {**tables["server"], "rounds": plan.rounds}
    try:
        return Scenario.from_tables({**tables, "privacy": privacy, "server": server}, OPTION)
    except ScenarioError:  # such as bands, which are made for their number of rounds
        return None


def _plan_of(scenario: Scenario, allow_code: bool) -> Plan:
    people = population(scenario.data)
    model = model_spec(scenario.model, people.features, people.dataset.classes, allow_code=allow_code)
    return plan_of(scenario, model)
