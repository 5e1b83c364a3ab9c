"""Every mechanism by name. Each entry has a claim in `tests/fedprivacy/mechanisms/claims`.

A new one is a frozen dataclass with a name and a title, its draw, its event and its error formula, in a
file of this room; a line in `REGISTRY`; and its entry among the claims, without which the tests fail. What
plans read back (`catalogue`), what clients may do to updates (`local`) and to categories (`categories`), and
the keys of scenarios for these follow. A mechanism of the server or of another input also needs its key and
the code that chooses it, in `plan/from_scenario.py` or `statistics/plan.py`.

Scenarios are read without the accountants, so this module imports no mechanism before it is needed.
"""

from __future__ import annotations

from importlib import import_module
from typing import ClassVar, Literal, NamedTuple, Protocol, cast

Family = Literal["local update", "central update", "shared update", "category", "other"]


class Mechanism(Protocol):
    """The common interface of all mechanisms; their inputs and draws differ."""

    name: ClassVar[str]
    title: ClassVar[str]

    @property
    def words(self) -> str:
        """The amount of noise, in words."""


class Entry(NamedTuple):
    """A mechanism.

    Args:
        family: Its input: a client's update (`LocalMechanism`); the server's sum of updates; updates of
            clients that share the noise (`NoiseShares`); a client's category (`FrequencyOracle`); or another.
        place: The module below `fedprivacy.mechanisms` and the class.
    """

    family: Family
    place: str


# Name -> the mechanism. Of local mechanisms and of categories with equal errors the first is chosen.
REGISTRY: dict[str, Entry] = {
    "gaussian": Entry("local update", "gaussian:Gaussian"),
    "privunit": Entry("local update", "privunit:PrivUnitG"),
    "sqkr": Entry("local update", "sqkr:SQKR"),
    "sign-bits": Entry("local update", "signs:SignBits"),
    "adaptive-gaussian": Entry("central update", "adaptive:AdaptiveGaussian"),
    "banded-gaussian": Entry("central update", "banded:BandedGaussian"),
    "encoded-gaussian": Entry("central update", "encoded:EncodedGaussian"),
    "encoded-student-t": Entry("central update", "encoded:EncodedStudent"),
    "skellam": Entry("shared update", "skellam:Skellam"),
    "discrete-gaussian": Entry("shared update", "discrete_gaussian:DiscreteGaussian"),
    "randomized-response": Entry("other", "bits:RandomizedResponse"),
    "k-ary-randomized-response": Entry("category", "kary:KaryRandomizedResponse"),
    "hadamard-response": Entry("category", "hadamard:HadamardResponse"),
    "oue": Entry("category", "unary:OptimizedUnary"),
    "sue": Entry("category", "unary:SymmetricUnary"),
    "laplace": Entry("other", "laplace:Laplace"),
    "discrete-laplace": Entry("other", "laplace:DiscreteLaplace"),
    "norm": Entry("other", "norm:NormMechanism"),
    "exponential-mechanism": Entry("other", "selection:ExponentialMechanism"),
    "generalised-exponential": Entry("other", "generalised_exponential:GeneralisedExponential"),
    "noisy-max": Entry("other", "selection:NoisyMax"),
}
# What a plan may name in place of a mechanism, although it adds no noise: name -> its place.
HEURISTICS = {"clip-only": "catalogue:ClipOnly"}


def family(*families: Family) -> tuple[str, ...]:
    """Returns the names of the mechanisms of one family or several, in the order of the table."""
    return tuple(name for name, entry in REGISTRY.items() if entry.family in families)


def mechanism_class(name: str) -> type[Mechanism]:
    """Returns the class of a mechanism.

    Raises:
        KeyError: no mechanism has this name.

    >>> mechanism_class("sqkr").title
    'SQKR'
    """
    return _class(REGISTRY[name].place)


def _class(place: str) -> type[Mechanism]:
    module, _, kind = place.partition(":")
    return cast(type[Mechanism], getattr(import_module(f"fedprivacy.mechanisms.{module}"), kind))


def title(name: str) -> str:
    """The display name of a mechanism; an unknown name is returned unchanged.

    >>> title("privunit"), title("oue"), title("clip-only")
    ('PrivUnitG', 'optimized unary encoding', 'clipping alone')
    """
    if name in REGISTRY:
        return mechanism_class(name).title
    return _class(HEURISTICS[name]).title if name in HEURISTICS else name
