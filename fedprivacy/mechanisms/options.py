"""Keys of the section `privacy` that belong to one mechanism or to the encoding of updates.

Each reading of a scenario imports this module, so it imports no mechanism.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

LayerShares = Literal["equal", "by-size"]  # of the clipping norm


class EncodingOptions(BaseModel):
    """The encoding of clipped updates before the noise."""

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


class StudentOptions(EncodingOptions):
    """Student t noise on encoded updates."""

    degrees: float | None = Field(
        None, ge=3, le=1000, description="Degrees of freedom of student-t; without it 9."
    )


class SharesOptions(BaseModel):
    """Noise in shares, of any mechanism."""

    bits: int = Field(
        18,
        ge=2,
        le=28,
        description="The bits of each number of a message: more have room for more clients, and round less.",
    )
    min_survivors: int | None = Field(
        None,
        ge=1,
        le=10**9,
        description="The fewest clients whose sum is opened, for which the shares of noise are made; without "
        "it, as many as 99.9 % of the rounds have at federation.dropout.",
    )
    colluders: int = Field(
        0,
        ge=0,
        le=10**9,
        description="How many clients of a sum may collude with the observer, whose noise does not count.",
    )


class BandedOptions(BaseModel):
    """Noise that is correlated over rounds."""

    bands: Annotated[int, Field(ge=1, le=10**4)] | Literal["auto"] | None = Field(
        None,
        description="Noise that is correlated over so many rounds (banded matrix factorisation), such as 8; "
        'with sampling "cyclic-poisson" also "auto", for the least error.',
    )


class AdaptiveOptions(BaseModel):
    """A clipping norm that follows a quantile of the norms of updates."""

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
