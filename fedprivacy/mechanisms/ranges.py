"""The ranges of a mechanism's parameters, and what a user reads who leaves them."""

from __future__ import annotations

import math
import sys

from fedprivacy.errors import InputError

# Within them every event that is made from an epsilon is one that the accountants read.
LEAST_EPSILON, MOST_EPSILON = 1e-6, 1e4
# Within them squares neither overflow nor vanish.
LEAST_SENSITIVITY, MOST_SENSITIVITY = 1e-100, 1e100
# Beyond, no number of people is of use to anybody.
MOST_PEOPLE = 1e30
ADJACENCIES = ("replace-one", "add-remove", "zero-out")


def check_epsilon(
    epsilon: float, least: float = LEAST_EPSILON, most: float = MOST_EPSILON, title: str = ""
) -> None:
    """Refuses an epsilon that a mechanism does not take.

    Args:
        epsilon: Of one release.
        least: The least that the mechanism takes.
        most: The largest.
        title: The mechanism's, for the message.

    Raises:
        InputError: It is not from `least` to `most`.
    """
    if not least <= epsilon <= most:
        where = f"{title}: " if title else ""
        raise InputError(
            f"{where}epsilon = {epsilon}: must be from {least:g} to {most:g}; 0.1 to 10 is usual."
        )


def check_noise(clipping_norm: float, noise_multiplier: float) -> None:
    """Refuses a clipping norm or a noise multiplier that a mechanism does not take.

    Raises:
        InputError: A value is negative or not finite, or the clipping norm is 0.
    """
    if not 0 < clipping_norm < math.inf:
        raise InputError(
            f"clipping norm = {clipping_norm}: must be a finite number above 0; 0.1 to 10 is usual."
        )
    if not 0 <= noise_multiplier < math.inf:
        raise InputError(
            f"noise multiplier = {noise_multiplier}: must be a finite number of at least 0; "
            "0.5 to 20 is usual."
        )


def check_sensitivity(sensitivity: float) -> None:
    """Refuses a sensitivity that is not a positive number.

    Raises:
        InputError: It is not from 1e-100 to 1e100.
    """
    if not LEAST_SENSITIVITY <= sensitivity <= MOST_SENSITIVITY:
        raise InputError(
            f"sensitivity = {sensitivity}: must be from {LEAST_SENSITIVITY:g} to {MOST_SENSITIVITY:g}; it is "
            "the most that one record can change the answer: bound the records' values, and take that."
        )


def check_adjacency(adjacency: str) -> None:
    """Refuses a word that is no adjacency.

    Raises:
        InputError: It is none of "replace-one", "add-remove", "zero-out".
    """
    if adjacency not in ADJACENCIES:
        raise InputError(f"adjacency = {adjacency!r}: must be one of {', '.join(ADJACENCIES)}.")


def check_chance(name: str, chance: float) -> None:
    """Refuses a probability, called `name` by the user, that is not strictly between 0 and 1.

    Raises:
        InputError: It is not in (0, 1).
    """
    if not 0 < chance < 1:
        raise InputError(f"{name} = {chance}: must lie between 0 and 1, both excluded.")


def check_size(name: str, size: int, least: int = 1) -> None:
    """Refuses a number of things, called `name` by the user, below `least`.

    Raises:
        InputError: It is not a whole number of at least `least`.
    """
    if not least <= size < math.inf or size != math.floor(size):
        raise InputError(f"{name} = {size}: must be a whole number of at least {least}.")


def check_error(error: float, least: float) -> None:
    """Refuses an error of an answer that no number of people is enough for.

    Args:
        error: The largest that is wanted, in units of the answer.
        least: Of which `MOST_PEOPLE` are enough.

    Raises:
        InputError: It is not a finite number of at least `least`.
    """
    least = max(least, sys.float_info.min)
    if not least <= error < math.inf:
        raise InputError(
            f"error = {error}: must be a finite number of at least {least:.3g}: "
            f"no {MOST_PEOPLE:g} people are enough for less."
        )
