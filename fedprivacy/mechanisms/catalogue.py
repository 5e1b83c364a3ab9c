"""The mechanisms of updates by name. A new one is a class with these methods and its place here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import dp_accounting

from fedprivacy.mechanisms.adaptive import AdaptiveGaussian
from fedprivacy.mechanisms.banded import BandedGaussian
from fedprivacy.mechanisms.encoded import EncodedGaussian, EncodedStudent
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.mechanisms.privunit import PrivUnitG
from fedprivacy.mechanisms.signs import SignBits
from fedprivacy.mechanisms.sqkr import SQKR


@dataclass(frozen=True)
class ClipOnly:
    """Clips and adds no noise: a heuristic that no theorem covers, hence without an epsilon."""

    clipping_norm: float
    name: ClassVar[str] = "clip-only"
    title: ClassVar[str] = "clipping alone"

    def event(self) -> dp_accounting.DpEvent:
        """A release without any guarantee."""
        return dp_accounting.NonPrivateDpEvent()


# What a client may do to its own message; the server adds Gaussian noise, or on encoded updates Student t.
Local = Gaussian | PrivUnitG | SignBits | SQKR
Central = Gaussian | EncodedStudent
Mechanism = Local | EncodedStudent | ClipOnly
MECHANISMS: dict[str, type[Mechanism]] = {
    kind.name: kind
    for kind in (
        *(Gaussian, PrivUnitG, SignBits, SQKR, ClipOnly, AdaptiveGaussian, BandedGaussian),
        *(EncodedGaussian, EncodedStudent),
    )
}
