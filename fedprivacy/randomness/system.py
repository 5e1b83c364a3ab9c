"""Random streams whose secrets come from the operating system, for a deployment.

Each noise, each draw of batches that amplifies, and each cohort has its own generator: Philox (Salmon et al.
2011) with a fresh key of 128 bits and a fresh counter of 256, both from `os.urandom`. No seed reproduces
them, no two draws and no two clients share them, and they are never stored. Philox passes statistical tests
of randomness but is not a cipher. Draws of floating-point noise have gaps, which can reveal the value below
the noise (Mironov 2012); nothing here defends against that. Integer noise (`mechanisms.exact_sampling`) is
drawn from raw words of these generators, without floating-point rounding.

Draws that need no secrecy (the first weights, the order of batches that no epsilon depends on) stay seeded.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedprivacy.errors import InputError
from fedprivacy.randomness.streams import Streams

SYSTEM, SEEDED = "system", "seeded"


@dataclass(frozen=True)
class SystemStreams(Streams):
    """Streams with fresh `noise`, `noises` and `cohort` at every call; the others are seeded.

    Args:
        seed: The root seed of the public draws.

    >>> streams = SystemStreams(1)
    >>> streams.noise("local").random() == streams.noise("local").random()
    False
    """

    repeats: ClassVar[bool] = False

    def noise(self, purpose: str, *, round: int = 0, member: int = 0) -> np.random.Generator:
        """A fresh generator; the purpose, round and member key nothing."""
        return fresh()

    def noises(
        self, purpose: str, members: Iterable[int], *, round: int = 0
    ) -> Iterator[np.random.Generator]:
        """A fresh generator for each member."""
        return (fresh() for _ in members)

    def cohort(self, round: int) -> np.random.Generator:
        """A fresh generator: nobody can predict the cohort."""
        return fresh()


def fresh() -> np.random.Generator:
    """A generator whose whole state comes from the operating system's entropy."""
    # 384 random bits for key and counter: the state cannot be guessed, and two equal ones will not occur.
    words = np.frombuffer(os.urandom(48), dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=words[:2], counter=words[2:]))


def streams_for(noise: str, seeded: Streams) -> Streams:
    """The streams of a run: seeded, or with secret draws from the operating system.

    Args:
        noise: "seeded" or "system".
        seeded: The streams of a simulation.
    """
    return seeded if noise == SEEDED else SystemStreams(seeded.seed, seeded.run)


def check_noise(value: object, where: str) -> str:
    """Where noise comes from, as configured.

    Raises:
        InputError: if it is neither "system" nor "seeded".
    """
    if value not in (SYSTEM, SEEDED):
        raise InputError(
            f'{where}: noise = {value!r}: must be "system" (the operating system\'s entropy, for a '
            'deployment) or "seeded" (a simulation that repeats).'
        )
    return str(value)
