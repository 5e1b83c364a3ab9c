"""The document of a plan: the clients, epsilon or accuracy that runs of a simulation forecast."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from fedprivacy.documents.cell import Figures
from fedprivacy.documents.envelope import CLOSED, Document, Performance
from fedprivacy.documents.guarantee import Guarantees
from fedprivacy.documents.redaction import SEEDS
from fedprivacy.guarantees.statement import Guarantee
from fedprivacy.io.document_part import CHECKED, Checked, Number, Part, Raw

ACCURACIES = Checked(Annotated[list[Number], Field(min_length=2, max_length=100)])


class Question(Part):
    """The two quantities that are given, and the one that is unknown."""

    trusts: Annotated[tuple[str, ...], Checked(Annotated[list[str], Field(min_length=1, max_length=3)])]
    target_accuracy: Annotated[float | None, CHECKED] = None
    epsilon: Annotated[float | None, CHECKED] = None
    clients: Annotated[int | None, CHECKED] = None
    repeats: Annotated[int, CHECKED]
    unknown: Annotated[str, CHECKED] = Field(pattern="^(clients|epsilon|accuracy)$")


class Development(Part):
    """The clients that train, of how many, and the records on which their models are compared."""

    clients: Annotated[int, CHECKED] = Field(ge=1)
    total: Annotated[int, CHECKED] = Field(ge=1)
    source: Annotated[str, CHECKED] = Field(pattern="^(public|clients|records)$")
    records: Annotated[int, CHECKED] = Field(ge=1)
    classes: Annotated[int, CHECKED] = Field(ge=1)
    public: Annotated[bool, CHECKED]


class Measured(Part):
    """The accuracies of repeated runs at one number of clients or one epsilon."""

    x: Annotated[float, Checked(Annotated[float, Field(gt=0, allow_inf_nan=False)])]
    accuracies: Annotated[tuple[float, ...], ACCURACIES] = ()
    design_effect: Annotated[float, Checked(Annotated[float, Field(ge=1, allow_inf_nan=False)])] = 1.0

    @property
    def mean(self) -> float:
        """The mean accuracy."""
        return sum(self.accuracies) / len(self.accuracies)


class Law(Part):
    """The fitted law (`fedprivacy.forecast.law`), its error, and whether it may extrapolate."""

    floor: float
    ceiling: float
    half: float
    slope: float
    fit_error: float
    misfit: float
    fall: float
    extrapolates: bool


class HeldOut(Part):
    """The largest number, predicted from the others."""

    x: float
    predicted: float
    low: float
    high: float
    measured: float
    agrees: bool


class Answer(Part):
    """The verdict, the value and its 95 % interval; an end that is null lies beyond `limit`."""

    verdict: str = Field(pattern="^(measured|least|extrapolated|beyond|unreachable)$")
    value: float | None = None
    low: float | None = None
    high: float | None = None
    largest: float
    limit: float


class Drawn(Part):
    """A point of the law, with its interval."""

    x: float
    accuracy: float
    low: float
    high: float


class Final(Part):
    """What was measured once on test records, with the answer's number of clients and epsilon."""

    clients: Annotated[int, CHECKED] = Field(ge=1)
    accuracies: Annotated[tuple[float, ...], ACCURACIES]
    accuracy: Annotated[Figures, CHECKED]


class Curve(Part):
    """The curve of one trust model, and what it answers; `guarantees` are those of a run as planned."""

    trust: Annotated[str, CHECKED]
    epsilon: Annotated[float | None, Checked(float | None, optional=True)] = None  # of the planned run
    points: Annotated[
        tuple[Measured, ...], Checked(Annotated[list[Measured], Field(max_length=1000)], optional=True)
    ] = ()
    law: Raw = None
    held_out: Raw = None
    answer: Annotated[Answer | None, Checked(dict[str, Any], optional=True)] = None
    drawn: Annotated[tuple[Drawn, ...], Checked(Raw, optional=True)] = ()
    test: Annotated[Final | None, Checked(Final | None, optional=True)] = None
    planned: Annotated[Raw, Checked(dict[str, Any] | None, optional=True)] = None
    guarantees: Guarantees = ()

    @property
    def measured(self) -> tuple[Measured, ...]:
        """The points whose accuracies may be shown."""
        return tuple(point for point in self.points if point.accuracies)

    @property
    def fitted(self) -> Law | None:
        """The law, if the curve was measured."""
        return None if self.law is None else Law.model_validate(self.law)

    @property
    def predicted(self) -> HeldOut | None:
        """The check of the law at the largest number."""
        return None if self.held_out is None else HeldOut.model_validate(self.held_out)


class PlanDocument(Document):
    """How many clients a target takes, which epsilon, or which accuracy is to be expected."""

    KIND = "plan"
    OPERATOR_ONLY = ("performance.seconds", "error", *SEEDS)

    name: Annotated[str, CHECKED] = "unnamed"
    path: Annotated[str | None, Checked(str)] = None
    status: Annotated[str, CLOSED] = "finished"
    error: Annotated[str | None, CHECKED] = None
    scenario_digest: Annotated[str | None, Checked(str)] = None
    question: Annotated[Question, CHECKED]
    development: Annotated[Development, CHECKED]
    baseline: Annotated[Measured | None, Checked(Measured | None, optional=True)] = None
    baseline_of_half: Annotated[Measured | None, Checked(Measured | None, optional=True)] = None
    curves: Annotated[tuple[Curve, ...], Checked(Annotated[list[Curve], Field(max_length=3)])] = ()
    operator_only: Raw = None
    notes: tuple[str, ...] = ()
    performance: Annotated[Performance | None, Checked(Performance)] = None

    @property
    def every_guarantee(self) -> list[Guarantee]:
        """The guarantees of runs as planned, under all trust models."""
        return [g for curve in self.curves for g in curve.guarantees]
