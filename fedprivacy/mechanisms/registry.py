"""Every mechanism by name. Each entry has a claim in `tests/fedprivacy/mechanisms/claims`.

A new one is a frozen dataclass with a name and a title, its draw, its event and its error formula; its
place in `_KINDS`; and its entry among the claims, without which the tests fail.
"""

from __future__ import annotations

from typing import ClassVar, Protocol

from fedprivacy.mechanisms.adaptive import AdaptiveGaussian
from fedprivacy.mechanisms.banded import BandedGaussian
from fedprivacy.mechanisms.bits import RandomizedResponse
from fedprivacy.mechanisms.catalogue import MECHANISMS
from fedprivacy.mechanisms.categories import ORACLES
from fedprivacy.mechanisms.encoded import EncodedGaussian, EncodedStudent
from fedprivacy.mechanisms.generalised import GeneralisedExponential
from fedprivacy.mechanisms.laplace import DiscreteLaplace, Laplace
from fedprivacy.mechanisms.local import LOCAL, local_class
from fedprivacy.mechanisms.norm import NormMechanism
from fedprivacy.mechanisms.selection import ExponentialMechanism, NoisyMax


class Mechanism(Protocol):
    """The common interface of all mechanisms; their inputs and draws differ."""

    name: ClassVar[str]
    title: ClassVar[str]

    @property
    def words(self) -> str:
        """The amount of noise, in words."""


_KINDS: tuple[type[Mechanism], ...] = (
    *map(local_class, LOCAL),  # of vectors
    AdaptiveGaussian,
    BandedGaussian,
    EncodedGaussian,
    EncodedStudent,
    RandomizedResponse,
    *ORACLES,
    Laplace,
    DiscreteLaplace,
    NormMechanism,
    ExponentialMechanism,
    GeneralisedExponential,
    NoisyMax,
)
REGISTRY: dict[str, type[Mechanism]] = {kind.name: kind for kind in _KINDS}


def title(name: str) -> str:
    """The display name of a mechanism; an unknown name is returned unchanged.

    >>> title("privunit"), title("oue"), title("clip-only")
    ('PrivUnitG', 'optimized unary encoding', 'clipping alone')
    """
    kind = REGISTRY.get(name) or MECHANISMS.get(name)
    return kind.title if kind else name
