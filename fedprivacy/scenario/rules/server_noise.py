"""Rules for keys of mechanisms of the server's sum that have an effect with some mechanisms alone."""

from __future__ import annotations

from fedprivacy.io.rule_table import Entry, Rule
from fedprivacy.io.toml_text import literal
from fedprivacy.mechanisms.central import CENTRAL_NAMES, mechanisms_by_key
from fedprivacy.mechanisms.registry import GAUSSIAN_VARIANTS
from fedprivacy.scenario.derived_values import Values
from fedprivacy.scenario.privacy import CentralPrivacy


def _needs_mechanism(key: str, mechanisms: list[str]) -> Rule[Values]:
    path, default = f"privacy.{key}", CentralPrivacy.model_fields[key].get_default()
    needed = literal(mechanisms[0])
    return Rule(
        path,
        lambda v: (
            v["privacy.trust"] == "central"
            and v["privacy.mechanism"] in CENTRAL_NAMES
            and v["privacy.mechanism"] not in mechanisms
            and (path in v.broken or v[path] not in (None, default))
        ),
        f"has no effect without mechanism = {needed}",
        f"Remove it, or set mechanism = {needed}.",
        shown=False,
    )


# The other keys of Gaussian noise need another key, and have a rule about that.
SERVER_NOISE_RULES: tuple[Entry[Values], ...] = tuple(
    _needs_mechanism(key, mechanisms)
    for key, mechanisms in mechanisms_by_key().items()
    if key in GAUSSIAN_VARIANTS or "gaussian" not in mechanisms
)
