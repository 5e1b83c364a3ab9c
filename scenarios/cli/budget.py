"""The `fedprivacy budget` commands. Heavy imports happen inside them, so that help is instant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scenarios.cli.output import Json, print_result

if TYPE_CHECKING:
    from scenarios.budgets.question import Question

app = typer.Typer(
    help="Epsilon to noise and back, for each mechanism; what composition, groups and shuffling do to it.",
    no_args_is_help=True,
)

Epsilon = Annotated[float | None, typer.Option(help="Find the noise for this epsilon.")]
Noise = Annotated[
    float | None, typer.Option(help="Find the epsilon of this noise (standard deviation / clipping norm).")
]
Delta = Annotated[float, typer.Option(help="The delta of the guarantee.")]
Rounds = Annotated[int, typer.Option(help="How many releases.")]
Adjacency = Annotated[str, typer.Option(help="replace-one, add-remove or zero-out.")]
Total = Annotated[float | None, typer.Option(help="Find the noise for this epsilon of all rounds together.")]
Scale = Annotated[float | None, typer.Option(help="Find the epsilon of noise of this scale.")]
PureDelta = Annotated[
    float, typer.Option(help="0: epsilons add up. Above: what is best known of several rounds.")
]
Confidence = Annotated[float, typer.Option(help="With which probability an error bound holds.")]
Clients = Annotated[int | None, typer.Option(help="Find the error with this many clients.")]
Changed = Annotated[float, typer.Option(help="The most that one client can change any one score.")]
Candidates = Annotated[int, typer.Option(help="Among how many the choice is.")]
L1 = Annotated[
    float | None, typer.Option("--sensitivity", help="The most that one client can change the answer, in L1.")
]
Count = Annotated[bool, typer.Option("--count", help="The answer is one count of clients.")]
Histogram = Annotated[
    bool, typer.Option("--histogram", help="The answer is a histogram, each client in one cell.")
]
Cells = Annotated[int, typer.Option(help="Bound the largest error of this many numbers.")]


def _answer(kind: type[Question], options: Mapping[str, Any]) -> None:
    """Answers a question of which each option of a command, all but --json, is a field by that name."""
    from scenarios.cli.display import show_budget

    given = {name: value for name, value in options.items() if name != "json_" and value is not kind}
    print_result(kind(**given).document(), options["json_"], show_budget)


@app.command()
def gaussian(
    epsilon: Epsilon = None,
    noise_multiplier: Noise = None,
    delta: Delta = 1e-5,
    rounds: Rounds = 1,
    sampling_rate: Annotated[
        float | None, typer.Option(help="Poisson sampling at this rate; default: everybody, every round.")
    ] = None,
    cohort: Annotated[int | None, typer.Option(help="Fixed-size sampling of this many clients.")] = None,
    population: Annotated[int | None, typer.Option(help="Out of this many clients.")] = None,
    separation: Annotated[
        int | None, typer.Option(help="Each client at most once in this many rounds, and no secret who.")
    ] = None,
    bands: Annotated[int | None, typer.Option(help="Noise correlated over this many rounds.")] = None,
    adjacency: Adjacency = "replace-one",
    json_: Json = False,
) -> None:
    """Gaussian noise: from (epsilon, delta) to the noise multiplier, or back."""
    from scenarios.budgets.gaussian import GaussianQuestion

    _answer(GaussianQuestion, locals())


@app.command()
def dp_sgd(
    records: Annotated[int, typer.Option(help="How many records there are.")],
    steps: Annotated[int, typer.Option(help="How many batches are drawn.")],
    batch_size: Annotated[
        int | None, typer.Option(help="Records in a batch; the mean for Poisson batches.")
    ] = None,
    rate: Annotated[float | None, typer.Option(help="Instead: their share of all records.")] = None,
    sampling: Annotated[str, typer.Option(help="poisson, shuffled or with-replacement.")] = "poisson",
    epsilon: Epsilon = None,
    noise_multiplier: Noise = None,
    delta: Delta = 1e-5,
    adjacency: Adjacency = "replace-one",
    json_: Json = False,
) -> None:
    """DP-SGD for one record: noise and epsilon of each way to draw batches, and of full-batch DP-GD."""
    from scenarios.budgets.dp_sgd import DpSgdQuestion

    _answer(DpSgdQuestion, locals())


@app.command()
def compose(
    rounds: Rounds,
    epsilon: Annotated[
        float | None, typer.Option(help="Of each release, of which nothing else is known.")
    ] = None,
    release_delta: Annotated[float, typer.Option(help="And its delta; 0: pure epsilon.")] = 0.0,
    gaussian: Annotated[
        bool, typer.Option("--gaussian", help="Each release is Gaussian noise of this epsilon and delta.")
    ] = False,
    noise_multiplier: Annotated[
        float | None,
        typer.Option(help="Each release is Gaussian noise of this standard deviation / clipping norm."),
    ] = None,
    delta: Annotated[float, typer.Option(help="The delta of all releases together.")] = 1e-5,
    adjacency: Adjacency = "replace-one",
    json_: Json = False,
) -> None:
    """Several releases about the same people: what each composition theorem says they cost together."""
    from scenarios.budgets.compose import ComposeQuestion

    _answer(ComposeQuestion, locals())


@app.command()
def group(
    size: Annotated[int, typer.Option(help="How many people, as a household.")],
    epsilon: Annotated[float | None, typer.Option(help="Of the release for one person.")] = None,
    delta: Annotated[float, typer.Option(help="Of the release for one person; 0: pure epsilon.")] = 0.0,
    noise_multiplier: Annotated[
        float | None,
        typer.Option(help="The release is Gaussian noise of this standard deviation / clipping norm."),
    ] = None,
    adjacency: Adjacency = "replace-one",
    json_: Json = False,
) -> None:
    """One release about several people who belong together: what it promises all of them."""
    from scenarios.budgets.group import GroupQuestion

    _answer(GroupQuestion, locals())


@app.command()
def tuning(
    candidates: Annotated[int, typer.Option(help="Among how many settings the choice is.")],
    epsilon: Annotated[
        float | None, typer.Option(help="Of one candidate with its score, at delta = 0.")
    ] = None,
    noise_multiplier: Annotated[
        float | None,
        typer.Option(help="One candidate with its score is Gaussian noise (standard deviation / norm)."),
    ] = None,
    tries: Annotated[
        float | None,
        typer.Option(help="How many are run on average.", show_default="as many as there are candidates"),
    ] = None,
    law: Annotated[
        str, typer.Option(help="Of the number of tries: logarithmic, geometric or poisson.")
    ] = "geometric",
    delta: Delta = 1e-5,
    adjacency: Adjacency = "replace-one",
    json_: Json = False,
) -> None:
    """Hyperparameters chosen on private data: what the best of a random number of tries costs."""
    from scenarios.budgets.tuning import TuningQuestion

    _answer(TuningQuestion, locals())


@app.command()
def shuffle(
    clients: Annotated[int, typer.Option(help="How many answer, each once.")],
    local_epsilon: Annotated[
        float | None, typer.Option(help="Find the epsilon of shuffled answers of this epsilon each.")
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Find what each answer may cost for this epsilon, shuffled.")
    ] = None,
    delta: Delta = 1e-5,
    json_: Json = False,
) -> None:
    """Local answers whose names an honest shuffler takes off: what they cost those who see the rest."""
    from scenarios.budgets.shuffle import ShuffleQuestion

    _answer(ShuffleQuestion, locals())


@app.command()
def randomized_response(
    epsilon: Total = None,
    gamma: Annotated[
        float | None, typer.Option(help="Find the epsilon of telling the truth with probability 1/2 + gamma.")
    ] = None,
    rounds: Rounds = 1,
    delta: PureDelta = 0.0,
    clients: Clients = None,
    error: Annotated[
        float | None, typer.Option(help="Find how many clients an error of the mean of this size needs.")
    ] = None,
    confidence: Confidence = 0.95,
    json_: Json = False,
) -> None:
    """One bit of each client, who sometimes lies: how often, and how far off the mean is."""
    from scenarios.budgets.answers import RandomizedResponseQuestion

    _answer(RandomizedResponseQuestion, locals())


@app.command()
def categories(
    items: Annotated[int, typer.Option(help="How many categories there are.")],
    epsilon: Total = None,
    rounds: Rounds = 1,
    delta: PureDelta = 0.0,
    clients: Annotated[int, typer.Option(help="How many clients answer.")] = 1,
    json_: Json = False,
) -> None:
    """One of k categories of each client: four mechanisms side by side, and the one to take."""
    from scenarios.budgets.answers import CategoriesQuestion

    _answer(CategoriesQuestion, locals())


@app.command()
def laplace(
    epsilon: Total = None,
    scale: Scale = None,
    sensitivity: L1 = None,
    count: Count = False,
    histogram: Histogram = False,
    rounds: Rounds = 1,
    delta: PureDelta = 0.0,
    adjacency: Adjacency = "replace-one",
    cells: Cells = 1,
    confidence: Confidence = 0.95,
    json_: Json = False,
) -> None:
    """Laplace noise on numbers: epsilon to scale and back, and how large the errors are."""
    from scenarios.budgets.noise import LaplaceQuestion

    _answer(LaplaceQuestion, locals())


@app.command()
def geometric(
    epsilon: Total = None,
    scale: Scale = None,
    sensitivity: L1 = None,
    count: Count = False,
    histogram: Histogram = False,
    rounds: Rounds = 1,
    delta: PureDelta = 0.0,
    adjacency: Adjacency = "replace-one",
    cells: Cells = 1,
    confidence: Confidence = 0.95,
    json_: Json = False,
) -> None:
    """Geometric (discrete Laplace) noise on whole numbers, as counts."""
    from scenarios.budgets.noise import GeometricQuestion

    _answer(GeometricQuestion, locals())


@app.command()
def norm(
    dimension: Annotated[int, typer.Option(help="How many numbers the vector has.")],
    epsilon: Total = None,
    scale: Scale = None,
    sensitivity: Annotated[
        float, typer.Option(help="The most that one client can change the vector, in the same norm.")
    ] = 1.0,
    order: Annotated[str, typer.Option(help="The norm: 1, 2 or inf.")] = "2",
    rounds: Rounds = 1,
    delta: PureDelta = 0.0,
    adjacency: Adjacency = "replace-one",
    json_: Json = False,
) -> None:
    """The norm mechanism on a vector: pure epsilon, noise by its L1, L2 or L-infinity norm."""
    from scenarios.budgets.noise import NormQuestion

    _answer(NormQuestion, locals())


@app.command()
def exponential(
    epsilon: Total = None,
    scale: Scale = None,
    sensitivity: Changed = 1.0,
    monotone: Annotated[
        bool, typer.Option("--monotone", help="One client moves all scores the same way, as counts.")
    ] = False,
    candidates: Candidates = 2,
    confidence: Confidence = 0.95,
    rounds: Rounds = 1,
    delta: PureDelta = 0.0,
    adjacency: Adjacency = "replace-one",
    json_: Json = False,
) -> None:
    """The exponential mechanism: a private choice by scores, and how far it is from the best."""
    from scenarios.budgets.selection import ExponentialQuestion

    _answer(ExponentialQuestion, locals())


@app.command()
def noisy_max(
    epsilon: Total = None,
    scale: Scale = None,
    noise: Annotated[str, typer.Option(help="laplace, gumbel or permute-and-flip.")] = "laplace",
    sensitivity: Changed = 1.0,
    candidates: Candidates = 2,
    confidence: Confidence = 0.95,
    rounds: Rounds = 1,
    delta: PureDelta = 0.0,
    adjacency: Adjacency = "replace-one",
    json_: Json = False,
) -> None:
    """Report noisy max: the most common of several things, and how far it is from the best."""
    from scenarios.budgets.selection import NoisyMaxQuestion

    _answer(NoisyMaxQuestion, locals())
