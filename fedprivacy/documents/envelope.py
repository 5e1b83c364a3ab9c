"""What documents of every kind have: who made them of what, how the work ended, and how long it took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from fedprivacy.documents.part import CHECKED, Amount, Checked, Number, Part

SCHEMA = 1  # raised when a reader of earlier documents would misread a new one
TRUST_ORDER = ("none", "central", "distributed", "local")
Status = Annotated[str, Field(pattern="^(running|finished|interrupted|failed)$")]
CLOSED = Checked(Annotated[str, Field(pattern="^(finished|interrupted|failed)$")])
STATUS = Checked(Status)
TABLE = Checked(dict[str, Any])


class Performance(Part):
    """Wall-clock seconds, clients trained per second, peak memory in MB, how clients are trained, where."""

    seconds: Annotated[float | None, Checked(Amount)] = None
    clients_per_second: float | None = None
    peak_memory_mb: Annotated[float | None, Checked(Number)] = None
    way: str | None = None
    engine: str | None = None
    workers: int | None = None


class Document(Part):
    """What every kind of document has."""

    name: str = "unnamed"
    path: str | None = None
    status: str = "finished"
    error: str | None = None
    started: str | None = None
    versions: dict[str, Any] = Field(default_factory=dict)
    scenario: Annotated[dict[str, Any], CHECKED] = Field(default_factory=dict)
    notes: tuple[str, ...] = ()
    performance: Performance | None = None
    randomness: dict[str, str] = Field(default_factory=dict)

    @property
    def drawn(self) -> str:
        """Where noise came from, at the server and at the clients; empty in an older record."""
        return "; ".join(f"{who}: {what}" for who, what in self.randomness.items())

    def setting(self, section: str, key: str) -> Any:
        """One setting of the scenario, or None."""
        part = self.scenario.get(section)
        return part.get(key) if isinstance(part, Mapping) else None

    @property
    def evaluated_on(self) -> str:
        """`test` or `public`: where accuracy and loss were measured."""
        return str(self.setting("evaluation", "on") or "test")


@dataclass(frozen=True)
class Arm:
    """What one line of a comparison shows.

    Args:
        trust: The trust model.
        mechanism: The local mechanism of the arm, where several are compared; else None.
        place: 0 for the first arm of a trust model; the others are counted on, so that each looks otherwise.
        unit: The unit of privacy, where several are compared; else None.
    """

    trust: str
    mechanism: str | None = None
    place: int = 0
    unit: str | None = None
