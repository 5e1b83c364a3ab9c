"""The sections that an attack scenario has beside those of its run."""

from __future__ import annotations

import math
from typing import Annotated, Literal, Self

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

# The published tables of `fedprivacy.report.attacks.published`; a test compares these names with it.
Published = Literal["cifar100-alexnet", "cifar100-densenet", "texas100", "purchase100"]


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
    published: Published | None = Field(
        None,
        description="The published figures that the page sets beside ours, of Nasr, Shokri and Houmansadr "
        "(2019): those of one of their models.",
        examples=["cifar100-alexnet"],
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

    @property
    def in_sum(self) -> bool:
        """Whether it sees the sum of all clients alone."""
        return self.sees == "sum"


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
    trap_units: int | None = Field(
        None,
        ge=1,
        le=1000,
        description="Instead of steps, how many units of the last hidden layer, in pairs, react to each "
        "target alone and raise its loss to the level, such as 4; not with ReLU.",
        examples=[4],
    )
    steepness: float | None = Field(
        None,
        gt=0,
        le=10**6,
        description="How steep trap units are; else 10,000. Less suits a CNN, whose earlier layers move.",
        examples=[100.0],
    )
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
        description='How it scores records, such as ["lira"]; told is what did best on other folds.',
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

    @property
    def in_sum(self) -> bool:
        """It sees no round."""
        return False

    def rounds_taken(self, targets: int) -> int:
        """It takes no rounds."""
        return 0


class TrialAttack(Section):
    """Repeats one experiment, each time with another secret; an attacker succeeds or fails.

    Its success is compared with chance, and with the most that the guarantee allows
    (`fedprivacy.attacks.trials`). Membership attacks judge many records in one run instead.
    """

    kind: str
    seat: str
    trials: int = Field(
        200, ge=20, le=10**5, description="How often the experiment is repeated, such as 200."
    )
    rounds: int = Field(1, ge=1, le=10**4, description="How many rounds are observed, such as 1.")

    @property
    def in_sum(self) -> bool:
        """Whether the server sees the sum of all clients alone."""
        return False

    @property
    def isolating(self) -> bool:
        """Nobody is isolated: all clients answer in the observed rounds."""
        return False

    def rounds_taken(self, targets: int) -> int:
        """The number of its rounds, which all trials share."""
        return self.rounds

    def without_data(self) -> Self:
        """The attack with keys that are valid for any data, for checks that do not read them."""
        return self


class Property(TrialAttack):
    """Infers which share of the victim's records is in a group (Melis et al. 2019)."""

    kind: Literal["property"]
    seat: Literal["server", "participant"] = Field(
        "server",
        description="From where: the server sees the victim's update, a participant the noisy sum of all.",
    )
    column: str | None = Field(
        None,
        description='The column of the group, such as "sex"; without it groups are labels.',
        examples=["sex"],
    )
    value: str = Field(description='The group, such as "Female", or a label such as "3".', examples=["3"])
    low: float = Field(
        0.2, ge=0, lt=1, description="The group's share of the victim's records without the property."
    )
    high: float = Field(0.8, gt=0, le=1, description="The group's share with the property.")
    shadows: int = Field(
        200, ge=20, le=10**5, description="How many victims the attacker imitates to learn from, such as 200."
    )

    def without_data(self) -> Self:
        """The attack on the group of the first label."""
        return self.model_copy(update={"column": None, "value": "0"})


class Attribute(TrialAttack):
    """Infers one answer of a record of the victim whose other answers are known."""

    kind: Literal["attribute"]
    seat: Literal["server", "participant"] = Field(
        "server",
        description="From where: the server sees the victim's update, a participant the noisy sum of all.",
    )
    column: str = Field(description='The column of the unknown answer, such as "race".', examples=["race"])
    knows: Literal["others", "record"] = Field(
        "others",
        description="What the attacker knows beside the record's other answers: all other records of the "
        'victim, as in the definition of differential privacy, or "record", nothing more.',
    )
    batch: int | None = Field(
        None,
        ge=1,
        le=10**6,
        description="How many records the victim trains on in a trial; else as many as it has.",
        examples=[8],
    )
    shadows: int = Field(
        400, ge=20, le=10**5, description="How many victims the attacker imitates to learn from, such as 400."
    )

    def without_data(self) -> Self:
        """The attack without its column, which only the data have."""
        return self.model_copy(update={"column": ""})


class Reconstruction(TrialAttack):
    """Rebuilds a record of the victim from its update, or picks it out of a prior of candidates."""

    kind: Literal["reconstruction"]
    seat: Literal["server", "participant"] = Field(
        "server",
        description="From where: the server sees the victim's update, a participant the noisy sum of all.",
    )
    sees: Literal["updates", "sum"] = Field(
        "updates",
        description='What the server sees of a round: each update, or "sum", the sum of all clients alone.',
    )
    method: Literal["analytic", "imprint", "inverting", "informed"] = Field(
        description="How: by the first linear layer's gradient; by bins of brightness in a malicious first "
        "layer; by a search for pictures with the same gradient; or the likeliest of the candidates."
    )
    candidates: int = Field(
        1000,
        ge=2,
        le=10**6,
        description="How many records the victim's record is drawn from, all known to the attacker.",
    )
    batch: int | None = Field(
        None,
        ge=1,
        le=10**6,
        description="How many records the victim trains on in a trial; else as many as it has.",
        examples=[1],
    )
    bins: int = Field(
        128, ge=2, le=10**5, description='The bins of method = "imprint": the outputs of the first layer.'
    )
    search_steps: int = Field(
        600, ge=1, le=10**6, description='The steps of the search of method = "inverting", such as 600.'
    )
    variation: float = Field(
        0.01, ge=0, le=10**6, description='How much method = "inverting" weighs smooth pictures.'
    )

    @property
    def in_sum(self) -> bool:
        """Whether the server sees the sum of all clients alone."""
        return self.sees == "sum"

    @property
    def guesses(self) -> int:
        """The number of pictures that the attacker rebuilds in a trial."""
        return {"imprint": self.bins, "inverting": self.batch or 1}.get(self.method, 1)


Pixel = Annotated[tuple[int, int], Field(strict=False)]  # row, column


class Poisoning(TrialAttack):
    """Malicious clients make the model take some records for others; the same run without them beside it."""

    kind: Literal["poisoning"]
    seat: Literal["participant"] = Field(
        "participant", description="From where: a client uploads what it likes."
    )
    trials: int = Field(
        20, ge=20, le=10**5, description="How often the rounds are run with and without them, such as 20."
    )
    rounds: int = Field(1, ge=1, le=10**4, description="How many rounds they attack, such as 1.")
    goal: Literal["backdoor", "label-flip"] = Field(
        "backdoor",
        description="What the model should take for the target: pictures with a trigger, or the records of "
        "one label.",
    )
    clients: int = Field(
        1,
        ge=1,
        le=10**6,
        description="The number of malicious clients, those of the lowest ids, such as 1.",
    )
    target: int = Field(
        ge=0, description="The label that the model should give, counted from 0.", examples=[0]
    )
    source: int | None = Field(
        None,
        ge=0,
        description="The label of the records that the model should get wrong; of a backdoor any without it.",
        examples=[7],
    )
    pixels: tuple[Pixel, ...] | None = Field(
        None,
        strict=False,
        min_length=1,
        max_length=1000,
        description="The pixels of a trigger as [row, column] from the top left, such as [[26, 26]].",
    )
    value: float | None = Field(
        None,
        ge=-1e6,
        le=1e6,
        description="The value of these pixels, after scaling, such as 1.0; without it the largest there is.",
    )
    share: float = Field(
        0.5, gt=0, le=1, description="The share of the malicious clients' pictures that have the trigger."
    )
    boost: float | None = Field(
        None,
        gt=0,
        le=10**6,
        description="By what a malicious client multiplies its update; else what replaces the global model.",
        examples=[20.0],
    )
    passes: int = Field(
        1, ge=1, le=1000, description="How often a malicious client goes through its training in a round."
    )


Attack = Annotated[
    Passive | Ascent | Released | Property | Attribute | Reconstruction | Poisoning,
    Field(discriminator="kind"),
]
ATTACK = Kind(
    {
        "passive": Passive,
        "active-gradient-ascent": Ascent,
        "released": Released,
        "property": Property,
        "attribute": Attribute,
        "reconstruction": Reconstruction,
        "poisoning": Poisoning,
    },
    "kind",
    "attack",
)
GAME = Kind({"": GameSettings}, required=False)
