"""The mechanisms of updates by name: those of clients, of the server, in shares; and clipping alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, cast

from dp_accounting import dp_event as dp

from fedprivacy.mechanisms.central import CentralMechanism
from fedprivacy.mechanisms.local import LocalMechanism
from fedprivacy.mechanisms.noise_shares import NoiseShares
from fedprivacy.mechanisms.registry import family, mechanism_class


@dataclass(frozen=True)
class ClipOnly:
    """Clips and adds no noise: a heuristic that no theorem covers, hence without an epsilon."""

    clipping_norm: float
    name: ClassVar[str] = "clip-only"
    title: ClassVar[str] = "clipping alone"

    def event(self) -> dp.DpEvent:
        """A release without any guarantee."""
        return dp.NonPrivateDpEvent()


Mechanism = LocalMechanism | CentralMechanism | NoiseShares | ClipOnly
MECHANISMS: dict[str, type[Mechanism]] = {
    name: cast(type[Mechanism], mechanism_class(name))
    for name in family("update", "local update", "gaussian variant", "central update", "shared update")
}
MECHANISMS[ClipOnly.name] = ClipOnly
