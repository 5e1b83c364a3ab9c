"""`budget gaussian`: populations."""

from __future__ import annotations

import pytest

from fedprivacy.errors import InputError
from scenarios.budgets.gaussian import GaussianQuestion


@pytest.mark.parametrize("population", [0, -5, 10**13])
def test_a_population_out_of_range_is_refused(population: int) -> None:
    for cohort in (None, 1):
        with pytest.raises(InputError) as refused:
            GaussianQuestion(epsilon=1.0, population=population, cohort=cohort).document()
        assert str(refused.value) == f"--population {population}: must be from 1 to 1e+12."


def test_a_delta_of_one_client_and_a_cohort_beyond_the_population_are_refused() -> None:
    with pytest.raises(InputError) as refused:
        GaussianQuestion(epsilon=1.0, population=100, cohort=101, delta=0.01).document()
    first, second = str(refused.value).splitlines()
    assert first == "--cohort 101: must be from 1 to the population, 100."
    assert second == "--delta 0.01: must be below 1/population = 0.01."
