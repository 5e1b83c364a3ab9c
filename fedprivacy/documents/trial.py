"""The piece of a replay document about one attack in trials."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from fedprivacy.documents.attack import Index, Level, Measure, Repeated, level_of
from fedprivacy.documents.roc import Rate
from fedprivacy.guarantees.statement import Guarantee
from fedprivacy.io.document_part import CHECKED, Checked, Part, Raw
from fedprivacy.io.validation import Fields


class TrialCounts(Fields):
    """The successes of one run; the rate is verified by these counts."""

    successes: Annotated[int, Field(ge=0, le=10**9)]
    trials: Annotated[int, Field(ge=1, le=10**9)]


Runs = Annotated[list[TrialCounts], Field(min_length=1, max_length=10_000)]


class TrialBound(Part):
    """The most that any attack of this kind can reach at its seat; `success` is null without a guarantee."""

    success: Rate | None = None
    figures: dict[str, Rate] = Field(default_factory=dict)
    basis: str | None = None
    assumptions: tuple[str, ...] = ()


class TrialResult(Part):
    """One attack in trials: its seat, its rate of success, chance and bound.

    The same name occurs once for each level of privacy of the attacked runs.
    """

    name: Annotated[str, CHECKED] = "attack"
    arm: str = ""
    attack: Annotated[str, CHECKED] = ""
    seat: Annotated[str, CHECKED]
    trust: str | None = None
    mechanism: str | None = None
    epsilon: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)] | None = None
    ledger: Annotated[Raw, Checked(Index)] = None
    rounds: int | None = None
    guarantee: Annotated[Guarantee | None, Checked(dict[str, Any])] = None
    seeds: Annotated[int, Checked(Repeated)] = 1
    means: str = ""
    runs: Annotated[Raw, Checked(Runs)] = None
    success: Annotated[Measure, Checked(dict[str, Any])]
    chance: Rate
    bound: Annotated[TrialBound, Checked(dict[str, Any])] = TrialBound()
    figures: dict[str, Measure] = Field(default_factory=dict)
    seconds: Raw = None

    @property
    def level(self) -> Level:
        """The privacy of the attacked run: its epsilon, clipping alone, which has none, or None."""
        return level_of(self.epsilon, self.mechanism)

    @property
    def lacks_epsilon(self) -> bool:
        """Whether the attacked run has privacy without a target epsilon."""
        return self.epsilon is None and self.trust not in (None, "none")
