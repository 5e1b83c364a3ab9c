"""Amplification by shuffling: the privacy of local answers whose senders are unknown.

Feldman, McMillan and Talwar 2021, "Hiding among the clones" (FOCS; arXiv:2012.12803). Theorem 3.2 there:
each other client, with probability e^-epsilon_0, answers as a clone of the client in question, with either of
its two data sets. The shuffled answers are at most as distinguishable as

    (A + D, C - A + 1 - D)  against  (A + 1 - D, C - A + D)

with C clones, of which A answer for the first data set:

    C ~ Bin(n - 1, e^-epsilon_0),   A ~ Bin(C, 1/2),   D ~ Bernoulli(e^epsilon_0 / (e^epsilon_0 + 1)).

`epsilon` evaluates that pair, rounded up. The pair of the sequel (SODA 2023) has an erratum and is not used.
Apple's ml-shuffling-amplification (github.com/apple/ml-shuffling-amplification) evaluates the same pair.

Runs of statistics under trust "shuffled" are accounted for in this way, and no others.
"""

from __future__ import annotations

import math

import numpy as np
import scipy
from numpy.typing import NDArray

from fedprivacy.accounting.events import Composition
from fedprivacy.accounting.shuffled_event import MAX_CLIENTS, MAX_LOCAL, MIN_LOCAL, ShuffledDpEvent
from fedprivacy.errors import InputError, UnsupportedEvent

ASSUMPTIONS = (
    "a shuffler that the observer does not control puts all answers in random order, and drops who sent each",
    "all clients counted answer, each once and on its own, by one and the same mechanism",
    "whoever sees the shuffled answers does not know any client's own randomness: clients who tell theirs "
    "hide nobody, and must be left out of the count",
)
MIN_DELTA = 1e-100

# scipy's binomial laws are right to some 1e-10 of themselves at 10^10 trials (measured against 50 digits,
# at up to 12 deviations). Ten times as much is put on each term.
_RELATIVE_ERROR = 1e-9
# The share of delta for numbers of clones that are not evaluated.
_LEFT_OUT = 1e-6
# Up to this count, numbers of clones are evaluated one by one, beyond it in as many blocks.
_BLOCKS = 4096


def shuffled_epsilon(local_epsilon: float, clients: int, delta: float) -> float:
    """Epsilon of the shuffled answers of `clients` local randomisers, under replace-one, rounded up.

    It holds for any epsilon_0-DP randomiser, if `ASSUMPTIONS` are true. Never above epsilon_0.

    Args:
        local_epsilon: epsilon_0 of each answer, from 0.001 to 25.
        clients: n, the number of answers, from 1 to 10^10.
        delta: Of the guarantee, from 1e-100 and below 1.

    Raises:
        InputError: A number is out of range.

    >>> round(shuffled_epsilon(1.0, 1000, 1e-5), 3)
    0.154
    """
    pair = Clones(local_epsilon, clients, delta)
    low, high = 0.0, local_epsilon
    if pair.delta(low) <= delta:
        return low
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if pair.delta(middle) <= delta else (middle, high)
    return high


def local_epsilon(epsilon: float, clients: int, delta: float) -> float:
    """The largest epsilon_0 of each answer that makes shuffled answers (epsilon, delta)-DP, rounded down.

    Args:
        epsilon: Of the shuffled answers, above 0 and at most 25.
        clients: n, the number of answers.
        delta: Of the guarantee.

    Raises:
        InputError: A number is out of range, or not even an epsilon_0 of 0.001 is enough.

    >>> round(local_epsilon(0.154, 1000, 1e-5), 2)
    1.0
    """
    if not 0 < epsilon <= MAX_LOCAL:
        raise InputError(f"epsilon = {epsilon}: must be above 0 and at most {MAX_LOCAL:g}.")

    def holds(local: float) -> bool:
        return local <= epsilon or Clones(local, clients, delta).delta(epsilon) <= delta

    low, high = max(epsilon, MIN_LOCAL), MAX_LOCAL
    _check(low, clients, delta)
    if not holds(low):
        raise InputError(
            f"epsilon = {epsilon:g}: too small, {clients} clients would have to answer with an epsilon "
            f"below {MIN_LOCAL:g} each."
        )
    if holds(high):
        return high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def clone_bound(parts: Composition, delta: float, adjacency: str) -> float:
    """The epsilon of shuffled messages, of which each client has one (`ShuffledDpEvent`).

    Raises:
        UnsupportedEvent: It is something else, or composed with others.
    """
    match parts:
        case ((ShuffledDpEvent(local_epsilon=local, clients=clients), 1),) if adjacency == "replace-one":
            return shuffled_epsilon(local, clients, delta)
    raise UnsupportedEvent("One batch of shuffled messages alone has the clone bound, under replace-one.")


def closed_form(local_epsilon: float, clients: int, delta: float) -> float | None:
    """The closed form of the theorem, several times as large; None where its condition fails.

    Feldman, McMillan and Talwar 2021, Theorem 3.1, for epsilon_0 <= ln(n / (16 ln(2/delta))):

        ln(1 + (e^epsilon_0 - 1)/(e^epsilon_0 + 1) (8 sqrt(e^epsilon_0 ln(4/delta) / n) + 8 e^epsilon_0 / n))

    Args:
        local_epsilon: epsilon_0 of each answer.
        clients: n, the number of answers.
        delta: Of the guarantee.
    """
    _check(local_epsilon, clients, delta)
    if local_epsilon > closed_form_limit(clients, delta):
        return None
    odds = math.exp(local_epsilon)
    spread = 8 * math.sqrt(odds * math.log(4 / delta) / clients) + 8 * odds / clients
    return min(local_epsilon, math.log1p(math.tanh(local_epsilon / 2) * spread))


def closed_form_limit(clients: int, delta: float) -> float:
    """The largest epsilon_0 for which `closed_form` is proved; not above 0 for few clients."""
    return math.log(clients / (16 * math.log(2 / delta)))


class Clones:
    """The pair of distributions above, for one epsilon_0 and one number of clients.

    Given c clones the first coordinate m, from 0 to c + 1, has both likelihoods in closed form, and their
    ratio grows with m: the best test decides for the first above a threshold t, and the hockey-stick
    divergence is

        H_c(epsilon) = (e^epsilon_0 - e^epsilon)/(e^epsilon_0 + 1) P(A = t) - (e^epsilon - 1) P(A > t).

    Both directions are the same, by symmetry. More clones hide more: H_c falls with c (one more clone is
    post-processing of c), so that a block of numbers of clones counts as its least one.
    """

    def __init__(self, local_epsilon: float, clients: int, delta: float) -> None:
        """Args as for `shuffled_epsilon`; `delta` bounds the mass of the clones' law that may be left out."""
        _check(local_epsilon, clients, delta)
        self.local_epsilon = local_epsilon
        trials, chance = clients - 1, math.exp(-local_epsilon)
        # Chernoff's bound: fewer than `first` are rare, and left out, which counts in full. More than `last`
        # count as `last`.
        mean, rare = trials * chance, -math.log(_LEFT_OUT * delta)
        first = max(math.floor(mean - math.sqrt(2 * mean * rare)), 0)
        last = min(math.ceil(mean + math.sqrt(2 * mean * rare) + rare), trials)
        self.clones: NDArray[np.int64] = np.unique(
            np.linspace(first, last, min(_BLOCKS, last - first + 1)).astype(np.int64)
        )
        below = np.append(scipy.stats.binom.cdf(self.clones - 1, trials, chance), 1.0)
        above = np.append(scipy.stats.binom.sf(self.clones - 1, trials, chance), 0.0)
        # The probability of each block, as the difference of the smaller tails.
        self.mass: NDArray[np.float64] = np.where(below[1:] < 0.5, np.diff(below), -np.diff(above))
        self.left_out = float(below[0])

    def delta(self, epsilon: float) -> float:
        """At least the hockey-stick divergence of the pair at `epsilon`, from 0 to epsilon_0."""
        # The threshold: m > t iff the first likelihood is above e^epsilon times the second.
        share = math.expm1(self.local_epsilon + epsilon) / (
            math.expm1(self.local_epsilon) * (1 + math.exp(epsilon))
        )
        t = np.minimum(np.floor(share * (self.clones + 1.0)), self.clones)
        weight = math.exp(epsilon) * math.expm1(self.local_epsilon - epsilon)
        gain = weight / (1 + math.exp(self.local_epsilon)) * scipy.stats.binom.pmf(t, self.clones, 0.5)
        loss = math.expm1(epsilon) * scipy.stats.binom.sf(t, self.clones, 0.5)
        divergence = np.maximum(0.0, gain * (1 + _RELATIVE_ERROR) - loss * (1 - _RELATIVE_ERROR))
        return (self.left_out + float(self.mass @ divergence)) * (1 + _RELATIVE_ERROR * 10)


def _check(local_epsilon: float, clients: int, delta: float) -> None:
    if not MIN_LOCAL <= local_epsilon <= MAX_LOCAL:
        raise InputError(f"epsilon = {local_epsilon}: must be from {MIN_LOCAL:g} to {MAX_LOCAL:g}.")
    if not 1 <= clients <= MAX_CLIENTS:
        raise InputError(f"clients = {clients}: must be a whole number from 1 to {MAX_CLIENTS}.")
    if not MIN_DELTA <= delta < 1:
        raise InputError(f"delta = {delta}: must be at least {MIN_DELTA:g} and below 1.")
