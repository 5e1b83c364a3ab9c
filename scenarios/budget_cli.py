"""The `fedprivacy budget` commands. Heavy imports happen inside them, so that help is instant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from scenarios.printing import Json, print_result

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


def _answer(question: Question, as_json: bool) -> None:
    from scenarios.display import show_budget

    print_result(question.document(), as_json, show_budget)


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
    adjacency: Adjacency = "replace-one",
    json_: Json = False,
) -> None:
    """Gaussian noise: from (epsilon, delta) to the noise multiplier, or back."""
    from scenarios.budgets.gaussian import GaussianQuestion

    question = GaussianQuestion(
        epsilon=epsilon,
        noise_multiplier=noise_multiplier,
        delta=delta,
        rounds=rounds,
        sampling_rate=sampling_rate,
        cohort=cohort,
        population=population,
        adjacency=adjacency,
    )
    _answer(question, json_)


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

    question = ComposeQuestion(
        rounds=rounds,
        epsilon=epsilon,
        release_delta=release_delta,
        gaussian=gaussian,
        noise_multiplier=noise_multiplier,
        delta=delta,
        adjacency=adjacency,
    )
    _answer(question, json_)


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

    question = GroupQuestion(
        size=size, epsilon=epsilon, delta=delta, noise_multiplier=noise_multiplier, adjacency=adjacency
    )
    _answer(question, json_)


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

    _answer(
        ShuffleQuestion(clients=clients, local_epsilon=local_epsilon, epsilon=epsilon, delta=delta), json_
    )
