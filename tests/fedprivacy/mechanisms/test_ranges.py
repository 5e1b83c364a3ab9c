"""The ranges of parameters, and what is said of what lies outside."""

from __future__ import annotations

import math

import pytest

from fedprivacy.errors import InputError
from fedprivacy.mechanisms.bits import RandomizedResponse
from fedprivacy.mechanisms.categories import ORACLES
from fedprivacy.mechanisms.ranges import check_epsilon, check_error, check_size


@pytest.mark.parametrize("bad", [0.0, -1.0, 1e-7, 25.1, math.inf, math.nan])
def test_an_epsilon_out_of_range_is_refused_with_the_range(bad: float) -> None:
    with pytest.raises(InputError, match=r"^a mechanism: epsilon = .*: must be from 1e-06 to 25; 0.1 to 10"):
        check_epsilon(bad, 1e-6, 25.0, "a mechanism")
    for kind in (RandomizedResponse, *(lambda e, kind=kind: kind(5, e) for kind in ORACLES)):
        with pytest.raises(InputError, match=r"epsilon = .*: must be from 1e-06 to 25;"):
            kind(bad)
    if bad != 25.1:
        with pytest.raises(InputError, match=r"^epsilon = .*: must be from 1e-06 to 10000; 0.1 to 10"):
            check_epsilon(bad)


@pytest.mark.parametrize("bad", [1, -3, 2.5, math.inf, -math.inf, math.nan])
def test_a_size_that_is_no_whole_number_of_at_least_the_least_is_refused(bad: float) -> None:
    with pytest.raises(InputError, match=r"cells = .*: must be a whole number of at least 2\."):
        check_size("cells", bad, 2)  # type: ignore[arg-type]
    for kind in ORACLES:
        with pytest.raises(InputError, match=r"categories = .*: must be a whole number from 2 to 1073741824"):
            kind(bad, 1.0)  # type: ignore[arg-type]
    check_size("cells", 2, 2)


@pytest.mark.parametrize("bad", [0.0, -1.0, 1e-320, math.inf, math.nan])
def test_an_error_too_small_for_any_number_of_people_is_refused(bad: float) -> None:
    for least in (0.0, 1e-9):
        with pytest.raises(
            InputError, match=r"error = .*: must be a finite number of at least (1e-09|2.23e-308)"
        ):
            check_error(bad, least)
    check_error(1e-9, 1e-9)
