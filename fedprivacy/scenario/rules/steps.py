"""Rules for the server's steps: the schedule of its learning rate, and the average of its iterates."""

from __future__ import annotations

from fedprivacy.io.rule_table import Entry, Rule
from fedprivacy.io.toml_text import literal
from fedprivacy.scenario.derived_values import Values

# Option of the server -> the key that it belongs to, and the values of that key with which it has an effect.
OPTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "schedule_end": ("schedule", ("linear", "cosine")),
    "averaging_share": ("averaging", ("tail",)),
    "averaging_decay": ("averaging", ("exponential",)),
}


def _only_with(key: str, of: str, values: tuple[str, ...]) -> Rule[Values]:
    return Rule(
        f"server.{key}",
        lambda v: v.given(f"server.{key}") and v[f"server.{of}"] not in (None, *values),
        lambda v: f"has no effect with {of} = {literal(v[f'server.{of}'])}",
        f"Remove it, or set {of} = {' or '.join(map(literal, values))}.",
        shown=False,
    )


STEP_RULES: tuple[Entry[Values], ...] = (
    *(_only_with(key, of, values) for key, (of, values) in OPTIONS.items()),
    Rule(
        "server.averaging",
        lambda v: v["server.averaging"] == "tail" and v.given("server.patience"),
        "covers the last of the planned rounds, and with patience training may end before them",
        'Use averaging = "exponential", or remove patience.',
    ),
)
