"""The fields of result documents that an epsilon is accounted for again from, and how many there may be.

They are checked (`fields.check`) before anything is computed. A document has more, which `report.reading`
checks where it is printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from fedprivacy.fields import Fields, check

# Each claim and each group is one question to an accountant, which takes up to seconds to answer.
Number = Annotated[float, Field(allow_inf_nan=False)]
Texts = Annotated[list[str], Field(min_length=1, max_length=100)]


def _inside(name: str) -> str:
    """A folder below that of the comparison."""
    path = PurePath(name)
    if path.is_absolute() or ".." in path.parts or "\0" in name:
        raise ValueError("it leads out of the folder")
    return name


def _once(names: list[str]) -> list[str]:
    if len(set(names)) < len(names):
        raise ValueError("a run is named twice")
    return names


class Claim(Fields):
    """What one observer was shown; null where nothing protects from it."""

    observer: str
    event: dict[str, Any] | None
    assumptions: Texts


class Group(Fields):
    """Clients whose records have cost the same."""

    clients: Annotated[int, Field(ge=0)]
    answers: int
    records: int | None
    event: dict[str, Any]


class Ledger(Fields):
    """What was released to whom (`accounting.ledger`)."""

    trust: str
    unit: str
    adjacency: str
    delta: Number | None
    population: Annotated[int, Field(ge=0)]
    sampling: str
    rounds: Annotated[int, Field(ge=0)]
    claims: Annotated[list[Claim], Field(max_length=12)]
    clients: Annotated[list[Group], Field(max_length=64)] | None = None
    of: str = "training"


class Guarantee(Fields):
    """What is stated against one observer."""

    observer: str
    epsilon: Number | None


class Share(Fields):
    """What the records of a group have cost."""

    epsilon: Number
    clients: int
    answers: int
    records: int | None


class PerClient(Fields):
    """What is stated of single clients."""

    largest: Number
    median: Number
    groups: Annotated[list[Share], Field(max_length=64)]


Guarantees = Annotated[list[Guarantee], Field(max_length=12)]


class Privacy(Fields):
    """What a run states."""

    guarantees: Guarantees
    per_client: PerClient | None = None


class Run(Fields):
    """A run that trained."""

    privacy: Privacy
    ledger: Ledger


class Held(Ledger):
    """A ledger that can be gone on with."""

    held: bool
    least_shares: Annotated[int, Field(ge=0)] | None
    participations: dict[Annotated[str, Field(pattern="^[0-9]{1,9}$")], int] = Field(default_factory=dict)


class Performance(Fields):
    """How long it took."""

    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Resumable(Run):
    """A run that can be gone on with."""

    status: str
    command: str
    started: str
    noise_key: str
    scenario_digest: str
    plan: dict[str, Any]
    ledger: Held
    performance: Performance
    versions: dict[str, str]


class Event(Fields):
    """A round."""

    round: Annotated[int, Field(ge=0)]
    cohort: Annotated[int, Field(ge=0)]
    accuracy: Number | None
    loss: Number | None
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    public_loss: Number | None = None
    clipping_norm: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None


class Shuffled(Fields):
    """What a shuffler would make of a plan."""

    epsilon: Number


class StatisticsPrivacy(Privacy):
    """What a run of statistics states."""

    epsilon: Number | None
    shuffled: Shuffled | None = None


class Told(Fields):
    """The mechanism of a query."""

    epsilon: Number


class Ask(Fields):
    """A query."""

    mechanism: Told | None


class StatisticsPlan(Fields):
    """What was asked for."""

    population: int
    delta: Number
    asks: Annotated[list[Ask], Field(max_length=10_000)]


class Asked(Fields):
    """The part of a scenario of statistics that names a budget."""

    privacy: dict[str, Any]


class StatisticsRun(Fields):
    """A run of statistics."""

    privacy: StatisticsPrivacy
    ledger: Ledger
    plan: StatisticsPlan
    scenario: Asked


class Cell(Fields):
    """A cell of a comparison, whose runs lie in its folder."""

    trust: str
    guarantees: Guarantees
    runs: Annotated[
        list[Annotated[str, AfterValidator(_inside)]], Field(max_length=10_000), AfterValidator(_once)
    ]
    unit: str | None = None


class Comparison(Fields):
    """Trust models side by side."""

    cells: Annotated[list[Cell], Field(max_length=10_000)]
    variations: Annotated[list[Cell], Field(max_length=10_000)] = Field(default_factory=list)
    options: Annotated[list[Cell], Field(max_length=10_000)] = Field(default_factory=list)


class StatisticsCell(Fields):
    """A cell of a comparison of statistics."""

    trust: str
    clients: int
    epsilon: Number | None
    guarantees: Guarantees
    ledger: Ledger


class StatisticsComparison(Fields):
    """Statistics under each trust model."""

    cells: Annotated[list[StatisticsCell], Field(max_length=10_000)]


class Attack(Fields):
    """What an attack amounts to."""

    ledger: Annotated[int, Field(ge=0)]
    seat: str
    trust: str
    epsilon: Number | None
    guarantee: dict[str, Any]
    bound: dict[str, Any]
    mechanism: str | None = None


class TrustOf(Fields):
    """Whom clients trust."""

    trust: str


class Attacked(Fields):
    """The part of an attack scenario that a replay's ledgers must agree with."""

    privacy: TrustOf
    game: dict[str, Any]


class Replay(Fields):
    """Attacks on runs."""

    scenario: Attacked
    ledgers: Annotated[list[Ledger], Field(max_length=1000)]
    attacks: Annotated[list[Attack], Field(max_length=1000)]


class Fared(Fields):
    """How guesses fared."""

    made: Annotated[int, Field(ge=1, le=10**8)]
    right: Annotated[int, Field(ge=0, le=10**8)]


class Proved(Fields):
    """What guesses prove."""

    epsilon: Number
    ceiling: Number
    delta: Annotated[float, Field(ge=0, lt=1)]
    checks: Annotated[int, Field(ge=1, le=1000)]
    canaries: Annotated[int, Field(ge=1, le=10**9)]
    guesses: Annotated[list[Fared], Field(min_length=1, max_length=100)]


class Estimated(Fields):
    """What was estimated."""

    low: Number


class Observed(Fields):
    """What an audit says of one observer."""

    observer: str
    ledger: Annotated[int, Field(ge=0)]
    guarantee: dict[str, Any]
    one_run: Proved | None
    canary_clients: Estimated | None
    verdict: dict[str, Any]


class Audit(Fields):
    """A scenario's claims against what canaries show."""

    ledgers: Annotated[list[Ledger], Field(max_length=10_000)]
    observers: Annotated[list[Observed], Field(max_length=12)]
    refuted: bool


class Choice(Fields):
    """Which candidate was chosen."""

    candidate: Annotated[int, Field(ge=0)] | None


class Naive(Fields):
    """What the naive way would state."""

    guarantees: Guarantees
    ledger: Ledger


class Tune(Run):
    """A choice of settings, and its cost."""

    choice: Choice
    naive: Naive
    plans: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=1000)]
    tested: bool
    scenario: dict[str, Any]


class Seen(Fields):
    """What one observer of a private estimate was shown; null where no event says it."""

    observer: str
    event: dict[str, Any] | None


class EstimatedCell(Fields):
    """One approach at one epsilon and number of records."""

    kind: str
    epsilon: Number
    refused: str | None
    delta: Number | None = None
    claims: Annotated[list[Seen], Field(max_length=12)] | None = None
    guarantees: Annotated[list[dict[str, Any]], Field(max_length=12)]


class Estimates(Fields):
    """A study of private estimates."""

    cells: Annotated[list[EstimatedCell], Field(max_length=10_000)]
    scenario: dict[str, Any]


KINDS: Mapping[str, type[Fields]] = {
    "run": Run,
    "statistics": StatisticsRun,
    "compare": Comparison,
    "compare-statistics": StatisticsComparison,
    "replay": Replay,
    "audit": Audit,
    "tune": Tune,
    "erm": Estimates,
}


def check_fields(document: Mapping[str, Any], where: str) -> None:
    """That what is accounted for again is there, and of its kind.

    Raises:
        InputError: it is not; or the document is of no kind that there is.
    """
    kind = document.get("kind")
    known = KINDS.get(kind) if isinstance(kind, str) else None
    check(document, known or NamesAKind, where)


def _known(kind: str) -> str:
    if kind not in KINDS:
        raise ValueError(f"{kind[:40]!r} is none of {', '.join(KINDS)}")
    return kind


class NamesAKind(Fields):
    """A document that says what it is."""

    kind: Annotated[str, AfterValidator(_known)]
