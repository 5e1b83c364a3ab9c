"""The privacy section of a scenario, a class for each trust model."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from fedprivacy.mechanisms.local import LOCAL
from fedprivacy.scenario.base import Section

if TYPE_CHECKING:
    MechanismName = str
else:
    MechanismName = Literal[(*LOCAL, "auto")]

Unit = Literal["client", "example"]
LEAST_NORM = (
    1e-9  # far above where float32 rounds coarsely, and a clipped gradient may be longer than the bound
)


class _Privacy(Section):
    unit: Unit = Field(
        "client", description="What is protected: all records of one client, or one record (example)."
    )
    adjacency: Literal["replace-one", "add-remove", "zero-out"] = Field(
        "replace-one", description="Which two data sets the guarantee holds apart."
    )


class NoPrivacy(_Privacy):
    """No noise and no guarantee; the clipping norm, if given, is a heuristic."""

    delta: ClassVar[None] = None
    mechanism: ClassVar[None] = None
    epsilon: ClassVar[None] = None
    noise_multiplier: ClassVar[None] = None
    max_participations: ClassVar[None] = None
    noise_draw: ClassVar[None] = None
    direction: ClassVar[None] = None
    encoding: ClassVar[None] = None
    trust: Literal["none"]
    clipping_norm: float | None = Field(
        None,
        ge=LEAST_NORM,
        le=10**9,
        description="The largest L2 norm of an update, or of a record's gradient.",
    )


class _Noisy(_Privacy):
    clipping_norm: float = Field(
        ge=LEAST_NORM,
        le=10**9,
        description="The largest L2 norm of an update, or of a record's gradient; the noise grows with it.",
        examples=[1.0],
    )
    delta: float = Field(1e-5, description="The additive slack of the guarantee.")
    epsilon: float | None = Field(
        None, gt=0, le=10**6, description="The privacy budget: smaller is more private, 1 to 8 is usual."
    )
    noise_multiplier: float | None = Field(
        None,
        ge=1e-4,  # the range that the accountants support
        le=10**7,
        description="The noise's standard deviation divided by clipping_norm, such as 4.0.",
    )
    encoding: Literal["signs", "top-k", "levels"] | None = Field(
        None,
        description="What a client encodes its clipped update to before the noise: the signs of all "
        "coordinates, or of the largest (top-k), or multiples of a step (levels).",
    )
    encoding_share: float | None = Field(
        None, gt=0, le=1, description="For top-k: which part of the coordinates; without it 0.05."
    )
    encoding_levels: int | None = Field(
        None,
        ge=1,
        le=1000,
        description="For levels: in how many steps an update of norm clipping_norm that is the same in all "
        "coordinates is told; without it 2.",
    )


class LocalPrivacy(_Noisy):
    """Each client adds noise before anything leaves it."""

    trust: Literal["local"]
    mechanism: MechanismName = Field(
        "gaussian",
        description='What a client does to its update; "auto" takes what has the least error for the budget.',
    )
    direction: Literal["lifted", "normalised"] | None = Field(
        None,
        description="What privunit makes of an update that is shorter than clipping_norm: lifted keeps its "
        "length on average, normalised brings every update to clipping_norm.",
        examples=["lifted"],
    )
    max_participations: int = Field(
        ge=1, le=10**6, description="How often a client may take part; without it, in every round."
    )
    noise_draw: Literal["client", "sum"] = Field(
        "client", description="One draw of noise for each client, or one for the sum of a chunk."
    )


class CentralPrivacy(_Noisy):
    """The server, which is trusted, adds noise once a round."""

    max_participations: ClassVar[None] = None
    noise_draw: ClassVar[None] = None
    direction: ClassVar[None] = None
    trust: Literal["central"]
    mechanism: Literal["gaussian", "student-t"] = Field(
        "gaussian", description="The noise that the server adds."
    )
    degrees: float | None = Field(
        None, ge=3, le=1000, description="Degrees of freedom of student-t; without it 9."
    )
    bands: int | None = Field(
        None,
        ge=1,
        le=10**4,
        description="Noise that is correlated over so many rounds (banded matrix factorisation), such as 8.",
    )
    clipping_quantile: float | None = Field(
        None,
        gt=0,
        lt=1,
        description="Adaptive clipping: the part of the updates that is to be no longer than the clipping "
        "norm, which follows it from clipping_norm on, such as 0.5.",
    )
    clipping_learning_rate: float | None = Field(
        None, gt=0, le=10, description="How fast the clipping norm follows the quantile, such as 0.2."
    )
    clipping_count_noise: float | None = Field(
        None,
        gt=0,
        le=10**9,
        description="The standard deviation of the noise on how many updates are no longer than the clipping "
        "norm; without it a twentieth of the mean cohort, or the noise multiplier where that is more.",
    )
