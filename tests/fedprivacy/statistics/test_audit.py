"""The claims of federated statistics, audited through the real Flower apps.

Each query of a run is a release of its own, so that one run of many equal queries gives as many trials: on a
table, and on its neighbour. The empirical epsilon of a single query stays below what its event costs, comes
near it, and exceeds it where the noise is a tenth of what is stated. A few hundred trials more (exhaustive) prove it
of half the noise, or of choices of a quarter. Half the noise of choices is caught by the exact likelihood ratios of
tests/fedprivacy/mechanisms/test_claims.py. False-alarm rate of each bound: 1e-2, with fixed seeds; a mechanism
of too little noise escapes with less than 1e-2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from clients.statistics import StatisticsClients
from fedprivacy.accounting.epsilon import epsilon
from fedprivacy.attacks.repeated_run_epsilon import threshold_bound
from fedprivacy.mechanisms.bits import RandomizedResponse
from fedprivacy.mechanisms.kary import KaryRandomizedResponse
from fedprivacy.mechanisms.laplace import DiscreteLaplace, Laplace
from fedprivacy.mechanisms.selection import ExponentialMechanism, NoisyMax
from fedprivacy.statistics.population import People
from scenarios.experiments.statistics_run import release

CONFIDENCE = 0.99
QUERIES = 75
EACH = 2.0  # epsilon of one query


@pytest.fixture
def scores(make_statistics) -> Callable[..., tuple[np.ndarray, np.ndarray, float]]:
    def audit(
        query: str, tables: Sequence[list[float]], score: Callable[[dict[str, Any]], float], *, trust: str,
        runs: int,
    ) -> tuple[np.ndarray, np.ndarray, float]:  # fmt: skip
        """One score for each query and run on both tables, and what one query is said to cost."""
        queries = "".join(f"[queries.q{number}]\n{query}\n" for number in range(QUERIES))
        worlds = []
        for world, values in enumerate(tables):
            text = (
                f'name = "audit"\n[data]\nname = "numbers"\nclients = {len(values)}\nmedian = 1.0\nspread = 1.0\n'
                f'{queries}[privacy]\ntrust = "{trust}"\nepsilon = {EACH * QUERIES}\n'
            )
            column = {"answer": np.asarray(values, dtype=np.float64)}
            found = []
            for seed in range(runs):
                asked = make_statistics(f"seed={100 * world + seed}", text=text)
                who = People(column, np.arange(len(values) + 1))
                respondents = replace(StatisticsClients.of(asked), people=who)
                found += [score(one) for one in release(asked, respondents).queries]
            worlds.append(np.array(found))
        event = respondents.plan.asks[0].event("replace-one")
        return worlds[0], worlds[1], epsilon(event, 0.0, "replace-one").epsilon

    return audit


def estimate(one: dict[str, Any]) -> float:
    return float(one["estimate"])


def much(one: dict[str, Any]) -> float:
    """Whether a mean of three lies near the first table's, or above: where less noise shows most."""
    return float(one["estimate"] > 0.6)


def low(one: dict[str, Any]) -> float:
    """Whether a median lies below the clients in the middle."""
    return float(one["estimate"][0] < MIDDLE)


def first(one: dict[str, Any]) -> float:
    return float(one["estimate"][0])


COUNT, MEAN = 'kind = "count"', 'kind = "mean"\nlow = 0.0\nhigh = 1.0'
CELLS = 'kind = "histogram"\nfirst = 0\nlast = 1'
MOST = 'kind = "most-common"\nfirst = 0\nlast = 1'
MIDDLE, TOP = 5.0, 55.0
HALF = f'kind = "quantile"\nlow = 0.0\nhigh = {TOP}\nsteps = {TOP:.0f}'
YES, NO = [1.0, 1.0, 0.0], [1.0, 0.0, 0.0]
CASES = {
    "local coin": (COUNT, [[1.0], [0.0]], estimate, {"trust": "local"}, RandomizedResponse),
    "local k-ary": (CELLS, [[0.0], [1.0]], first, {"trust": "local"}, KaryRandomizedResponse),
    "central count": (COUNT, [YES, NO], estimate, {"trust": "central"}, DiscreteLaplace),
    "central mean": (MEAN, [YES, NO], much, {"trust": "central"}, Laplace),
    "most common": (
        MOST, [[0.0, 1.0], [1.0, 1.0]], lambda one: -float(one["estimate"]), {"trust": "central"}, NoisyMax,
    ),
    "quantile": (HALF, [[0.0, MIDDLE], [MIDDLE, TOP]], low, {"trust": "central"}, ExponentialMechanism),
}  # fmt: skip
# So tight on these tables that a few trials come near the claim.
TIGHT = ("local coin", "local k-ary", "central count")
# How much less noise is found out, and in how many runs of each table.
FOUND_OUT = [
    *(("local coin", 10, 2), ("central count", 10, 2)),
    *(("local coin", 2, 6), ("local k-ary", 2, 6), ("central count", 2, 6), ("central mean", 2, 12)),
    *(("most common", 4, 6), ("quantile", 4, 4)),
]


@pytest.mark.parametrize("runs", [1, pytest.param(2, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("name", CASES)
def test_an_audit_stays_below_the_claim(scores, name: str, runs: int) -> None:
    query, tables, score, how, _ = CASES[name]
    present, absent, claimed = scores(query, tables, score, runs=runs, **how)
    assert claimed == pytest.approx(EACH, rel=1e-9)
    proved = threshold_bound(present, absent, 0.0, CONFIDENCE).epsilon
    assert proved <= claimed
    assert proved >= runs * claimed / 8 or name not in TIGHT


@pytest.mark.exhaustive(beyond=2)
@pytest.mark.parametrize(("name", "times", "runs"), FOUND_OUT)
def test_too_little_noise_is_found_out(scores, monkeypatch, name: str, times: int, runs: int) -> None:
    """A test of the test: the mechanism states its epsilon and draws at a multiple of it."""
    query, tables, score, how, mechanism = CASES[name]
    method = "draw_numbers" if mechanism is RandomizedResponse else "draw"
    honest = getattr(mechanism, method)

    def dishonest(self, values, stream, **more):
        return honest(replace(self, epsilon=times * self.epsilon), values, stream, **more)

    monkeypatch.setattr(mechanism, method, dishonest)
    present, absent, claimed = scores(query, tables, score, runs=runs, **how)
    assert threshold_bound(present, absent, 0.0, CONFIDENCE).epsilon > claimed
