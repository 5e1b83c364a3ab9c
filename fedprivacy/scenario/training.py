"""The section `[training]`: local training, with a class for each batch sampler."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator
from pydantic_core import PydanticCustomError

from fedprivacy.scenario.base import Section

Personal = Literal["partial", "fine-tune", "ditto"]
# Key -> the only kind of personal models that has it.
MODE_OF: dict[str, Personal] = {
    "shared": "partial",
    "personal_epochs": "fine-tune",
    "personal_proximal": "ditto",
}


def _batch_size(value: Any) -> int | Literal["all"]:
    if value == "all" or (isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 10**9):
        return value
    raise PydanticCustomError("batch_size", 'must be "all" or a whole number of at least 1')


class _Training(Section):
    learning_rate: float = Field(0.1, gt=0, le=10**6, description="The step size of the client, such as 0.1.")
    momentum: float = Field(
        0.0, ge=0, lt=1, description="The share of the last step that is kept; it starts anew in each round."
    )
    weight_decay: float = Field(
        0.0, ge=0, le=10**6, description="Times the weights, added to the gradient; such as 1e-4."
    )
    proximal: float = Field(
        0.0,
        ge=0,
        le=10**6,
        description="The mu of FedProx (Li et al. 2020): mu/2 times the squared distance to the weights that "
        "the client got is added to the loss; such as 0.1.",
    )
    projection: float | None = Field(
        None,
        gt=0,
        le=10**9,
        description="The radius of the ball around zero in which each step leaves the weights, such as 10.0.",
    )
    averaging: bool = Field(
        False, description="Whether a client answers with the mean of the weights after each of its steps."
    )
    adversarial: float | None = Field(
        None,
        gt=0,
        le=10**6,
        description="Adversarial regularisation (Nasr et al. 2018): the lambda that weighs an inference "
        "network's gain against the loss, such as 3.0; it compares with the public records.",
    )
    adversarial_steps: int = Field(
        1, ge=1, le=1000, description="The inference network's steps before each step of the model."
    )
    adversarial_first: int = Field(
        0, ge=0, le=10**6, description="And so many more before the first step of a round, such as 50."
    )
    loss: Literal["squared", "huber"] | None = Field(
        None,
        description='The loss of a regression; without it "squared". Of classes and labels it is the '
        "cross-entropy.",
        examples=["huber"],
    )
    huber_threshold: float | None = Field(
        None,
        gt=0,
        le=10**6,
        description="The error of a scaled target from where on Huber's loss is linear, such as 0.1; without "
        "it 1.0.",
    )
    weighting: Literal["clients", "records"] = Field(
        "clients",
        description="Whether all clients weigh the same in a round, or as many times as they have records.",
    )
    personal: Personal | None = Field(
        None,
        description="How each client gets a model of its own, which goes to nobody else: parameters that are "
        "not in `shared` stay at the client; or it trains the final model further; or a copy beside each "
        "round (Ditto, Li et al. 2021).",
        examples=["partial"],
    )
    shared: tuple[str, ...] | None = Field(
        None,
        strict=False,
        min_length=1,
        max_length=100,
        description="Patterns of the names of the trained parameters that are sent, clipped and noised, such "
        'as ["1.*"]; all other trained ones stay at each client.',
    )
    personal_epochs: int | None = Field(
        None,
        ge=1,
        le=10**6,
        description='How often a client goes through its records after the run with personal = "fine-tune", '
        "such as 5.",
    )
    personal_proximal: float | None = Field(
        None,
        ge=0,
        le=10**6,
        description='The lambda of personal = "ditto": lambda/2 times the squared distance to the sent model '
        "is added to the loss of the client's own copy; such as 0.1.",
    )
    trainer: Literal["fedprivacy", "opacus"] = Field(
        "fedprivacy", description='What computes DP-SGD; "opacus" needs the extra fedprivacy[opacus].'
    )
    device: Literal["cpu", "cuda"] = Field(
        "cpu",
        description='Where clients are trained; "cuda" needs a GPU and the unit "client".',
    )


class ShuffledTraining(_Training):
    """Passes over the client's records, each in a new order, cut into batches."""

    batches: Literal["shuffled"] = "shuffled"
    epochs: int = Field(1, ge=1, le=10**6, description="How often a client goes through its records.")
    batch_size: Annotated[int | Literal["all"], PlainValidator(_batch_size)] = Field(
        "all", description='The records of one step; "all" makes one step of them.'
    )


class PoissonTraining(_Training):
    """Batches that each record joins by a coin of its own."""

    batches: Literal["poisson"]
    steps: int = Field(ge=1, le=10**6, description="The steps of a client in a round.", examples=[10])
    rate: float | None = Field(
        None, ge=1e-12, le=1, description="The probability that a record joins a batch, such as 0.1."
    )
    batch_size: int | None = Field(
        None,
        ge=1,
        le=10**9,
        description="The mean size of a batch, such as 32: then records of small clients join more often.",
    )


class ReplacementTraining(_Training):
    """Batches of which each place is drawn from all records."""

    batches: Literal["with-replacement"]
    steps: int = Field(ge=1, le=10**6, description="The steps of a client in a round.", examples=[10])
    batch_size: int = Field(ge=1, le=10**6, description="The places of a batch.", examples=[32])


Training = Annotated[ShuffledTraining | PoissonTraining | ReplacementTraining, Field(discriminator="batches")]
