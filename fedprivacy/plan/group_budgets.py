"""Gives the groups of a scenario the noise, weight or rate that keeps their own epsilon.

Under local trust a group has the least noise multiplier for its epsilon. Under central trust the noise is
that of the others' epsilon, at weight 1 and the sampler's rate. A group then has either

- the weight w = z / z_g, where z_g is the least noise multiplier for its epsilon at the same rate: a clipped
  update times w moves the sum by w C, of which the same noise is z / w = z_g times as much; or
- the largest rate q_g of Poisson sampling that keeps its epsilon, found by bisection to a relative 1e-4.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from fedprivacy.errors import InputError
from fedprivacy.io import side_process
from fedprivacy.io.tolerance import CLOSE
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.sampling.cohorts import PoissonSampling
from fedprivacy.sampling.group_limits import LEAST_RATE, least_weight
from fedprivacy.sampling.groups import Group, Groups
from fedprivacy.scenario.privacy import BudgetGroup

_PRECISION = 1e-4  # of a rate, relative


def with_groups(plan: Plan, budgets: Mapping[str, BudgetGroup] | None, *, by_label: bool = False) -> Plan:
    """The plan with the groups of a scenario.

    Args:
        plan: The plan of the others, calibrated.
        budgets: The groups by name; None: there are none. Without noise they have no budgets.
        by_label: Whether ids follow from labels, so that groups by ids show these.

    Raises:
        InputError: no weight or rate keeps the epsilon of a group.
    """
    if budgets is None or plan.trust == "none":
        return plan
    groups = [
        replace(_group(plan, name, each), shows_labels=by_label and each.clients is not None)
        for name, each in budgets.items()
    ]
    return replace(plan, groups=Groups(tuple(groups)))


def with_stored_groups(
    plan: Plan, budgets: Mapping[str, BudgetGroup] | None, stored: Groups | None, *, by_label: bool = False
) -> Plan:
    """The plan with the groups of a stored plan, if these keep what the scenario asks for.

    Args:
        plan: The plan of the others.
        budgets: The groups of the scenario.
        stored: Those of the stored plan.
        by_label: As of `with_groups`.

    Raises:
        InputError: a group has another budget, or there are others.
    """
    if (
        budgets is None
        or plan.trust == "none"
        or stored is None
        or [group.name for group in stored.groups] != list(budgets)
    ):
        return with_groups(plan, budgets, by_label=by_label)
    checked, grouped = [], replace(plan, groups=stored)
    for group, (name, budget) in zip(stored.groups, budgets.items(), strict=True):
        if budget.epsilon is None or not _keeps(grouped, group, budget):
            group = _group(plan, name, budget)
        shows = by_label and budget.clients is not None
        checked.append(replace(group, share=budget.share, clients=budget.clients, shows_labels=shows))
    return replace(plan, groups=Groups(tuple(checked)))


def _keeps(grouped: Plan, group: Group, budget: BudgetGroup) -> bool:
    """Whether a stored group sets what the scenario chooses, with the epsilon that it asks for."""
    setting = _setting(grouped, budget)
    alone = all(
        getattr(group, key) is None for key in ("noise_multiplier", "weight", "rate") if key != setting
    )
    if not alone or getattr(group, setting) is None or budget.epsilon is None:
        return False
    # A rate is found from below, to a relative precision.
    slack = 10 * _PRECISION if setting == "rate" else CLOSE
    spent = grouped.of_group(group.name).spent().epsilon
    return budget.epsilon * (1 - slack) <= spent <= budget.epsilon * (1 + CLOSE)


def _setting(plan: Plan, budget: BudgetGroup) -> str:
    return "noise_multiplier" if plan.trust == "local" else budget.through or "weight"


def _group(plan: Plan, name: str, budget: BudgetGroup) -> Group:
    group = Group(name, budget.share, budget.clients)
    if budget.epsilon is None:
        return replace(
            group, noise_multiplier=budget.noise_multiplier, rate=budget.rate, weight=budget.weight
        )
    setting = _setting(plan, budget)
    if setting == "rate":
        return replace(group, rate=_largest_rate(plan, name, budget.epsilon))
    base = plan.noise_multiplier
    assert base is not None
    # No group has less noise than the others: calibration may differ by rounding where epsilons are equal.
    noise = max(base, side_process.call(_LEAST, plan, budget.epsilon, plan.delta))
    if setting == "noise_multiplier":
        return replace(group, noise_multiplier=noise)
    weight = base / noise
    while base / weight < noise:
        weight = math.nextafter(weight, 0.0)
    if weight < (least := least_weight(plan.population)):
        raise InputError(
            f"privacy.groups.{name}.epsilon = {budget.epsilon:g}: needs a weight of {weight:.3g}, and "
            f"rounding in a sum of {plan.population:,} clients allows {least:.3g} at least. Set a larger "
            'epsilon for it, a smaller one for the others, or through = "rate".'
        )
    return replace(group, weight=weight)


_LEAST = "fedprivacy.plan.privacy_plan:least_multiplier"


def _largest_rate(plan: Plan, name: str, epsilon: float) -> float:
    """The largest rate at which a run costs at most an epsilon."""
    assert isinstance(plan.sampler, PoissonSampling)

    def fits(rate: float) -> bool:
        return replace(plan, sampler=PoissonSampling(rate)).spent().epsilon <= epsilon

    low, high = LEAST_RATE, plan.sampler.rate
    if fits(high):
        return high
    if not fits(low):
        raise InputError(
            f"privacy.groups.{name}.epsilon = {epsilon:g}: no rate is low enough. Set a larger epsilon."
        )
    while high / low > 1 + _PRECISION:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
