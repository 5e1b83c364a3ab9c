"""The number of bands that leaves the least noise, at a rate of cyclic Poisson sampling.

More bands correlate the noise over more rounds, and amplify less: a client comes in fewer rounds, each at a
higher rate. Which of the two weighs more depends on rate, rounds and epsilon, all public. So the number is
chosen by formula, before any data is seen, by the expected squared error of the models of all rounds: of the
prefix sums under SGD. One band is DP-FedAvg with Poisson cohorts, so that the choice is never worse.

Source: Choquette-Choo et al. 2023, "(Amplified) banded matrix factorization"; jax_privacy's
`amplified_bandmf_event` states the same releases.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.sampling.cohorts import CyclicPoissonSampling
from fedprivacy.sampling.group_limit import most_groups

_MOST_WORK = 10**7  # rounds x bands: a second of search for each matrix


def numbers_of_bands(rate: float, rounds: int, clients: int | None = None) -> tuple[int, ...]:
    """The numbers of bands to choose from: 1, its doublings, and the largest.

    Few, since each takes a calibration. The error has several dips, as rounds / bands is rounded up, so that
    no bisection would end at the least.

    Args:
        rate: The share of all clients in a round, of which as many as fit into one are the groups.
        rounds: Of the run; more bands than these are no more.
        clients: Their number, where it is known; with more groups some would be empty.

    >>> numbers_of_bands(0.125, 80), numbers_of_bands(0.05, 80), numbers_of_bands(0.05, 80, 5)
    ((1, 2, 4, 8), (1, 2, 4, 8, 16, 20), (1, 2, 4, 5))
    """
    most, numbers = min(most_groups(rate), rounds, clients or rounds), [1]
    while 2 * numbers[-1] < most:
        numbers.append(2 * numbers[-1])
    numbers += [most] * (most > 1)
    return tuple(bands for bands in numbers if bands == 1 or bands * rounds <= _MOST_WORK)


def squared_error(plan: Plan) -> float:
    """The expected squared error that noise leaves in the models, per coordinate, in units of C^2.

    The sum over rounds, at learning rate 1, before division by the cohort, which no number of bands changes.

    Args:
        plan: Of correlated noise.
    """
    assert plan.banded is not None
    return plan.rounds * plan.banded.error(1)


@lru_cache(maxsize=16)
def plans_by_bands(plan: Plan, epsilon: float, numbers: tuple[int, ...]) -> dict[int, Plan]:
    """The plans of these numbers of bands at an epsilon, by number; each takes a calibration of seconds.

    Args:
        plan: Of cyclic Poisson sampling and correlated noise, of any number of bands.
        epsilon: Of the whole run.
        numbers: Of bands.
    """
    banded, sampler = plan.banded, plan.sampler
    assert banded is not None
    assert isinstance(sampler, CyclicPoissonSampling)
    return {
        bands: replace(
            plan, sampler=replace(sampler, groups=bands), mechanism=replace(banded, bands=bands)
        ).calibrate(epsilon)
        for bands in numbers
    }


def least_error(plans: Mapping[int, Plan]) -> Plan:
    """The plan of the least error, of plans by their number of bands; of equal ones the first."""
    return min(plans.values(), key=squared_error)
