"""Every mechanism by name. Each entry has a claim in `tests/fedprivacy/mechanisms/claims`.

A new one is a frozen dataclass with a name and a title in a file of this room; a line in `REGISTRY`; and its
entry among the claims, without which the tests fail. That is all for a mechanism of a client's update
(`local.LocalMechanism`), of the server's sum of updates (`central.CentralMechanism`) and of categories
(`frequency.FrequencyOracle`): the values and keys of scenarios, their messages and reference, plans and what
they read back, calibration, the draw of a round, ledgers and reports follow. A mechanism of another input
also needs its key and the code that chooses it, in `statistics/plan.py`. A mechanism that changes more than
the noise of a sum needs more, and so do its rules: `Plan` and the clients know adaptive clipping, the ledger
and the server noise that rounds share. These are the built-in `GAUSSIAN_VARIANTS`.

Scenarios are read without the accountants, so this module imports no mechanism before it is needed.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, cast

Family = Literal[
    "update", "local update", "gaussian variant", "central update", "shared update", "category", "other"
]


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
        family: Its input: a client's update (`LocalMechanism`); the server's sum of updates
            (`CentralMechanism`); updates of clients that share the noise (`NoiseShares`); a client's category
            (`FrequencyOracle`); or another. A new mechanism has one of these five. "update" is Gaussian noise
            alone, which serves clients and server and which rules know by name; "gaussian variant" is for
            the built-in `GAUSSIAN_VARIANTS`.
        place: The module below `fedprivacy.mechanisms` and the class.
        options: Of a "central update", the module below `fedprivacy.mechanisms` and the pydantic class of its
            keys, which join the section `privacy`; none if empty. Each reading of a scenario imports the
            module: one that imports no accountant starts sooner.
    """

    family: Family
    place: str
    options: str = ""


# Name -> the mechanism. Of local mechanisms and of categories with equal errors the first is chosen.
REGISTRY: dict[str, Entry] = {
    "gaussian": Entry("update", "gaussian:Gaussian"),
    "privunit": Entry("local update", "privunit:PrivUnitG"),
    "sqkr": Entry("local update", "sqkr:SQKR"),
    "sign-bits": Entry("local update", "signs:SignBits"),
    "adaptive-gaussian": Entry("gaussian variant", "adaptive:AdaptiveGaussian"),
    "banded-gaussian": Entry("gaussian variant", "banded:BandedGaussian"),
    "encoded-gaussian": Entry("gaussian variant", "encoded:EncodedGaussian"),
    "encoded-student-t": Entry("central update", "encoded:EncodedStudent", "options:StudentOptions"),
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
# Gaussian noise on the server's sum, in another form: the key of `privacy` that chooses it -> its name. Rules
# forbid any two of these keys together.
GAUSSIAN_VARIANTS = {
    "clipping_quantile": "adaptive-gaussian",
    "bands": "banded-gaussian",
    "encoding": "encoded-gaussian",
}
# Name -> the `privacy.mechanism`, where that is another.
_IN_SCENARIOS = {**dict.fromkeys(GAUSSIAN_VARIANTS.values(), "gaussian"), "encoded-student-t": "student-t"}
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
    """Returns the `privacy.mechanism` of a mechanism: its name, but for built-in ones with another.

    >>> name_in_scenarios("banded-gaussian"), name_in_scenarios("sqkr")
    ('gaussian', 'sqkr')
    """
    return _IN_SCENARIOS.get(name, name)


def title(name: str) -> str:
    """The display name of a mechanism; an unknown name is returned unchanged.

    >>> title("privunit"), title("oue"), title("clip-only")
    ('PrivUnitG', 'optimized unary encoding', 'clipping alone')
    """
    if name in REGISTRY:
        return mechanism_class(name).title
    return str(class_at(HEURISTICS[name]).title) if name in HEURISTICS else name
