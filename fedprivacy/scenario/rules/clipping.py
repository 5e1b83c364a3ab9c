"""Rules for a clipping norm that follows a quantile of the norms of updates."""

from __future__ import annotations

from fedprivacy.io.rule_table import Entry, Rule
from fedprivacy.mechanisms.combinations import ADAPTIVE_CLIPPING_IS_OF_CLIENTS
from fedprivacy.scenario.derived_values import Values
from fedprivacy.scenario.rules.plan import of_plan


def _needs_quantile(key: str) -> Rule[Values]:
    return Rule(
        key,
        lambda v: v.given(key) and not v.given("privacy.clipping_quantile"),
        "has no effect without clipping_quantile",
        "Remove it, or set clipping_quantile = 0.5 to adapt the clipping norm.",
        shown=False,
    )


CLIPPING_RULES: tuple[Entry[Values], ...] = (
    _needs_quantile("privacy.clipping_learning_rate"),
    _needs_quantile("privacy.clipping_count_noise"),
    of_plan(ADAPTIVE_CLIPPING_IS_OF_CLIENTS),
)
