"""The part of the training data that counts as public: whom no guarantee covers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fedprivacy.report import words


def share_of(data: Any) -> str:
    """Which share of the training data no client owns, from a scenario's `data` section; empty for none.

    >>> share_of({"partition": "by-user", "public_fraction": 0.05})
    '5 % of the people (users)'
    """
    fraction = data.get("public_fraction") if isinstance(data, Mapping) else None
    if not isinstance(fraction, (int, float)) or not 0 < fraction < 1:
        return ""
    what = "people (users)" if data.get("partition") == "by-user" else "training records"
    return f"{words.number(100 * fraction)} % of the {what}"


def statement(data: Any, scalings: Iterable[Any]) -> str:
    """The people without a guarantee, whose data count as public; empty without such data.

    Args:
        data: A scenario's `data` section.
        scalings: How records were scaled, in each cell.

    >>> statement({"public_fraction": 0.1}, ["none"])
    '10 % of the training records are public: no guarantee covers them.'
    """
    share = share_of(data)
    if not share:
        return ""
    scaled = " Scaling uses their values without noise." if "public" in scalings else ""
    return f"{share} are public: no guarantee covers them.{scaled}"
