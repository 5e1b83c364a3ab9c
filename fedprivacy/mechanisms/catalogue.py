"""The mechanisms of updates by name: those of clients (`local.LOCAL`) and of the server, and clipping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dp_accounting import dp_event as dp

from fedprivacy.mechanisms.adaptive import AdaptiveGaussian
from fedprivacy.mechanisms.banded import BandedGaussian
from fedprivacy.mechanisms.encoded import EncodedGaussian, EncodedStudent
from fedprivacy.mechanisms.gaussian import Gaussian
from fedprivacy.mechanisms.local import LOCAL, LocalMechanism, local_class


@dataclass(frozen=True)
class ClipOnly:
    """Clips and adds no noise: a heuristic that no theorem covers, hence without an epsilon."""

    clipping_norm: float
    name: ClassVar[str] = "clip-only"
    title: ClassVar[str] = "clipping alone"

    def event(self) -> dp.DpEvent:
        """A release without any guarantee."""
        return dp.NonPrivateDpEvent()


# The server adds Gaussian noise, or on encoded updates Student t.
Central = Gaussian | EncodedStudent
Mechanism = LocalMechanism | EncodedStudent | ClipOnly
MECHANISMS: dict[str, type[Mechanism]] = {
    **{name: local_class(name) for name in LOCAL},
    **{
        kind.name: kind
        for kind in (ClipOnly, AdaptiveGaussian, BandedGaussian, EncodedGaussian, EncodedStudent)
    },
}
