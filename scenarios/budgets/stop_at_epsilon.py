"""Shortens a run to the rounds that an epsilon pays for, before its first round."""

from __future__ import annotations

import math
from dataclasses import replace

from fedprivacy.errors import InputError
from fedprivacy.guarantees.so_far import epsilons_after, rounds_within
from fedprivacy.guarantees.statement import printed
from fedprivacy.mechanisms.catalogue import ClipOnly
from fedprivacy.plan.from_scenario import plan_of
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.population.clients import population
from fedprivacy.population.on_nodes import known
from fedprivacy.scenario import Code, OnNodes, Scenario
from fedprivacy.scenario.loading import AnyScenario
from fedprivacy.training.model_spec import model_of

OPTION = "--stop-at-epsilon"
NOISE_TOLERANCE = 1e-3  # relative, of noise calibrated for fewer rounds


def shortened(scenario: AnyScenario, epsilon: float, *, allow_code: bool = False) -> AnyScenario:
    """Returns a training with the rounds that cost at most an epsilon at the noise that it has.

    The number of rounds follows from the plan alone, so it is chosen before any data is seen. Against no
    observer with a guarantee does it cost more. A scenario that states its epsilon gets that of these rounds.

    Args:
        scenario: The scenario of the run.
        epsilon: The limit.
        allow_code: Whether the scenario may run code (`--allow-code`).

    Returns:
        The scenario itself, where the whole plan costs no more.

    Raises:
        ScenarioError: other settings need the number of rounds that there was.
        InputError: there is no epsilon, one round costs more, or fewer rounds would have another mechanism.
    """
    named = f"{OPTION} {epsilon:g}"
    if not 0 < epsilon < math.inf:
        raise InputError(f"{named}: an epsilon is a positive number. Set another one.")
    if not isinstance(scenario, Scenario):
        raise InputError(f"{named}: only a training has rounds to end. Leave it out.")
    plan = plan_in_advance(scenario, allow_code)
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
    fewer = _of_rounds(scenario, expected, named)
    chosen = plan_in_advance(fewer, allow_code)
    expected_as_drawn = replace(expected, mechanism=chosen.mechanism, groups=chosen.groups)
    if chosen != expected_as_drawn or not _alike(chosen, expected):
        raise InputError(
            f"{named}: with {rounds} rounds the mechanism would be another one ({chosen.noise_words} instead "
            f"of {plan.noise_words}). Set server.rounds and privacy.epsilon instead."
        )
    return fewer


def _of_rounds(scenario: Scenario, plan: Plan, named: str) -> Scenario:
    """The scenario with the rounds of a plan and, where it states an epsilon, that of the plan."""
    # A run reads nothing of a comparison, whose arms may need other settings.
    tables = {name: table for name, table in scenario.tables().items() if name != "compare"}
    privacy, server = dict(tables["privacy"]), {**tables["server"], "rounds": plan.rounds}
    if privacy.get("epsilon") is not None:
        privacy["epsilon"] = plan.spent().epsilon
    for name, group in privacy.get("groups", {}).items():
        if group.get("epsilon") is not None:  # at the noise, weight or rate that the group has
            group["epsilon"] = min(plan.of_group(name).spent().epsilon, privacy["epsilon"])
    if plan.max_participations is not None:
        privacy["max_participations"] = plan.max_participations
    return Scenario.from_tables({**tables, "privacy": privacy, "server": server}, named)


def _alike(plan: Plan, expected: Plan) -> bool:
    """Whether two plans have the same mechanism, with noise that is equal up to calibration."""
    if type(plan.mechanism) is not type(expected.mechanism):
        return False
    if plan.groups is not None and expected.groups is not None:
        for group, other in zip(plan.groups.groups, expected.groups.groups, strict=True):
            for setting in ("noise_multiplier", "rate", "weight"):
                first, second = getattr(group, setting), getattr(other, setting)
                if not math.isclose(first or 0.0, second or 0.0, rel_tol=NOISE_TOLERANCE):
                    return False
    noise, whole = plan.noise_multiplier, expected.noise_multiplier
    if noise is None or whole is None:
        return plan.mechanism == expected.mechanism
    return math.isclose(noise, whole, rel_tol=NOISE_TOLERANCE)


def plan_in_advance(scenario: Scenario, allow_code: bool) -> Plan:
    """The plan, without records; of a model by code with the model, which mechanisms may need."""
    if not isinstance(scenario.model, Code):
        return plan_of(scenario)
    people = known(scenario.data) if isinstance(scenario.data, OnNodes) else population(scenario.data)
    return plan_of(scenario, model_of(scenario, people, allow_code=allow_code))
