"""Compares two records whose numbers were computed on different machines."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

CLOSE = 1e-3  # by which accountants on two machines may differ, relative
_NUMBER = re.compile(r"(\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?)")
_ROUNDED = re.compile(r"[01]\.\d{3}")  # a rate rounded to three places, whose last may be another


def same(stored: Any, derived: Any) -> bool:
    """Whether two parts of a document are equal; their numbers, in texts too, up to rounding.

    >>> same({"epsilon": 2.0, "words": "at most 2"}, {"epsilon": 2.0000001, "words": "at most 2.001"})
    True
    >>> same(1.0, 2.0), same("at most 1", "at most 2"), same(None, 2.0), same([1.0], [1.0, 1.0])
    (False, False, False, False)
    """
    if isinstance(derived, Mapping):
        return (
            isinstance(stored, Mapping)
            and stored.keys() == derived.keys()
            and all(same(stored[key], derived[key]) for key in derived)
        )
    if isinstance(derived, list):
        return isinstance(stored, list) and len(stored) == len(derived) and all(map(same, stored, derived))
    if isinstance(derived, str) and isinstance(stored, str):
        ours, theirs = _NUMBER.split(derived), _NUMBER.split(stored)
        return len(ours) == len(theirs) and all(map(_same_word, theirs, ours))
    if isinstance(derived, float) and isinstance(stored, int | float):
        return math.isclose(stored, derived, rel_tol=CLOSE, abs_tol=1e-12)
    return bool(stored == derived)


def other_plan(ours: Mapping[str, Any], requested: Any) -> str | None:
    """Explains why a request for another plan is refused; None where the plans are the same.

    >>> other_plan({"epsilon": 1.0}, {"epsilon": 2.0})
    'the request has another plan (epsilon: requested 2.0, agreed 1.0)'
    """
    if ours == requested:
        return None
    if not isinstance(requested, dict):
        return "the request has no plan"
    differing = [key for key in {**ours, **requested} if ours.get(key) != requested.get(key)]
    words = "; ".join(
        f"{key}: requested {requested.get(key)!r}, agreed {ours.get(key)!r}" for key in differing
    )
    return f"the request has another plan ({words[:1000]})"


def _same_word(stored: str, derived: str) -> bool:
    """Whether two words or printed numbers are equal: printed ones were rounded."""
    if stored == derived or not (_NUMBER.fullmatch(stored) and _NUMBER.fullmatch(derived)):
        return stored == derived
    rounded = _ROUNDED.fullmatch(stored) and _ROUNDED.fullmatch(derived)
    ours, theirs = (float(word.replace(",", "")) for word in (derived, stored))
    return math.isclose(theirs, ours, rel_tol=2 * CLOSE, abs_tol=1.5e-3 if rounded else 0.0)
