"""The document of a choice of settings, and its cost."""

from __future__ import annotations

from typing import Annotated, Any

import scipy
from pydantic import Field

from fedprivacy.documents.envelope import Document, Performance
from fedprivacy.documents.guarantee import Guarantees, Privacy
from fedprivacy.documents.ledger import Ledger, TrainingLedger
from fedprivacy.documents.redaction import SEEDS
from fedprivacy.io.document_part import CHECKED, Checked, Count, Number, Part, Raw


class Choice(Part):
    """The chosen candidate."""

    candidate: Annotated[int | None, Checked(Count | None)] = Field(ge=0)
    accuracy: Annotated[float | None, Checked(Number | None)] = None
    score: Annotated[float | None, Checked(Number | None)] = None
    settings: Annotated[dict[str, Any], CHECKED]
    clients: Annotated[int, Checked(int)] = Field(ge=1)


class TuneCandidate(Part):
    """One of those to choose from; `public_records` are those that its public accuracy was measured on."""

    settings: Annotated[dict[str, Any], CHECKED]
    public_accuracy: Annotated[float | None, Checked(Number | None)] = None
    public_records: Annotated[int, Field(ge=1, le=10**12)] | None = None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval (Wilson) of the public accuracy over records; None in an older record."""
        accuracy, records = self.public_accuracy, self.public_records
        if accuracy is None or records is None or not 0 <= accuracy <= 1:
            return None
        ends = scipy.stats.binomtest(round(accuracy * records), records).proportion_ci(0.95, method="wilson")
        return float(ends.low), float(ends.high)


class Naive(Part):
    """The cost of the naive way."""

    ledger: Annotated[Raw, Checked(Ledger)] = None
    guarantees: Guarantees = ()


class TuneDocument(Document):
    """A choice of settings, and its cost."""

    KIND = "tune"
    # Fields about the unreleased tries, and about scores of clients that are not charged.
    OPERATOR_ONLY = ("tries", "performance.seconds", "error", *SEEDS)
    HEAD = ("name", "path", "seed", "status", "error", "command", "started", "versions", "scenario")

    name: Annotated[str, CHECKED] = "unnamed"
    path: Annotated[str | None, Checked(str)] = None
    status: Annotated[str, Checked(Annotated[str, Field(pattern="^finished$")])] = "finished"
    error: Annotated[str | None, Checked(type(None))] = None
    scenario_digest: Annotated[str | None, Checked(str)] = None
    choice: Annotated[Choice, CHECKED]
    candidates: Annotated[
        tuple[TuneCandidate, ...],
        Checked(Annotated[list[TuneCandidate], Field(min_length=1, max_length=1000)]),
    ] = ()
    tries: Raw = None
    plans: Annotated[Raw, Checked(Annotated[list[dict[str, Any]], Field(min_length=1, max_length=1000)])] = (
        None
    )
    tested: Annotated[Raw, Checked(bool)] = None
    ledger: Annotated[Raw, Checked(TrainingLedger)] = None
    privacy: Annotated[Privacy, CHECKED] = Privacy()
    naive: Annotated[Naive, CHECKED] = Naive()
    operator_only: Raw = None
    notes: tuple[str, ...] = ()
    performance: Annotated[Performance | None, Checked(Performance)] = None

    @property
    def method(self) -> str:
        """The method of the choice."""
        return str(self.setting("tune", "method") or "")
