"""The features of records: the outputs of a frozen encoder, computed once for each record.

The encoder is the same in every round, so training its head on features equals training the whole model. The
features of a record are computed from that record alone: no other record, of whatever client, changes a bit
of them.
"""

from __future__ import annotations

import math
import mmap
import weakref
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fedprivacy.models.by_name import formula
from fedprivacy.models.partial_training import split_frozen

_LARGEST = 2**30  # bytes of the features of all records
_TIMES = 6  # and more where they are at most so many times the records; scattering makes five
_TRIAL = 4  # records


class Positions(nn.Sequential):
    """The head of a model of texts: layers that see a row for each position of a record.

    Closed forms of the gradients of chains count a row for each record. They cover `nn.Sequential` alone, so
    this class trains as any module does.
    """


def split(module: nn.Module, features: Sequence[int], records: int) -> tuple[nn.Module | None, nn.Module]:
    """Splits a model into a frozen encoder and the rest, where training the rest is training the model.

    Args:
        module: The model, of which the parts are.
        features: The shape of one record.
        records: The number of records that would be encoded.

    Returns:
        The encoder, None where the model has none, or where its features would take too much memory, or are
        no float32 tensor with a row for each record, or give other outputs than the model; and the rest.
    """
    encoder, head = split_frozen(module)
    if encoder is None:
        return None, module
    x = _trial_records(features, next(module.parameters()).device)
    try:
        with torch.no_grad():
            encoded, expected = encoder(x), module(x)
            if (
                not isinstance(encoded, Tensor)
                or encoded.dtype != torch.float32
                or encoded.shape[:1] != x.shape[:1]
            ):
                return None, module
            if expected.ndim > 2 and isinstance(head, nn.Sequential):  # a token at each position
                head = Positions(*head)
            same = torch.allclose(head(encoded), expected, rtol=1e-6, atol=1e-6, equal_nan=True)
    except Exception:  # the model by itself shows what is wrong with it
        return None, module
    size, raw = (4 * records * math.prod(each.shape[1:]) for each in (encoded, x))
    return (encoder, head) if same and size <= max(_LARGEST, _TIMES * raw) else (None, module)


def _trial_records(features: Sequence[int], device: torch.device) -> Tensor:
    return torch.rand(_TRIAL, *features, generator=torch.Generator().manual_seed(0)).to(device)


@torch.no_grad()
def encode(encoder: nn.Module | None, x: Tensor) -> Tensor:
    """The features of records, each by itself.

    Args:
        encoder: The frozen part in front of a model; None: the records are the features.
        x: Records, shape (records, *features).
    """
    if encoder is None or not len(x):
        return x
    first = _feature(encoder, x[0])
    values = first.new_empty(len(x), *first.shape)
    values[0] = first
    for row in range(1, len(x)):
        values[row] = _feature(encoder, x[row])
    return values


def _feature(encoder: nn.Module, record: Tensor) -> Tensor:
    # The bits of a product may depend on where its numbers begin in memory: a copy begins as every other.
    feature: Tensor = encoder(record.clone()[None])[0]
    return feature


def on_features(module: nn.Module, x: Tensor) -> tuple[nn.Module, Tensor]:
    """The head of a model and the features of records: together the model on the records.

    Args:
        module: The model.
        x: Records, shape (records, *features).
    """
    encoder, head = split(module, x.shape[1:], len(x))
    return head, encode(encoder, x)


@dataclass(frozen=True)
class FeatureMemory:
    """The features of records as far as they are known; on the CPU forked processes share the memory.

    Args:
        values: The features, float32, shape (records, *shape).
        known: Whether those of a record are known.
    """

    values: Tensor
    known: NDArray[np.bool_]

    @classmethod
    def of(cls, encoder: nn.Module, x: Tensor) -> FeatureMemory:
        """Memory for the features of records, none of which is known."""
        with torch.no_grad():
            shape = tuple(encoder(_trial_records(x.shape[1:], x.device)).shape[1:])
        known = np.frombuffer(mmap.mmap(-1, max(1, len(x))), np.bool_, len(x))
        if x.device.type != "cpu":
            return cls(x.new_empty(len(x), *shape), known)
        numbers = len(x) * math.prod(shape)
        shared = np.frombuffer(mmap.mmap(-1, max(1, 4 * numbers)), np.float32, numbers)
        return cls(torch.from_numpy(shared).view(-1, *shape), known)


class Features:
    """The features of all records, each computed when its client first trains.

    Args:
        encoder: The frozen part in front of the model, where the records are.
        x: All records, float32, shape (records, *features).
        memory: The features that are known; None: new memory.
    """

    def __init__(self, encoder: nn.Module, x: Tensor, memory: FeatureMemory | None = None) -> None:
        self._encoder, self._x = encoder, x
        self.memory = memory or FeatureMemory.of(encoder, x)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the features of one record."""
        return tuple(self.memory.values.shape[1:])

    def of(self, records: Sequence[NDArray[np.int64]]) -> Tensor:
        """All features, of which those of these records are computed.

        Args:
            records: The record numbers of each client.

        Returns:
            float32, shape (all records, *shape), without a copy.
        """
        values, known = self.memory.values, self.memory.known
        for rows in records:
            for row in rows[~known[rows]].tolist():
                if not known[row]:  # another process may have been faster
                    values[row] = self._feature(row)
                    known[row] = True
        return values

    def _feature(self, row: int) -> Tensor:
        try:
            with torch.no_grad():
                return _feature(self._encoder, self._x[row])
        except Exception:  # a record without features has no gradient: it counts as zero, and alone
            return self._x.new_full(self.shape, torch.nan)


# By formula, and by place, shape, strides and type of records, for as long as the records are in memory.
_shared: dict[tuple[object, ...], FeatureMemory] = {}


def shared_features(encoder: nn.Module, records: NDArray[np.float32]) -> Features:
    """The features of all records, those by a formula shared by all that runs here on these records.

    The runs of a comparison compute each once, also in processes that are forked after the first call.

    Args:
        encoder: The frozen part in front of the model, on the CPU.
        records: All records, shape (records, *features), which nobody changes.
    """
    name = formula(encoder)
    if name is None:
        return Features(encoder, torch.from_numpy(records))
    key = (name, records.ctypes.data, records.shape, records.strides, records.dtype)
    features = Features(encoder, torch.from_numpy(records), _shared.get(key))
    if key not in _shared:
        _shared[key] = features.memory
        weakref.finalize(_owner(records), _shared.pop, key, None).atexit = False
    return features


def _owner(records: NDArray[np.float32]) -> NDArray[np.float32]:
    """The array whose memory an array is a view of."""
    while isinstance(records.base, np.ndarray):
        records = records.base
    return records


def encode_all(
    encoder: nn.Module, records: NDArray[np.float32], rows: NDArray[np.int64] | None = None
) -> Tensor:
    """The features of some records, shared as `shared_features` shares them.

    Args:
        encoder: The frozen part in front of a model, on the CPU.
        records: Records, shape (records, *features).
        rows: The numbers of those that are encoded; None: all.
    """
    if formula(encoder) is None:
        return encode(encoder, torch.from_numpy(records if rows is None else records[rows]))
    features = shared_features(encoder, records)
    return features.of([np.arange(len(records))]) if rows is None else features.of([rows])[rows]


def share_features(module: nn.Module, *records: NDArray[np.float32]) -> None:
    """Gives processes that are forked later a place for the features of records that they share.

    Args:
        module: The model.
        records: Training and test records, shape (records, *features) each.
    """
    for x in records:
        encoder, _ = split(module, x.shape[1:], len(x))
        if encoder is not None and formula(encoder) is not None:
            shared_features(encoder, x)
