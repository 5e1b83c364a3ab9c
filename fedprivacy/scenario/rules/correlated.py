"""Rules for separated clients and for noise that is correlated over rounds."""

from __future__ import annotations

from fedprivacy.io.rule_table import Entry, First, Rule
from fedprivacy.io.toml_text import literal
from fedprivacy.mechanisms.combinations import (
    BANDS_ARE_OF_CLIENTS,
    BANDS_CAN_BE_SEARCHED,
    BANDS_NEED_SEPARATION,
    BANDS_WITHIN_SEPARATION,
    SEPARATED_CLIENTS_ARE_KNOWN,
)
from fedprivacy.scenario.derived_values import Values
from fedprivacy.scenario.rules.plan import of_plan

CORRELATED_RULES: tuple[Entry[Values], ...] = (
    of_plan(SEPARATED_CLIENTS_ARE_KNOWN),
    First(of_plan(BANDS_NEED_SEPARATION), of_plan(BANDS_WITHIN_SEPARATION)),
    First(
        of_plan(BANDS_ARE_OF_CLIENTS),
        Rule(
            "privacy.bands",
            lambda v: v["privacy.bands"] is not None and v.given("privacy.clipping_quantile"),
            "needs one clipping norm for all rounds, and clipping_quantile changes it",
            "Remove one of the two.",
        ),
        Rule(
            "privacy.bands",
            lambda v: v["privacy.bands"] is not None and v["privacy.encoding"] is not None,
            "correlates noise on updates that are not encoded",
            "Remove it, or privacy.encoding.",
        ),
        Rule(
            "privacy.bands",
            lambda v: v["privacy.bands"] is not None and v["server.denoise"] not in (None, "none"),
            lambda v: (
                f"server.denoise = {literal(v['server.denoise'])} would take out what later rounds take back"
            ),
            'Remove it, or set server.denoise = "none".',
        ),
        of_plan(BANDS_CAN_BE_SEARCHED),
    ),
)
