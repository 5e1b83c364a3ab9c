"""The mechanisms of one client's update by name.

A new mechanism is a class in its own file and a line in `registry.REGISTRY`: the keys of scenarios, the
search for the best mechanism, comparisons and the report follow from that line. Scenarios are read without
the accountants, so this module imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, cast, runtime_checkable

from fedprivacy.mechanisms.registry import family, mechanism_class

if TYPE_CHECKING:
    import numpy as np
    from dp_accounting import dp_event as dp
    from numpy.typing import NDArray

LOCAL = family("update", "local update")  # of equal errors the first is chosen


@runtime_checkable  # a stored plan's mechanism is checked against its annotation
class LocalMechanism(Protocol):
    """Interface of local mechanisms, which randomise a clipped update: a frozen dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]
    name: ClassVar[str]
    title: ClassVar[str]

    @classmethod
    def uncalibrated(cls, clipping_norm: float, dimension: int, direction: str) -> Self:
        """Returns the mechanism with any noise: calibration replaces it by `with_noise`.

        Args:
            clipping_norm: C, the L2 bound of one client's update.
            dimension: The length of an update, for a class with a field of this name; else any number.
            direction: "lifted" or "normalised": how a mechanism of unit vectors makes one of an update.
        """

    @property
    def clipping_norm(self) -> float:
        """C, the L2 bound of one client's update."""

    @property
    def words(self) -> str:
        """The amount of noise, in words."""

    def with_noise(self, noise: float, /) -> Self:
        """The same mechanism at another amount of noise; more is more private."""

    def event(self) -> dp.DpEvent:
        """The event of one message, as the accountant reads it."""

    def error(self, dimension: int) -> float:
        """Mean squared error of a message per coordinate, in units of C^2."""

    def randomise(self, update: NDArray[np.float64], stream: np.random.Generator) -> NDArray[np.float64]:
        """One client's message, float64, shape (dimension,)."""

    def randomise_all(
        self, updates: NDArray[np.float64], streams: Iterable[np.random.Generator]
    ) -> NDArray[np.float64]:
        """The messages of several clients, float64, shape (clients, dimension)."""


def local_class(name: str) -> type[LocalMechanism]:
    """Returns the class of a local mechanism.

    Raises:
        KeyError: no local mechanism has this name.

    >>> local_class("sqkr").title
    'SQKR'
    """
    if name not in LOCAL:
        raise KeyError(name)
    return cast(type[LocalMechanism], mechanism_class(name))
