"""The variance of noise in shares, beside that of central Gaussian noise at the same epsilon."""

from __future__ import annotations

from fedprivacy.accounting.epsilon import noise_multiplier
from fedprivacy.accounting.integer_sums import SkellamDpEvent
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.mechanisms.skellam import Skellam
from generators.text import table

DELTA, ADJACENCY = 1e-5, "zero-out"
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
_STEPS = 10**12


def central_variance(epsilon: float) -> float:
    """Returns that of central Gaussian noise, in units of C^2, by Renyi divergences at integer orders.

    It is the limit of Skellam noise on integers so large that neither rounding nor their gaps matter.
    """

    def released(noise: float) -> SkellamDpEvent:
        return SkellamDpEvent(noise**2 * _STEPS, _STEPS, 1)

    return noise_multiplier(released, epsilon, DELTA, ADJACENCY) ** 2


def calibrated(clients: int, dimension: int, epsilon: float, bits: int) -> Skellam:
    """Returns the noise of one release with no dropouts and no colluders."""
    return Skellam(1.0, 0.0, dimension, bits, clients, clients).calibrated(epsilon, DELTA, ADJACENCY)


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
