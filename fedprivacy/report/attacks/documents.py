"""The result document of attacks that were played."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedprivacy.report.attacks.parts import Attack
from fedprivacy.report.documents import Document
from fedprivacy.report.parts import Guarantee


class ReplayDocument(Document):
    """Attacks on one or several runs of a scenario."""

    attacks: tuple[Attack, ...] = ()

    @property
    def trust(self) -> str:
        """The trust model of the attacked runs."""
        return str(self.setting("privacy", "trust") or "none")

    @property
    def asked(self) -> Mapping[str, Any]:
        """The attacks of the scenario by name."""
        found = self.scenario.get("attacks")
        return found if isinstance(found, Mapping) else {}

    @property
    def seats(self) -> dict[str, list[Attack]]:
        """The attacks of each seat, the server's first."""
        order = sorted(dict.fromkeys(one.seat for one in self.attacks), key=lambda seat: seat != "server")
        return {seat: [one for one in self.attacks if one.seat == seat] for seat in order}

    @property
    def guarantees(self) -> list[Guarantee]:
        """What is guaranteed against each seat that attacks, once."""
        found = {g.observer: g for one in self.attacks if (g := one.guarantee) is not None}
        return list(found.values())
