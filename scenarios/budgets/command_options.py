"""The options of each budget command: names, types, defaults and help, each stated once.

Each class becomes a command: `mechanism` and the docstring are its name and its help, and each field is an
option, in this order. The `Question` that inherits from it answers. Nothing heavy is imported, because every
start of `fedprivacy` reads this module.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar


@dataclass(frozen=True)
class Help:
    """The help of an option.

    Args:
        text: The meaning of the option.
        default: The default shown in the help; empty: the default itself.
    """

    text: str
    default: str = ""


# Options that several commands have.
Epsilon = Annotated[float | None, Help("Find the noise for this epsilon.")]
Noise = Annotated[float | None, Help("Find the epsilon of this noise (standard deviation / clipping norm).")]
Delta = Annotated[float, Help("The delta of the guarantee.")]
Rounds = Annotated[int, Help("How many releases.")]
Adjacency = Annotated[str, Help("replace-one, add-remove or zero-out.")]
Total = Annotated[float | None, Help("Find the noise for this epsilon of all rounds together.")]
Scale = Annotated[float | None, Help("Find the epsilon of noise of this scale.")]
PureDelta = Annotated[float, Help("0: epsilons add up. Above: what is best known of several rounds.")]
Confidence = Annotated[float, Help("With which probability an error bound holds.")]
ScoreSensitivity = Annotated[float, Help("The most that one client can change any one score.")]
Candidates = Annotated[int, Help("Among how many the choice is.")]


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of a budget command.

    Attributes:
        mechanism: The command's name, which its result document states too.
        question: The class that answers, as "module.Class" in this package.
    """

    mechanism: ClassVar[str]
    question: ClassVar[str]


@dataclass(frozen=True, kw_only=True)
class GaussianOptions(Options):
    """Gaussian noise: from (epsilon, delta) to the noise multiplier, or back."""

    mechanism: ClassVar[str] = "gaussian"
    question: ClassVar[str] = "gaussian.GaussianQuestion"
    epsilon: Epsilon = None
    noise_multiplier: Noise = None
    delta: Delta = 1e-5
    rounds: Rounds = 1
    sampling_rate: Annotated[
        float | None, Help("Poisson sampling at this rate; default: everybody, every round.")
    ] = None
    cohort: Annotated[int | None, Help("Fixed-size sampling of this many clients.")] = None
    population: Annotated[int | None, Help("Out of this many clients.")] = None
    separation: Annotated[
        int | None, Help("Each client at most once in this many rounds, and no secret who.")
    ] = None
    bands: Annotated[int | None, Help("Noise correlated over this many rounds, or groups with a rate.")] = (
        None
    )
    compare_bands: Annotated[bool, Help("Search the number of bands of least error, which takes longer.")] = (
        False
    )
    adjacency: Adjacency = "replace-one"


@dataclass(frozen=True, kw_only=True)
class DpSgdOptions(Options):
    """DP-SGD for one record: noise and epsilon of each way to draw batches, and of full-batch DP-GD."""

    mechanism: ClassVar[str] = "dp-sgd"
    question: ClassVar[str] = "dp_sgd.DpSgdQuestion"
    records: Annotated[int, Help("How many records there are.")]
    steps: Annotated[int, Help("How many batches are drawn.")]
    batch_size: Annotated[int | None, Help("Records in a batch; the mean for Poisson batches.")] = None
    rate: Annotated[float | None, Help("Instead: their share of all records.")] = None
    sampling: Annotated[str, Help("poisson, shuffled or with-replacement.")] = "poisson"
    epsilon: Epsilon = None
    noise_multiplier: Noise = None
    delta: Delta = 1e-5
    adjacency: Adjacency = "replace-one"


@dataclass(frozen=True, kw_only=True)
class ComposeOptions(Options):
    """Several releases about the same people: the joint cost by each composition theorem."""

    mechanism: ClassVar[str] = "compose"
    question: ClassVar[str] = "compose.ComposeQuestion"
    rounds: Rounds
    epsilon: Annotated[float | None, Help("Of each release, of which nothing else is known.")] = None
    release_delta: Annotated[float, Help("And its delta; 0: pure epsilon.")] = 0.0
    gaussian: Annotated[bool, Help("Each release is Gaussian noise of this epsilon and delta.")] = False
    noise_multiplier: Annotated[
        float | None, Help("Each release is Gaussian noise of this standard deviation / clipping norm.")
    ] = None
    delta: Annotated[float, Help("The delta of all releases together.")] = 1e-5
    adjacency: Adjacency = "replace-one"


@dataclass(frozen=True, kw_only=True)
class GroupOptions(Options):
    """One release about several people who belong together: what it promises all of them."""

    mechanism: ClassVar[str] = "group"
    question: ClassVar[str] = "group.GroupQuestion"
    size: Annotated[int, Help("How many people, as a household.")]
    epsilon: Annotated[float | None, Help("Of the release for one person.")] = None
    delta: Annotated[float, Help("Of the release for one person; 0: pure epsilon.")] = 0.0
    noise_multiplier: Annotated[
        float | None, Help("The release is Gaussian noise of this standard deviation / clipping norm.")
    ] = None
    adjacency: Adjacency = "replace-one"


@dataclass(frozen=True, kw_only=True)
class TuningOptions(Options):
    """Hyperparameters chosen on private data: what the best of a random number of tries costs."""

    mechanism: ClassVar[str] = "tuning"
    question: ClassVar[str] = "tuning.TuningQuestion"
    candidates: Annotated[int, Help("Among how many settings the choice is.")]
    epsilon: Annotated[float | None, Help("Of one candidate with its score, at delta = 0.")] = None
    noise_multiplier: Annotated[
        float | None, Help("One candidate with its score is Gaussian noise (standard deviation / norm).")
    ] = None
    tries: Annotated[
        float | None, Help("How many are run on average.", default="as many as there are candidates")
    ] = None
    law: Annotated[str, Help("Of the number of tries: logarithmic, geometric or poisson.")] = "geometric"
    delta: Delta = 1e-5
    adjacency: Adjacency = "replace-one"


@dataclass(frozen=True, kw_only=True)
class ShuffleOptions(Options):
    """Local answers whose names an honest shuffler takes off: what they cost those who see the rest."""

    mechanism: ClassVar[str] = "shuffle"
    question: ClassVar[str] = "shuffle.ShuffleQuestion"
    clients: Annotated[int, Help("How many answer, each once.")]
    local_epsilon: Annotated[
        float | None, Help("Find the epsilon of shuffled answers of this epsilon each.")
    ] = None
    epsilon: Annotated[float | None, Help("Find what each answer may cost for this epsilon, shuffled.")] = (
        None
    )
    delta: Delta = 1e-5


@dataclass(frozen=True, kw_only=True)
class RandomizedResponseOptions(Options):
    """One bit of each client, who sometimes lies: how often, and how far off the mean is."""

    mechanism: ClassVar[str] = "randomized-response"
    question: ClassVar[str] = "answers.RandomizedResponseQuestion"
    epsilon: Total = None
    gamma: Annotated[
        float | None, Help("Find the epsilon of telling the truth with probability 1/2 + gamma.")
    ] = None
    rounds: Rounds = 1
    delta: PureDelta = 0.0
    adjacency: ClassVar[str] = "replace-one"  # the only one: each client answers in every round
    clients: Annotated[int | None, Help("Find the error with this many clients.")] = None
    error: Annotated[float | None, Help("Find how many clients an error of the mean of this size needs.")] = (
        None
    )
    confidence: Confidence = 0.95


@dataclass(frozen=True, kw_only=True)
class CategoriesOptions(Options):
    """One of k categories of each client: four mechanisms side by side, and the one to take."""

    mechanism: ClassVar[str] = "categories"
    question: ClassVar[str] = "answers.CategoriesQuestion"
    items: Annotated[int, Help("How many categories there are.")]
    epsilon: Total = None
    rounds: Rounds = 1
    delta: PureDelta = 0.0
    adjacency: ClassVar[str] = "replace-one"
    clients: Annotated[int, Help("How many clients answer.")] = 1


@dataclass(frozen=True, kw_only=True)
class LaplaceOptions(Options):
    """Laplace noise on numbers: epsilon to scale and back, and how large the errors are."""

    mechanism: ClassVar[str] = "laplace"
    question: ClassVar[str] = "noise.LaplaceQuestion"
    epsilon: Total = None
    scale: Scale = None
    sensitivity: Annotated[float | None, Help("The most that one client can change the answer, in L1.")] = (
        None
    )
    count: Annotated[bool, Help("The answer is one count of clients.")] = False
    histogram: Annotated[bool, Help("The answer is a histogram, each client in one cell.")] = False
    rounds: Rounds = 1
    delta: PureDelta = 0.0
    adjacency: Adjacency = "replace-one"
    cells: Annotated[int, Help("Bound the largest error of this many numbers.")] = 1
    confidence: Confidence = 0.95


@dataclass(frozen=True, kw_only=True)
class GeometricOptions(LaplaceOptions):
    """Geometric (discrete Laplace) noise on whole numbers, as counts."""

    mechanism: ClassVar[str] = "geometric"
    question: ClassVar[str] = "noise.GeometricQuestion"


@dataclass(frozen=True, kw_only=True)
class NormOptions(Options):
    """The norm mechanism on a vector: pure epsilon, noise by its L1, L2 or L-infinity norm."""

    mechanism: ClassVar[str] = "norm"
    question: ClassVar[str] = "noise.NormQuestion"
    dimension: Annotated[int, Help("How many numbers the vector has.")]
    epsilon: Total = None
    scale: Scale = None
    sensitivity: Annotated[
        float, Help("The most that one client can change the vector, in the same norm.")
    ] = 1.0
    order: Annotated[str, Help("The norm: 1, 2 or inf.")] = "2"
    rounds: Rounds = 1
    delta: PureDelta = 0.0
    adjacency: Adjacency = "replace-one"


@dataclass(frozen=True, kw_only=True)
class ExponentialOptions(Options):
    """The exponential mechanism: a private choice by scores, and how far it is from the best."""

    mechanism: ClassVar[str] = "exponential"
    question: ClassVar[str] = "selection.ExponentialQuestion"
    epsilon: Total = None
    scale: Scale = None
    sensitivity: ScoreSensitivity = 1.0
    monotone: Annotated[bool, Help("One client moves all scores the same way, as counts.")] = False
    candidates: Candidates = 2
    confidence: Confidence = 0.95
    rounds: Rounds = 1
    delta: PureDelta = 0.0
    adjacency: Adjacency = "replace-one"


@dataclass(frozen=True, kw_only=True)
class NoisyMaxOptions(Options):
    """Report noisy max: the most common of several things, and how far it is from the best."""

    mechanism: ClassVar[str] = "noisy-max"
    question: ClassVar[str] = "selection.NoisyMaxQuestion"
    epsilon: Total = None
    scale: Scale = None
    noise: Annotated[str, Help("laplace, gumbel or permute-and-flip.")] = "laplace"
    sensitivity: ScoreSensitivity = 1.0
    candidates: Candidates = 2
    confidence: Confidence = 0.95
    rounds: Rounds = 1
    delta: PureDelta = 0.0
    adjacency: Adjacency = "replace-one"


# In the order of the help.
COMMANDS: tuple[type[Options], ...] = (
    GaussianOptions, DpSgdOptions, ComposeOptions, GroupOptions, TuningOptions, ShuffleOptions,
    RandomizedResponseOptions, CategoriesOptions, LaplaceOptions, GeometricOptions, NormOptions,
    ExponentialOptions, NoisyMaxOptions,
)  # fmt: skip
