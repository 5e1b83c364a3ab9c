"""Figures of attacks as JSON and back, bit for bit: what a cell of a replay is stored as."""

from __future__ import annotations

import base64
import dataclasses
from typing import Any

import numpy as np

from fedprivacy.attacks.counts import Counts
from fedprivacy.attacks.empirical import Guesses
from fedprivacy.attacks.intervals import Figure
from fedprivacy.attacks.metrics import ClassFigure, Measured
from fedprivacy.attacks.roc import Roc
from fedprivacy.attacks.thresholds import RateAt
from fedprivacy.errors import InputError
from scenarios.attacks.scoring import Judged

# Nothing else is ever made of what is read.
_KINDS = {
    kind.__name__: kind for kind in (Judged, Measured, Figure, Roc, RateAt, Counts, ClassFigure, Guesses)
}


def packed(value: Any) -> Any:
    """A value as JSON: dataclasses of `_KINDS`, arrays, lists, dicts, and plain values."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: packed(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {"kind": type(value).__name__, "fields": fields}
    if isinstance(value, np.ndarray):
        data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
        return {"array": value.dtype.str, "shape": list(value.shape), "data": data}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {"pairs": [[packed(key), packed(one)] for key, one in value.items()]}
    if isinstance(value, tuple):
        return {"tuple": [packed(one) for one in value]}
    if isinstance(value, list):
        return [packed(one) for one in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{type(value).__name__} has no place in a stored result")


def unpacked(data: Any) -> Any:
    """What `packed` was given.

    Raises:
        InputError: it is nothing that `packed` gives.
    """
    try:
        return _unpacked(data)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"not a stored result ({type(error).__name__}: {error})") from error


def _unpacked(data: Any) -> Any:
    if isinstance(data, list):
        return [_unpacked(one) for one in data]
    if not isinstance(data, dict):
        return data
    if "kind" in data:
        return _KINDS[data["kind"]](**{name: _unpacked(one) for name, one in data["fields"].items()})
    if "array" in data:
        values = np.frombuffer(base64.b64decode(data["data"]), dtype=np.dtype(data["array"]))
        return values.reshape(data["shape"]).copy()
    if "tuple" in data:
        return tuple(_unpacked(one) for one in data["tuple"])
    return {_unpacked(key): _unpacked(one) for key, one in data["pairs"]}
