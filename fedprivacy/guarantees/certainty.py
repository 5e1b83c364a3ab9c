"""Bounds how often an attacker guesses right against an epsilon, and names what the bound rules out.

The attacker knows everything but which of two neighbouring data sets was used, and holds both equally likely.
Every test between them with false alarm rate a and miss rate b satisfies a + e^epsilon b >= 1 - delta and
e^epsilon a + b >= 1 - delta (Kairouz, Oh and Viswanath 2015; the trade-off function of (epsilon, delta) in
Dong, Roth and Su 2022). The sum a + b is least where both hold with equality,
a = b = (1 - delta) / (1 + e^epsilon), so a guess is right with probability at most

    1 - (a + b) / 2 = (e^epsilon + delta) / (1 + e^epsilon).

With delta = 0 it also bounds the posterior belief, whatever was seen (Wasserman and Zhou 2010). With
delta > 0 rare outputs may leave no doubt, so only the share of right guesses is bounded.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Decimal
from typing import Literal

from fedprivacy.guarantees.statement import Guarantee

Level = Literal["strong", "moderate", "weak", "little", "none"]
# The largest share of right guesses of each level; a coin toss is right half of the time.
LEVELS: tuple[tuple[float, Level], ...] = ((0.60, "strong"), (0.75, "moderate"), (0.95, "weak"))
WORDS: dict[Level, str] = {
    "strong": "strong",
    "moderate": "moderate",
    "weak": "weak",
    "little": "rules out little",
    "none": "no guarantee",
}
NEARLY_SURE = 0.99  # from here on a second decimal tells bounds apart


def right_guesses(epsilon: float | None, delta: float = 0.0) -> float:
    """The largest probability that a guess at even odds between neighbouring data sets is right.

    Args:
        epsilon: The privacy loss; None, or infinite, where nothing is guaranteed.
        delta: The additive slack.

    Returns:
        Between 0.5 (a coin toss) and 1 (nothing is ruled out).

    >>> round(right_guesses(1.0), 4), right_guesses(0.0), right_guesses(None)
    (0.7311, 0.5, 1.0)
    """
    if epsilon is None or not 0 <= epsilon < math.inf or not 0 <= delta < 1:
        return 1.0
    # In powers of e^-epsilon, which cannot overflow.
    odds = math.exp(-epsilon)
    return 1.0 - (1.0 - delta) * odds / (1.0 + odds)


def of(guarantee: Guarantee) -> float:
    """The largest share of right guesses that a guarantee leaves its observer."""
    return right_guesses(guarantee.epsilon if guarantee.holds else None, guarantee.delta or 0.0)


def level(share: float, *, holds: bool = True) -> Level:
    """What a bound on right guesses rules out, from "strong" to "none".

    Args:
        share: The bound.
        holds: Whether there is a guarantee at all.

    >>> [level(right_guesses(epsilon)) for epsilon in (0.4, 1.0, 2.0, 8.0)]
    ['strong', 'moderate', 'weak', 'little']
    """
    if not holds:
        return "none"
    return next((name for most, name in LEVELS if share <= most), "little")


def percent(share: float) -> str:
    """A bound on right guesses in percent, rounded *up*, so that the print never promises too much.

    >>> percent(right_guesses(1.0)), percent(right_guesses(8.0)), percent(0.5)
    ('73.2 %', '99.97 %', '50 %')
    """
    places = Decimal("0.1") if share < NEARLY_SURE else Decimal("0.01")
    up = (100 * Decimal(share)).quantize(places, rounding=ROUND_CEILING)
    return f"{up.normalize():f} %"


def phrase(guarantee: Guarantee) -> str:
    """The bound in words: a belief at delta 0, else a share of guesses.

    >>> terms = {"observer": "server", "unit": "client", "adjacency": "replace-one"}
    >>> phrase(Guarantee.new(**terms, epsilon=2.0, delta=0.0))
    'at most 88.1 % sure'
    >>> phrase(Guarantee.new(**terms, epsilon=2.0, delta=1e-5))
    'right in at most 88.1 % of guesses'
    """
    share = percent(of(guarantee))
    return f"right in at most {share} of guesses" if guarantee.delta else f"at most {share} sure"
