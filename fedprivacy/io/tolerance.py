"""Whether two records say the same, where their numbers were computed on two machines."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

CLOSE = 1e-3  # by which accountants on two machines may differ, relative
_NUMBER = re.compile(r"(\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?)")
_ROUNDED = re.compile(r"[01]\.\d{3}")  # a rate rounded to three places, whose last may be another


def same(said: Any, found: Any) -> bool:
    """Whether two parts of a document are equal; their numbers, in texts too, up to rounding.

    >>> same({"epsilon": 2.0, "words": "at most 2"}, {"epsilon": 2.0000001, "words": "at most 2.001"})
    True
    >>> same(1.0, 2.0), same("at most 1", "at most 2"), same(None, 2.0), same([1.0], [1.0, 1.0])
    (False, False, False, False)
    """
    if isinstance(found, Mapping):
        return (
            isinstance(said, Mapping)
            and said.keys() == found.keys()
            and all(same(said[key], found[key]) for key in found)
        )
    if isinstance(found, list):
        return isinstance(said, list) and len(said) == len(found) and all(map(same, said, found))
    if isinstance(found, str) and isinstance(said, str):
        ours, theirs = _NUMBER.split(found), _NUMBER.split(said)
        return len(ours) == len(theirs) and all(map(_same_word, theirs, ours))
    if isinstance(found, float) and isinstance(said, int | float):
        return math.isclose(said, found, rel_tol=CLOSE, abs_tol=1e-12)
    return bool(said == found)


def other_plan(own: Mapping[str, Any], asked: Any) -> str | None:
    """Why who holds a plan refuses to serve one who asks for another; None where they are the same.

    >>> other_plan({"epsilon": 1.0}, {"epsilon": 2.0})
    'the server asks for another plan (epsilon: asked 2.0, agreed 1.0)'
    """
    if own == asked:
        return None
    if not isinstance(asked, dict):
        return "the server sends no plan"
    differing = [key for key in {**own, **asked} if own.get(key) != asked.get(key)]
    words = "; ".join(f"{key}: asked {asked.get(key)!r}, agreed {own.get(key)!r}" for key in differing)
    return f"the server asks for another plan ({words[:1000]})"


def _same_word(said: str, found: str) -> bool:
    """Whether two words or printed numbers are equal: printed ones were rounded."""
    if said == found or not (_NUMBER.fullmatch(said) and _NUMBER.fullmatch(found)):
        return said == found
    rounded = _ROUNDED.fullmatch(said) and _ROUNDED.fullmatch(found)
    ours, theirs = (float(word.replace(",", "")) for word in (found, said))
    return math.isclose(theirs, ours, rel_tol=2 * CLOSE, abs_tol=1.5e-3 if rounded else 0.0)
