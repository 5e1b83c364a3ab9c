"""Every mechanism by name. Each entry has a claim in `tests/fedprivacy/mechanisms/claims`.

A new one is a frozen dataclass with a name and a title in a file of this room; a line in `REGISTRY`; and its
entry among the claims, without which the tests fail. That is all for a mechanism of a client's update
(`local.LocalMechanism`), of the server's sum of updates (`central.CentralMechanism`) and of categories
(`frequency.FrequencyOracle`): the values and keys of scenarios, their messages and reference, plans and what
they read back, calibration, the draw of a round, ledgers and reports follow. A mechanism of another input
also needs its key and the code that chooses it, in `statistics/plan.py`. A mechanism that changes more than
the noise of a sum needs more: `Plan` and the clients know adaptive clipping, the ledger noise that rounds
share.

Scenarios are read without the accountants, so this module imports no mechanism before it is needed.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, cast

Family = Literal["update", "local update", "central update", "shared update", "category", "other"]


class Mechanism(Protocol):
    """The common interface of all mechanisms; their inputs and draws differ."""

    name: ClassVar[str]
    title: ClassVar[str]

    @property
    def words(self) -> str:
        """The amount of noise, in words."""


class Choice(NamedTuple):
    """The keys of the section `privacy` that choose a mechanism of the server's sum.

    Args:
        mechanism: The value of the key `mechanism`; the mechanism's name if empty.
        key: A key that has to be given too; none if empty.
        options: The module below `fedprivacy.mechanisms` and the pydantic class of the mechanism's own keys,
            which join the section; none if empty. Each reading of a scenario imports the module: one that
            imports no accountant starts sooner.
    """

    mechanism: str = ""
    key: str = ""
    options: str = ""


class Entry(NamedTuple):
    """A mechanism.

    Args:
        family: Its input: a client's update (`LocalMechanism`), the server's sum of updates
            (`CentralMechanism`), or either ("update"); updates of clients that share the noise
            (`NoiseShares`); a client's category (`FrequencyOracle`); or another.
        place: The module below `fedprivacy.mechanisms` and the class.
        choice: The keys that choose it, for a mechanism of the server's sum.
    """

    family: Family
    place: str
    choice: Choice = Choice()


# Name -> the mechanism. Of local mechanisms and of categories with equal errors the first is chosen.
REGISTRY: dict[str, Entry] = {
    "gaussian": Entry("update", "gaussian:Gaussian"),
    "privunit": Entry("local update", "privunit:PrivUnitG"),
    "sqkr": Entry("local update", "sqkr:SQKR"),
    "sign-bits": Entry("local update", "signs:SignBits"),
    "adaptive-gaussian": Entry(
        "central update",
        "adaptive:AdaptiveGaussian",
        Choice("gaussian", "clipping_quantile", "options:AdaptiveOptions"),
    ),
    "banded-gaussian": Entry(
        "central update", "banded:BandedGaussian", Choice("gaussian", "bands", "options:BandedOptions")
    ),
    "encoded-gaussian": Entry(
        "central update", "encoded:EncodedGaussian", Choice("gaussian", "encoding", "options:EncodingOptions")
    ),
    "encoded-student-t": Entry(
        "central update", "encoded:EncodedStudent", Choice("student-t", options="options:StudentOptions")
    ),
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
    return cast(type[Mechanism], class_at(REGISTRY[name].place))


def class_at(place: str) -> type[Any]:
    """Returns the class at a place of an entry."""
    module, _, kind = place.partition(":")
    return cast(type[Any], getattr(import_module(f"fedprivacy.mechanisms.{module}"), kind))


def name_in_scenarios(name: str) -> str:
    """Returns the `privacy.mechanism` of a mechanism; a name that is not registered is returned unchanged.

    >>> name_in_scenarios("banded-gaussian"), name_in_scenarios("sqkr")
    ('gaussian', 'sqkr')
    """
    return (REGISTRY[name].choice.mechanism or name) if name in REGISTRY else name


def title(name: str) -> str:
    """The display name of a mechanism; an unknown name is returned unchanged.

    >>> title("privunit"), title("oue"), title("clip-only")
    ('PrivUnitG', 'optimized unary encoding', 'clipping alone')
    """
    if name in REGISTRY:
        return mechanism_class(name).title
    return str(class_at(HEURISTICS[name]).title) if name in HEURISTICS else name
