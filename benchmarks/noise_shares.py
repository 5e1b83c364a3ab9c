"""Measures noise in shares: time, bits, the bias of rounding, and coordinates that wrap.

    python -m benchmarks.noise_shares

Each row is one calibrated mechanism; `docs/noise-shares.md` states these figures. A bias is the part of an
update's length that its mean loses to the bound on the norm, in two cases: a random update, and one of which
as many numbers as possible end in a half after scaling, where rounding varies most. Wrapped coordinates are
counted in sums of independent updates and of equal ones.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from fedprivacy.mechanisms.modular import centre, reduce_modulo
from fedprivacy.mechanisms.rotation import random_signs, rotate
from fedprivacy.mechanisms.rounding import round_within
from fedprivacy.mechanisms.skellam import Skellam
from fedprivacy.randomness.streams import Streams

DELTA = 1e-5
CASES = ((100, 256, 4.0, 12), (1000, 256, 4.0, 14), (1000, 1024, 8.0, 14), (100, 2**17, 4.0, 16))


@dataclass(frozen=True)
class Row:
    """The measured cost of one mechanism.

    Args:
        mechanism: The mechanism.
        message_kibibytes: Of one client's message.
        encoding_seconds: Seconds for clipping, rotating and rounding one update.
        noise_seconds: Seconds for one client's noise.
        bias: The part of its length that a random update loses on average.
        worst_bias: The same of an update whose rounding varies most.
        wrapped_independent: Coordinates that wrap in sums of independent updates, in a million.
        wrapped_equal: Coordinates that wrap in sums of equal updates, in a million.
    """

    mechanism: Skellam
    message_kibibytes: float
    encoding_seconds: float
    noise_seconds: float
    bias: float
    worst_bias: float
    wrapped_independent: float
    wrapped_equal: float


def measured(mechanism: Skellam, repeats: int, coordinates: int, streams: Streams) -> Row:
    """One row.

    Args:
        mechanism: The calibrated mechanism.
        repeats: How often an update is rounded for its bias.
        coordinates: How many coordinates of sums are looked at, about.
        streams: The random streams.
    """
    stream = streams.stream("updates")
    update = stream.standard_normal(mechanism.dimension)
    update *= mechanism.clipping_norm / np.linalg.norm(update)
    signs = random_signs(mechanism.dimension, stream)
    mechanism.draw(1, stream)  # makes the table of the sampler
    start = time.perf_counter()
    encoded = mechanism.encode(update, signs, stream)
    middle = time.perf_counter()
    mechanism.message(encoded, stream)
    end = time.perf_counter()
    return Row(
        mechanism,
        mechanism.bits_per_message / 8 / 1024,
        middle - start,
        end - middle,
        relative_bias(mechanism, rotate(update, signs) * mechanism.scale, repeats, stream),
        relative_bias(mechanism, half_integer_vector(mechanism), repeats, stream),
        wrapped_per_million(mechanism, False, coordinates, stream),
        wrapped_per_million(mechanism, True, coordinates, stream),
    )


def half_integer_vector(mechanism: Skellam) -> NDArray[np.float64]:
    """A scaled vector within the norm, of which as many numbers as possible end in a half."""
    norm, size = mechanism.scale * mechanism.clipping_norm, mechanism.padded
    level = math.floor(norm / math.sqrt(size) + 0.5) - 0.5  # some have it, and others 1 more
    if level < 0:
        return np.where(np.arange(size) < math.floor(4 * norm**2), 0.5, 0.0)
    higher = math.floor((norm**2 - size * level**2) / ((level + 1) ** 2 - level**2))
    return np.where(np.arange(size) < higher, level + 1, level)


def relative_bias(
    mechanism: Skellam, vector: NDArray[np.float64], repeats: int, stream: np.random.Generator
) -> float:
    """The part of a vector's length that its rounded mean loses."""
    along = [round_within(vector, mechanism.squared_norm, stream) @ vector for _ in range(repeats)]
    return float(1 - np.mean(along) / (vector @ vector))


def wrapped_per_million(
    mechanism: Skellam, equal: bool, coordinates: int, stream: np.random.Generator
) -> float:
    """The coordinates of sums that exceed the modulus, in a million.

    Rounding is left out: it changes the variance of these sums by little.
    """
    rounds, count = math.ceil(coordinates / mechanism.padded), 0
    for _ in range(rounds):
        signs = random_signs(mechanism.dimension, stream)
        if equal:
            total = stream.standard_normal(mechanism.dimension)
            total *= mechanism.clients / np.linalg.norm(total)
        else:  # of many random directions
            total = stream.standard_normal(mechanism.dimension)
            total *= math.sqrt(mechanism.clients / mechanism.dimension)
        scaled = rotate(total * mechanism.clipping_norm, signs) * mechanism.scale
        summed = np.rint(scaled).astype(np.int64)
        summed += mechanism.draw(mechanism.padded, stream, shares=mechanism.clients)
        count += int((centre(reduce_modulo(summed, mechanism.bits), mechanism.bits) != summed).sum())
    return count * 1e6 / (rounds * mechanism.padded)


def main(
    repeats: Annotated[int, typer.Option(help="Roundings of an update, for its bias.")] = 20_000,
    coordinates: Annotated[int, typer.Option(help="Coordinates of sums that are looked at.")] = 1_000_000,
) -> None:
    """Prints the table."""
    table = Table("clients", "coordinates", "epsilon", "bits", "KiB", "encode", "noise", "bias", "worst bias")
    table.add_column("wraps in 10^6")
    table.add_column("equal updates")
    table.add_column("bound")
    for clients, dimension, epsilon, bits in CASES:
        start = Skellam(1.0, 0.0, dimension, bits, clients, clients)
        row = measured(
            start.calibrated(epsilon, DELTA, "zero-out"),
            min(repeats, 2**28 // dimension),
            coordinates,
            Streams(1),
        )
        table.add_row(
            f"{clients:,}",
            f"{dimension:,}",
            f"{epsilon:g}",
            str(bits),
            f"{row.message_kibibytes:.3g}",
            f"{1e3 * row.encoding_seconds:.3g} ms",
            f"{1e3 * row.noise_seconds:.3g} ms",
            f"{100 * row.bias:.3f} %",
            f"{100 * row.worst_bias:.3f} %",
            f"{row.wrapped_independent:.0f}",
            f"{row.wrapped_equal:.0f}",
            f"{1e6 * row.mechanism.wrap_chance:.0f}",
        )
    Console(width=150).print(table)


if __name__ == "__main__":
    typer.run(main)
