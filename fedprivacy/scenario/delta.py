"""The least delta that a scenario may have."""

from __future__ import annotations

from typing import Any

from fedprivacy.io.rule_table import Rule

# Privacy loss distributions drop tails of 1e-15: at a delta of that size they state no finite epsilon, and
# sampling is no longer counted.
LEAST_DELTA = 1e-12


DELTA_IS_RESOLVED = Rule[Any](
    "privacy.delta",
    lambda v: v["privacy.delta"] is not None and 0 < v["privacy.delta"] < LEAST_DELTA,
    f"must be at least {LEAST_DELTA:.0e}",
    "Below it no accountant counts sampling, and noise grows for nothing; 1e-5 is usual.",
)
