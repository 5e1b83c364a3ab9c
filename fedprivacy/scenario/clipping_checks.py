"""What must hold where the clipping norm follows a quantile of the norms of updates."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fedprivacy.errors import Finding
from fedprivacy.io.toml_text import literal
from fedprivacy.scenario.values import Values


def adaptive_clipping_has_a_quantile(v: Values) -> Iterator[Finding]:
    if v.given("privacy.clipping_quantile"):
        return
    for key in ("clipping_learning_rate", "clipping_count_noise"):
        if v.given(f"privacy.{key}"):
            yield Finding(
                ("privacy", key),
                "has no effect without clipping_quantile",
                "Remove it, or set clipping_quantile = 0.5 to adapt the clipping norm.",
            )


def adaptive_clipping_is_of_clients(v: Values) -> Iterator[Finding]:
    if v["privacy.clipping_quantile"] is not None and v["privacy.unit"] == "example":
        yield Finding(
            ("privacy", "clipping_quantile"),
            'works with privacy.unit = "client" alone: the norms of updates are counted, not of gradients',
            'Remove it, or set unit = "client".',
            literal(v["privacy.clipping_quantile"]),
        )


CLIPPING_CHECKS: tuple[Callable[[Values], Iterator[Finding]], ...] = (
    adaptive_clipping_has_a_quantile,
    adaptive_clipping_is_of_clients,
)
