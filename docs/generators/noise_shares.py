"""The variance of noise in shares, beside that of central Gaussian noise at the same epsilon."""

from __future__ import annotations

from fedprivacy.mechanisms.gaussian import Gaussian
from generators.text import table
from scenarios.reproductions.theory import ADJACENCY, DELTA, calibrated, central_variance

# Clients, coordinates, epsilon and bits.
CASES = (
    (100, 256, 4.0, 12),
    (100, 256, 4.0, 14),
    (100, 256, 4.0, 16),
    (1000, 256, 4.0, 14),
    (1000, 256, 4.0, 16),
    (1000, 256, 4.0, 18),
    (1000, 1024, 8.0, 14),
    (1000, 1024, 8.0, 16),
    (100, 2**20, 1.0, 16),
    (100, 2**20, 1.0, 18),
    (100_000, 1024, 4.0, 18),  # too few bits
)


def markdown() -> str:
    """Returns the table: a row for each case."""
    rows = []
    for clients, dimension, epsilon, bits in CASES:
        mechanism = calibrated(clients, dimension, epsilon, bits)
        exact = Gaussian.calibrated(epsilon, DELTA, ADJACENCY).noise_multiplier ** 2
        rows.append(
            (
                f"{clients:,}",
                f"{dimension:,}",
                f"{epsilon:g}",
                str(bits),
                f"{mechanism.variance(clients) / central_variance(epsilon):.3f}",
                f"{mechanism.variance(clients) / exact:.3f}",
                f"{mechanism.bits_per_message / 8 / 1024:,.4g} KiB",
            )
        )
    head = ("clients", "coordinates", "epsilon", "bits", "by the same account", "by the exact one", "message")
    return "\n".join(table(head, rows))
