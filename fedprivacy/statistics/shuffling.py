"""Trust "shuffled": each client randomises its answers, and a shuffler takes the senders off.

The answers of one client to all queries count as one message of the summed epsilon, so that it does not
matter whether a shuffler keeps them together or shuffles each query by itself: the latter can be made of the
former.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dp_accounting import dp_event as dp

from fedprivacy.accounting.epsilon import epsilon as cost
from fedprivacy.accounting.shuffled_event import MAX_LOCAL, MIN_LOCAL, ShuffledDpEvent
from fedprivacy.errors import InputError, UnsupportedEvent

# The last digits of the search, so that shares of it do not add up to more by their rounding.
_SPARE = 1e-7
_WORTH_IT = 1.01  # times the epsilon without a shuffler


def message_epsilon(epsilon: float, clients: int, delta: float) -> float:
    """The epsilon that each client's answers may have for an epsilon of the shuffled ones.

    Args:
        epsilon: Against whoever sees the shuffled answers.
        clients: How many answer; a query that not all answered is not released.
        delta: Of the guarantee, above 0.

    Raises:
        InputError: it is out of range, or there are too few clients to hide among.
    """
    from fedprivacy.accounting.shuffle import local_epsilon  # scipy.stats takes a moment to import

    try:
        # A participant too is behind the shuffler, and hides nobody from itself.
        local = local_epsilon(epsilon, max(clients - 1, 1), delta)
    except InputError as error:
        raise InputError(f"privacy.{error}") from error
    if local < _WORTH_IT * epsilon:
        raise InputError(
            f'privacy.trust = "shuffled": {clients:,} clients are too few, a shuffler hides nobody among '
            f"them at epsilon = {epsilon:g} and delta = {delta:g}. Take more clients, "
            'a larger delta, a smaller epsilon, or trust = "local".'
        )
    return local * (1 - _SPARE)


def clients_for_less_noise(epsilon: float, clients: int, delta: float, share: float, times: float) -> float:
    """About how many clients make the noise of shares smaller, each client at its own message epsilon.

    The standard deviation of randomised response at epsilon e with n clients is 1/(2 sqrt(n) sinh(e/2)); a
    message may have a larger epsilon where more clients hide it. So it falls faster than under local trust
    and more slowly than under central trust.

    Args:
        epsilon: Against whoever sees the shuffled answers.
        clients: How many answer now.
        delta: Of the guarantee, above 0.
        share: The query's share of the budget, in (0, 1].
        times: By how much the standard deviation is to fall, at least 1.

    Raises:
        InputError: a number is out of range, or there are too few clients to hide among.
    """

    def noise(number: float) -> float:
        part = share * message_epsilon(epsilon, math.ceil(number), delta)
        return 1 / (math.sqrt(number) * math.sinh(part / 2))

    goal, number = noise(clients) / times, clients * times
    for _ in range(4):  # to two digits: about n^-0.85 near the solution
        number *= (noise(number) / goal) ** 1.2
    return number


def shuffled_event(messages: Sequence[dp.DpEvent], clients: int) -> dp.DpEvent:
    """The event of all clients' answers behind a shuffler, under replace-one.

    Args:
        messages: The events of one client's answers, each pure; all clients answer by the same mechanisms.
        clients: How many clients' randomness the observer does not know, the protected one among them.

    Raises:
        UnsupportedEvent: an answer is not pure: the numerics hold for no approximate message.
    """
    together = dp.ComposedDpEvent(list(messages))
    try:
        whole = cost(together, 0.0, "replace-one").epsilon
    except UnsupportedEvent as error:
        raise UnsupportedEvent(
            "The bound of shuffled messages is for pure ones, with an epsilon at delta = 0, and one of these "
            "has none: use a pure mechanism, such as randomised response."
        ) from error
    # Out of the bound's range, or with nobody to hide among, nothing is amplified.
    in_range = MIN_LOCAL <= whole <= MAX_LOCAL and clients > 1
    return ShuffledDpEvent(whole, clients) if in_range else together
