"""Rules for a server that takes noise out of the mean update, whose size it has to know."""

from __future__ import annotations

from collections.abc import Callable

from fedprivacy.io.rule_table import Entry, First, Rule
from fedprivacy.io.toml_text import literal
from fedprivacy.mechanisms.central import SERVER_ONLY
from fedprivacy.mechanisms.combinations import SHARED
from fedprivacy.scenario.derived_values import Values


def _rule(
    broken: Callable[[Values], bool],
    problem: str | Callable[[Values], str],
    remedy: str | Callable[[Values], str],
) -> Rule[Values]:
    def denoised_and_broken(v: Values) -> bool:
        return v["server.denoise"] not in (None, "none") and broken(v)

    return Rule("server.denoise", denoised_and_broken, problem, remedy)


DENOISING_RULES: tuple[Entry[Values], ...] = (
    First(
        _rule(
            lambda v: v["privacy.trust"] == "none",
            'there is no noise under trust "none"',
            'Use denoise = "none".',
        ),
        _rule(
            lambda v: (v["privacy.trust"], v["privacy.unit"]) == ("local", "example"),
            'with privacy.unit = "example" the noise is in the steps of each client, not in the sum',
            'Use denoise = "none", or privacy.trust = "central".',
        ),
        _rule(
            lambda v: v["privacy.trust"] == "local" and v["privacy.mechanism"] not in (None, "gaussian"),
            lambda v: (
                f"mechanism {literal(v['privacy.mechanism'])} adds no Gaussian noise, whose size the server "
                "would know"
            ),
            'Use denoise = "none", or mechanism = "gaussian".',
        ),
        _rule(
            lambda v: v["privacy.mechanism"] in (*SERVER_ONLY, *SHARED),
            lambda v: f"knows Gaussian noise alone, not that of {literal(v['privacy.mechanism'])}",
            lambda v: (
                'Use denoise = "none".'
                if v["privacy.trust"] == "distributed"
                else 'Use denoise = "none", or privacy.mechanism = "gaussian".'
            ),
        ),
    ),
)
