"""Ids of clients as a scenario has them: a list, or text with ranges such as "0-99, 120"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pydantic_core import PydanticCustomError

MOST = 10_000  # ids of one group: a plan lists them, and each request has the plan
_RANGE = re.compile(r"\s*(\d{1,10})\s*(?:-\s*(\d{1,10})\s*)?")


def expanded(value: Any) -> Any:
    """The ids that a text lists; any other value as it is.

    >>> expanded("3, 7-9")
    (3, 7, 8, 9)

    Raises:
        PydanticCustomError: it is another text, or lists too many.
    """
    if not isinstance(value, str):
        return value
    ids: list[int] = []
    for part in value.split(","):
        read = _RANGE.fullmatch(part)
        first = int(read[1]) if read else 1
        last = int(read[2] or first) if read else 0
        if last < first:
            raise PydanticCustomError("ids", 'must be a list of ids, or text with ranges such as "0-99, 120"')
        if last - first + len(ids) >= MOST:
            raise PydanticCustomError("ids", f"lists more than {MOST:,} ids, which is the most")
        ids += range(first, last + 1)
    return tuple(ids)


def collapsed(ids: Sequence[int]) -> str | list[int]:
    """Ids as text where they have a range of three or more, else as a list.

    >>> collapsed((3, 7, 8, 9)), collapsed((3, 7))
    ('3, 7-9', [3, 7])
    """
    ranges: list[list[int]] = []
    for client in ids:
        if ranges and client == ranges[-1][-1] + 1:
            ranges[-1][1:] = [client]
        else:
            ranges.append([client])
    if all(each[-1] - each[0] < 2 for each in ranges):
        return list(ids)
    return ", ".join("-".join(map(str, each)) for each in ranges)
