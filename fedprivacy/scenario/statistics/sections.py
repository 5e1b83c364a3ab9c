"""The other sections of a statistics scenario: privacy, federation, comparison."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from fedprivacy.scenario.base import Section
from fedprivacy.scenario.kinds import Kind
from fedprivacy.scenario.sections import no_repeats
from fedprivacy.scenario.statistics import data as d

Trust = Literal["none", "central", "shuffled", "local"]
# A comparison by default: a shuffler needs a delta.
TRUSTS: tuple[Trust, ...] = ("none", "central", "local")
Adjacency = Literal["replace-one", "add-remove", "zero-out"]


class _Privacy(Section):
    unit: Literal["client"] = Field("client", description="What is protected: all records of one client.")
    adjacency: Adjacency = Field("replace-one", description="Which two data sets the guarantee holds apart.")


class NoPrivacy(_Privacy):
    """The exact answer."""

    epsilon: ClassVar[None] = None
    shuffled: ClassVar[bool] = False
    delta: ClassVar[float] = 0.0
    trust: Literal["none"]


class _Noisy(_Privacy):
    epsilon: float = Field(gt=0, le=10**4, description="The budget of all queries together.", examples=[1.0])
    delta: float = Field(
        0.0, ge=0, lt=1, description="The additive slack of the guarantee; 0 is pure epsilon-DP, such as 0.0."
    )


class LocalPrivacy(_Noisy):
    """Each client randomises its own answers."""

    trust: Literal["local"]
    shuffled: bool = Field(
        False,
        description="Whether to state too what answers would cost behind a shuffler, which there is not.",
    )


class ShuffledPrivacy(_Noisy):
    """Each client randomises its own answers, and a shuffler takes the senders off."""

    shuffled: ClassVar[bool] = False
    trust: Literal["shuffled"]


class CentralPrivacy(_Noisy):
    """The server, which is trusted, sees exact totals and releases noisy ones."""

    shuffled: ClassVar[bool] = False
    trust: Literal["central"]


Privacy = Annotated[NoPrivacy | LocalPrivacy | ShuffledPrivacy | CentralPrivacy, Field(discriminator="trust")]


class Federation(Section):
    """The distribution of clients over hosts."""

    hosts: int = Field(1, ge=1, le=10**6, description="The number of logical hosts of the clients.")
    chunk_size: int = Field(
        65_536, ge=1, le=10**8, description="The clients that one message asks, such as 65536."
    )
    timeout: float = Field(
        3600.0, gt=0, le=10**7, description="The seconds after which clients count as failed, such as 60.0."
    )


class Compare(Section):
    """The cells of a comparison: trust models, epsilons, numbers of clients, mechanisms."""

    trusts: Annotated[tuple[Trust, ...], AfterValidator(no_repeats)] = Field(
        TRUSTS, strict=False, min_length=1, description='The trust models, such as ["local", "central"].'
    )
    epsilons: Annotated[tuple[Annotated[float, Field(gt=0, le=10**4)], ...], AfterValidator(no_repeats)] = (
        Field((1.0,), strict=False, min_length=1, description="The epsilons, such as [0.5, 1.0].")
    )
    clients: Annotated[tuple[Annotated[int, Field(ge=1, le=10**9)], ...], AfterValidator(no_repeats)] = Field(
        (), strict=False, description="The numbers of clients, such as [100, 1000]; else those of [data]."
    )
    repeats: int = Field(
        3,
        ge=1,
        le=10_000,
        description="How often each cell is run, each with a seed of its own, such as 20.",
    )
    local: Annotated[tuple[str, ...], AfterValidator(no_repeats)] = Field(
        (), strict=False, description="Local mechanisms to compare, for all queries; else each query's own."
    )
    central: Annotated[tuple[str, ...], AfterValidator(no_repeats)] = Field(
        (), strict=False, description="Central mechanisms to compare, for all queries; else each query's own."
    )


KINDS: dict[str, Kind] = {
    "data": Kind(
        {"bits": d.Bits, "categories": d.Categories, "numbers": d.Numbers, "npz": d.NpzTable},
        "name",
        "data set",
    ),
    "privacy": Kind(
        {
            "none": NoPrivacy,
            "central": CentralPrivacy,
            "shuffled": ShuffledPrivacy,
            "local": LocalPrivacy,
        },
        "trust",
        "trust model",
    ),
    "federation": Kind({"": Federation}, required=False),
    "compare": Kind({"": Compare}, required=False),
}
