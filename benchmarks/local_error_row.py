"""The error of one local mechanism, measured and predicted."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """The error of one mechanism.

    Args:
        dimension: d, the numbers of an update.
        answers: How often a client answers.
        epsilon: What all its answers cost together.
        mechanism: The mechanism's name.
        predicted: The error by formula.
        measured: The mean error of drawn messages.
        standard_error: Its standard error.
        reference: The known error; None where there is none.
        ratio: measured / reference.
    """

    dimension: int
    answers: int
    epsilon: float
    mechanism: str
    predicted: float
    measured: float
    standard_error: float
    reference: float | None
    ratio: float | None

    def differs(self, other: Row) -> bool:
        """Whether another row is of another budget or dimension."""
        mine, others = ((row.dimension, row.answers, row.epsilon) for row in (self, other))
        return mine != others
