"""Reads and writes DpEvents as JSON, and flattens them into lists of releases.

A DpEvent (of dp_accounting, and our PureDpEvent, EncodedStudentDpEvent, SkellamDpEvent,
DiscreteGaussianSumDpEvent and ShuffledDpEvent) describes a release, not its cost. Noise multipliers in this
project are always noise standard deviation / clipping norm C, under every adjacency; a sum of integers states
both in its units.

The JSON form is the class name and its fields, and nothing is imported by name:

    {"type": "SelfComposedDpEvent", "count": 100, "event":
        {"type": "PoissonSampledDpEvent", "sampling_probability": 0.1, "event":
            {"type": "GaussianDpEvent", "noise_multiplier": 4.0}}}

ZCDpEvent is left out on purpose (it does not specify its adjacency), and so is
MixtureOfGaussiansDpEvent (nothing here releases one).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import attr
import numpy as np
from dp_accounting import dp_event as dp
from dp_accounting.privacy_accountant import NeighboringRelation

from fedprivacy.accounting.encoded_updates import LEAST_DEGREES, MOST_DEGREES, EncodedStudentDpEvent
from fedprivacy.accounting.integer_sums import (
    MOST_SQUARED_NORM,
    DiscreteGaussianSumDpEvent,
    SkellamDpEvent,
)
from fedprivacy.accounting.optimal_composition import PureDpEvent
from fedprivacy.accounting.shuffled_event import MAX_CLIENTS, MAX_LOCAL, MIN_LOCAL, ShuffledDpEvent
from fedprivacy.errors import InputError

MAX_DEPTH = 20
MAX_COUNT = 10**9
MIN_NOISE, MAX_NOISE = 1e-4, 1e7
MAX_VARIANCE = 1e18  # of the noise of a sum of integers

Read = Callable[[Any, str, int], Any]
# Events whose sensitivity is that of one unit more or less, and twice that under replace-one.
_RELATIVE = (dp.GaussianDpEvent, dp.LaplaceDpEvent, dp.DiscreteLaplaceDpEvent, EncodedStudentDpEvent)
Composition = tuple[tuple[dp.DpEvent, int], ...]  # each different release with its count
RELATIONS = {
    "replace-one": NeighboringRelation.REPLACE_ONE,
    "add-remove": NeighboringRelation.ADD_OR_REMOVE_ONE,
    "zero-out": NeighboringRelation.REPLACE_SPECIAL,
}


def to_json(event: dp.DpEvent) -> dict[str, Any]:
    """The event as plain dicts, lists and finite numbers.

    Raises:
        InputError: The event, or a number in it, is one that `from_json` would refuse.
    """
    data = _write(event)
    from_json(data)  # a stored event must be readable: refuse now, not when the run is opened again
    return data


def from_json(data: object) -> dp.DpEvent:
    """The event that `to_json` wrote. The data is not trusted.

    Raises:
        InputError: Unknown type, missing or extra field, a value of the wrong type or out of range,
            or events nested more than `MAX_DEPTH` deep; the message names the place.
    """
    return _event(data, "event", 1)


def releases(event: dp.DpEvent, adjacency: str) -> Composition:
    """The composition that an event is, flattened: each different release with its count.

    Equal releases are counted together, so that a ledger of 1000 equal rounds costs one
    convolution. What releases nothing disappears, sampling of everybody is no sampling, and what
    has no noise becomes one NonPrivateDpEvent. All parts are hashable.

    Raises:
        InputError: A number in the event is out of range.
    """
    # An event made in memory is checked like a stored one. It also comes back with floats for noise:
    # dp_accounting's RDP takes an int noise multiplier for the whole of a composition.
    return _flat(from_json(_write(event)), adjacency)


def is_relative(event: dp.DpEvent) -> bool:
    """Returns whether the accountants double the sensitivity of an event under replace-one.

    An epsilon in an event is never doubled: it has to hold for the two data sets of the adjacency.

    >>> is_relative(dp.GaussianDpEvent(2.0)), is_relative(PureDpEvent(1.0))
    (True, False)
    """
    match event:
        case dp.SelfComposedDpEvent(event=inner) | dp.PoissonSampledDpEvent(event=inner):
            return is_relative(inner)
        case dp.ComposedDpEvent(events=parts):
            return all(map(is_relative, parts))
    return isinstance(event, (*_RELATIVE, dp.NonPrivateDpEvent))


def _flat(event: dp.DpEvent, adjacency: str) -> tuple[tuple[dp.DpEvent, int], ...]:
    counts: Counter[dp.DpEvent] = Counter()
    _collect(event, 1, adjacency, counts)
    return tuple(counts.items())


def _collect(event: dp.DpEvent, times: int, adjacency: str, counts: Counter[dp.DpEvent]) -> None:
    """Adds `times` applications of `event` to `counts`."""
    if times == 0:
        return
    match event:
        case dp.NoOpDpEvent():
            pass
        case dp.SelfComposedDpEvent(event=inner, count=count):
            _collect(inner, times * count, adjacency, counts)
        case dp.ComposedDpEvent(events=events):
            for part in events:
                _collect(part, times, adjacency, counts)
        case (
            dp.PoissonSampledDpEvent()
            | dp.SampledWithoutReplacementDpEvent()
            | dp.SampledWithReplacementDpEvent()
            | dp.RepeatAndSelectDpEvent()
        ):
            inner = _flat(event.event, adjacency)
            if not inner or _samples_nobody(event):
                return
            if any(isinstance(leaf, dp.NonPrivateDpEvent) for leaf, _ in inner):
                counts[dp.NonPrivateDpEvent()] += times
            elif _samples_everybody(event, adjacency):
                for leaf, count in inner:
                    counts[leaf] += times * count
            else:
                counts[attr.evolve(event, event=_composed(inner))] += times
        case _:
            leaf = _release(event)
            if leaf is not None:
                counts[leaf] += times


def _samples_nobody(event: dp.DpEvent) -> bool:
    return getattr(event, "sampling_probability", None) == 0 or getattr(event, "sample_size", None) == 0


def _samples_everybody(event: dp.DpEvent, adjacency: str) -> bool:
    match event:
        case dp.PoissonSampledDpEvent(sampling_probability=q):
            return q == 1
        case dp.SampledWithoutReplacementDpEvent(source_dataset_size=size, sample_size=sample):
            # Under add-remove the neighbour has another size: in one of the two somebody is left out.
            return sample == size and adjacency != "add-remove"
    return False


def _composed(parts: tuple[tuple[dp.DpEvent, int], ...]) -> dp.DpEvent:
    """One event for a flat composition, with tuples instead of lists so that it is hashable."""
    events = tuple(leaf if count == 1 else dp.SelfComposedDpEvent(leaf, count) for leaf, count in parts)
    return events[0] if len(events) == 1 else dp.ComposedDpEvent(events)


def _release(event: dp.DpEvent) -> dp.DpEvent | None:
    """A single release as the accountants want it; None where nothing is released."""
    match event:
        case (
            dp.GaussianDpEvent(noise_multiplier=0)
            | dp.LaplaceDpEvent(noise_multiplier=0)
            | dp.DiscreteLaplaceDpEvent(noise_parameter=0)
            | EncodedStudentDpEvent(noise_multiplier=0)
            | SkellamDpEvent(variance=0)
            | DiscreteGaussianSumDpEvent(variance=0)
        ):
            return dp.NonPrivateDpEvent()
        case dp.RandomizedResponseDpEvent(noise_parameter=p, num_buckets=buckets):
            if buckets == 1 or p == 1:
                return None
            return event if p > 0 else dp.NonPrivateDpEvent()
        case PureDpEvent(epsilon=0):
            return None
        case dp.TruncatedSubsampledGaussianDpEvent():
            if 0 in (event.sampling_probability, event.truncated_batch_size, event.dataset_size):
                return None
            return event if event.noise_multiplier > 0 else dp.NonPrivateDpEvent()
        case dp.SingleEpochTreeAggregationDpEvent(noise_multiplier=noise, step_counts=steps):
            hashable = attr.evolve(event, step_counts=steps if isinstance(steps, int) else tuple(steps))
            return hashable if noise > 0 else dp.NonPrivateDpEvent()
    return event


def _write(value: Any) -> Any:
    """A part of an event as JSON data; `from_json` judges the result."""
    if isinstance(value, dp.DpEvent):
        if type(value) not in _READ:
            raise InputError(
                f"A {type(value).__name__} cannot be stored: it is not one of {', '.join(_NAMES)}."
            )
        fields = {field: _write(getattr(value, field)) for field in _READ[type(value)]}
        return {"type": type(value).__name__, **fields}
    if isinstance(value, list | tuple):
        return [_write(part) for part in value]
    if isinstance(value, np.generic):
        return value.item()
    # JSON has no infinity; it is the Poisson law of the number of repetitions (RepeatAndSelectDpEvent).
    return "infinity" if value == math.inf else value


def _event(data: object, where: str, depth: int) -> dp.DpEvent:
    if depth > MAX_DEPTH:
        raise InputError(f"{where}: events are nested more than {MAX_DEPTH} deep.")
    if not isinstance(data, Mapping):
        raise InputError(f'{where}: must be an object with a "type", not {_shown(data)}.')
    name = data.get("type")
    if not isinstance(name, str) or name not in _NAMES:
        raise InputError(f"{where}.type: {_shown(name)} is none of {', '.join(_NAMES)}.")
    fields = _READ[_NAMES[name]]
    if missing := [field for field in fields if field not in data]:
        raise InputError(f"{where}: a {name} needs {', '.join(missing)}.")
    if extra := [key for key in data if key != "type" and key not in fields]:
        raise InputError(f"{where}: a {name} has no field {_shown(extra[0])}.")
    values = {field: read(data[field], f"{where}.{field}", depth) for field, read in fields.items()}
    event = _NAMES[name](**values)
    if (
        isinstance(event, dp.SampledWithoutReplacementDpEvent)
        and event.sample_size > event.source_dataset_size
    ):
        raise InputError(f"{where}.sample_size: is larger than source_dataset_size.")
    if (
        isinstance(event, dp.SampledWithReplacementDpEvent)
        and event.source_dataset_size == 0
        and event.sample_size > 0
    ):
        raise InputError(f"{where}.source_dataset_size: there is nothing to draw from.")
    if isinstance(event, EncodedStudentDpEvent) and event.coordinates > event.dimension:
        raise InputError(f"{where}.coordinates: is larger than dimension.")
    return event


def _inner(data: object, where: str, depth: int) -> dp.DpEvent:
    return _event(data, where, depth + 1)


def _events(data: object, where: str, depth: int) -> list[dp.DpEvent]:
    if not isinstance(data, list):
        raise InputError(f"{where}: must be a list of events, not {_shown(data)}.")
    return [_event(part, f"{where}[{i}]", depth + 1) for i, part in enumerate(data)]


def _real(low: float, infinite: bool = False, high: float = math.inf) -> Read:
    """Reads a finite number in [low, high]; `infinite` also allows the word "infinity"."""

    def read(data: object, where: str, depth: int) -> float:
        if infinite and data == "infinity":
            return math.inf
        try:
            if isinstance(data, int | float) and not isinstance(data, bool):
                value = float(data)
                if math.isfinite(value) and low <= value <= high:
                    return value
        except OverflowError:  # an integer of hundreds of digits
            pass
        most = f" and at most {high:g}" if high < math.inf else ""
        raise InputError(f"{where}: must be a finite number of at least {low:g}{most}, not {_shown(data)}.")

    return read


def _zero_or(low: float, high: float) -> Read:
    """Reads 0 or a number that floating point can square, invert and exponentiate."""

    def read(data: object, where: str, depth: int) -> float:
        value = _real(0)(data, where, depth)
        if value != 0 and not low <= value <= high:
            raise InputError(f"{where}: {value:g} must be 0 or from {low:g} to {high:g}.")
        return value

    return read


def _whole(low: int, high: int = 10**15) -> Read:
    """Reads an integer in [low, high]."""

    def read(data: object, where: str, depth: int) -> int:
        if isinstance(data, int) and not isinstance(data, bool) and low <= data <= high:
            return data
        raise InputError(f"{where}: must be a whole number from {low} to {high}, not {_shown(data)}.")

    return read


def _steps(data: object, where: str, depth: int) -> int | list[int]:
    read = _whole(1, MAX_COUNT)
    if isinstance(data, list) and data:
        return [read(part, f"{where}[{i}]", depth) for i, part in enumerate(data)]
    return read(data, where, depth)


def _shown(data: object) -> str:
    """A value of untrusted size, in a few characters."""
    if isinstance(data, str | float | bool) or data is None:
        return f"{data!r:.40}"
    if isinstance(data, int) and abs(data) < 10**18:
        return str(data)
    return f"a {type(data).__name__}"


_NOISE, _RATE, _SIZE = _zero_or(MIN_NOISE, MAX_NOISE), _zero_or(1e-12, 1), _whole(0)
_INTEGERS = {"squared_norm": _whole(0, MOST_SQUARED_NORM), "dimension": _whole(1, MAX_COUNT)}
_READ: dict[type[dp.DpEvent], dict[str, Read]] = {
    dp.NoOpDpEvent: {},
    dp.NonPrivateDpEvent: {},
    dp.UnsupportedDpEvent: {},
    dp.GaussianDpEvent: {"noise_multiplier": _NOISE},
    dp.LaplaceDpEvent: {"noise_multiplier": _NOISE},
    dp.DiscreteLaplaceDpEvent: {"noise_parameter": _NOISE, "sensitivity": _whole(1, MAX_COUNT)},
    dp.RandomizedResponseDpEvent: {"noise_parameter": _RATE, "num_buckets": _whole(1)},
    PureDpEvent: {"epsilon": _zero_or(1e-12, 1e9)},
    ShuffledDpEvent: {
        "local_epsilon": _real(MIN_LOCAL, high=MAX_LOCAL),
        "clients": _whole(1, MAX_CLIENTS),
    },
    EncodedStudentDpEvent: {
        "noise_multiplier": _NOISE,
        "degrees": _real(LEAST_DEGREES, high=MOST_DEGREES),
        "coordinates": _whole(1, MAX_COUNT),
        "dimension": _whole(1, MAX_COUNT),
    },
    SkellamDpEvent: {"variance": _zero_or(MIN_NOISE, MAX_VARIANCE), **_INTEGERS},
    DiscreteGaussianSumDpEvent: {
        "variance": _zero_or(MIN_NOISE, MAX_VARIANCE),
        "shares": _whole(1, MAX_COUNT),
        **_INTEGERS,
    },
    dp.SelfComposedDpEvent: {"event": _inner, "count": _whole(0, MAX_COUNT)},
    dp.ComposedDpEvent: {"events": _events},
    dp.PoissonSampledDpEvent: {"sampling_probability": _RATE, "event": _inner},
    dp.SampledWithReplacementDpEvent: {"source_dataset_size": _SIZE, "sample_size": _SIZE, "event": _inner},
    dp.SampledWithoutReplacementDpEvent: {
        "source_dataset_size": _SIZE,
        "sample_size": _SIZE,
        "event": _inner,
    },
    dp.TruncatedSubsampledGaussianDpEvent: {
        "dataset_size": _SIZE,
        "sampling_probability": _RATE,
        "truncated_batch_size": _SIZE,
        "noise_multiplier": _NOISE,
    },
    dp.SingleEpochTreeAggregationDpEvent: {"noise_multiplier": _NOISE, "step_counts": _steps},
    dp.RepeatAndSelectDpEvent: {"event": _inner, "mean": _real(1), "shape": _real(0, infinite=True)},
}
_NAMES: dict[str, type[dp.DpEvent]] = {kind.__name__: kind for kind in _READ}
