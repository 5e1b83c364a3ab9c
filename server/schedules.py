"""Schedules of the server's learning rate: public functions of the round."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from fedprivacy.scenario.sections import Schedule, Server

END = 0.1  # the share in the last round of a linear or cosine schedule
# Schedule -> its share of the learning rate, by the finished part of the rounds, the round (from 0), and the
# share in the last one.
_SHARES: dict[Schedule, Callable[[float, int, float], float]] = {
    "constant": lambda part, number, end: 1.0,
    "linear": lambda part, number, end: 1 - (1 - end) * part,
    "cosine": lambda part, number, end: end + (1 - end) * (1 + math.cos(math.pi * part)) / 2,
    "inverse-sqrt": lambda part, number, end: 1 / math.sqrt(number + 1),
}


@dataclass(frozen=True)
class LearningRate:
    """A learning rate with its schedule.

    Args:
        first: In round 0.
        schedule: How it falls.
        end: The share of `first` in the last planned round; it has no effect on the other schedules.
        rounds: All planned rounds; later ones have the rate of the last.
    """

    first: float
    schedule: Schedule = "constant"
    end: float = END
    rounds: int = 1

    @classmethod
    def of(cls, options: Server, rounds: int) -> Self:
        """The learning rate of a section `server`."""
        end = END if options.schedule_end is None else options.schedule_end
        return cls(options.learning_rate, options.schedule, end, rounds)

    def at(self, number: int) -> float:
        """The learning rate of round `number` (from 0).

        >>> [LearningRate(2.0, "linear", 0.5, 5).at(number) for number in range(6)]
        [2.0, 1.75, 1.5, 1.25, 1.0, 1.0]
        """
        part = min(1.0, number / max(1, self.rounds - 1))
        return self.first * _SHARES[self.schedule](part, number, self.end)
