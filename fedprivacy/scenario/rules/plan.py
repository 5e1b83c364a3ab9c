"""Rules of the privacy plan, reported at the keys of a scenario that set its terms."""

from __future__ import annotations

from fedprivacy.io.rule_table import Rule
from fedprivacy.mechanisms.combinations import Terms
from fedprivacy.scenario.derived_values import PLAN_KEYS, Values


def of_plan(rule: Rule[Terms]) -> Rule[Values]:
    """Returns a rule of the plan as a rule of the scenario, at the key that sets the term."""
    return Rule(
        PLAN_KEYS[rule.key],
        lambda v: rule.is_broken(v.terms),
        lambda v: rule.problem_of(v.terms),
        lambda v: rule.remedy_of(v.terms),
        rule.shown,
    )
