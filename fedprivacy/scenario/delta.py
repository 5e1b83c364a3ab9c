"""The least delta that a scenario may have."""

from __future__ import annotations

from fedprivacy.errors import Finding
from fedprivacy.io.toml_text import literal

# Privacy loss distributions drop tails of 1e-15: at a delta of that size they state no finite epsilon, and
# sampling is no longer counted.
LEAST_DELTA = 1e-12


def too_small(delta: float) -> Finding:
    """Names a delta above 0 that is below the resolution of the accountants."""
    return Finding(
        ("privacy", "delta"),
        f"must be at least {LEAST_DELTA:.0e}",
        "Below it no accountant counts sampling, and noise grows for nothing; 1e-5 is usual.",
        literal(delta),
    )
