"""The document of one federated run."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator

from fedprivacy.documents.cell import Ablated, Cell
from fedprivacy.documents.envelope import STATUS, TABLE, Document, Performance
from fedprivacy.documents.guarantee import Privacy
from fedprivacy.documents.headline import read_headline
from fedprivacy.documents.ledger import TrainingLedger
from fedprivacy.documents.quality import (
    ClassAccuracy,
    ColumnGroups,
    Exposure,
    Measures,
    PersonalAccuracies,
    UserAccuracies,
)
from fedprivacy.documents.redaction import SEEDS
from fedprivacy.io.document_part import CHECKED, Amount, Checked, Count, Number, Part, Raw, Texts


class Round(Part):
    """One round, a line of events.jsonl; accuracy and loss are null where nothing was evaluated.

    `score` is the primary metric of a model that predicts no classes; then accuracy is null.

    The counts depend on the data and are the operator's: a page is made without them. A void round, whose
    survivors were too few for a secure sum, shows that much of who dropped out; its reason shows more, and is
    the operator's.
    """

    round: Annotated[int | None, Checked(Count)] = None
    cohort: Annotated[int | None, Checked(Count)] = None
    accuracy: Annotated[float | None, Checked(Number | None)] = None
    score: Annotated[float | None, Checked(Number | None, optional=True)] = None
    loss: Annotated[float | None, Checked(Number | None)] = None
    balanced_accuracy: Annotated[float | None, Checked(Number | None, optional=True)] = None
    seconds: Annotated[float | None, Checked(Amount)] = None
    zeroed: int | None = None
    failures: Annotated[int | None, Checked(Count)] = None
    refusals: Annotated[int | None, Checked(Count)] = None
    faults: Annotated[dict[str, int] | None, Checked(dict[str, int])] = None
    contributed: Annotated[int | None, CHECKED] = None
    public_loss: Annotated[float | None, Checked(Number | None, optional=True)] = None
    clipping_norm: Annotated[
        float | None,
        Checked(Annotated[float, Field(gt=0, allow_inf_nan=False)] | None, optional=True),
    ] = None
    first_failure: str | None = None
    void: Annotated[bool | None, Checked(bool, optional=True)] = None
    void_reason: Annotated[str | None, Checked(str, optional=True)] = None

    @model_validator(mode="before")
    @classmethod
    def _headline(cls, value: Any) -> Any:
        return read_headline(value)


class Final(Part):
    """The last evaluation; the other figures are those of the final model of a finished run.

    No noise protects `personal`: it is the operator's, unless everybody may see the clients' records.
    """

    accuracy: Annotated[float | None, Checked(Number | None)] = None
    score: Annotated[float | None, Checked(Number | None, optional=True)] = None
    loss: Annotated[float | None, Checked(Number | None)] = None
    per_class: tuple[ClassAccuracy, ...] | None = None
    measures: Measures | None = None
    groups: Annotated[tuple[ColumnGroups, ...], Field(max_length=100)] = ()
    users: UserAccuracies | None = None
    personal: Annotated[PersonalAccuracies | None, Checked(PersonalAccuracies, optional=True)] = None
    exposure: Annotated[Exposure | None, Checked(Exposure | None, optional=True)] = None

    @model_validator(mode="before")
    @classmethod
    def _headline(cls, value: Any) -> Any:
        return read_headline(value)


class Limits(Part):
    """The ablations of a run, which are a comparison below its folder."""

    folder: Annotated[str, CHECKED]
    limiting: str | None = None
    planned: Cell | None = None
    variants: tuple[Ablated, ...] = ()


class RunDocument(Document):
    """A federated run."""

    KIND = "run"
    OPERATOR_ONLY = (  # speed is here since it gives away the cohorts
        *(
            f"rounds[].{key}"
            for key in ("cohort", "zeroed", "failures", "refusals", "first_failure", "seconds")
        ),
        *("rounds[].faults", "rounds[].contributed", "rounds[].void_reason", "estimate", "dealing"),
        "performance.clients_per_second",
        "performance.seconds",
        "error",
        *SEEDS,
    )

    name: Annotated[str, CHECKED] = "unnamed"
    path: Annotated[str | None, Checked(str)] = None
    status: Annotated[str, STATUS] = "finished"
    error: Annotated[str | None, CHECKED] = None
    scenario_digest: Annotated[str | None, Checked(str)] = None
    noise_key: str | None = None
    randomness: Annotated[dict[str, str], CHECKED] = Field(default_factory=dict)
    plan: Annotated[Raw, TABLE] = None
    dealing: Raw = None
    rounds: Annotated[tuple[Round, ...], Checked(Annotated[list[Round], Field(max_length=10**6)])] = ()
    metric: Annotated[str | None, Checked(str, optional=True)] = None
    final: Annotated[Final | None, Checked(Final)] = None
    privacy: Annotated[Privacy, CHECKED] = Privacy()
    ledger: Annotated[Raw, Checked(TrainingLedger)] = None
    operator_only: Raw = None
    limits: Annotated[Limits | None, Checked(Limits | None, optional=True)] = None
    estimate: Annotated[Raw, TABLE] = None
    notes: Annotated[tuple[str, ...], Checked(Texts)] = ()
    performance: Annotated[Performance | None, Checked(Performance)] = None


class ResumableRun(RunDocument):
    """A run that can be resumed: verification needs fields that a page does not."""

    command: Annotated[str | None, Checked(str)] = None
    started: Annotated[str | None, Checked(str)] = None
    noise_key: Annotated[str | None, Checked(str)] = None
    versions: Annotated[dict[str, Any], Checked(dict[str, str])] = Field(default_factory=dict)
