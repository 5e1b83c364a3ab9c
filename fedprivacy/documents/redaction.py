"""Removes operator-only fields from a result document before a claim is shown; reads them apart."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from fedprivacy.errors import InputError

# The seed of a simulation determines its noise, which can then be subtracted.
# A digest lets an attacker confirm a guess of the seed, or of the data.
SEEDS = (
    *("seed", "scenario.seed", "scenario.compare.seeds", "command"),
    *("scenario_digest", "noise_key"),
)
# Operator-only in every document, whether or not the document marks it.
ALWAYS_OPERATOR_ONLY = (
    "command",  # it has the seed, which determines the noise of a simulation
    "seed",
    "scenario.seed",
    "scenario.compare.seeds",
    "cells[].seeds",
    "variations[].seeds",
    "options[].seeds",
    "baselines[].seeds",
    "limits[].seeds",
    "error",
    "rounds[].cohort",
    "rounds[].zeroed",
    "rounds[].failures",
    "rounds[].refusals",
    "rounds[].first_failure",
    "rounds[].faults",
    "rounds[].contributed",
    "estimate",
)

MOST_PATHS = 200  # the whole document is gone through for each


def operator_only(document: Mapping[str, Any]) -> tuple[str, ...]:
    """The paths of the fields that are outside every claim, such as `rounds[].cohort`."""
    marked = document.get("operator_only") or []
    if not isinstance(marked, list) or not all(isinstance(path, str) and path for path in marked):
        raise InputError("report: operator_only must be a list of paths such as rounds[].cohort.")
    if len(marked) > MOST_PATHS:
        raise InputError(f"report: operator_only has {len(marked)} paths, at most {MOST_PATHS} are read.")
    return tuple(dict.fromkeys([*ALWAYS_OPERATOR_ONLY, *marked]))


def redact(document: Mapping[str, Any], paths: Iterable[str]) -> dict[str, Any]:
    """A copy of the document without the fields at these paths.

    >>> redact({"rounds": [{"round": 1, "cohort": 9}]}, ["rounds[].cohort"])
    {'rounds': [{'round': 1}]}
    """
    redacted = copy.deepcopy(dict(document))
    for path in paths:
        *parents, field = path.split(".")
        for holder in _holders(redacted, parents):
            holder.pop(field.removesuffix("[]"), None)
    return redacted


def select(document: Mapping[str, Any], path: str) -> list[Any]:
    """The values at a path, one for each element of the lists on the way, without those that are missing.

    >>> select({"rounds": [{"cohort": 9}, {"cohort": 7}]}, "rounds[].cohort")
    [9, 7]
    """
    *parents, field = path.split(".")
    name = field.removesuffix("[]")
    selected = (holder.get(name) for holder in _holders(document, parents))
    return [value for value in selected if value is not None]


def _holders(document: Mapping[str, Any], parents: list[str]) -> list[Any]:
    """The tables at the end of a path of parents; `name[]` means each element of a list."""
    holders: list[Any] = [document]
    for part in parents:
        name = part.removesuffix("[]")
        inner = [holder.get(name) for holder in holders]
        if part.endswith("[]"):
            inner = [element for elements in inner if isinstance(elements, list) for element in elements]
        holders = [value for value in inner if isinstance(value, Mapping)]
    return holders
