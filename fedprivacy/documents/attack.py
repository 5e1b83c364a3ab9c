"""The pieces of a replay document: figures, curves, histograms, stories, bounds, verdict, attacks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from fedprivacy.documents.cell import Figures
from fedprivacy.documents.roc import Curve, Rate
from fedprivacy.guarantees.statement import Guarantee
from fedprivacy.io.document_part import CHECKED, IF_THERE, Checked, Number, Part, Raw
from fedprivacy.io.validation import Fields
from fedprivacy.mechanisms.catalogue import ClipOnly

Real = Annotated[float, Field(gt=-1e300, lt=1e300, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, le=10**12)]

SEATS = ("server", "participant", "outsider")
# An observer that sees more can run the attacks of one that sees less: final model, global models, updates.
SEES_LESS = {"server": SEATS, "participant": SEATS[1:], "outsider": SEATS[2:]}
CLIPPED: Literal["clipped"] = "clipped"
Level = float | Literal["clipped"] | None  # an epsilon, clipping alone, no privacy


class Measure(Part):
    """A figure between -1 and 1 with its 95 % interval; `covers` names the covered chance."""

    value: float = Field(ge=-1, le=1, allow_inf_nan=False)
    low: float = Field(ge=-1, le=1, allow_inf_nan=False)
    high: float = Field(ge=-1, le=1, allow_inf_nan=False)
    covers: str | None = None


class Histogram(Part):
    """The numbers of members and non-members with a score between two edges."""

    edges: tuple[Real, ...] = Field(min_length=2, max_length=1001)
    members: tuple[Count, ...]
    nonmembers: tuple[Count, ...]

    @model_validator(mode="after")
    def _between_edges(self) -> Histogram:
        if not len(self.edges) - 1 == len(self.members) == len(self.nonmembers):
            raise ValueError("members and nonmembers must have one count between every two edges")
        if any(later <= earlier for earlier, later in pairwise(self.edges)):
            raise ValueError("edges must rise")
        return self


class Story(Part):
    """The loss of a typical member and a typical non-member at each moment."""

    moments: tuple[str, ...] = Field(min_length=2, max_length=12)
    member: tuple[Real, ...]
    nonmember: tuple[Real, ...]

    @model_validator(mode="after")
    def _at_each_moment(self) -> Story:
        if not len(self.moments) == len(self.member) == len(self.nonmember):
            raise ValueError("member and nonmember must have one loss at each moment")
        return self

    @property
    def records(self) -> dict[str, Sequence[float]]:
        """The losses by kind of record, in words."""
        return {"Member": self.member, "Non-member": self.nonmember}


def _by_seed(value: Any) -> Any:
    """A list of stories, one for each seed: null, and the one alone of older documents, are lists too."""
    if value is None:
        return ()
    return [value] if isinstance(value, dict) else value


class Observed(Part):
    """Which rounds of training a passive attack looked at, counted from 1 since training began."""

    first: int = Field(ge=1, le=10**9)
    last: int = Field(ge=1, le=10**9)
    count: int = Field(ge=1, le=10**9)

    @model_validator(mode="after")
    def _in_order(self) -> Observed:
        if self.last < self.first:
            raise ValueError("last must not be before first")
        return self


class Verdict(Part):
    """Whether all attacks together agree with their bounds, corrected for their number.

    Args:
        words: The verdict in sentences, which name the refuted guarantees.
        refuted: The figures above their bounds; only whether there are any matters here.
        checks: The number of figures compared with a bound; with 0 there is no verdict.
    """

    words: str
    refuted: tuple[Any, ...] = ()
    checks: Count | None = None


class Bound(Part):
    """The most that any attack at one seat can reach; all null where nothing is guaranteed."""

    advantage: Rate | None = None
    balanced_accuracy: Rate | None = None
    auc: Rate | None = None
    tpr_at_fpr: dict[str, Rate] | None = None
    curve: Curve | None = None
    basis: str | None = None
    assumptions: tuple[str, ...] = ()


class ClassMeasure(Part):
    """The separation of one class's members; null for too few records."""

    auc: Measure | None = None
    members: Count = 0
    nonmembers: Count = 0


class ModelAccuracy(Part):
    """The attacked model's accuracy on held-out records; of a released model on its own records too."""

    before: Rate | None = None
    after: Rate | None = None
    train: Rate | None = None


class Guesses(Fields):
    """How guesses fared, of so many coins; of the documents, to verify `Empirical` alone."""

    trials: Annotated[int, Field(ge=1, le=10**8)]
    made: Annotated[int, Field(ge=1, le=10**8)]
    right: Annotated[int, Field(ge=0, le=10**8)]


class Point(Fields):
    """The records classified as members at one threshold of one run; figures are verified by these counts."""

    hits: Annotated[int, Field(ge=0, le=10**9)]
    members: Annotated[int, Field(ge=1, le=10**9)]
    alarms: Annotated[int, Field(ge=0, le=10**9)]
    nonmembers: Annotated[int, Field(ge=1, le=10**9)]

    @model_validator(mode="after")
    def _of_them(self) -> Point:
        if self.hits > self.members or self.alarms > self.nonmembers:
            raise ValueError("has more hits than members, or more alarms than nonmembers")
        return self


Points = Annotated[
    dict[str, Annotated[list[Point], Field(min_length=1, max_length=10_000)]], Field(max_length=100)
]
Repeated = Annotated[int, Field(ge=1)]
Index = Annotated[int, Field(ge=0)]


class Empirical(Part):
    """A proved lower bound on epsilon, or the reason for none."""

    reason: Annotated[str | None, IF_THERE] = None
    guesses: Annotated[Raw, Checked(Guesses | None, optional=True)] = None
    epsilon: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    ceiling: float | None = None
    confidence: float | None = None
    method: str | None = None


def level_of(epsilon: float | None, mechanism: str | None) -> Level:
    """The privacy of a run: its epsilon, clipping alone, which has none, or None."""
    return CLIPPED if epsilon is None and mechanism == ClipOnly.name else epsilon


class ArmAccuracy(Part):
    """The accuracy of the trained models of an arm, with its interval over runs."""

    train: Figures = Figures()
    test: Figures = Figures()


class Contender(Part):
    """An attack, by its chosen scores or learned from all of them, and in how many folds it was strongest."""

    name: Annotated[str, CHECKED]
    seat: Annotated[str, CHECKED]
    supervised: Annotated[bool, CHECKED] = False
    folds: Annotated[Count, Checked(Count)] = 0


class Strongest(Part):
    """The figures of the strongest attack at a seat, which is chosen for each fold on the others."""

    attacks: Annotated[tuple[Contender, ...], CHECKED] = Field(min_length=1)
    auc: Measure
    balanced_accuracy: Measure | None = None
    advantage: Measure | None = None
    tpr_at_fpr: dict[str, Measure | None] = Field(default_factory=dict)


class ArmResult(Part):
    """One arm of a game at one epsilon.

    Args:
        arm: Its name.
        trust: Its trust model.
        mechanism: The mechanism on updates, or gradients.
        unit: The unit of privacy.
        adjacency: From which change.
        epsilon: The requested epsilon; null without.
        seeds: How many runs were trained.
        rounds: That were planned before attacks begin.
        rounds_played: By run; early stopping may end it before.
        accuracy: Of their models.
        guarantees: Against each observer.
        bounds: By seat, the most that any attack can reach.
        skipped: By name, why an attack cannot be had.
        strongest: By seat, the strongest attack; a seat without attacks is missing.
    """

    arm: str
    trust: str
    mechanism: str | None = None
    unit: str | None = None
    adjacency: str | None = None
    epsilon: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)] | None = None
    ledger: Annotated[Raw, Checked(Index)] = None
    rounds: Count | None = None
    guarantees: tuple[Guarantee, ...] = ()
    bounds: dict[str, Bound] = Field(default_factory=dict)
    skipped: dict[str, str] = Field(default_factory=dict)
    rounds_played: tuple[Count, ...] = ()
    seeds: Annotated[Count, Checked(Repeated)] = 1
    accuracy: ArmAccuracy = ArmAccuracy()
    accuracies: Raw = None
    strongest: Annotated[dict[str, Strongest], IF_THERE] = Field(default_factory=dict)

    @property
    def level(self) -> Level:
        """The privacy of its runs."""
        return level_of(self.epsilon, self.mechanism)

    def against(self, seat: str) -> Guarantee | None:
        """The guarantee against a seat, if any."""
        return next(
            (guarantee for guarantee in self.guarantees if guarantee.observer == seat and guarantee.holds),
            None,
        )


class Supervised(Part):
    """The result of a logistic regression on all scores of an attack."""

    auc: Measure
    balanced_accuracy: Measure | None = None
    advantage: Measure | None = None
    tpr_at_fpr: dict[str, Measure | None] = Field(default_factory=dict)
    points: Annotated[Raw, Checked(Points | None, optional=True)] = None


class Attack(Part):
    """One attack: its seat, its actions, and its results.

    The same name occurs once for each level of privacy of the attacked runs. `score` has the chosen score of
    each fold of each run, and `single_score` that of each run whose counts are `points`.
    """

    observed: Observed | None = None
    rounds_refused: Raw = None
    targets_lost: Count = 0
    members: Count | None = None
    nonmembers: Count | None = None
    folds: Annotated[Count | None, Checked(Count)] = None
    fitted: Raw = None
    seeds: Annotated[Count, Checked(Repeated)] = 1
    auc: Measure
    balanced_accuracy: Measure | None = None
    advantage: Measure | None = None
    tpr_at_fpr: dict[str, Measure | None] = Field(default_factory=dict)
    points: Annotated[Raw, Checked(Points)] = None
    per_class: dict[str, ClassMeasure] = Field(default_factory=dict)
    thresholds: Raw = None
    roc: tuple[Curve, ...] = ()
    epsilon_lower_bound: Annotated[Raw, Checked(Number | None)] = None
    empirical_epsilon: Annotated[Empirical | None, Checked(Empirical)] = None
    bound: Annotated[Bound, Checked(dict[str, Any])] = Bound()
    name: Annotated[str, CHECKED] = "attack"
    arm: str = ""
    attack: str = ""
    seat: Annotated[str, CHECKED]
    isolating: bool = False
    clients_in_sum: Annotated[Count | None, IF_THERE] = None
    trust: str | None = None
    mechanism: str | None = None
    epsilon: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)] | None = None
    ledger: Annotated[Raw, Checked(Index)] = None
    targets_per_round: int | None = None
    trap_units: Annotated[Count | None, IF_THERE] = None
    raw: Annotated[bool, IF_THERE] = False
    everybody: Annotated[bool, IF_THERE] = False
    rounds: int | None = None
    guarantee: Annotated[Guarantee | None, Checked(dict[str, Any])] = None
    score: Annotated[tuple[str, ...], CHECKED] = ()
    single_score: Annotated[tuple[str, ...], CHECKED] = ()
    supervised: Annotated[Supervised | None, IF_THERE] = None
    scores: dict[str, Measure] = Field(default_factory=dict)
    histograms: tuple[Histogram, ...] = ()
    stories: Annotated[
        tuple[Story, ...], BeforeValidator(_by_seed, json_schema_input_type=tuple[Story, ...] | Story | None)
    ] = Field((), alias="story")
    blind: Measure | None = None
    model_accuracy: ModelAccuracy = ModelAccuracy()
    seconds: Raw = None

    @model_validator(mode="before")
    @classmethod
    def _by_folds(cls, value: Any) -> Any:
        if isinstance(value, dict) and "calibration_auc" in value:
            raise ValueError("an earlier version measured it, on half of the targets")
        return value

    @property
    def level(self) -> Level:
        """The privacy of the attacked run: its epsilon, clipping alone, which has none, or None."""
        return level_of(self.epsilon, self.mechanism)

    @property
    def lacks_epsilon(self) -> bool:
        """Whether the attacked run has privacy without a target epsilon."""
        return self.epsilon is None and self.trust not in (None, "none")
