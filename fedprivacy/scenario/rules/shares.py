"""Rules for noise in shares, which needs a secure sum of a known number of clients."""

from __future__ import annotations

from fedprivacy.io.rule_table import Entry, First, Rule, exceeds
from fedprivacy.mechanisms.combinations import (
    SHARES_ARE_OF_CLIENTS,
    SHARES_STAY,
    SUMS_HAVE_A_KNOWN_SIZE,
    SURVIVORS_WITHIN_SUM,
)
from fedprivacy.scenario.derived_values import Values
from fedprivacy.scenario.rules.plan import of_plan


def _fewest(v: Values) -> int | None:
    """The fewest clients that a sum may be set to have, as far as they are known."""
    return v["privacy.min_survivors"] or v.terms.most_in_a_sum


SHARES_RULES: tuple[Entry[Values], ...] = (
    of_plan(SHARES_STAY),
    of_plan(SHARES_ARE_OF_CLIENTS),
    of_plan(SUMS_HAVE_A_KNOWN_SIZE),
    First(
        of_plan(SURVIVORS_WITHIN_SUM),
        Rule(
            "privacy.colluders",
            lambda v: v["privacy.colluders"] is not None and exceeds(v["privacy.colluders"] + 1, _fewest(v)),
            lambda v: (
                f"a sum may have {_fewest(v)} clients, and without honest ones nothing in it is private"
            ),
            lambda v: f"At most {(_fewest(v) or 1) - 1}.",
        ),
    ),
    Rule(
        "federation.observe",
        {"privacy.trust": "distributed", "federation.observe": "each"},
        'under trust "distributed" a secure sum hides single messages from the server',
        'Use observe = "sum".',
    ),
)
