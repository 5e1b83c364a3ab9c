"""The document of an audit: a scenario's claims against the bounds that canaries prove."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from fedprivacy.documents.envelope import TABLE, Document, Performance
from fedprivacy.documents.ledger import TrainingLedger
from fedprivacy.documents.redaction import SEEDS
from fedprivacy.guarantees.statement import Guarantee
from fedprivacy.io.document_part import CHECKED, Amount, Checked, Number, Part, Raw
from fedprivacy.io.validation import Fields


class Guesses(Fields):
    """How the guesses at one number of guesses fared."""

    made: Annotated[int, Field(ge=1, le=10**8)]
    right: Annotated[int, Field(ge=0, le=10**8)]


class Scores(Fields):
    """The moments of some scores."""

    count: Annotated[int, Field(ge=0, le=10**9)]
    mean: Number
    variance: Amount


class ScoresOfCoins(Fields):
    """The moments of the scores of both coins."""

    present: Scores
    absent: Scores


class Compared(Fields):
    """The change between neighbouring data sets."""

    clients: Annotated[int, Field(ge=1, le=10**9)]
    records: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=2, max_length=100)]
    allowed: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    distance: Amount
    others: Amount
    changed: Annotated[int, Field(ge=0)]


class Bound(Part):
    """The lower bound that guesses prove."""

    epsilon: Annotated[float, Checked(Number)] = Field(ge=0)
    ceiling: Annotated[float, Checked(Number)] = Field(ge=0)
    delta: Annotated[float, Checked(Annotated[float, Field(ge=0, lt=1)])]
    confidence: float
    checks: Annotated[int | None, Checked(Annotated[int, Field(ge=1, le=1000)])] = None
    canaries: Annotated[int, Checked(Annotated[int, Field(ge=1, le=10**9)])]
    guesses: Annotated[
        tuple[Guesses, ...], Checked(Annotated[list[Guesses], Field(min_length=1, max_length=100)])
    ] = ()


class IfGaussian(Part):
    """The bound of scores under Gaussian noise; half of true claims' audits prove `expected`."""

    epsilon: Annotated[float, Checked(Number)] = Field(ge=0)
    expected: Annotated[float, Checked(Number)] = Field(ge=0)
    confidence: float


class Estimate(Part):
    """The estimate for normal scores; no epsilon: above the reported range."""

    epsilon: float | None
    low: Annotated[float, Checked(Number)]
    high: float | None


class Verdict(Part):
    """The verdict on a claim; None: inconclusive."""

    holds: bool | None
    words: str


class Observer(Part):
    """The results of an audit for one observer."""

    observer: Annotated[str, CHECKED]
    ledger: Annotated[Raw, Checked(Annotated[int, Field(ge=0)])] = None
    scores: Annotated[Raw, Checked(ScoresOfCoins)] = None
    guarantee: Annotated[Guarantee, TABLE]
    one_run: Annotated[Bound | None, CHECKED] = None
    if_gaussian: Annotated[IfGaussian | None, CHECKED] = None
    canary_clients: Annotated[Estimate | None, CHECKED] = None
    verdict: Annotated[Verdict, TABLE]


class Audited(Part):
    """The audited scenario."""

    words: Annotated[str, CHECKED] = ""
    method: Annotated[Raw, Checked(Annotated[str, Field(pattern="^(one-run|canary-clients|both)$")])] = None
    canaries: Annotated[Raw, Checked(Annotated[int, Field(ge=10, le=100_000)])] = None
    trials: Annotated[Raw, Checked(Annotated[int, Field(ge=1, le=10_000)])] = None
    clients: Raw = None
    rounds: Raw = None
    noise_multiplier: Raw = None
    clipping_norm: Raw = None
    false_alarm: float
    neighbours: Annotated[Raw, Checked(Compared | None)] = None


class AuditDocument(Document):
    """A scenario's claims against the bounds that canaries prove."""

    KIND = "audit"
    OPERATOR_ONLY = ("performance.seconds", *SEEDS)
    HEAD = ("path", "name", "seed", "status", "command", "started", "versions", "scenario")

    name: Annotated[str, CHECKED] = "unnamed"
    audited: Annotated[Audited, CHECKED]
    plan: Annotated[Raw, TABLE] = None
    refuted: Annotated[Raw, Checked(bool)] = None
    observers: Annotated[tuple[Observer, ...], Checked(Annotated[list[Observer], Field(max_length=12)])] = ()
    ledgers: Annotated[
        Raw, Checked(Annotated[list[TrainingLedger], Field(min_length=1, max_length=10_000)])
    ] = None
    operator_only: Raw = None
    performance: Performance | None = None
