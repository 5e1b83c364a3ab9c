"""The data of queries: synthetic people with a known truth, or a table of the user."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from fedprivacy.scenario.base import MAX_SEED, Section

MAX_CELLS = 1_000_000  # categories of one query


class _Synthetic(Section):
    path: ClassVar[None] = None
    clients: int = Field(ge=1, le=10**9, description="The number of clients.", examples=[10_000])
    seed: int = Field(0, ge=0, le=MAX_SEED, description="The seed of the made-up answers, such as 0.")


class Bits(_Synthetic):
    """Yes or no: exactly the given share of the clients has a yes. The column is `answer`."""

    name: Literal["bits"]
    share: float = Field(ge=0, le=1, description="The share of yes.", examples=[0.6])


class Categories(_Synthetic):
    """One of several categories, numbered from 0; drawn by given shares or by Zipf's law."""

    name: Literal["categories"]
    categories: int | None = Field(
        None, ge=2, le=MAX_CELLS, description="The number of categories.", examples=[100]
    )
    exponent: float | None = Field(
        None, ge=0, le=20, description="Zipf's law: category i is as likely as 1/(i+1)^exponent, such as 1.0."
    )
    shares: tuple[Annotated[float, Field(ge=0)], ...] | None = Field(
        None,
        strict=False,
        min_length=2,
        max_length=10_000,
        description="How likely each category is, in any unit; instead of categories and exponent.",
    )
    each: int = Field(
        1, ge=1, le=1000, description="How many answers each client has, drawn one by one, such as 1."
    )


class Numbers(_Synthetic):
    """A number each, from a lognormal or uniform law."""

    name: Literal["numbers"]
    law: Literal["lognormal", "uniform"] = Field("lognormal", description="The law of the numbers.")
    median: float | None = Field(
        None, gt=0, le=10**15, description="The middle of a lognormal law.", examples=[20.0]
    )
    spread: float | None = Field(
        None, gt=0, le=10, description="The standard deviation of the logarithm.", examples=[0.5]
    )
    low: float | None = Field(
        None, ge=-1e15, le=1e15, description="The lower end of a uniform law.", examples=[0.0]
    )
    high: float | None = Field(
        None, ge=-1e15, le=1e15, description="The upper end of a uniform law.", examples=[1.0]
    )


class NpzTable(Section):
    """The training records of an .npz file (see docs/data.md), column by column."""

    clients: ClassVar[None] = None
    name: Literal["npz"]
    path: str = Field(min_length=1, description="The .npz file.", examples=["people.npz"])
    label: str = Field(
        "label", min_length=1, description='What the column of labels is called, such as "label".'
    )
    owner: Literal["record", "user"] = Field(
        "record",
        description="Who is a client: each record by itself, or each user with all of its records.",
    )
    public: bool = Field(
        False,
        description="Whether everybody may see the records: true values and errors are then on the "
        "public page too, and else on the operator's alone.",
    )


Data = Annotated[Bits | Categories | Numbers | NpzTable, Field(discriminator="name")]
