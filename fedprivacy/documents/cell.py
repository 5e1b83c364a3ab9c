"""A cell of a comparison: one trust model at one epsilon over paired seeds, and its ablations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field, model_validator

from fedprivacy.documents.guarantee import (
    BUDGET_GROUPS,
    CANDIDATES,
    BudgetGroup,
    Candidate,
    Guarantees,
    Records,
)
from fedprivacy.documents.headline import read_headline
from fedprivacy.documents.quality import ClassAccuracy
from fedprivacy.io.document_part import CHECKED, Checked, Number, Part, Raw
from fedprivacy.io.folder import is_below


def _inside(name: str) -> str:
    """A folder below that of the comparison."""
    if not is_below(name):
        raise ValueError("it leads out of the folder")
    return name


def _once(names: list[str]) -> list[str]:
    if len(set(names)) < len(names):
        raise ValueError("a run is named twice")
    return names


Folders = Annotated[
    list[Annotated[str, AfterValidator(_inside)]], Field(max_length=10_000), AfterValidator(_once)
]


class Figures(Part):
    """A mean over seeds with its interval."""

    mean: Annotated[float | None, Checked(Number)] = None
    low: Annotated[float | None, Checked(Number | None)] = None
    high: Annotated[float | None, Checked(Number | None)] = None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Both ends of the interval, or None."""
        if self.low is None or self.high is None or not math.isfinite(self.low + self.high):
            return None
        return self.low, self.high


class Evaluated(Part):
    """A point of a learning curve: the mean over seeds after a round."""

    round: int
    accuracy: float = Field(allow_inf_nan=False)
    score: float | None = None

    @model_validator(mode="before")
    @classmethod
    def _headline(cls, value: Any) -> Any:
        return read_headline(value)


class CellGroup(Part):
    """One group, as `GroupAccuracy` has it, over the seeds; `gap` is the mean of the runs' own gaps."""

    group: str
    records: int | None = None
    accuracy: Figures | None = None
    balanced_accuracy: Figures | None = None
    gap: Figures | None = None
    few: bool = False


class CellColumn(Part):
    """The groups by one column, over the seeds."""

    column: str
    edges: tuple[Number, ...] = ()
    groups: Annotated[tuple[CellGroup, ...], Field(max_length=1000)] = ()


class CellUsers(Part):
    """Held-out users, over the seeds: all, and the worst tenth of each run.

    `worst_by_chance` is as of `UserAccuracies`; None where a run of an earlier version lacks it.
    """

    users: int | None = None
    worst_users: int | None = None
    mean: Figures | None = None
    worst: Figures | None = None
    worst_by_chance: Figures | None = None


class Cell(Part):
    """One trust model at one target epsilon, over the paired seeds.

    `asked` is the local mechanism where a comparison names several; `mechanism` is the one that ran.
    `budget_groups` are groups of clients with budgets of their own. `rounds` were planned; by run
    `rounds_played` are fewer where early stopping has ended it.
    """

    trust: Annotated[str, CHECKED]
    mechanism: str | None = None
    asked: Annotated[str | None, CHECKED] = None
    candidates: Annotated[tuple[Candidate, ...] | None, Checked(CANDIDATES)] = None
    epsilon: Annotated[float | None, Checked(Number | None)] = Field(None, gt=0, allow_inf_nan=False)
    seeds: Raw = None
    accuracy: Annotated[Figures, Checked(Figures | None)] = Figures()
    accuracies: tuple[float | None, ...] = ()
    score: Annotated[Figures | None, Checked(Figures, optional=True)] = None
    scores: tuple[float | None, ...] = ()
    unit: Annotated[str | None, Checked(str)] = None
    noise_multiplier: float | None = None
    noise: str | None = None
    clipping_norm: float | None = None
    sampling: Any = None
    max_participations: int | None = None
    population: int | None = None
    batches: dict[str, Any] | None = None
    records_per_client: Records | None = None
    guarantees: Guarantees = ()
    budget_groups: Annotated[tuple[BudgetGroup, ...] | None, Checked(BUDGET_GROUPS, optional=True)] = None
    rounds: int | None = None
    rounds_played: tuple[int, ...] = ()
    curve: tuple[Evaluated, ...] | None = None
    per_class: tuple[ClassAccuracy, ...] | None = None
    measures: Annotated[dict[str, Figures | None] | None, Field(max_length=100)] = None
    groups: Annotated[tuple[CellColumn, ...], Field(max_length=100)] = ()
    users: CellUsers | None = None
    scaling: str | None = None
    training: dict[str, Any] = Field(default_factory=dict)
    server: dict[str, Any] = Field(default_factory=dict)
    seconds: Raw = None
    runs: Annotated[tuple[str, ...], Checked(Folders)] = ()

    @property
    def ended_early(self) -> bool:
        """Whether early stopping has ended a run before its planned rounds."""
        return self.rounds is not None and any(completed < self.rounds for completed in self.rounds_played)

    @model_validator(mode="before")
    @classmethod
    def _null_accuracy(cls, value: Any) -> Any:
        value = read_headline(value)
        if isinstance(value, Mapping) and value.get("accuracy", {}) is None:
            return {key: entry for key, entry in value.items() if key != "accuracy"}
        return value


class Gap(Part):
    """By how many percentage points one cell is more accurate than another, with its 95 % interval."""

    points: float
    low: float | None = None
    high: float | None = None


class Ablated(Cell):
    """The planned run with one possible limit removed; the interval is for all ablations together."""

    ablation: str
    difference: Gap | None = None
