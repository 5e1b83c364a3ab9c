"""The mechanisms of the server's sum of updates by name.

A new mechanism is a `CentralMechanism` in its own file and a line in `registry.REGISTRY`. Its value of
`privacy.mechanism`, its keys, its plan, its noise in each round and its epsilon follow from that line.
Scenarios are read without the accountants, so this module imports nothing heavy.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar, cast

from pydantic import BaseModel, create_model

from fedprivacy.mechanisms.local import LOCAL
from fedprivacy.mechanisms.registry import (
    REGISTRY,
    Choice,
    class_at,
    family,
    mechanism_class,
    name_in_scenarios,
)

if TYPE_CHECKING:
    import numpy as np
    from dp_accounting import dp_event as dp
    from numpy.typing import NDArray

    from fedprivacy.mechanisms.encoding import Encoder
    from fedprivacy.randomness.streams import Streams

Options = TypeVar("Options", bound=BaseModel)

CENTRAL = family("update", "central update")
# The values of `privacy.mechanism` under central trust, and those of them that no client may have.
CENTRAL_NAMES = tuple(dict.fromkeys(name_in_scenarios(name) for name in CENTRAL))
SERVER_ONLY = tuple(name for name in CENTRAL_NAMES if name not in LOCAL)


@dataclass(frozen=True)
class Settings:
    """The settings of a scenario from which a mechanism of the server's sum is made.

    Args:
        privacy: Key of the section `privacy` -> its value, defaults included.
        rounds: The rounds of the run.
        momentum: The momentum of the server's optimizer.
        expected_cohort: The mean number of clients in a round.
        dimension: Computes the length of an update, which takes the model.
    """

    privacy: Mapping[str, Any]
    rounds: int
    momentum: float
    expected_cohort: float
    dimension: Callable[[], int]

    @property
    def clipping_norm(self) -> float:
        """C, the L2 bound of one client's update."""
        return float(self.privacy["clipping_norm"])

    @property
    def noise_multiplier(self) -> float:
        """The noise multiplier; 0 where calibration is to find it."""
        return self.privacy["noise_multiplier"] or 0.0

    def options(self, kind: type[Options]) -> Options:
        """The keys of one class of options."""
        return kind(**{key: self.privacy[key] for key in kind.model_fields})


class CorrelatedRounds(Protocol):
    """The noise of one run, which is correlated over rounds."""

    def draw(self, round: int, streams: Streams) -> NDArray[np.float64]:
        """The noise of a round, from 0, shape (dimension,)."""


class CentralMechanism(ABC):
    """Base of the mechanisms of the server's sum of clipped updates: a frozen dataclass.

    The sensitivity of the sum is C, or 2C under replace-one.

    Args:
        clipping_norm: C, the L2 bound of one client's update.
        noise_multiplier: z, the noise's standard deviation / C; 0 means noise before calibration.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]
    name: ClassVar[str]
    title: ClassVar[str]
    clipping_norm: float
    noise_multiplier: float

    @classmethod
    @abstractmethod
    def of_scenario(cls, settings: Settings) -> Self:
        """Returns the mechanism of a scenario, with its noise if the scenario sets one."""

    def settled(self, settings: Settings) -> Self:
        """Returns the mechanism after calibration, with what follows from its noise.

        Raises:
            InputError: the settings do not go with the noise.
        """
        return self

    def with_noise(self, noise_multiplier: float) -> Self:
        """The same mechanism at another noise multiplier; more is more private."""
        return dataclasses.replace(self, noise_multiplier=noise_multiplier)

    def scaled(self, share: float) -> Self:
        """The same mechanism for a sum of so many times the clients."""
        return self.with_noise(self.noise_multiplier * share)

    @property
    @abstractmethod
    def words(self) -> str:
        """The amount of noise, in words."""

    @abstractmethod
    def event(self) -> dp.DpEvent:
        """The event of one release, as the accountant reads it."""

    @abstractmethod
    def draw(self, dimension: int, stream: np.random.Generator) -> NDArray[np.float64]:
        """Noise for one release, shape (dimension,).

        Args:
            dimension: The number of coordinates.
            stream: The random stream of this release, and of no other.
        """

    def correlated(self, dimension: int) -> CorrelatedRounds | None:
        """The noise of one run, round by round, where it is correlated over rounds; else None."""
        return None

    @property
    def gaussian_deviation(self) -> float | None:
        """The standard deviation of a round's noise in each coordinate, if Gaussian and independent."""
        return None

    @property
    def encoder(self) -> Encoder | None:
        """The encoder of clients' clipped updates, or None."""
        return None


def central_class(name: str) -> type[CentralMechanism]:
    """Returns the class of a mechanism of the server's sum.

    Raises:
        KeyError: no such mechanism has this name.

    >>> central_class("banded-gaussian").title
    'Gaussian, correlated over rounds'
    """
    if name not in CENTRAL:
        raise KeyError(name)
    return cast(type[CentralMechanism], mechanism_class(name))


def all_options() -> type[BaseModel]:
    """Returns a class of the keys of all mechanisms."""
    kinds = [class_at(place) for name in CENTRAL if (place := REGISTRY[name].choice.options)]
    # A class that another one includes would come before it, which Python's order of bases forbids.
    bases = [kind for kind in kinds if sum(issubclass(other, kind) for other in kinds) == 1]
    return create_model("Options", __base__=tuple(bases))


def keys_of(mechanism: str) -> set[str]:
    """Returns the keys of mechanisms that have an effect with a value of `privacy.mechanism`.

    >>> sorted(keys_of("student-t") - keys_of("gaussian"))
    ['degrees']
    """
    choices = [REGISTRY[name].choice for name in CENTRAL if name_in_scenarios(name) == mechanism]
    return {key for choice in choices for key in _keys(choice)}


def keys_by_name() -> dict[str, str]:
    """Returns the keys of which only a value of `privacy.mechanism` is to be given: key -> this value.

    >>> keys_by_name()
    {'degrees': 'student-t'}
    """
    by_key = {key for name in CENTRAL if (choice := REGISTRY[name].choice).key for key in _keys(choice)}
    return {
        key: name_in_scenarios(name)
        for name in CENTRAL
        if not (choice := REGISTRY[name].choice).key
        for key in _keys(choice)
        if key not in by_key
    }


def _keys(choice: Choice) -> list[str]:
    options = class_at(choice.options).model_fields if choice.options else ()
    return [*filter(None, [choice.key]), *options]
