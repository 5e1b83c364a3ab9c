"""The pieces of a result document: guarantees, candidates, classes, cells, rounds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator


class Part(BaseModel):
    """A piece of a document: what it does not name is ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class Guarantee(Part):
    """A guarantee (epsilon, delta, unit, adjacency, ...) against one observer; epsilon null: none."""

    observer: str
    trust: str | None = None
    epsilon: float | None = Field(None, ge=0)
    delta: float | None = None
    unit: str | None = None
    adjacency: str | None = None
    sampling: Any = None
    rounds: int | None = None
    accountant: str | None = None
    assumptions: tuple[str, ...] = ()
    words: str | None = None

    @property
    def holds(self) -> bool:
        """Whether the guarantee has an epsilon."""
        return self.epsilon is not None and math.isfinite(self.epsilon)

    @model_validator(mode="after")
    def _never_bare(self) -> Guarantee:
        missing = [name for name in ("delta", "unit", "adjacency") if getattr(self, name) is None]
        if self.holds and missing:
            raise ValueError(f"an epsilon without {', '.join(missing)} is not a guarantee")
        return self


class Figures(Part):
    """A mean over seeds with its interval."""

    mean: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Both ends of the interval, or None."""
        if self.low is None or self.high is None or not math.isfinite(self.low + self.high):
            return None
        return self.low, self.high


class Candidate(Part):
    """A mechanism that was considered; its errors are per coordinate of one client's message."""

    mechanism: str
    noise: str | None = None
    predicted_error: float | None = None
    measured_error: float | None = None
    chosen: bool = False
    reason: str | None = None


class ClassAccuracy(Part):
    """The accuracy on held-out records of one class."""

    number: int | str = Field(alias="class")
    label: str | None = None
    accuracy: float | None = None
    records: int | None = None

    @property
    def name(self) -> str:
        """The class as a person would call it."""
        return self.label or str(self.number)


class Evaluated(Part):
    """A point of a learning curve: the mean over seeds after a round."""

    round: int
    accuracy: float = Field(allow_inf_nan=False)


class Records(Part):
    """The record counts of clients, which are public if the unit is a record."""

    smallest: int = Field(ge=1)
    median: int = Field(ge=1)
    largest: int = Field(ge=1)

    @property
    def named(self) -> dict[str, int]:
        """The three numbers by the client that has them."""
        return {
            "Smallest client": self.smallest,
            "Median client": self.median,
            "Largest client": self.largest,
        }


class ClientGroup(Part):
    """Clients whose records cost the same."""

    epsilon: float = Field(ge=0)
    clients: int = Field(ge=1)
    answers: int | None = None
    records: int | None = None


class PerClient(Part):
    """The costs for the records of single clients."""

    largest: float = Field(ge=0)
    median: float = Field(ge=0)
    groups: tuple[ClientGroup, ...] = ()


class Cell(Part):
    """One trust model at one target epsilon, over the paired seeds.

    `asked` is the local mechanism where a comparison names several; `mechanism` is the one that ran.
    `rounds` were planned; by run `rounds_played` are fewer where early stopping has ended it.
    """

    trust: str
    unit: str | None = None
    asked: str | None = None
    mechanism: str | None = None
    epsilon: float | None = Field(None, gt=0, allow_inf_nan=False)
    accuracy: Figures = Figures()
    accuracies: tuple[float | None, ...] = ()
    noise: str | None = None
    noise_multiplier: float | None = None
    clipping_norm: float | None = None
    population: int | None = None
    max_participations: int | None = None
    rounds: int | None = None
    rounds_played: tuple[int, ...] = ()
    sampling: Any = None
    batches: dict[str, Any] | None = None
    records_per_client: Records | None = None
    scaling: str | None = None
    training: dict[str, Any] = Field(default_factory=dict)
    server: dict[str, Any] = Field(default_factory=dict)
    guarantees: tuple[Guarantee, ...] = ()
    candidates: tuple[Candidate, ...] | None = None
    curve: tuple[Evaluated, ...] | None = None
    per_class: tuple[ClassAccuracy, ...] | None = None
    runs: tuple[str, ...] = ()

    @property
    def ended_early(self) -> bool:
        """Whether early stopping has ended a run before its planned rounds."""
        return self.rounds is not None and any(completed < self.rounds for completed in self.rounds_played)

    @model_validator(mode="before")
    @classmethod
    def _null_accuracy(cls, value: Any) -> Any:
        if isinstance(value, Mapping) and value.get("accuracy", {}) is None:
            return {key: entry for key, entry in value.items() if key != "accuracy"}
        return value


class Varied(Part):
    """A setting, and what it was."""

    key: str
    value: bool | int | float | str


class Variation(Cell):
    """The scenario's own privacy with one setting changed."""

    varied: Varied


class Gap(Part):
    """By how many percentage points one cell is more accurate than another, with its 95 % interval."""

    points: float
    low: float | None = None
    high: float | None = None


class Option(Cell):
    """The scenario with an option, and how it compares with the cell without it."""

    option: str
    difference: Gap | None = None


class Round(Part):
    """One round, by its place in the record; accuracy and loss are null where nothing was evaluated."""

    accuracy: float | None = None
    loss: float | None = None
    seconds: float | None = None


class Final(Part):
    """The last evaluation."""

    accuracy: float | None = None
    loss: float | None = None
    per_class: tuple[ClassAccuracy, ...] | None = None


class Completed(Part):
    """The cost of a stopped run's completed rounds (or queries), with one more assumption."""

    rounds: int = Field(ge=0)
    guarantees: tuple[Guarantee, ...] = ()


class Privacy(Part):
    """The plan and its guarantees."""

    trust: str | None = None
    mechanism: str | None = None
    clipping_norm: float | None = None
    noise: str | None = None
    noise_multiplier: float | None = None
    population: int | None = None
    delta: float | None = None
    adjacency: str | None = None
    unit: str | None = None
    sampling: Any = None
    max_participations: int | None = None
    batches: dict[str, Any] | None = None
    records_per_client: Records | None = None
    per_client: PerClient | None = None
    guarantees: tuple[Guarantee, ...] = ()
    completed: Completed | None = None
    candidates: tuple[Candidate, ...] | None = None


class Performance(Part):
    """Wall-clock seconds, clients trained per second, peak memory in MB, how clients are trained, where."""

    seconds: float | None = None
    clients_per_second: float | None = None
    peak_memory_mb: float | None = None
    way: str | None = None
    engine: str | None = None
    workers: int | None = None
