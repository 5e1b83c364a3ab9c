"""The sections that an attack scenario has beside those of its run."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from fedprivacy.scenario.base import Section
from fedprivacy.scenario.kinds import Kind
from fedprivacy.scenario.sections import Epsilon, no_repeats

# The attacks of `fedprivacy.attacks.released.battery`; a test compares these names with it.
Method = Literal[
    "lira",
    "lira-global",
    "rmia",
    "lira-offline",
    "rmia-offline",
    "shadow",
    "network-outputs",
    "network-gradients",
    "loss",
    "confidence",
    "entropy",
    "modified-entropy",
    "loss-by-class",
]


class GameSettings(Section):
    """The membership game: whose records are to be guessed, and how many."""

    victim: int = Field(0, ge=0, description="The client that is attacked, such as 0.")
    members: int = Field(100, ge=10, le=10**6, description="How many of its records are judged, such as 100.")
    nonmembers: int = Field(
        500, ge=10, le=10**6, description="How many records are judged that nobody trains on, such as 500."
    )
    warm_up: int | None = Field(
        None,
        ge=0,
        le=10**6,
        description="After how many rounds the attack begins; without it after server.rounds.",
        examples=[20],
    )
    repeats: int = Field(
        1, ge=1, le=1000, description="How many runs are attacked, each with a seed of its own, such as 3."
    )
    epsilons: Annotated[tuple[Epsilon, ...], AfterValidator(no_repeats)] = Field(
        (),
        strict=False,
        description="The game is run at each of these epsilons, such as [1.0, 8.0]; without any at "
        "privacy.epsilon.",
    )
    clipped: bool = Field(
        False,
        description="Whether it is run with clipping alone too: a heuristic, which has no epsilon.",
    )
    unprotected: bool = Field(False, description="Whether it is run without any privacy too.")
    transcripts: bool = Field(
        True, description="Whether what passive attackers see is stored, to be scored again without training."
    )


class _Attack(Section):
    seat: Literal["server", "participant"] = Field(
        "server", description="From where: the server sees each update, a participant the global models."
    )
    sees: Literal["updates", "sum"] = Field(
        "updates",
        description='What the server sees of a round: each update, or "sum", the sum of its clients alone.',
    )
    isolating: bool = Field(
        False, description="Whether the server gives the victim a stream of its own instead of the aggregate."
    )
    attacker: int | None = Field(
        None, ge=0, description="The client that attacks from a participant's seat.", examples=[1]
    )


class Passive(_Attack):
    """Observes the messages that an honest party would see."""

    kind: Literal["passive"]
    rounds: int = Field(20, ge=1, le=10**5, description="How many rounds are observed, such as 20.")
    skip: int = Field(
        0, ge=0, le=10**6, description="How many rounds go by before the first that is observed."
    )
    every: int = Field(1, ge=1, le=10**5, description="Of how many rounds one is observed, such as 5.")

    @property
    def watched(self) -> range:
        """The rounds that are observed; 0 is the first after the warm-up."""
        return range(self.skip, self.skip + self.rounds * self.every, self.every)

    def rounds_taken(self, targets: int) -> int:
        """The number of its rounds; a participant needs one more to see the last result."""
        return self.watched[-1] + 1 + (self.seat == "participant")


class Ascent(_Attack):
    """Raises the loss on targets and watches it being corrected."""

    kind: Literal["active-gradient-ascent"]
    targets_per_round: int = Field(
        1, ge=1, le=10**5, description="How many targets are attacked at once, such as 1."
    )
    level: Annotated[float, Field(gt=0, le=1000)] = Field(
        3.0, description="The loss that targets are raised to; with raw = true it has no effect."
    )
    raw: bool = Field(False, description="Instead one step of the gradient times `step`, as in the paper.")
    step: float = Field(
        0.1, gt=0, le=10**6, description="The length of a step; of a raw one the gradient's factor."
    )
    tries: int = Field(60, ge=1, le=10**5, description="The most steps to a level, such as 60.")
    everybody: bool = Field(
        False,
        description="Whether the server sends the raised weights to all clients, not to one.",
    )
    boost: float | None = Field(
        None,
        gt=0,
        le=10**6,
        description="By what a participant multiplies its ascent to survive averaging; else what the server "
        "divides by: the cohort's size.",
        examples=[4.0],
    )

    def rounds_taken(self, targets: int) -> int:
        """The number of its rounds; a participant ascends in one and observes in the next."""
        turns = math.ceil(targets / self.targets_per_round)
        return 2 * turns + 1 if self.seat == "participant" else turns


class Released(Section):
    """Has the trained model alone, or its outputs, and compares it with models of its own."""

    kind: Literal["released"]
    seat: Literal["outsider"] = Field("outsider", description="From where: it was sent nothing.")
    methods: Annotated[tuple[Method, ...], AfterValidator(no_repeats)] = Field(
        ("lira", "rmia", "loss"),
        min_length=1,
        strict=False,
        description='How it scores records, such as ["lira"]; told is what did best on the calibration half.',
    )
    references: int = Field(
        32, ge=8, le=10**4, description="How many models it trains to compare with, such as 32."
    )
    epochs: int | None = Field(
        None,
        ge=1,
        le=10**6,
        description="How often such a model goes through its records; else as often as clients do in all.",
        examples=[20],
    )
    batch_size: int | None = Field(
        None,
        ge=1,
        le=10**9,
        description="The records of its steps; else as many as all clients take together in one step.",
        examples=[128],
    )
    gamma: float = Field(2.0, gt=0, le=10**6, description="How far a record has to prevail in RMIA.")
    offline_a: float = Field(
        0.3, ge=0, le=1, description="Of RMIA: 1 takes the mean of models without a record as it is."
    )

    @property
    def isolating(self) -> bool:
        """It sends nothing to anybody."""
        return False

    def rounds_taken(self, targets: int) -> int:
        """It takes no rounds."""
        return 0


Attack = Annotated[Passive | Ascent | Released, Field(discriminator="kind")]
ATTACK = Kind({"passive": Passive, "active-gradient-ascent": Ascent, "released": Released}, "kind", "attack")
GAME = Kind({"": GameSettings}, required=False)
