"""The published claims that `fedprivacy reproduce` compares, read off its registry."""

from __future__ import annotations

from generators.text import code, plain, table
from scenarios.reproductions.registry import ROWS


def markdown() -> str:
    """Returns the table: a row for each claim."""
    rows = [
        (
            code(row.name),
            plain(f"{row.claim} ({row.source})"),
            f"{row.published:.5g}",
            f"{row.expected:,.6g} +- {row.tolerance:g}",
            f"{row.seconds:g} s",
        )
        for row in ROWS
    ]
    return "\n".join(table(("row", "claim", "published", "ours", "time"), rows))
