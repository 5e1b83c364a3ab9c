"""Rules for clipping by layer, and for a clipping norm that follows a quantile of norms."""

from __future__ import annotations

from collections.abc import Callable

from fedprivacy.io.rule_table import Entry, First, Rule
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


def _by_layer(broken: Callable[[Values], bool], problem: str, remedy: str) -> Rule[Values]:
    return Rule(
        "privacy.clipping_layers",
        lambda v: v["privacy.clipping_layers"] is not None and broken(v),
        problem,
        remedy,
    )


CLIPPING_RULES: tuple[Entry[Values], ...] = (
    _needs_quantile("privacy.clipping_learning_rate"),
    _needs_quantile("privacy.clipping_count_noise"),
    of_plan(ADAPTIVE_CLIPPING_IS_OF_CLIENTS),
    First(
        _by_layer(
            lambda v: v["privacy.unit"] == "example",
            "clips updates of clients by layer, and not gradients of records",
            'Remove it, or set privacy.unit = "client".',
        ),
        _by_layer(
            lambda v: not v.given("privacy.clipping_norm"),
            "there is no norm of which layers could have shares",
            "Add clipping_norm = 1.0, or remove it.",
        ),
        _by_layer(
            lambda v: v["privacy.clipping_quantile"] is not None,
            "the norm would follow updates that have been clipped already",
            "Remove it, or clipping_quantile.",
        ),
        _by_layer(
            lambda v: v.given("training.shared"),
            "has shares for all layers, and some of them stay at each client (training.shared)",
            "Remove one of them.",
        ),
        _by_layer(
            lambda v: v["model.name"] == "logistic",
            'the model "logistic" has one layer, which is clipped as a whole anyway',
            "Remove it.",
        ),
    ),
)
