"""Shared base of all sections of a scenario."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

MAX_SEED = 2**63 - 1  # the largest whole number that every TOML reader must take


class Section(BaseModel):
    """Base of all sections: unknown keys and wrong types are errors, values cannot change."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)
