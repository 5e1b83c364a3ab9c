"""The plan of an audited run: the scenario's, with canaries among its clients."""

from __future__ import annotations

from dataclasses import replace

from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.sampling.cohorts import SeparatedSampling


def audited_plan(plan: Plan, canaries: int) -> Plan:
    """The plan with so many canary clients beside its own.

    Args:
        plan: The scenario's.
        canaries: How many clients are added.
    """
    more = replace(plan, population=plan.population + canaries)
    if isinstance(more.sampler, SeparatedSampling):
        # Canaries come as often as clients; how many come with them is nothing that the claim rests on.
        cohort = more.sampler.cohort * more.population // plan.population
        more = replace(more, sampler=replace(more.sampler, cohort=cohort))
    return more
