"""What local answers would cost behind a shuffler."""

from __future__ import annotations

import math

import pytest
from scipy.stats import binom

from fedprivacy.statistics.plan import plan_of
from fedprivacy.statistics.shuffled import amplified, shuffled


def kept_together(epsilon: float, queries: int, clients: int, delta: float) -> float:
    """A lower bound on the epsilon of coins whose shuffler keeps each client's answers together.

    Everybody says no to everything, but for one client who says yes to everything. The observer counts the
    messages that are all yes: binomial among the others, and more likely from that client.
    """
    truth = 1 / (1 + math.exp(-epsilon / queries))
    own, others = truth**queries, (1 - truth) ** queries
    best = 0.0
    for least in range(1, 30):
        rest = [float(binom.sf(least - 1 - more, clients - 1, others)) for more in (0, 1)]
        seen = own * rest[1] + (1 - own) * rest[0]
        unseen = others * rest[1] + (1 - others) * rest[0]
        if seen > delta and unseen > 0:
            best = max(best, math.log((seen - delta) / unseen))
    return best


@pytest.mark.parametrize("queries", [1, 3, 10])
def test_the_bound_holds_for_a_shuffler_that_keeps_a_clients_answers_together(queries: int) -> None:
    stated = amplified([10.0 / queries] * queries, 1000, 1e-5)
    assert kept_together(10.0, queries, 1000, 1e-5) <= stated <= 10.0


def test_beyond_the_bounds_range_nothing_is_amplified() -> None:
    assert amplified([20.0, 10.0], 1000, 1e-5) == 30.0


def test_a_scenario_states_it_only_when_asked(make_statistics) -> None:
    scenario = make_statistics("privacy.trust=local", "privacy.shuffled=true", "privacy.delta=1e-6")
    said = shuffled(plan_of(scenario))
    assert said["epsilon"] < scenario.privacy.epsilon
    for term in ("delta = 1e-06", "unit client", "replace-one", "no shuffler", "does not control"):
        assert term in said["words"]
