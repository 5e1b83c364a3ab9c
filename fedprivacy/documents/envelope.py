"""The envelope of documents of every kind: their origin, how the work ended, and how long it took."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import Field

from fedprivacy.documents.headline import primary_of
from fedprivacy.documents.redaction import TESTED_NOTE, withholds_truth
from fedprivacy.io.document_part import CHECKED, Amount, Checked, Number, Part, Raw
from fedprivacy.io.environment import peak_memory_mb
from fedprivacy.models.metrics.metric import Metric

SCHEMA = 1  # raised when a reader of earlier documents would misread a new one
TRUST_ORDER = ("none", "central", "distributed", "shuffled", "local")
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

    @property
    def cost(self) -> str:
        """Time and memory as a terminal prints them; nothing is printed of those that were not measured."""
        time = [] if self.seconds is None else [f"{self.seconds:.1f} s"]
        return ", ".join([*time, *([] if self.peak_memory_mb is None else [f"{self.peak_memory_mb:.0f} MB"])])

    @classmethod
    def of_process(cls, seconds: float) -> Performance:
        """The time and memory of this process so far.

        Args:
            seconds: How long it took.
        """
        return cls.new(seconds=round(seconds, 3), peak_memory_mb=peak_memory_mb())


class Document(Part):
    """The fields of every kind of document.

    A kind redeclares a field that is elsewhere in its document, or that its verification requires.
    """

    FIRST = ("privacy", "ledger")  # the guarantees, and the ledger they are computed from
    KIND: ClassVar[str]
    # Fields that depend on data and are not charged, or help to guess noise or data: outside every claim.
    OPERATOR_ONLY: ClassVar[tuple[str, ...]]
    HEAD: ClassVar[tuple[str, ...]] = (
        "name",
        "seed",
        "path",
        "status",
        "error",
        "command",
        "started",
        "versions",
        "scenario",
    )

    public: bool = False  # a copy without operator-only fields (`redaction.public`)
    name: str = "unnamed"
    seed: Raw = None
    path: str | None = None
    status: str = "finished"
    error: str | None = None
    command: Raw = None
    started: str | None = None
    versions: dict[str, Any] = Field(default_factory=dict)
    scenario: Annotated[dict[str, Any], CHECKED] = Field(default_factory=dict)
    randomness: dict[str, str] = Field(default_factory=dict)
    for_operator: bool = False  # all results are: an account's claim rests on it
    operator_only: Raw = None
    simulation_only: Raw = None
    notes: tuple[str, ...] = ()
    performance: Performance | None = None

    def to_json(self) -> dict[str, Any]:
        """Returns the document as `run.json` has it: its head, then each field where it was last declared."""
        fields = super().to_json()
        place = {name: at for at, name in enumerate(_declared(type(self)))}
        place |= {name: at - len(self.HEAD) for at, name in enumerate(self.HEAD)}
        ordered = {name: fields[name] for name in sorted(fields, key=place.__getitem__)}
        return {"schema": SCHEMA, "kind": self.KIND, **ordered}

    @property
    def lacks_accuracy(self) -> bool:
        """Whether this is a public copy whose accuracy depends on records of clients, and was removed."""
        return self.public and TESTED_NOTE in self.notes

    @property
    def lacks_truth(self) -> bool:
        """Whether this is a public copy whose true values and errors are of people, and were removed."""
        return self.public and withholds_truth(
            {"scenario": self.scenario, "simulation_only": self.simulation_only}
        )

    @property
    def lacks_results(self) -> bool:
        """Whether this is a public copy of work whose results are the operator's."""
        return self.public and self.for_operator

    @property
    def cost(self) -> str:
        """Time and memory as a terminal prints them."""
        return (self.performance or Performance()).cost

    @property
    def drawn(self) -> str:
        """Where noise came from, at the server and at the clients; empty in an older record."""
        return "; ".join(f"{who}: {what}" for who, what in self.randomness.items())

    def setting(self, section: str, key: str) -> Any:
        """One setting of the scenario, or None."""
        part = self.scenario.get(section)
        return part.get(key) if isinstance(part, Mapping) else None

    @property
    def primary(self) -> type[Metric]:
        """The metric of the headline figure."""
        return primary_of(self.scenario)

    @property
    def evaluated_on(self) -> str:
        """`test` or `public`: where accuracy and loss were measured."""
        return str(self.setting("evaluation", "on") or "test")


def _declared(kind: type[Document]) -> list[str]:
    """The names of a document's fields in the order of the source, once for each declaration."""
    return [name for base in reversed(kind.__mro__) for name in inspect.get_annotations(base)]


@dataclass(frozen=True)
class Arm:
    """The values in one line of a comparison.

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
