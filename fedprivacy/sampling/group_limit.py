"""The largest number of groups of cyclic Poisson sampling; without numpy, for the rules of scenarios."""

from __future__ import annotations

import math

_ROUNDING = 1 + 1e-12  # a product such as 1/49 x 49 may be a hair above 1
_MOST = 1e15  # beyond, 1/rate has no exact floor, and no population is as large


def most_groups(rate: float) -> int:
    """Returns the most groups at a rate in (0, 1]: with more, a round would not fit into its group.

    >>> most_groups(0.125), most_groups(1 / 49), most_groups(0.16666666667)
    (8, 49, 5)
    """
    groups = math.floor(min(1 / rate * _ROUNDING, _MOST))
    return max(1, groups - (rate * groups > _ROUNDING))
