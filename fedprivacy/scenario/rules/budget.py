"""Rules for the privacy budget: the key that sets it, and the size of delta."""

from __future__ import annotations

import math

from fedprivacy.io.rule_table import Entry, First, Rule
from fedprivacy.mechanisms.combinations import publishes_one
from fedprivacy.scenario.delta import DELTA_IS_RESOLVED, LEAST_DELTA
from fedprivacy.scenario.derived_values import Values


def _noisy(v: Values) -> bool:
    return v["privacy.trust"] in ("local", "central", "distributed")


def _gives(v: Values) -> tuple[bool, bool]:
    return v.given("privacy.epsilon"), v.given("privacy.noise_multiplier")


def _delta_is_large(v: Values) -> bool:
    delta = v["privacy.delta"]
    return delta is not None and (not delta >= LEAST_DELTA or publishes_one(delta, v.units[0] or 1))


def _delta_bound(v: Values) -> str:
    units, noun = v.units
    bound = f"1/(number of {noun})" + (f" = 1/{units} = {1 / units:.3g}" if units else "")
    if noun == "records" and v["privacy.unit"] != "example":
        bound += ', since compare.units has "example"'
    return bound


def _usual_delta(v: Values) -> float:
    return min(1e-5, 10.0 ** math.floor(math.log10(0.1 / (v.units[0] or 1))))


BUDGET_RULES: tuple[Entry[Values], ...] = (
    Rule(
        "privacy.noise_multiplier",
        lambda v: _noisy(v) and _gives(v) == (True, True),
        "given together with epsilon, but each follows from the other",
        "Keep epsilon to aim at a guarantee, or noise_multiplier to fix the noise.",
        shown=False,
    ),
    Rule(
        "privacy.epsilon",
        lambda v: _noisy(v) and _gives(v) == (False, False),
        lambda v: f'missing: trust "{v["privacy.trust"]}" needs a budget',
        "Add epsilon = 2.0, or noise_multiplier = 4.0 to fix the noise instead.",
        shown=False,
    ),
    First(
        DELTA_IS_RESOLVED,
        Rule(
            "privacy.delta",
            _delta_is_large,
            lambda v: f"must be above 0 and below {_delta_bound(v)}",
            lambda v: f"{_usual_delta(v):.0e} is usual.",
        ),
    ),
)
