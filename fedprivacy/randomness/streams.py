"""Random streams of a simulation: one for each purpose, round and client, from one root seed.

Noise is keyed by the run as well. Two runs with one seed share their cohorts, which allows paired
comparison. They never share noise, since an observer of both could subtract it, nor the batches whose draw
amplifies a record's guarantee.

A stream is a Philox generator (Salmon et al. 2011, counter-based): the key comes from the seed
and the purpose, the upper half of the counter is (round, member). Two streams never overlap
(each may draw 2^128 blocks), and none depends on the order in which streams are made, so a run
gives the same numbers on any engine and any number of workers.

Simulation-grade randomness: anyone who knows the seed knows the noise. A deployment must not use it, and
has `randomness.system.SystemStreams` instead.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray


@lru_cache(maxsize=256)
def _key(seed: int, purpose: str) -> NDArray[np.uint64]:
    digest = hashlib.blake2b(f"{seed}/{purpose}".encode(), digest_size=16).digest()
    return np.frombuffer(digest, dtype=np.uint64)


@dataclass(frozen=True)
class Streams:
    """The random streams of a run.

    Args:
        seed: The root seed of the run, any non-negative integer.
        run: Distinguishes the noise of this run from that of others with the same seed (`run_streams`).

    >>> Streams(1).stream("cohort", round=3).random() == Streams(1).stream("cohort", round=3).random()
    True
    """

    seed: int
    run: str = ""
    repeats: ClassVar[bool] = True  # whether the same noise can be drawn again

    def noise(self, purpose: str, *, round: int = 0, member: int = 0) -> np.random.Generator:
        """As `stream`, for noise and other secret draws: no other run has the same."""
        return self.stream(self._of_noise(purpose), round=round, member=member)

    def noises(
        self, purpose: str, members: Iterable[int], *, round: int = 0
    ) -> Iterator[np.random.Generator]:
        """As `streams`, for noise and other secret draws: no other run has the same."""
        return self.streams(self._of_noise(purpose), members, round=round)

    def cohort(self, round: int) -> np.random.Generator:
        """The generator that draws the cohort of a round: two runs with one seed draw the same."""
        return self.stream("cohort", round=round)

    def stream(self, purpose: str, *, round: int = 0, member: int = 0) -> np.random.Generator:
        """The generator of one purpose, round and member (a client, or a chunk of clients)."""
        # The lower two words count blocks, so streams of other members and rounds start 2^128 blocks apart.
        counter = np.array([0, 0, member, round], dtype=np.uint64)
        return np.random.Generator(np.random.Philox(key=_key(self.seed, purpose), counter=counter))

    def streams(
        self, purpose: str, members: Iterable[int], *, round: int = 0
    ) -> Iterator[np.random.Generator]:
        """Yields `stream` for each member in turn, reusing one generator, in a tenth of the time.

        Each is to be used up before the next is taken.
        """
        generator = self.stream(purpose, round=round)
        bits = generator.bit_generator
        fresh = bits.state
        counter = fresh["state"]["counter"]
        for member in members:
            counter[2] = member
            bits.state = fresh
            yield generator

    def torch_seed(self, purpose: str) -> int:
        """A 63-bit seed for torch's own generator (model initialisation)."""
        return int(self.stream(purpose).integers(2**63))

    def _of_noise(self, purpose: str) -> str:
        # With the run in the key: an observer of two runs with one seed and the same noise could subtract
        # their outputs, and see the difference of the data without any.
        return f"noise/{self.run}/{purpose}"
