"""The sections of a scenario file, one strict model for each.

Strict: a key that is not listed here is an error, so is a text where a number belongs, and a key
that has no effect (the `momentum` of an optimizer without one). Where a section has kinds, one
key selects it (`data.name`, `server.optimizer`, `privacy.trust`) and each kind is a class with its
own keys. The `description` and `examples` of a field become the remedy in an error message.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from itertools import pairwise
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from fedprivacy.scenario.base import MAX_SEED, Section
from fedprivacy.scenario.data import Digits, FlwrDatasets, Npz, PurchaseLike, Synthetic, TableFile, TextFile
from fedprivacy.scenario.on_nodes import OnNodes
from fedprivacy.scenario.privacy import (
    CentralPrivacy,
    DistributedPrivacy,
    LocalPrivacy,
    MechanismName,
    NoPrivacy,
    Unit,
)

Trust = Literal["none", "central", "distributed", "local"]
NAME = r"^[A-Za-z0-9][A-Za-z0-9-]{0,63}$"  # for names that become folder names
TRUSTS: tuple[Trust, ...] = get_args(Trust)
Ablation = Literal[
    "no-noise", "no-clipping", "norm-half", "norm-double", "rounds-double", "cohort-double", "data-half"
]
ABLATIONS: tuple[Ablation, ...] = get_args(Ablation)
Denoise = Literal["none", "james-stein", "student-t"]
Averaging = Literal["none", "tail", "exponential"]
Schedule = Literal["constant", "linear", "cosine", "inverse-sqrt"]
Aggregation = Literal["mean", "median", "trimmed-mean", "krum", "geometric-median"]
# Robust rules that are made for a number f of malicious clients -> the fewest answers that outvote these.
_LEAST_ANSWERS: dict[Aggregation, Callable[[int], int]] = {
    "trimmed-mean": lambda f: 2 * f + 1,
    "krum": lambda f: 2 * f + 3,
}
COUNTING = tuple(_LEAST_ANSWERS)
# The overlays of a unit of privacy, and of where it meets a trust model.
UnitPlace = Literal["client", "example", "central-client", "central-example", "local-client", "local-example"]
MEETINGS: dict[UnitPlace, tuple[Trust, Unit]] = {
    "central-client": ("central", "client"),
    "central-example": ("central", "example"),
    "local-client": ("local", "client"),
    "local-example": ("local", "example"),
}


def least_answers(rule: Aggregation, byzantine: int) -> int:
    """The fewest answers of a round that a rule can use, `byzantine` of them malicious."""
    return _LEAST_ANSWERS.get(rule, lambda f: 1)(byzantine)


def no_repeats(values: tuple[Hashable, ...]) -> tuple[Hashable, ...]:
    if len(set(values)) < len(values):
        raise PydanticCustomError("repeats", "the list names something twice")
    return values


Seed = Annotated[int, Field(ge=0, le=MAX_SEED)]
Epsilon = Annotated[float, Field(gt=0, le=10**6)]


class Head(Section):
    """The keys above the first section."""

    name: str = Field(
        pattern=NAME,
        description="The run's folder carries the name.",
        examples=["my-scenario"],
    )
    description: str = Field("", description="What the scenario shows, for its reader.")
    duration: str = Field("", description="How long it takes and on what machine, for its reader.")
    tuning: str = Field("", description="How the hyperparameters were chosen; the report prints it.")
    seed: int = Field(0, ge=0, le=MAX_SEED, description="The root of all randomness of a run, such as 1.")


class _Server(Section):
    rounds: int = Field(ge=1, le=10**6, description="The number of rounds.", examples=[100])
    learning_rate: float = Field(1.0, gt=0, le=10**6, description="The step size of the server, such as 1.0.")
    schedule: Schedule = Field(
        "constant",
        description="How the learning rate falls with the rounds: linear or cosine to a share of itself in "
        "the last planned round, or by one over the square root of the round.",
    )
    schedule_end: float | None = Field(
        None,
        ge=0,
        le=1,
        description="The share of the learning rate in the last planned round, for a linear or cosine "
        "schedule; without it 0.1.",
        examples=[0.1],
    )
    averaging: Averaging = Field(
        "none",
        description="Of which iterates the released model is the mean: of none but the last, of those of the "
        "last rounds (tail), or of all with weights that fall backwards (exponential); it costs no privacy.",
    )
    averaging_share: float | None = Field(
        None,
        gt=0,
        le=1,
        description="The share of the planned rounds whose iterates a tail average covers; without it 0.5.",
        examples=[0.5],
    )
    averaging_decay: float | None = Field(
        None,
        gt=0,
        lt=1,
        description="The factor of an iterate's weight in each later round, for an exponential average; "
        "without it 0.9.",
        examples=[0.9],
    )
    patience: int | None = Field(
        None,
        ge=1,
        le=10**6,
        description="Early stopping: after so many measurements (evaluation.every) without a lower loss on "
        "public records training ends, such as 3; it needs data.public_fraction.",
    )
    denoise: Denoise = Field(
        "none",
        description="What takes noise out of the mean update before it moves the model; it costs no privacy.",
    )
    aggregation: Aggregation = Field(
        "mean",
        description="How the server makes one update of all: their mean, or a robust rule that single "
        "clients cannot move at will.",
    )
    byzantine: int | None = Field(
        None,
        ge=0,
        le=10**9,
        description="The number of malicious clients in a round that trimmed-mean and krum are to withstand.",
        examples=[1],
    )
    clips: bool = Field(
        False,
        description="Whether the server clips each single update to privacy.clipping_norm itself, whatever "
        "its node sent.",
    )


class SgdServer(_Server):
    """Adds the mean update, times the learning rate."""

    optimizer: Literal["sgd"] = "sgd"


class MomentumServer(_Server):
    """Adds a running sum of the mean updates."""

    optimizer: Literal["momentum"]
    momentum: float = Field(
        0.9, ge=0, lt=1, description="The share of the last step that is kept, such as 0.9."
    )


class AdamServer(_Server):
    """Adam on the mean updates (FedAdam of Reddi et al. 2021)."""

    optimizer: Literal["adam"]
    beta1: float = Field(0.9, ge=0, lt=1, description="The decay of the running mean, such as 0.9.")
    beta2: float = Field(
        0.99, ge=0, lt=1, description="The decay of the running mean of squares, such as 0.99."
    )
    adaptivity: float = Field(1e-3, gt=0, le=10**6, description="Added to the denominator, such as 1e-3.")


class PoissonSampling(Section):
    """Each client joins a round with probability `rate`, by a coin of its own."""

    name: Literal["poisson"]
    rate: float = Field(
        gt=0, le=1, description="The probability that a client joins a round.", examples=[0.1]
    )


class FixedSampling(Section):
    """A cohort of fixed size, drawn without replacement."""

    name: Literal["fixed"]
    cohort: int = Field(ge=1, le=10**9, description="The number of clients in each round.", examples=[100])


class AllSampling(Section):
    """Every client joins every round."""

    name: Literal["all"]


class SeparatedSampling(Section):
    """A cohort of the clients that did not participate in the last rounds; cohorts are public."""

    name: Literal["separated"]
    cohort: int = Field(ge=1, le=10**9, description="The number of clients in each round.", examples=[100])
    separation: int = Field(
        ge=1,
        le=10**6,
        description="In how many rounds in a row a client is asked at most once.",
        examples=[8],
    )


class CyclicPoissonSampling(Section):
    """Clients in as many groups as bands of noise, of which one a round is sampled by secret coins."""

    name: Literal["cyclic-poisson"]
    rate: float = Field(
        gt=0,
        le=1,
        description="The share of all clients that a round has on average; within its group a client joins "
        "with as many times this probability as there are groups.",
        examples=[0.1],
    )


class Federation(Section):
    """The distribution of clients over hosts, and the replies of nodes."""

    hosts: int = Field(1, ge=1, le=10**6, description="The number of logical hosts of the clients.")
    chunk_size: int = Field(1024, ge=1, le=10**6, description="The clients asked in one message.")
    observe: Literal["sum", "each"] = Field("sum", description="What a node replies: a sum, or each update.")
    timeout: float = Field(
        3600.0,
        gt=0,
        le=10**7,
        description="The seconds after which clients that have not answered in a round count as failed.",
    )
    client_timeout: float | None = Field(
        None,
        gt=0,
        le=10**7,
        description="The seconds after which a worker process is stopped; a client that takes as long alone "
        "is late, such as 60.0.",
    )
    dropout: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="The probability that a client that is asked does not answer, by a coin, such as 0.1.",
    )


def _rising(values: tuple[float, ...]) -> tuple[float, ...]:
    if any(first >= second for first, second in pairwise(values)):
        raise PydanticCustomError("rising", "must be numbers in rising order, such as [30, 45, 60]")
    return values


Edges = Annotated[
    tuple[float, ...], Field(strict=False, min_length=1, max_length=49), AfterValidator(_rising)
]


class Evaluation(Section):
    """Where and how often the server measures the model."""

    on: Literal["test", "public"] = Field("test", description="The records that the model is measured on.")
    every: int = Field(1, ge=1, le=10**6, description="The rounds from one measurement to the next.")
    groups: Annotated[tuple[str, ...], AfterValidator(no_repeats)] | None = Field(
        None,
        strict=False,
        min_length=1,
        max_length=20,
        description="The columns of the test records by whose values the final model is measured too, such "
        'as ["sex", "race"]; they need be no features.',
    )
    edges: dict[str, Edges] | None = Field(
        None,
        min_length=1,
        description="Where ranges of a numeric column of groups begin, such as edges.age = [30, 45, 60]; "
        "without it those of the quartiles of the test records.",
    )


def _settings(values: tuple[Any, ...]) -> tuple[Any, ...]:
    plain = all(isinstance(value, int | float | str) for value in values)
    if not plain or len(values) < 2 or len(set(map(repr, values))) < len(values):
        raise PydanticCustomError("settings", "needs at least two different values, such as [0.1, 1.0]")
    return values


Settings = Annotated[tuple[Any, ...], Field(strict=False), AfterValidator(_settings)]
# For each section a partial table: keys that replace the scenario's own under one trust model.
Overlay = dict[Literal["data", "training", "server", "sampling", "privacy"], dict[str, Any]]


class Compare(Section):
    """The cells of a comparison: each trust model with each unit at each epsilon with each seed."""

    trusts: Annotated[tuple[Trust, ...], AfterValidator(no_repeats)] = Field(
        ("none", "central", "local"),
        strict=False,
        min_length=1,
        description='The trust models to compare, such as ["none", "local"]; "distributed" too.',
    )
    units: Annotated[tuple[Unit, ...], AfterValidator(no_repeats)] = Field(
        (),
        strict=False,
        description='The units of privacy to compare, such as ["client","example"]; without any the '
        "scenario's own.",
    )
    epsilons: Annotated[tuple[Epsilon, ...], AfterValidator(no_repeats)] = Field(
        (1.0, 2.0, 4.0, 8.0), strict=False, min_length=1, description="The epsilons, such as [1.0, 8.0]."
    )
    seeds: Annotated[tuple[Seed, ...], AfterValidator(no_repeats)] = Field(
        strict=False,
        min_length=1,
        description="The seeds, the same for every trust model, such as [1, 2, 3].",
    )
    mechanisms: Annotated[tuple[MechanismName, ...], AfterValidator(no_repeats)] = Field(
        (),
        strict=False,
        description='The local mechanisms to compare, such as ["auto", "gaussian"]; without any the '
        "scenario's own.",
    )
    baselines: bool = Field(
        True,
        description="Whether clipping alone, the scenario's own training without its noise, is trained as a "
        "baseline, such as false.",
    )
    limits: Annotated[tuple[Ablation, ...], AfterValidator(no_repeats)] = Field(
        (),
        strict=False,
        description='The ablations that show what limits the accuracy, such as ["no-noise", '
        '"rounds-double"]; `fedprivacy run --limits` takes all that apply.',
    )
    none: Overlay = Field({}, description='Keys for trust "none" alone.')
    central: Overlay = Field({}, description='Keys for trust "central" alone.')
    distributed: Overlay = Field({}, description='Keys for trust "distributed" alone.')
    local: Overlay = Field({}, description='Keys for trust "local" alone.')
    unit: dict[UnitPlace, Overlay] = Field(
        {},
        description='Keys for one of several units of privacy ("client", "example") over those for the trust '
        'model, or for one under one trust model ("central-example") over both.',
    )
    vary: dict[Literal["data", "training", "server", "sampling", "privacy"], dict[str, Settings]] = Field(
        {},
        description="Settings each of which is varied by itself, at the scenario's own trust model and "
        "epsilon, such as training.learning_rate = [0.1, 1.0].",
    )
    mechanism: dict[MechanismName, Overlay] = Field(
        {}, description='Keys for one of several local mechanisms, over those for trust "local".'
    )
    option: dict[str, Overlay] = Field(
        {},
        description="Keys for an option by its name, which is run at every epsilon beside the scenario "
        'without them, such as [compare.option.shrunk.server] denoise = "james-stein".',
    )


Data = Annotated[
    Digits | Synthetic | PurchaseLike | Npz | TableFile | TextFile | FlwrDatasets | OnNodes,
    Field(discriminator="name"),
]
Server = Annotated[SgdServer | MomentumServer | AdamServer, Field(discriminator="optimizer")]
Sampling = Annotated[
    PoissonSampling | FixedSampling | AllSampling | SeparatedSampling | CyclicPoissonSampling,
    Field(discriminator="name"),
]
Privacy = Annotated[
    NoPrivacy | LocalPrivacy | CentralPrivacy | DistributedPrivacy, Field(discriminator="trust")
]
