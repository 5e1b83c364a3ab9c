"""Rules for the keys of mechanisms of the server's sum, as the registry of mechanisms has them."""

from __future__ import annotations

from fedprivacy.io.rule_table import Entry, Rule
from fedprivacy.io.toml_text import literal
from fedprivacy.mechanisms.central import CENTRAL, CENTRAL_NAMES, keys_by_name, keys_of
from fedprivacy.mechanisms.registry import REGISTRY, name_in_scenarios
from fedprivacy.scenario.derived_values import Values


def _needs_mechanism(key: str, mechanism: str) -> Rule[Values]:
    path = f"privacy.{key}"
    return Rule(
        path,
        lambda v: (
            v["privacy.trust"] == "central"
            and v["privacy.mechanism"] in CENTRAL_NAMES
            and v.given(path)
            and key not in keys_of(v["privacy.mechanism"])
        ),
        f"has no effect without mechanism = {literal(mechanism)}",
        f"Remove it, or set mechanism = {literal(mechanism)}.",
        shown=False,
    )


# Key -> the first mechanism that it has an effect with. Keys that need another key have rules of their own.
_MECHANISM_OF = {
    choice.key: name_in_scenarios(name) for name in CENTRAL if (choice := REGISTRY[name].choice).key
} | keys_by_name()
SERVER_NOISE_RULES: tuple[Entry[Values], ...] = tuple(
    _needs_mechanism(key, mechanism) for key, mechanism in _MECHANISM_OF.items()
)
