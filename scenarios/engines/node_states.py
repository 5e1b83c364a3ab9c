"""Node states as named arrays, so that a checkpoint can hold them, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import numpy as np
import numpy.typing as npt
from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord, RecordDict

from fedprivacy.errors import InputError
from fedprivacy.io import bounded_json

NodeArray = npt.NDArray[Any]

# The types of numpy arrays that safetensors takes, on every platform.
CHECKPOINT_TYPES = frozenset(
    {"bool", "float16", "float32", "float64"}
    | {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
)


def encode_states(states: Mapping[int, RecordDict]) -> dict[str, NodeArray]:
    """Node states as named arrays (see ``EmbeddedGrid.node_states``)."""
    arrays: dict[str, NodeArray] = {}
    index: dict[str, list[tuple[str, str, object]]] = {}
    for node_id, state in states.items():
        # The index keeps the order of names: safetensors sorts them, and an ArrayRecord made from a
        # list is read back by position.
        records: list[tuple[str, str, object]] = []
        for name, record in state.items():
            if isinstance(record, ArrayRecord):
                records.append((name, "arrays", list(record)))
                for key, array in record.items():
                    arrays[_key(node_id, name, key)] = _numeric(array, f"{name!r}/{key!r} of node {node_id}")
            else:
                kind = "config" if isinstance(record, ConfigRecord) else "metrics"
                records.append((name, kind, _plain(record, f"{name!r} of node {node_id}")))
        index[str(node_id)] = records
    arrays["node/index"] = np.frombuffer(json.dumps(index).encode(), dtype=np.uint8)
    return arrays


def decode_states(arrays: Mapping[str, NodeArray]) -> dict[int, RecordDict]:
    """The inverse of ``encode_states``.

    Raises:
        InputError: If these are not encoded states, or some are missing.
    """
    try:
        index = bounded_json.loads(arrays["node/index"].tobytes(), finite=False)
        return {
            int(node_id): RecordDict(
                {name: _record(arrays, int(node_id), name, kind, values) for name, kind, values in records}
            )
            for node_id, records in index.items()
        }
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"the checkpoint does not hold the states of all nodes ({error}).") from error


def _record(
    arrays: Mapping[str, NodeArray], node_id: int, name: str, kind: str, values: Any
) -> ArrayRecord | ConfigRecord | MetricRecord:
    if kind == "arrays":
        return ArrayRecord({key: Array(arrays[_key(node_id, name, key)]) for key in values})
    return ConfigRecord(values) if kind == "config" else MetricRecord(values)


def _key(node_id: int, record: str, array: str) -> str:
    return f"node/{node_id}/{quote(record, safe='')}/{quote(array, safe='')}"


def _numeric(array: Array, where: str) -> NodeArray:
    try:
        values = array.numpy()
    except (TypeError, ValueError) as error:
        raise TypeError(f"The state {where} cannot be kept in a checkpoint: {error}") from error
    if values.dtype.name not in CHECKPOINT_TYPES:
        raise TypeError(f"The state {where} cannot be kept in a checkpoint: its type is {values.dtype}.")
    return np.asarray(values, dtype=values.dtype.newbyteorder("="), order="C")


def _plain(record: ConfigRecord | MetricRecord, where: str) -> dict[str, object]:
    plain: dict[str, object] = dict(record)
    try:
        json.dumps(plain)
    except TypeError as error:
        raise TypeError(f"The state {where} cannot be kept in a checkpoint: {error}") from error
    return plain
