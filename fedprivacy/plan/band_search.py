"""The number of bands that leaves the least noise, at a rate of cyclic Poisson sampling.

More bands correlate the noise over more rounds, and amplify less: a client comes in fewer rounds, each at a
higher rate. Which of the two weighs more depends on rate, rounds and epsilon, all public. So the number is
chosen by formula, before any data is seen, by the expected squared error of the models of all rounds: of the
prefix sums under SGD. One band is DP-FedAvg with Poisson cohorts, so that the choice is never worse.

Source: Choquette-Choo et al. 2023, "(Amplified) banded matrix factorization"; jax_privacy's
`amplified_bandmf_event` states the same releases.
"""

from __future__ import annotations

from collections.abc import Sequence

from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.sampling.group_limit import most_groups

_EACH = 8  # up to so many bands each number is tried, beyond them steps of a quarter
_MOST_WORK = 10**7  # rounds x bands: a second of search for each matrix


def numbers_of_bands(rate: float, rounds: int) -> tuple[int, ...]:
    """The numbers of bands to choose from: 1 to 8 one by one, then in steps of a quarter, and the largest.

    Args:
        rate: The share of all clients in a round, of which as many as fit into one are the groups.
        rounds: Of the run; more bands than these are no more.

    >>> numbers_of_bands(0.125, 80), numbers_of_bands(0.05, 80)
    ((1, 2, 3, 4, 5, 6, 7, 8), (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 18, 20))
    """
    most, numbers, step = min(most_groups(rate), rounds), [1], 1
    while (step := max(step + 1, step * 5 // 4) if step >= _EACH else step + 1) < most:
        numbers.append(step)
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


def least_error(plans: Sequence[Plan]) -> Plan:
    """The plan of the least error; of equal ones the first."""
    return min(plans, key=squared_error)
