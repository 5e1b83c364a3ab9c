"""Rules for separated clients and for noise that is correlated over rounds."""

from __future__ import annotations

from fedprivacy.io.rule_table import Entry, First, Rule
from fedprivacy.io.toml_text import literal
from fedprivacy.mechanisms.combinations import (
    BANDS_ARE_OF_CLIENTS,
    BANDS_CAN_BE_SEARCHED,
    BANDS_NEED_SEPARATION,
    BANDS_WITHIN_SEPARATION,
    CYCLIC,
    GROUPS_ARE_OF_CENTRAL_CLIENTS,
    GROUPS_HAVE_BANDS,
    GROUPS_HAVE_ENOUGH_CLIENTS,
    NO_GROUP_IS_EMPTY,
    SEPARATED_CLIENTS_ARE_KNOWN,
)
from fedprivacy.scenario.derived_values import Values
from fedprivacy.scenario.rules.plan import of_plan

CORRELATED_RULES: tuple[Entry[Values], ...] = (
    of_plan(SEPARATED_CLIENTS_ARE_KNOWN),
    First(
        of_plan(BANDS_NEED_SEPARATION),
        of_plan(BANDS_WITHIN_SEPARATION),
        of_plan(GROUPS_HAVE_ENOUGH_CLIENTS),
        of_plan(NO_GROUP_IS_EMPTY),
        Rule(
            "privacy.bands",
            lambda v: v["privacy.bands"] == "auto" and v["sampling.name"] not in (None, CYCLIC),
            lambda v: f"with sampling {literal(v['sampling.name'])} as many as the separation are best",
            lambda v: f"Set bands = {v['sampling.separation'] or 1}.",
        ),
        Rule(
            "privacy.bands",
            lambda v: v["privacy.bands"] == "auto" and v["privacy.noise_multiplier"] is not None,
            "the number of bands with the least error at an epsilon needs one, and none is set",
            "Set privacy.epsilon in place of noise_multiplier, or a number of bands.",
        ),
    ),
    First(of_plan(GROUPS_ARE_OF_CENTRAL_CLIENTS), of_plan(GROUPS_HAVE_BANDS)),
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
