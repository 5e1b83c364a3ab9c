"""Search for the local mechanism with the least error: candidates calibrated and measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedprivacy.errors import InputError
from fedprivacy.mechanisms.local import LOCAL, LocalMechanism, local_class
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.randomness.streams import Streams

_MEASURED_NUMBERS = 500_000  # numbers drawn for a measurement, over all its messages


@dataclass(frozen=True)
class Candidate:
    """One mechanism for a plan.

    Args:
        mechanism: Its name.
        noise: The amount of noise at this budget, in words; None if it is impossible.
        predicted_error: Mean squared error per coordinate of one message of an update of norm C, in
            units of C^2, by formula.
        measured_error: The same, over drawn messages of random directions.
        chosen: Whether it was selected.
        reason: The reason if it is impossible.
    """

    mechanism: str
    noise: str | None = None
    predicted_error: float | None = None
    measured_error: float | None = None
    chosen: bool = False
    reason: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The candidate as a JSON object."""
        return asdict(self)


@lru_cache(maxsize=64)  # a run needs its plan, and later the candidates that it was chosen from
def calibrated(plan: Plan, epsilon: float, dimension: int, direction: str) -> Mapping[str, Plan | str]:
    """The plan of each candidate at (epsilon, the plan's delta), or the reason for none.

    Args:
        plan: A local plan; its mechanism gives the clipping norm.
        epsilon: The budget of the whole run.
        dimension: The length of an update.
        direction: How PrivUnitG makes a direction of an update.
    """
    plans: dict[str, Plan | str] = {}
    for name in LOCAL:
        mechanism = local_class(name).uncalibrated(plan.clipping_norm or 0.0, dimension, direction)
        try:
            plans[name] = replace(plan, mechanism=mechanism).calibrate(epsilon)
        except InputError as error:
            plans[name] = str(error)
    return plans


def best(plans: Mapping[str, Plan | str], dimension: int) -> Plan:
    """The plan whose messages have the least predicted error.

    Raises:
        InputError: if no candidate is possible.
    """
    possible = [plan for plan in plans.values() if isinstance(plan, Plan)]
    if not possible:
        raise InputError(f"no local mechanism is possible: {next(iter(plans.values()))}")
    return min(possible, key=lambda plan: _mechanism(plan).error(dimension))


def described(plans: Mapping[str, Plan | str], dimension: int) -> list[Candidate]:
    """All candidates, with their predicted and measured errors."""
    chosen = best(plans, dimension)
    rows = []
    for name, plan in plans.items():
        if isinstance(plan, str):
            rows.append(Candidate(name, reason=plan))
            continue
        mechanism = _mechanism(plan)
        rows.append(
            Candidate(
                name,
                mechanism.words,
                mechanism.error(dimension),
                measured_error(mechanism, dimension),
                plan is chosen,
            )
        )
    return rows


def measured_error(mechanism: LocalMechanism, dimension: int) -> float:
    """The error of drawn messages of random directions, as `Candidate.measured_error`; no data is used."""
    messages = max(20, min(2000, _MEASURED_NUMBERS // dimension))
    return float(message_errors(mechanism, dimension, messages).mean())


def message_errors(mechanism: LocalMechanism, dimension: int, messages: int) -> NDArray[np.float64]:
    """Mean squared error per coordinate of each drawn message, in units of C^2, shape (messages,).

    Each is of an update of norm C in a direction of its own.
    """
    errors = np.empty(messages)
    for number in range(messages):
        stream = Streams(0).stream("measured-error", member=number)
        update = stream.standard_normal(dimension)
        update *= mechanism.clipping_norm / np.linalg.norm(update)
        errors[number] = np.mean((mechanism.randomise(update, stream) - update) ** 2)
    return errors / mechanism.clipping_norm**2


def _mechanism(plan: Plan) -> LocalMechanism:
    mechanism = plan.randomiser
    assert mechanism is not None  # a local plan has one
    return mechanism
