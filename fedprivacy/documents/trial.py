"""The piece of a replay document about one attack in trials."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from fedprivacy.documents.attack import Index, Level, Measure, ModelAccuracy, Repeated, level_of
from fedprivacy.documents.roc import Rate
from fedprivacy.guarantees.statement import Guarantee
from fedprivacy.io.document_part import CHECKED, Checked, Part, Raw
from fedprivacy.io.validation import Fields


class TrialCounts(Fields):
    """The successes of one run, and those without the attack; rates are verified by these counts."""

    successes: Annotated[int, Field(ge=0, le=10**9)]
    trials: Annotated[int, Field(ge=1, le=10**9)]
    without: Annotated[int | None, Field(ge=0, le=10**9)] = None
    scored_again: Annotated[str | None, Field(pattern="^[0-9a-f]{32}$")] = None  # the transcript's name


Digits = Annotated[str, Field(pattern="^[0-9a-f]+$", max_length=3 * 512**2)]
Decibels = Annotated[float, Field(ge=-1000, le=1000, allow_inf_nan=False)]
Finite = Annotated[float, Field(gt=-1e9, lt=1e9, allow_inf_nan=False)]
Runs = Annotated[list[TrialCounts], Field(min_length=1, max_length=10_000)]


class TrialBound(Part):
    """The most that any attack of this kind can reach at its seat; `success` is null without a guarantee."""

    success: Rate | None = None
    figures: dict[str, Rate] = Field(default_factory=dict)
    floors: dict[str, Rate] = Field(default_factory=dict)
    basis: str | None = None
    provided: str = ""
    assumptions: tuple[str, ...] = ()


class Unattacked(Part):
    """The same trials without the attack: how often what it is after happens by itself, and the figures."""

    success: Annotated[Measure, CHECKED]
    figures: Annotated[dict[str, Measure], CHECKED] = Field(default_factory=dict)


class Rebuilt(Part):
    """A record beside what an attacker made of it; a hexadecimal digit for each channel of a pixel."""

    side: Annotated[int, Field(ge=1, le=512)]
    channels: Literal[1, 3]
    original: Digits
    rebuilt: Digits
    wrong: Digits
    psnr: Decibels
    wrong_psnr: Decibels

    @model_validator(mode="after")
    def _are_whole(self) -> Rebuilt:
        pixels = self.side**2 * self.channels
        if {len(self.original), len(self.rebuilt), len(self.wrong)} != {pixels}:
            raise ValueError(f"a picture must have {pixels} digits")
        return self


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
    comparison: str = "guessing succeeds"
    chance: Rate
    without: Annotated[Unattacked | None, Checked(dict[str, Any], optional=True)] = None
    bound: Annotated[TrialBound, Checked(dict[str, Any])] = TrialBound()
    figures: dict[str, Measure] = Field(default_factory=dict)
    model_accuracy: ModelAccuracy = ModelAccuracy()
    numbers: dict[str, Finite] = Field(default_factory=dict)
    pictures: tuple[Rebuilt, ...] = Field((), max_length=100)  # the operator's
    public_pictures: tuple[Rebuilt, ...] = Field((), max_length=100)  # of records that are public
    seconds: Raw = None

    @property
    def level(self) -> Level:
        """The privacy of the attacked run: its epsilon, clipping alone, which has none, or None."""
        return level_of(self.epsilon, self.mechanism)

    @property
    def lacks_epsilon(self) -> bool:
        """Whether the attacked run has privacy without a target epsilon."""
        return self.epsilon is None and self.trust not in (None, "none")
