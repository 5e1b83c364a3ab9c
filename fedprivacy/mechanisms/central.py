"""The mechanisms of the server's sum of updates by name.

A new mechanism is a `CentralMechanism` in its own file and a line in `registry.REGISTRY`, where its name is
its value of `privacy.mechanism`. That value, its keys, its plan, its noise in each round and its epsilon
follow from the line. Mechanisms that a key beside `mechanism = "gaussian"` chooses are the built-in ones
alone. Scenarios are read without the accountants, so this module imports nothing heavy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, cast

from pydantic import BaseModel, create_model

from fedprivacy.mechanisms.local import LOCAL
from fedprivacy.mechanisms.options import AdaptiveOptions, BandedOptions, EncodingOptions
from fedprivacy.mechanisms.registry import REGISTRY, class_at, family, mechanism_class, name_in_scenarios

if TYPE_CHECKING:
    import numpy as np
    from dp_accounting import dp_event as dp
    from numpy.typing import NDArray

    from fedprivacy.mechanisms.encoding import Encoder

Keys = TypeVar("Keys", bound=BaseModel)

CENTRAL = family("update", "gaussian variant", "central update")
# The values of `privacy.mechanism` under central trust, and those of them that are not Gaussian noise, which
# no client may have and whose size denoising does not know.
CENTRAL_NAMES = tuple(map(name_in_scenarios, family("update", "central update")))
SERVER_ONLY = tuple(name for name in CENTRAL_NAMES if name not in LOCAL)


@dataclass(frozen=True)
class Settings:
    """The settings of a scenario from which a mechanism of the server's sum is made.

    Args:
        privacy: Key of the section `privacy` -> its value, defaults included.
        rounds: The rounds of the run.
        momentum: The momentum of the server's optimizer.
        expected_cohort: The mean number of clients in a round.
        dimension: Computes the length of an update, which takes the model. A mechanism that needs it keeps
            it in its field `dimension`, from which a stored plan is read back without the model.
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

    def options(self, kind: type[Keys]) -> Keys:
        """The keys of one class of options."""
        return kind(**{key: self.privacy[key] for key in kind.model_fields})


class CentralMechanism(ABC):
    """Base of the mechanisms of the server's sum of clipped updates: a frozen dataclass.

    Each round has a draw of its own, independent of those of other rounds: a resumed run draws a round again
    from its stream alone, and the accountants compose rounds as independent releases. `BandedGaussian` alone
    differs, whose rules are in plan, server and ledger.

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

    @abstractmethod
    def with_noise(self, noise_multiplier: float) -> Self:
        """The same mechanism at another noise multiplier; more is more private."""

    def scaled(self, share: float) -> Self:
        """The same mechanism for a sum of so many times the clients."""
        return self.with_noise(self.noise_multiplier * share)

    @property
    @abstractmethod
    def words(self) -> str:
        """The amount of noise, in words."""

    @abstractmethod
    def event(self) -> dp.DpEvent:
        """The event of one release, as the accountant reads it, for a sum that one client moves by C.

        C is an L2 norm. The event is the same under every adjacency: under replace-one a client moves the sum
        by 2C, and the accountants double what is stated relative to C (`accounting.events.is_relative`). A
        plan refuses other events.
        """

    @abstractmethod
    def draw(self, dimension: int, stream: np.random.Generator) -> NDArray[np.float64]:
        """Noise for one release, shape (dimension,): a function of mechanism and stream alone.

        Args:
            dimension: The number of coordinates.
            stream: The random stream of this release, and of no other.
        """

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
    """Returns a class of the keys of all mechanisms of the family "central update"."""
    # Several mechanisms may share a class, and a class that another one includes is in it already.
    kinds = dict.fromkeys(_options().values())
    bases = [kind for kind in kinds if not any(issubclass(each, kind) for each in kinds if each is not kind)]
    return create_model("MechanismOptions", __base__=tuple(bases))


def mechanisms_by_key() -> dict[str, list[str]]:
    """Returns for each key of mechanisms the values of `privacy.mechanism` with which it has an effect.

    >>> mechanisms_by_key()["encoding"], mechanisms_by_key()["degrees"]
    (['gaussian', 'student-t'], ['student-t'])
    """
    variants = (EncodingOptions, BandedOptions, AdaptiveOptions)
    owners = [("gaussian", kind) for kind in variants] + list(_options().items())
    mechanisms: dict[str, list[str]] = {}
    for name, kind in owners:
        for key in kind.model_fields:
            mechanisms.setdefault(key, []).append(name)
    return mechanisms


def _options() -> dict[str, type[BaseModel]]:
    """Each value of `privacy.mechanism` with keys of its own, and their class."""
    return {
        name_in_scenarios(name): class_at(place)
        for name in family("central update")
        if (place := REGISTRY[name].options)
    }
