"""The sections of a scenario of private empirical risk minimisation."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from fedprivacy.scenario.base import MAX_SEED, Section
from fedprivacy.scenario.kinds import Kind
from fedprivacy.scenario.sections import no_repeats

Bound = Annotated[float, Field(ge=-1e15, le=1e15)]


class LogisticModel(Section):
    """Made-up people of a logistic model with a known truth: rows in the unit ball, targets -1 or 1."""

    name: Literal["logistic-model"]
    records: int = Field(ge=2, le=10**7, description="The number of records.", examples=[2000])
    features: int = Field(ge=1, le=100, description="The number of features.", examples=[5])
    strength: float = Field(3.0, ge=0, le=100, description="The norm of the true theta, such as 3.0.")
    seed: int = Field(0, ge=0, le=MAX_SEED, description="The seed of the made-up people, such as 0.")


class NpzRecords(Section):
    """The training records of an .npz file: features and target cut to public bounds, and scaled by them."""

    name: Literal["npz"]
    path: str = Field(min_length=1, description="The .npz file.", examples=["people.npz"])
    label: str = Field(
        "label", min_length=1, description='What the column of labels is called, such as "label".'
    )
    features: Annotated[tuple[str, ...], AfterValidator(no_repeats)] = Field(
        strict=False,
        min_length=1,
        max_length=100,
        description="The columns of features.",
        examples=[["educ"]],
    )
    low: tuple[Bound, ...] = Field(
        strict=False, min_length=1, description="The public lower bound of each feature.", examples=[[1.0]]
    )
    high: tuple[Bound, ...] = Field(
        strict=False, min_length=1, description="The public upper bound of each feature.", examples=[[16.0]]
    )
    target: str = Field(min_length=1, description="The column of targets.", examples=["married"])
    target_low: Bound = Field(
        0.0, description="The public lower bound of the target; of a class, what is -1: such as 0.0."
    )
    target_high: Bound = Field(
        1.0, description="The public upper bound of the target; of a class, what is 1: such as 1.0."
    )
    public: bool = Field(
        False,
        description="Whether everybody may see the records: true values and errors are then on the "
        "public page too, and else on the operator's alone.",
    )


class Objective(Section):
    """The objective: the mean loss plus lambda/2 times the squared norm of theta."""

    loss: Literal["logistic", "huber-svm", "squared"] = Field(
        "logistic", description="The loss of a record, of its prediction x.theta."
    )
    regularisation: float = Field(ge=1e-12, le=1e6, description="lambda.", examples=[0.01])
    radius: float = Field(
        3.0,
        ge=1e-3,
        le=1e6,
        description="Where descents and least squares stay within: a public guess, such as 3.0.",
    )
    width: float = Field(
        0.5, ge=1e-6, le=100, description="How wide the kink of huber-svm is rounded off, such as 0.5."
    )


class Privacy(Section):
    """Under which definition of privacy, of one record."""

    unit: Literal["example"] = Field("example", description="What is protected: one record.")
    adjacency: Literal["replace-one", "add-remove", "zero-out"] = Field(
        "replace-one", description="Which two data sets the guarantee holds apart."
    )
    delta: float = Field(
        1e-6,
        gt=0,
        lt=1,
        description="That of approaches with Gaussian noise; pure ones have 0. Such as 1e-6.",
    )


class _Approach(Section):
    pass


class _PureOrNot(_Approach):
    noise: Literal["pure", "gaussian"] = Field(
        "pure", description="Whether it is epsilon-DP, or (epsilon, delta)-DP with Gaussian noise."
    )


class Output(_PureOrNot):
    """The minimum plus noise."""

    kind: Literal["output-perturbation"]
    silos: int = Field(
        1, ge=1, le=10**4, description="Of more than 1 each sends a private minimum of its own, such as 1."
    )


class Objectively(_PureOrNot):
    """The minimum of the objective with a random linear term."""

    kind: Literal["objective-perturbation"]
    silos: int = Field(
        1, ge=1, le=10**4, description="Of more than 1 each sends a private minimum of its own, such as 1."
    )
    raise_regularisation: bool = Field(
        False,
        description="Whether to take a larger lambda where a record's Hessian costs too much of epsilon.",
    )


class Gradient(_Approach):
    """Noisy projected gradient descent."""

    kind: Literal["gradient-perturbation"]
    steps: int = Field(100, ge=1, le=10**6, description="The number of steps, such as 100.")
    rate: float = Field(
        1.0, gt=0, le=1, description="Each record's chance to be in a step's batch, such as 1.0."
    )
    step_size: float | None = Field(
        None,
        ge=1e-12,
        le=1e6,
        description="eta; else the one for which theory promises most, which is small.",
        examples=[1.0],
    )
    silos: int = Field(1, ge=1, le=10**4, description="How many hold the records, such as 1.")
    trust: Literal["central", "local"] = Field(
        "central", description="Who adds the noise: a trusted server, or each silo to its own sums."
    )


class Sufficient(_PureOrNot):
    """Least squares from noisy X'X and X'y; for the squared loss alone."""

    kind: Literal["sufficient-statistics"]


class Grid(_Approach):
    """The exponential mechanism on a regular grid in the ball."""

    kind: Literal["exponential-grid"]
    points: int = Field(9, ge=1, le=1000, description="The points of the grid along each axis, such as 9.")


class Federation(Section):
    """The distribution of silos over hosts."""

    hosts: int = Field(1, ge=1, le=10**4, description="The number of logical hosts of the silos.")
    timeout: float = Field(
        3600.0, gt=0, le=10**7, description="The seconds after which silos count as absent, such as 60.0."
    )


class Study(Section):
    """The cells of the study: each approach at each epsilon and number of records, repeated."""

    epsilons: Annotated[tuple[Annotated[float, Field(gt=0, le=10**4)], ...], AfterValidator(no_repeats)] = (
        Field((1.0,), strict=False, min_length=1, description="The epsilons, such as [0.5, 1.0].")
    )
    records: Annotated[tuple[Annotated[int, Field(ge=2, le=10**7)], ...], AfterValidator(no_repeats)] = Field(
        (), strict=False, description="The numbers of records, such as [1000, 4000]; else all that there are."
    )
    repeats: int = Field(
        20,
        ge=2,
        le=10_000,
        description="How often each estimate is drawn, each with noise of its own, such as 20.",
    )


APPROACH = Kind(
    {
        "output-perturbation": Output,
        "objective-perturbation": Objectively,
        "gradient-perturbation": Gradient,
        "sufficient-statistics": Sufficient,
        "exponential-grid": Grid,
    },
    "kind",
    "approach",
)
KINDS: dict[str, Kind] = {
    "data": Kind({"logistic-model": LogisticModel, "npz": NpzRecords}, "name", "data set"),
    "objective": Kind({"": Objective}),
    "privacy": Kind({"": Privacy}, required=False),
    "federation": Kind({"": Federation}, required=False),
    "study": Kind({"": Study}, required=False),
}
