"""The section `[tune]`: a grid of settings, and how one of them is chosen."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field

from fedprivacy.scenario.base import Section
from fedprivacy.scenario.kinds import Kind
from fedprivacy.scenario.sections import Settings

Grid = dict[Literal["model", "training", "server", "sampling", "privacy"], dict[str, Settings]]
SHAPES = {"logarithmic": 0.0, "geometric": 1.0, "poisson": math.inf}


class _Tune(Section):
    grid: Grid = Field(
        min_length=1,
        description="The candidates: settings, each with its values, of which every combination is one, "
        "such as server.learning_rate = [0.01, 0.1].",
        examples=[{"server": {"learning_rate": [0.01, 0.1]}}],
    )


class PublicTune(_Tune):
    """Candidates are trained and scored on the public split, and the best is trained on the clients."""

    method: Literal["public"]


class ExponentialTune(_Tune):
    """Candidates are trained on the public split; clients' records choose, by the exponential mechanism."""

    method: Literal["exponential"]
    epsilon: Annotated[float, Field(gt=0, le=100)] = Field(
        0.5, description="What the choice costs, beside the training, such as 0.5."
    )


class StoppingTune(_Tune):
    """Candidates are trained and scored on clients, a random number of times; only the best is released."""

    method: Literal["random-stopping"]
    tries: float = Field(ge=1, le=1000, description="How many are run on average.", examples=[6.0])
    law: Literal["geometric", "logarithmic", "poisson"] = Field(
        "geometric",
        description="Of the number of tries: a coin after each, more often few, or seldom far from the mean "
        "(and then, with probability e^-tries, none at all).",
    )
    score_noise: float = Field(
        20.0,
        ge=0.01,
        le=10**6,
        description="Of each score, how many clients' records are right: the standard deviation of its noise "
        "over 1/2, which is the most that one client moves it from its centre, such as 20.0.",
    )


Tune = PublicTune | ExponentialTune | StoppingTune
TUNE = Kind(
    {"public": PublicTune, "exponential": ExponentialTune, "random-stopping": StoppingTune},
    "method",
    "way to choose",
)
