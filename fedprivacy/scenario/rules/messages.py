"""Rules for local mechanisms of pure epsilon-DP, which randomise the single messages of clients."""

from __future__ import annotations

from fedprivacy.io.rule_table import Entry, Rule
from fedprivacy.io.toml_text import literal
from fedprivacy.mechanisms.combinations import PURE_NOISE_IS_OF_MESSAGES, PURE_NOISE_REPLACES_ANSWERS
from fedprivacy.scenario.derived_values import Values
from fedprivacy.scenario.rules.plan import of_plan


def _mechanism_of_messages(v: Values) -> str | None:
    """The local mechanism of messages, or None under other trust, or with noise in the steps."""
    local = (v["privacy.trust"], v["privacy.unit"]) == ("local", "client")
    mechanism: str | None = v["privacy.mechanism"] if local else None
    return mechanism


MESSAGE_RULES: tuple[Entry[Values], ...] = (
    Rule(
        "privacy.direction",
        lambda v: (
            v.given("privacy.direction") and _mechanism_of_messages(v) not in (None, "privunit", "auto")
        ),
        lambda v: f"has no effect with mechanism {literal(v['privacy.mechanism'])}",
        'Remove it, or set mechanism = "privunit".',
        shown=False,
    ),
    Rule(
        "privacy.noise_multiplier",
        lambda v: v.given("privacy.noise_multiplier") and _mechanism_of_messages(v) not in (None, "gaussian"),
        lambda v: (
            f"has no effect with mechanism {literal(v['privacy.mechanism'])}, whose noise follows from "
            "epsilon"
        ),
        'Give epsilon instead, or set mechanism = "gaussian".',
        shown=False,
    ),
    of_plan(PURE_NOISE_REPLACES_ANSWERS),
    of_plan(PURE_NOISE_IS_OF_MESSAGES),
)
