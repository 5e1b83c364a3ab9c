"""Every mechanism by name. Whatever stands here has a claim in `tests/fedprivacy/mechanisms/claims`.

A new one is a frozen dataclass with a name and a title, its draw, its event and its error formula; its
place in `_KINDS`; and its entry among the claims, without which the tests fail.
"""

from __future__ import annotations

from typing import ClassVar, Protocol, get_args

from fedprivacy.mechanisms.adaptive import AdaptiveGaussian
from fedprivacy.mechanisms.banded import BandedGaussian
from fedprivacy.mechanisms.bits import RandomizedResponse
from fedprivacy.mechanisms.catalogue import MECHANISMS, Local
from fedprivacy.mechanisms.categories import ORACLES
from fedprivacy.mechanisms.encoded import EncodedGaussian, EncodedStudent
from fedprivacy.mechanisms.generalised import GeneralisedExponential
from fedprivacy.mechanisms.laplace import DiscreteLaplace, Laplace
from fedprivacy.mechanisms.norm import NormMechanism
from fedprivacy.mechanisms.selection import ExponentialMechanism, NoisyMax


class Mechanism(Protocol):
    """What all mechanisms have in common; what they draw, and from what, differs."""

    name: ClassVar[str]
    title: ClassVar[str]

    @property
    def words(self) -> str:
        """How much noise there is, in words."""


_KINDS: tuple[type[Mechanism], ...] = (
    *get_args(Local),  # of vectors
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
    """What a person calls a mechanism; a name that is not known stays as it is.

    >>> title("privunit"), title("oue"), title("clip-only")
    ('PrivUnitG', 'optimized unary encoding', 'clipping alone')
    """
    kind = REGISTRY.get(name) or MECHANISMS.get(name)
    return kind.title if kind else name
