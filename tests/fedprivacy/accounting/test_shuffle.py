"""Amplification by shuffling: the pair in fractions, shuffled answers by brute force, the closed form."""

from __future__ import annotations

import itertools
import math
import time
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from fedprivacy.accounting.shuffle import (
    MAX_LOCAL,
    Clones,
    closed_form,
    closed_form_limit,
    local_epsilon,
    shuffled_epsilon,
)
from fedprivacy.errors import InputError

Law = dict[object, Fraction]


def divergence(first: Law, second: Law, grown: Fraction) -> Fraction:
    """The hockey-stick divergence at ln(grown)."""
    return sum(
        (max(Fraction(0), mass - grown * second.get(seen, Fraction(0))) for seen, mass in first.items()),
        Fraction(0),
    )


def clone_pair(odds: Fraction, clients: int) -> tuple[Law, Law]:
    """The two laws of the theorem, every outcome with its probability."""
    first: Counter[object] = Counter()
    second: Counter[object] = Counter()
    chance, truth = 1 / odds, odds / (odds + 1)
    for c in range(clients):
        of_c = math.comb(clients - 1, c) * chance**c * (1 - chance) ** (clients - 1 - c)
        for a in range(c + 1):
            mass = of_c * math.comb(c, a) / Fraction(2) ** c
            first[(a + 1, c - a)] += mass * truth
            first[(a, c - a + 1)] += mass * (1 - truth)
            second[(a, c - a + 1)] += mass * truth
            second[(a + 1, c - a)] += mass * (1 - truth)
    return dict(first), dict(second)


def shuffled_answers(rows: list[list[Fraction]]) -> Law:
    """The law of the counts of answers, of clients who each answer by a row of probabilities."""
    law: Counter[object] = Counter()
    for answers in itertools.product(range(len(rows[0])), repeat=len(rows)):
        seen = tuple(sorted(Counter(answers).items()))
        law[seen] += math.prod(
            (row[answer] for row, answer in zip(rows, answers, strict=True)), start=Fraction(1)
        )
    return dict(law)


@pytest.mark.exhaustive(every=7)
@pytest.mark.parametrize("odds", [Fraction(11, 10), Fraction(3), Fraction(40)])
@pytest.mark.parametrize("clients", [1, 2, 7, 30])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.6, 0.95])
def test_the_divergence_is_that_of_the_pair_and_not_below_it(
    odds: Fraction, clients: int, share: float
) -> None:
    local = math.log(odds)
    grown = Fraction(math.exp(share * local))
    first, second = clone_pair(odds, clients)
    exact = float(divergence(first, second, grown))
    assert exact == pytest.approx(float(divergence(second, first, grown)), rel=1e-12)  # the symmetry
    found = Clones(local, clients, 1e-9).delta(share * local)
    assert exact <= found * (1 + 1e-12)
    assert found <= exact * (1 + 1e-6) + 2e-15


@pytest.mark.exhaustive(every=7)
@pytest.mark.parametrize("delta", [1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("items", [2, 3])
@pytest.mark.parametrize("local", [0.5, 1.0, 3.0])
def test_shuffled_k_ary_randomised_response_keeps_the_bound(local: float, items: int, delta: float) -> None:
    odds = Fraction(math.exp(local))
    clients = 8 if items == 2 else 5
    of = [
        [(odds if answer == value else Fraction(1)) / (odds + items - 1) for answer in range(items)]
        for value in range(items)
    ]
    grown = Fraction(math.exp(shuffled_epsilon(local, clients, delta)))
    for others in itertools.combinations_with_replacement(range(items), clients - 1):
        rows = [of[value] for value in others]
        first, second = shuffled_answers([of[0], *rows]), shuffled_answers([of[1], *rows])
        assert divergence(first, second, grown) <= Fraction(delta)
        assert divergence(second, first, grown) <= Fraction(delta)


@pytest.mark.parametrize("clients", [1000, 2000])
def test_shuffled_bits_of_many_clients_keep_the_bound_and_come_near_it(clients: int) -> None:
    local, delta = 1.0, 1e-5
    odds = math.e
    # All others answer for the same data: the number of ones is a sum of two binomials.
    ones = binom.pmf(range(clients), clients - 1, 1 / (1 + odds))
    first, second = [0.0] * (clients + 1), [0.0] * (clients + 1)
    for k, mass in enumerate(ones):
        first[k] += mass * odds / (1 + odds)
        first[k + 1] += mass / (1 + odds)
        second[k] += mass / (1 + odds)
        second[k + 1] += mass * odds / (1 + odds)
    found = shuffled_epsilon(local, clients, delta)
    for factor, kept in ((1.0, True), (0.6, False)):
        grown = math.exp(factor * found)
        worst = max(
            sum(max(0.0, p - grown * q) for p, q in zip(*pair, strict=True))
            for pair in ((first, second), (second, first))
        )
        assert bool(worst <= delta) == kept


@pytest.mark.exhaustive(every=7)
@pytest.mark.parametrize("local", [0.01, 0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("clients", [1000, 10**5, 10**7])
@pytest.mark.parametrize("delta", [1e-5, 1e-8])
def test_the_closed_form_is_never_below_the_numbers(local: float, clients: int, delta: float) -> None:
    closed, numbers = closed_form(local, clients, delta), shuffled_epsilon(local, clients, delta)
    assert numbers <= local
    assert (closed is None) == (local > closed_form_limit(clients, delta))
    if closed is not None:
        assert numbers <= closed <= local


def test_known_figures() -> None:
    assert closed_form(1.0, 1000, 1e-5) == pytest.approx(0.532, abs=5e-4)
    assert shuffled_epsilon(1.0, 1000, 1e-5) == pytest.approx(0.154, abs=5e-4)
    # The README of Apple's ml-shuffling-amplification gives 0.1675 and 0.1728 as limits from below and above.
    assert 0.16753 < shuffled_epsilon(4.0, 10**5, 1e-6) < 0.17280


def test_blocks_of_numbers_of_clones_cost_little_and_never_help() -> None:
    """Half a million clients have more likely numbers of clones than blocks; one by one is the least bound."""
    pair, one_by_one = Clones(1.0, 500_000, 1e-6), Clones(1.0, 500_000, 1e-6)
    assert len(pair.clones) == 4096 < pair.clones[-1] - pair.clones[0]
    each = np.arange(pair.clones[0], pair.clones[-1] + 1)
    one_by_one.clones, one_by_one.mass = each, binom.pmf(each, 499_999, math.exp(-1))
    for epsilon in (0.001, 0.005, 0.01):
        exact, found = one_by_one.delta(epsilon), pair.delta(epsilon)
        assert exact * (1 - 1e-7) <= found <= exact * 1.001


def test_numbers_of_clones_that_are_left_out_count_in_full() -> None:
    pair = Clones(1.0, 10**6, 0.1)
    assert 0 < pair.left_out <= 1e-7
    assert pair.left_out + pair.mass.sum() == pytest.approx(1, abs=1e-12)
    assert pair.delta(1.0) >= pair.left_out  # at epsilon_0 nothing else is left


def test_more_clients_less_delta_or_more_local_privacy_mean_more_privacy() -> None:
    def fall(values: list[float]) -> bool:
        return all(a > b for a, b in itertools.pairwise(values))

    assert fall([shuffled_epsilon(2.0, n, 1e-6) for n in (1, 10, 100, 10**4, 10**6, 10**8, 10**10)])
    assert fall([shuffled_epsilon(2.0, 1000, delta) for delta in (1e-12, 1e-9, 1e-6, 1e-3)])
    assert fall([shuffled_epsilon(local, 1000, 1e-6) for local in (8.0, 4.0, 2.0, 1.0, 0.1)])


@pytest.mark.exhaustive(beyond=3)
@pytest.mark.parametrize(("epsilon", "clients"), [(0.154, 1000), (0.5, 10**6), (1e-4, 10**6), (1.0, 1)])
def test_back_to_what_each_client_may_spend(epsilon: float, clients: int) -> None:
    local = local_epsilon(epsilon, clients, 1e-5)
    assert local >= epsilon
    assert Clones(local, clients, 1e-5).delta(epsilon) <= 1e-5
    assert shuffled_epsilon(local, clients, 1e-5) == pytest.approx(epsilon, rel=1e-6)
    assert shuffled_epsilon(local * 1.001, clients, 1e-5) > epsilon


def test_the_budget_of_each_client_has_an_end() -> None:
    assert local_epsilon(25.0, 10, 1e-5) == MAX_LOCAL
    with pytest.raises(InputError, match=r"below 0\.001 each"):
        local_epsilon(1e-6, 10, 1e-5)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ((0.0, 10, 1e-5), r"epsilon = 0\.0: must be from 0\.001 to 25"),
        ((math.nan, 10, 1e-5), "epsilon = nan"),
        ((1.0, 0, 1e-5), "clients = 0"),
        ((1.0, 10**11, 1e-5), "clients = 100000000000"),
        ((1.0, 10, 0.0), r"delta = 0\.0"),
        ((1.0, 10, 1.0), r"delta = 1\.0"),
    ],
)
def test_what_is_out_of_range_is_refused(asked: tuple[float, int, float], message: str) -> None:
    for ask in (shuffled_epsilon, closed_form):
        with pytest.raises(InputError, match=message):
            ask(*asked)
    if asked[0] == 1.0:
        with pytest.raises(InputError, match=message):
            local_epsilon(*asked)
    else:
        with pytest.raises(InputError, match="must be above 0"):
            local_epsilon(*asked)


def test_ten_thousand_million_clients_take_a_moment() -> None:
    began = time.monotonic()
    assert 0 < shuffled_epsilon(4.0, 10**10, 1e-12) < 0.01
    assert time.monotonic() - began < 60  # one by one they would take hours
