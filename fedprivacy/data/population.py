"""The data of a scenario, dealt to its clients, with what the server may see for evaluation."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from fedprivacy.data.datasets import Dataset, load
from fedprivacy.data.partition import Partition, iid, one_per_example
from fedprivacy.scenario.sections import Digits, Synthetic


@dataclass(frozen=True)
class Population:
    """One array of records, and who owns which of them."""

    dataset: Dataset
    partition: Partition

    @property
    def features(self) -> tuple[int, ...]:
        """The shape of one record."""
        return self.dataset.x.shape[1:]

    @cached_property
    def digest(self) -> str:
        """Tells other records, labels or owners from these."""
        digest = hashlib.blake2b(digest_size=16)
        for array in (self.dataset.x, self.dataset.y, self.partition.order, self.partition.offsets):
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def held_out(self, where: str) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Records to evaluate on that no client owns: the "test" or the "public" part."""
        if where == "test":
            return self.dataset.x_test, self.dataset.y_test
        return self.dataset.x[self.partition.public], self.dataset.y[self.partition.public]


@lru_cache(maxsize=2)
def population(options: Digits | Synthetic) -> Population:
    """Loads and deals the data of a scenario; the runs of a comparison share one copy."""
    dataset = load(options)
    records = len(dataset.y)
    if options.partition == "iid":
        assert options.clients is not None
        dealt = iid(records, options.clients, public_fraction=options.public_fraction, seed=options.seed)
    else:
        dealt = one_per_example(records, public_fraction=options.public_fraction, seed=options.seed)
    return Population(dataset, dealt)
