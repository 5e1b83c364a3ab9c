"""Converts Flower's records to plain lists, scalars and bytes for another process, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord, RecordDict

Plain = list[tuple[str, str, list[Any]]]
"""Each record's name, its kind, and its entries: scalars and lists by name, or arrays taken apart."""


def take_apart(records: RecordDict, send: Callable[[bytes], Any]) -> Plain:
    """Records as plain values that share nothing mutable with them.

    Args:
        records: A message's content, or a node's state.
        send: Returns a reference that replaces the bytes of an array.
    """
    plain: Plain = []
    for name, record in records.items():
        if isinstance(record, ArrayRecord):
            arrays = [(key, a.dtype, tuple(a.shape), a.stype, send(a.data)) for key, a in record.items()]
            plain.append((name, "arrays", arrays))
        else:
            kind = "config" if isinstance(record, ConfigRecord) else "metrics"
            plain.append(
                (name, kind, [(k, list(v) if isinstance(v, list) else v) for k, v in record.items()])
            )
    return plain


def put_together(plain: Plain, fetch: Callable[[Any], bytes]) -> RecordDict:
    """The records again.

    Args:
        plain: The result of `take_apart`.
        fetch: Returns the bytes of an array from such a reference.
    """
    records = RecordDict()
    for name, kind, entries in plain:
        if kind == "arrays":
            arrays = {
                key: Array(dtype, shape, stype, fetch(data)) for key, dtype, shape, stype, data in entries
            }
            records[name] = ArrayRecord(arrays)
        else:
            records[name] = (ConfigRecord if kind == "config" else MetricRecord)(dict(entries))
    return records
