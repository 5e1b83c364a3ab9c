"""The parameters of a secure sum, and the conditions under which it protects."""

from __future__ import annotations

from dataclasses import asdict, astuple, dataclass
from typing import Self

from fedprivacy.errors import InputError
from fedprivacy.mechanisms.modular import LEAST_BITS, MOST_BITS
from fedprivacy.mechanisms.noise_shares import NoiseShares
from fedprivacy.mechanisms.ranges import check_size

MOST_COORDINATES = 2**32  # the keystream of one mask then stays within AES' limits


@dataclass(frozen=True)
class Parameters:
    """The size of a sum, and how many clients it tolerates that drop out or collude.

    Every secret is shared among all n clients; k of them together can open it. With k > t, colluders alone
    open nothing. With 2k > n + t, two different claims about the survivors are never both supported: each
    needs k clients and an honest one supports one claim only, so that 2k <= (n - t) + 2t would have to hold.

    Args:
        dimension: The coordinates of a message.
        bits: b, of one coordinate, from 2 to 28.
        clients: n, the most clients whose keys are advertised in a round.
        survivors: n_min, the fewest clients in a sum.
        colluders: t, how many of the n may collude with the server.
        threshold: k, how many clients open a secret together.

    Raises:
        InputError: A value is no integer or out of range, or t < k <= n_min <= n or 2k > n + t does not hold.
    """

    dimension: int
    bits: int
    clients: int
    survivors: int
    colluders: int
    threshold: int

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not isinstance(value, int) or isinstance(value, bool):
                raise InputError(f"{name} = {value!r}: must be an integer. Use a whole number.")
        check_size("dimension", self.dimension)
        check_size("clients", self.clients)
        if self.dimension > MOST_COORDINATES:
            raise InputError(f"dimension = {self.dimension}: must be at most 2^32. Sum in parts.")
        if not LEAST_BITS <= self.bits <= MOST_BITS:
            raise InputError(f"bits = {self.bits}: must be from {LEAST_BITS} to {MOST_BITS}; 16 is usual.")
        if not 1 <= self.survivors <= self.clients:
            raise InputError(f"survivors = {self.survivors}: must be from 1 to clients = {self.clients}.")
        if not 0 <= self.colluders < self.survivors:
            raise InputError(
                f"colluders = {self.colluders}: must be from 0 to survivors - 1 = {self.survivors - 1}: "
                "of a sum without honest clients nothing is private."
            )
        if self.threshold <= self.colluders:
            raise InputError(
                f"threshold = {self.threshold}: {self.colluders} colluders could open every secret alone. "
                f"Use at least {self.least_threshold}."
            )
        if self.threshold > self.survivors:
            raise InputError(
                f"threshold = {self.threshold}: {self.survivors} survivors could not open their sum. Use at "
                "most survivors."
            )
        if 2 * self.threshold <= self.clients + self.colluders:
            raise InputError(
                f"threshold = {self.threshold}: a server could give two halves of the {self.clients} clients "
                f"different survivors and open both secrets of one client with {self.colluders} colluders. "
                f"Use at least {self.least_threshold}, and as many survivors."
            )

    @classmethod
    def of_shares(cls, shares: NoiseShares) -> Self:
        """The parameters of the sum on which noise in shares rests, with the least k.

        Raises:
            InputError: Fewer survivors than this k may have a sum, or the numbers are too many for masks.
        """
        clients, colluders = shares.clients, shares.colluders
        threshold = (clients + colluders) // 2 + 1
        if shares.min_survivors < threshold:
            raise InputError(
                f"min_survivors = {shares.min_survivors}: too few for masks: of {clients} clients with "
                f"{colluders} colluders {threshold} must open a sum together, or else a server could open "
                f"two. Use at least {threshold}."
            )
        return cls(shares.padded, shares.bits, clients, shares.min_survivors, colluders, threshold)

    @property
    def least_threshold(self) -> int:
        """The least k with 2k > n + t."""
        return (self.clients + self.colluders) // 2 + 1

    def encoded(self) -> bytes:
        """The parameters as bytes, for signatures."""
        return b"".join(value.to_bytes(8, "big") for value in astuple(self))
