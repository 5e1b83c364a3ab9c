"""Rules for updates that are encoded before the noise."""

from __future__ import annotations

from fedprivacy.io.rule_table import Entry, First, Rule
from fedprivacy.io.toml_text import literal
from fedprivacy.mechanisms.combinations import ENCODING_IS_OF_CLIENTS
from fedprivacy.scenario.derived_values import Values
from fedprivacy.scenario.rules.plan import of_plan

OPTIONS = {"encoding_share": "top-k", "encoding_levels": "levels"}  # of which encoding each is


def _needs_encoding(option: str, encoding: str) -> Rule[Values]:
    key = f"privacy.{option}"
    return Rule(
        key,
        lambda v: v.given(key) and v["privacy.encoding"] != encoding,
        f'has no effect without encoding = "{encoding}"',
        f'Remove it, or set encoding = "{encoding}".',
        shown=False,
    )


def _student(v: Values) -> bool:
    return (v["privacy.trust"], v["privacy.mechanism"]) == ("central", "student-t")


ENCODING_RULES: tuple[Entry[Values], ...] = (
    *(_needs_encoding(option, encoding) for option, encoding in OPTIONS.items()),
    First(
        of_plan(ENCODING_IS_OF_CLIENTS),
        Rule(
            "privacy.encoding",
            lambda v: v["privacy.encoding"] is not None and v["privacy.clipping_quantile"] is not None,
            "works with a clipping norm that stays: codes are made for one norm",
            "Remove it, or clipping_quantile.",
        ),
        Rule(
            "privacy.encoding",
            lambda v: (
                v["privacy.encoding"] is not None
                and v["privacy.trust"] == "local"
                and v["privacy.mechanism"] not in (None, "gaussian")
            ),
            lambda v: f"mechanism {literal(v['privacy.mechanism'])} has an encoding of its own",
            'Remove it, or use mechanism = "gaussian".',
        ),
    ),
    Rule(
        "privacy.mechanism",
        lambda v: (
            _student(v)
            and v["privacy.encoding"] not in ("signs", "top-k")
            and "privacy.encoding" not in v.broken
        ),
        "its cost is known for codes of few cases alone",
        'Add encoding = "top-k" or "signs", or use mechanism = "gaussian".',
    ),
    Rule(
        "privacy.mechanism",
        lambda v: _student(v) and v["sampling.name"] == "fixed",
        "no accountant supports it together with cohorts of fixed size",
        'Use sampling name = "poisson" or "all", or mechanism = "gaussian".',
    ),
)
