"""Schema of the fields needed to recompute epsilon from a stored result, with size limits.

They are checked (`fields.check`) before anything is computed. A document has more, which `report.reading`
checks where it is printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from fedprivacy.io.folder import is_below
from fedprivacy.io.validation import Fields, check

# Each claim and each group is one question to an accountant, which takes up to seconds to answer.
Number = Annotated[float, Field(allow_inf_nan=False)]
Status = Annotated[str, Field(pattern="^(running|finished|interrupted|failed)$")]
Texts = Annotated[list[str], Field(min_length=1, max_length=100)]


def _inside(name: str) -> str:
    """A folder below that of the comparison."""
    if not is_below(name):
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
    completed: Ledger | None = None


class Sizes(Fields):
    """How many records clients have."""

    smallest: int
    median: int
    largest: int


class Held(Ledger):
    """A ledger that can be gone on with."""

    held: bool
    records_per_client: Sizes | None = None
    least_shares: Annotated[int, Field(ge=0)] | None
    participations: dict[Annotated[str, Field(pattern="^[0-9]{1,9}$")], int] = Field(default_factory=dict)
    completed: Held | None = None


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


class Completed(Fields):
    """What a run that stopped early states of the rounds that completed."""

    rounds: Annotated[int, Field(ge=0)]
    guarantees: Guarantees


class Privacy(Fields):
    """What a run states."""

    guarantees: Guarantees
    completed: Completed | None = None
    per_client: PerClient | None = None


class Considered(Fields):
    """A mechanism that was considered."""

    mechanism: str
    noise: str | None
    chosen: bool


class TrainingPrivacy(Privacy):
    """What a run that trained states."""

    records_per_client: Sizes | None = None
    candidates: Annotated[list[Considered], Field(max_length=20)] | None = None


class Event(Fields):
    """A round."""

    round: Annotated[int, Field(ge=0)]
    cohort: Annotated[int, Field(ge=0)]
    failures: Annotated[int, Field(ge=0)]
    refusals: Annotated[int, Field(ge=0)]
    faults: dict[str, int]
    contributed: int | None
    accuracy: Number | None
    loss: Number | None
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    public_loss: Number | None = None
    clipping_norm: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None


class Performance(Fields):
    """How long it took, and how much memory."""

    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    peak_memory_mb: Number


class Final(Fields):
    """How good a model is."""

    accuracy: Number | None
    loss: Number | None


class Trained(Fields):
    """A guarantee of training, and what it is accounted from."""

    privacy: Privacy
    ledger: Held


class Run(Trained):
    """A run that trained."""

    privacy: TrainingPrivacy
    name: str
    path: str
    status: Status
    error: str | None
    scenario: dict[str, Any]
    scenario_digest: str
    randomness: dict[str, str]
    plan: dict[str, Any]
    rounds: Annotated[list[Event], Field(max_length=10**6)]
    notes: Texts
    final: Final
    performance: Performance
    estimate: dict[str, Any]


class Resumable(Run):
    """A run that can be gone on with."""

    command: str
    started: str
    noise_key: str
    versions: dict[str, str]


class StatisticsPrivacy(Privacy):
    """What a run of statistics states."""

    epsilon: Number | None


class StatisticsPlan(Fields):
    """What was asked for."""

    population: Annotated[int, Field(ge=1)]


class StatisticsLedger(Ledger):
    """What a run of statistics released to whom."""

    held: bool


class StatisticsRun(Fields):
    """A run of statistics."""

    status: Status
    error: str | None
    privacy: StatisticsPrivacy
    ledger: StatisticsLedger
    plan: StatisticsPlan
    scenario: dict[str, Any]
    randomness: dict[str, Any]
    queries: Annotated[list[dict[str, Any]], Field(max_length=10_000)]


class Interval(Fields):
    """A mean over seeds, with its interval."""

    mean: Number
    low: Number | None
    high: Number | None


class Cell(Fields):
    """A cell of a comparison, whose runs lie in its folder."""

    trust: str
    epsilon: Number | None
    asked: str | None
    accuracy: Interval
    candidates: Annotated[list[Considered], Field(max_length=20)] | None
    guarantees: Guarantees
    runs: Annotated[
        list[Annotated[str, AfterValidator(_inside)]], Field(max_length=10_000), AfterValidator(_once)
    ]
    unit: str


class Comparison(Fields):
    """Trust models side by side."""

    name: str
    path: str
    status: Annotated[str, Field(pattern="^(finished|interrupted|failed)$")]
    error: str | None
    scenario: dict[str, Any]
    scenario_digest: str
    finding: str
    performance: Performance
    cells: Annotated[list[Cell], Field(max_length=10_000)]
    variations: Annotated[list[Cell], Field(max_length=10_000)] = Field(default_factory=list)
    options: Annotated[list[Cell], Field(max_length=10_000)] = Field(default_factory=list)


class Mean(Fields):
    """A mean over repeats."""

    mean: Number


class Errors(Fields):
    """What the errors of a query were over the repeats."""

    name: str
    kind: str
    rmse: Number | None
    told: Number | None
    right: Number | None
    measure: str
    error: Mean | None
    bound: dict[str, Any] | None
    answer: dict[str, Any]


class StatisticsCell(Fields):
    """A cell of a comparison of statistics."""

    trust: str
    asked: str | None
    clients: Annotated[int, Field(ge=1)]
    epsilon: Number | None
    guarantees: Guarantees
    ledger: Ledger
    repeats: Annotated[int, Field(ge=1)]
    queries: Annotated[list[Errors], Field(max_length=10_000)]


class StatisticsComparison(Fields):
    """Statistics under each trust model."""

    status: Status
    error: str | None
    cells: Annotated[list[StatisticsCell], Field(max_length=10_000)]
    scenario: dict[str, Any]


class Point(Fields):
    """Who is called a member at one threshold of one run."""

    hits: Annotated[int, Field(ge=0, le=10**9)]
    members: Annotated[int, Field(ge=1, le=10**9)]
    alarms: Annotated[int, Field(ge=0, le=10**9)]
    nonmembers: Annotated[int, Field(ge=1, le=10**9)]


Points = Annotated[
    dict[str, Annotated[list[Point], Field(min_length=1, max_length=10_000)]], Field(max_length=100)
]


class Learned(Fields):
    """The figures of a score that was learned."""

    points: Points | None = None


class Guessed(Fields):
    """How guesses fared, of so many coins."""

    trials: Annotated[int, Field(ge=1, le=10**8)]
    made: Annotated[int, Field(ge=1, le=10**8)]
    right: Annotated[int, Field(ge=0, le=10**8)]


class Empirical(Fields):
    """What guesses prove, or why they prove nothing."""

    reason: str | None = None
    guesses: Guessed | None = None


class Attack(Fields):
    """What an attack amounts to."""

    name: str
    ledger: Annotated[int, Field(ge=0)]
    seat: str
    guarantee: dict[str, Any]
    bound: dict[str, Any]
    points: Points
    supervised: Learned | None = None
    epsilon_lower_bound: Number | None
    empirical_epsilon: Empirical
    seeds: Annotated[int, Field(ge=1)]


class PlayedArm(Fields):
    """An arm of a game."""

    ledger: Annotated[int, Field(ge=0)]
    seeds: Annotated[int, Field(ge=1)]


class Replay(Fields):
    """Attacks on runs."""

    name: str
    status: Status
    error: str | None
    scenario: dict[str, Any]
    plans: Annotated[list[dict[str, Any]], Field(max_length=1000)]
    ledgers: Annotated[list[Ledger], Field(max_length=1000)]
    attacks: Annotated[list[Attack], Field(max_length=1000)]
    arms: Annotated[list[PlayedArm], Field(max_length=1000)] = Field(default_factory=list)


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


class IfGaussian(Fields):
    """What scores prove if the mechanism is Gaussian."""

    epsilon: Number
    expected: Number


class ScoresOfCoin(Fields):
    """The moments of some scores."""

    count: Annotated[int, Field(ge=0, le=10**9)]
    mean: Number
    variance: Annotated[float, Field(ge=0, allow_inf_nan=False)]


class ScoresOfCoins(Fields):
    """The moments of the scores of both coins."""

    present: ScoresOfCoin
    absent: ScoresOfCoin


class Compared(Fields):
    """What neighbouring data changed."""

    clients: Annotated[int, Field(ge=1, le=10**9)]
    records: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=2, max_length=100)]
    allowed: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    distance: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    others: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    changed: Annotated[int, Field(ge=0)]


class Observed(Fields):
    """What an audit says of one observer."""

    observer: str
    ledger: Annotated[int, Field(ge=0)]
    guarantee: dict[str, Any]
    one_run: Proved | None
    if_gaussian: IfGaussian | None
    canary_clients: Estimated | None
    scores: ScoresOfCoins
    verdict: dict[str, Any]


class Audited(Fields):
    """What was audited."""

    words: str
    method: Annotated[str, Field(pattern="^(one-run|canary-clients|both)$")]
    canaries: Annotated[int, Field(ge=10, le=100_000)]
    trials: Annotated[int, Field(ge=1, le=10_000)]
    neighbours: Compared | None


class Audit(Fields):
    """A scenario's claims against what canaries show."""

    name: str
    scenario: dict[str, Any]
    plan: dict[str, Any]
    audited: Audited
    ledgers: Annotated[list[Held], Field(min_length=1, max_length=10_000)]
    observers: Annotated[list[Observed], Field(max_length=12)]
    refuted: bool


class Choice(Fields):
    """Which candidate was chosen."""

    candidate: Annotated[int, Field(ge=0)] | None
    settings: dict[str, Any]
    accuracy: Number | None
    score: Number | None
    clients: int


class TuneCandidate(Fields):
    """One of those to choose from."""

    settings: dict[str, Any]
    public_accuracy: Number | None


class Naive(Fields):
    """What the naive way would state."""

    guarantees: Guarantees
    ledger: Ledger


class Tune(Trained):
    """A choice of settings, and its cost."""

    name: str
    path: str
    status: Annotated[str, Field(pattern="^finished$")]
    error: None
    scenario_digest: str
    performance: Performance
    choice: Choice
    candidates: Annotated[list[TuneCandidate], Field(min_length=1, max_length=1000)]
    naive: Naive
    plans: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=1000)]
    tested: bool
    scenario: dict[str, Any]


class Coordinate(Fields):
    """One coordinate of an exact minimum."""

    value: Number


class Minimum(Fields):
    """The exact minimum over so many records."""

    records: Annotated[int, Field(ge=1)]
    theta: Annotated[list[Coordinate], Field(max_length=1000)]


class EstimatedCell(Fields):
    """One approach at one epsilon and number of records."""

    approach: str
    epsilon: Number
    records: Annotated[int, Field(ge=1)]
    refused: str | None
    excess: Mean | None = None
    present: Annotated[int, Field(ge=1)] | None = None
    absent: Annotated[int, Field(ge=0)] | None = None
    first_absence: str | None = None


class Drawn(Fields):
    """The objective over a plane, with the path of one estimate."""

    approach: str


class Estimates(Fields):
    """A study of private estimates."""

    status: Status
    error: str | None
    cells: Annotated[list[EstimatedCell], Field(max_length=10_000)]
    exact: Annotated[list[Minimum], Field(max_length=10_000)]
    surface: Drawn | None = None
    randomness: dict[str, Any]
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
