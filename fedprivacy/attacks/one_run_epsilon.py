"""Empirical epsilon from one run whose targets were included or excluded by fair coins.

Steinke, Nasr and Jagielski 2023 ("Privacy auditing with one (1) training run"): each of m records is in the
data by a fair coin of its own. The auditor guesses some coins from what it saw and abstains on the others. If
the run is (epsilon, delta)-DP for one record in or out, the right guesses are hardly more than those of
randomised response, so many right ones refute a small epsilon.

It holds only for coins that are fair and independent for *each record that was scored*, as the membership
game draws them, and not for a fixed number of chosen members.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy
from scipy.special import betainc

from fedprivacy.attacks.repeated_run_epsilon import LowerBound
from fedprivacy.attacks.targets import Flags, Scores, Targets
from fedprivacy.errors import InputError

UNFAIR = 1e-6  # fair coins are refused so rarely
_SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5)  # of the targets, guessed in and as many guessed out
_LARGEST = 100.0  # no number of trials here proves such an epsilon


@dataclass(frozen=True)
class Guesses:
    """The counts of an auditor's guesses; those of independent runs with own coins add up.

    Args:
        trials: m, the records with a coin.
        made: r, the guesses that were to be made; one that was not made, since scores were equal, is wrong.
        right: v, how many were right.
    """

    trials: int
    made: int
    right: int

    def __add__(self, other: Guesses) -> Guesses:
        return Guesses(self.trials + other.trials, self.made + other.made, self.right + other.right)


def guess(scores: Scores, members: Flags, each: int) -> Guesses:
    """Guesses that the `each` largest scores are members and the `each` smallest are not.

    Where scores are equal across the border nobody of that score is guessed: to take some of them by their
    place in the list could follow the memberships.

    Args:
        scores: Larger means rather a member, shape (targets,).
        members: The coins, shape (targets,).
        each: Fixed before these coins were looked at, from 1 to targets/2.

    Raises:
        InputError: `each` is out of range.
    """
    count = len(scores)
    if not 1 <= each <= count // 2:
        raise InputError(f"guesses = {each}: must lie between 1 and {count // 2}, half of the targets.")
    ordered = np.sort(scores)
    most = scores > ordered[-each - 1]
    least = scores < ordered[each]
    return Guesses(count, 2 * each, int(members[most].sum() + (~members[least]).sum()))


def p_value(guesses: Guesses, epsilon: float, delta: float) -> float:
    """Upper bound of the probability of at least this many right guesses under (epsilon, delta)-DP.

    Theorem 5.2 and Appendix D of the paper: P[Binomial(r, q) >= v] + 2 m delta alpha, q = 1/(1 + e^-epsilon),
    alpha the largest of P[v > Binomial(r, q) >= v - i] / i.

    Args:
        guesses: m, r and v.
        epsilon: At least 0.
        delta: In [0, 1].
    """
    m, r, v = guesses.trials, guesses.made, guesses.right
    q = 1 / (1 + math.exp(-epsilon))
    if v == 0:
        return 1.0
    tail = float(betainc(v, r - v + 1, q))  # P[Binomial(r, q) >= v]
    if delta == 0:
        return tail
    below = np.cumsum(scipy.stats.binom.pmf(np.arange(v - 1, -1, -1), r, q)) / np.arange(1, v + 1)
    return min(1.0, tail + 2 * m * delta * float(below.max()))


def lower_bound(guesses: Guesses, delta: float, confidence: float = 0.95) -> LowerBound:
    """Returns the epsilon below which the guesses refute (epsilon, delta)-DP with this confidence.

    Args:
        guesses: With `made` fixed before the coins that were guessed.
        delta: The delta of the claim, in [0, 1).
        confidence: One-sided, in (0, 1). Of k bounds of which the largest is reported, each needs
            1 - (1 - confidence)/k.

    Raises:
        InputError: a value is out of range.
    """
    if not 0 <= guesses.right <= guesses.made <= guesses.trials:
        raise InputError(f"{guesses}: must be right <= made <= trials, and none below 0.")
    if not 0 <= delta < 1:
        raise InputError(f"delta = {delta}: must be at least 0 and below 1.")
    if not 0 < confidence < 1:
        raise InputError(f"confidence = {confidence}: must lie between 0 and 1.")
    perfect = Guesses(guesses.trials, guesses.made, guesses.made)
    return LowerBound(
        _refuted(guesses, delta, 1 - confidence),
        _refuted(perfect, delta, 1 - confidence),
        confidence,
        "one run with coin-flipped records (Steinke, Nasr and Jagielski 2023): "
        f"{guesses.right} of {guesses.made} guesses right, {guesses.trials} fair and independent coins; "
        "for one record in or out",
    )


def _refuted(guesses: Guesses, delta: float, error: float) -> float:
    """The largest epsilon up to which every one is refuted at `error`."""
    if p_value(guesses, 0.0, delta) > error:
        return 0.0
    low, high = 0.0, 1.0
    while p_value(guesses, high, delta) <= error and high < _LARGEST:
        low, high = high, 2 * high
    while high - low > 1e-7 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if p_value(guesses, middle, delta) <= error else (low, middle)
    return low


def check_coins(members: Flags) -> None:
    """Refuses memberships that fair coins do not give.

    Raises:
        InputError: so few, or so many, members have a probability below 1e-6.
    """
    count = len(members)
    if scipy.stats.binomtest(int(members.sum()), count, 0.5).pvalue < UNFAIR:
        raise InputError(
            f"members: {int(members.sum())} of {count} targets are members: no fair coin was flipped for "
            "each. An empirical epsilon needs one; score targets chosen without regard to membership."
        )


def guesses_of(targets: Targets, delta: float) -> Guesses:
    """The guesses on the measured targets of the single direction.

    There are as many as would have proved most on its known targets.

    Cross-fitting would break the theorem: if one coin is guessed by means of another, and that by means of
    the first, right guesses are no longer bounded one after the other. In the single direction the coins of
    the measured targets are still fair and independent given those of the known ones: the number of guesses,
    and a score that was chosen or learned, may use the latter.

    *All targets must be fair*, those for fitting too. A game that adds targets until it has the wanted
    numbers of members and non-members adds as many members as the fair ones lack: from known added targets
    follows how many measured coins are members, so that these are no longer fair given what was fitted.

    Args:
        targets: Fair ones of one run, folds drawn blind to membership (`draw_folds`), with a score that was
            fixed, or chosen or learned on fair ones alone.
        delta: The delta of the claim, in [0, 1).

    Raises:
        InputError: the coins were not fair, or there are fewer than two known or measured targets.
    """
    check_coins(targets.members)
    direction = targets.single
    known, coins = _joined(direction.known_members, direction.known_nonmembers)

    def proved(share: float) -> float:
        return _refuted(guess(known, coins, _each(share, len(known))), delta, 0.05)

    best = max(_SHARES, key=proved)
    scores, members = _joined(direction.members, direction.nonmembers)
    return guess(scores, members, _each(best, len(scores)))


def _joined(members: Scores, nonmembers: Scores) -> tuple[Scores, Flags]:
    """Scores with their coins; the order does not matter, since equal scores are guessed together."""
    return np.concatenate([members, nonmembers]), np.arange(len(members) + len(nonmembers)) < len(members)


def _each(share: float, count: int) -> int:
    return min(max(1, round(share * count)), count // 2)
