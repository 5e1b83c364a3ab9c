"""The result documents that a report is made from, read at the file boundary.

Only what the report prints is named here; everything else in a document is ignored, and everything
that a run may lack (it was interrupted, it had no privacy) is optional. What a document marks as
operator-only is taken out before any claim is printed (`redact`) and read back apart (`select`).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from fedprivacy.errors import InputError

SCHEMA = 1
TRUST_ORDER = ("none", "central", "distributed", "local")

# Operator-only by nature, whether or not a document remembers to say so.
ALWAYS_OPERATOR_ONLY = (
    "command",  # it holds the seed, and who knows the seed of a simulation knows its noise
    "seed",
    "scenario.seed",
    "scenario.compare.seeds",
    "cells[].seeds",
    "error",
    "rounds[].cohort",
    "rounds[].zeroed",
    "rounds[].failures",
    "rounds[].refusals",
    "rounds[].first_failure",
)


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Guarantee(_Part):
    """(epsilon, delta, unit, adjacency, ...) against one observer; epsilon null says that there is none."""

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
        """Whether there is a guarantee at all."""
        return self.epsilon is not None and math.isfinite(self.epsilon)

    @model_validator(mode="after")
    def _never_bare(self) -> Guarantee:
        missing = [name for name in ("delta", "unit", "adjacency") if getattr(self, name) is None]
        if self.holds and missing:
            raise ValueError(f"an epsilon without {', '.join(missing)} is not a guarantee")
        return self


class Figures(_Part):
    """A mean over seeds with its interval."""

    mean: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Both ends, where there is an interval."""
        if self.low is None or self.high is None or not math.isfinite(self.low + self.high):
            return None
        return self.low, self.high


class Candidate(_Part):
    """A mechanism that was considered; its errors are per coordinate of a round's average update."""

    mechanism: str
    noise: str = ""
    predicted_error: float | None = None
    measured_error: float | None = None
    chosen: bool = False
    reason: str | None = None


class ClassAccuracy(_Part):
    """How well held-out records of one class are named."""

    number: int | str = Field(alias="class")
    label: str | None = None
    accuracy: float | None = None
    records: int | None = None

    @property
    def name(self) -> str:
        """The class as a person would call it."""
        return self.label or str(self.number)


class Evaluated(_Part):
    """A point of a learning curve: the mean over seeds after a round."""

    round: int
    accuracy: float = Field(allow_inf_nan=False)


class Cell(_Part):
    """One trust model at one target epsilon, over the paired seeds."""

    trust: str
    mechanism: str | None = None
    epsilon: float | None = Field(None, gt=0, allow_inf_nan=False)
    accuracy: Figures = Figures()
    accuracies: tuple[float | None, ...] = ()
    noise_multiplier: float | None = None
    clipping_norm: float | None = None
    rounds: int | None = None
    sampling: Any = None
    training: dict[str, Any] = Field(default_factory=dict)
    server: dict[str, Any] = Field(default_factory=dict)
    guarantees: tuple[Guarantee, ...] = ()
    candidates: tuple[Candidate, ...] | None = None
    curve: tuple[Evaluated, ...] | None = None
    per_class: tuple[ClassAccuracy, ...] | None = None
    runs: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _null_accuracy(cls, value: Any) -> Any:
        if isinstance(value, Mapping) and value.get("accuracy", {}) is None:
            return {key: entry for key, entry in value.items() if key != "accuracy"}
        return value


class Round(_Part):
    """One round, by its place in the record; accuracy and loss are null where nothing was evaluated."""

    accuracy: float | None = None
    loss: float | None = None
    seconds: float | None = None


class Final(_Part):
    """The last evaluation."""

    accuracy: float | None = None
    loss: float | None = None
    per_class: tuple[ClassAccuracy, ...] | None = None


class Privacy(_Part):
    """What was planned, and what it guarantees."""

    trust: str | None = None
    mechanism: str | None = None
    clipping_norm: float | None = None
    noise_multiplier: float | None = None
    population: int | None = None
    delta: float | None = None
    adjacency: str | None = None
    unit: str | None = None
    sampling: Any = None
    max_participations: int | None = None
    guarantees: tuple[Guarantee, ...] = ()
    candidates: tuple[Candidate, ...] | None = None


class Performance(_Part):
    """Wall-clock seconds, clients trained per second, peak memory in MB."""

    seconds: float | None = None
    clients_per_second: float | None = None
    peak_memory_mb: float | None = None


class Document(_Part):
    """What every kind of document has."""

    name: str = "unnamed"
    path: str | None = None
    status: str = "finished"
    error: str | None = None
    started: str | None = None
    versions: dict[str, Any] = Field(default_factory=dict)
    scenario: dict[str, Any] = Field(default_factory=dict)
    notes: tuple[str, ...] = ()
    performance: Performance | None = None

    def setting(self, section: str, key: str) -> Any:
        """One setting of the scenario, or None."""
        part = self.scenario.get(section)
        return part.get(key) if isinstance(part, Mapping) else None

    @property
    def evaluated_on(self) -> str:
        """`test` or `public`: where accuracy and loss were measured."""
        return str(self.setting("evaluation", "on") or "test")


class RunDocument(Document):
    """A federated run."""

    rounds: tuple[Round, ...] = ()
    final: Final | None = None
    privacy: Privacy = Privacy()


class CompareDocument(Document):
    """Trust models against each other, over epsilons and seeds."""

    cells: tuple[Cell, ...] = ()
    finding: str | None = None
    interval: str | None = None

    @property
    def trusts(self) -> list[str]:
        """The trust models asked for or found, from the one that protects from fewest observers on."""
        asked = self.setting("compare", "trusts")
        names = map(str, asked) if isinstance(asked, list) else ()
        found = dict.fromkeys([*names, *(cell.trust for cell in self.cells)])
        return sorted(found, key=lambda name: TRUST_ORDER.index(name) if name in TRUST_ORDER else 9)

    def targets(self, trust: str) -> list[float | None]:
        """The epsilons asked for under a trust model; none has the one target None."""
        asked = self.setting("compare", "epsilons")
        if trust == "none":
            return [None]
        return [float(e) for e in asked if isinstance(e, (int, float))] if isinstance(asked, list) else []

    def of(self, trust: str) -> list[Cell]:
        """The cells of a trust model, from the strictest epsilon on."""
        return sorted((c for c in self.cells if c.trust == trust), key=lambda cell: cell.epsilon or 0.0)

    def widest(self) -> list[Cell]:
        """The cell of each trust model at its largest epsilon: where the noise disturbs least."""
        return [cells[-1] for trust in self.trusts if (cells := self.of(trust))]

    def guarantees(self, trust: str | None = None) -> list[Guarantee]:
        """The guarantees of one trust model, or of all."""
        return [g for cell in (self.cells if trust is None else self.of(trust)) for g in cell.guarantees]


KINDS: dict[str, type[Document]] = {"run": RunDocument, "compare": CompareDocument}


def read(document: Mapping[str, Any]) -> Document:
    """The document without its operator-only fields, checked.

    Raises:
        InputError: the schema or the kind is unknown, or a field is not what its schema says.
    """
    if not isinstance(document, Mapping):
        raise InputError(f"report: a result document is a table of fields, not {type(document).__name__}.")
    schema, kind = document.get("schema"), document.get("kind")
    if schema != SCHEMA or isinstance(schema, bool):
        raise InputError(
            f"report: schema = {schema!r} is unknown; this version reads schema {SCHEMA}. "
            "Render it with the version of fedprivacy that wrote it."
        )
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(f"report: kind = {kind!r} is unknown; a report is made from {' or '.join(KINDS)}.")
    try:
        return KINDS[kind].model_validate(redact(document, operator_only(document)))
    except ValidationError as error:
        found = [(".".join(map(str, problem["loc"])) or kind, problem["msg"]) for problem in error.errors()]
        raise InputError("\n".join(f"report: {where}: {what}." for where, what in found)) from None


def operator_only(document: Mapping[str, Any]) -> tuple[str, ...]:
    """The paths of the fields that are outside every claim, such as `rounds[].cohort`."""
    marked = document.get("operator_only") or []
    if not isinstance(marked, list) or not all(isinstance(path, str) and path for path in marked):
        raise InputError("report: operator_only must be a list of paths such as rounds[].cohort.")
    return tuple(dict.fromkeys([*ALWAYS_OPERATOR_ONLY, *marked]))


def redact(document: Mapping[str, Any], paths: Iterable[str]) -> dict[str, Any]:
    """A copy of the document without the fields at these paths.

    >>> redact({"rounds": [{"round": 1, "cohort": 9}]}, ["rounds[].cohort"])
    {'rounds': [{'round': 1}]}
    """
    kept = copy.deepcopy(dict(document))
    for path in paths:
        *parents, field = path.split(".")
        for holder in _holders(kept, parents):
            holder.pop(field.removesuffix("[]"), None)
    return kept


def select(document: Mapping[str, Any], path: str) -> list[Any]:
    """The values at a path, one for each element of the lists on the way, without those that are missing.

    >>> select({"rounds": [{"cohort": 9}, {"cohort": 7}]}, "rounds[].cohort")
    [9, 7]
    """
    *parents, field = path.split(".")
    name = field.removesuffix("[]")
    found = (holder.get(name) for holder in _holders(document, parents))
    return [value for value in found if value is not None]


def _holders(document: Mapping[str, Any], parents: list[str]) -> list[Any]:
    """The tables at the end of a path of parents; `name[]` means each element of a list."""
    holders: list[Any] = [document]
    for part in parents:
        name = part.removesuffix("[]")
        inner = [holder.get(name) for holder in holders]
        if part.endswith("[]"):
            inner = [element for elements in inner if isinstance(elements, list) for element in elements]
        holders = [value for value in inner if isinstance(value, Mapping)]
    return holders
