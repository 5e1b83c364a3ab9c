"""The kinds of queries, one class each. Bounds, grids and categories are public."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, Field

from fedprivacy.mechanisms.registry import family
from fedprivacy.scenario.base import Section
from fedprivacy.scenario.sections import no_repeats
from fedprivacy.scenario.statistics.data import MAX_CELLS

ForBits = Literal["auto", "randomized-response", "laplace"]
if TYPE_CHECKING:
    ForCategories = str
else:
    ForCategories = Literal[("auto", *family("category"))]
ByServer = Literal["auto", "laplace", "discrete-laplace"]
Finite = Annotated[float, Field(ge=-1e15, le=1e15)]
_LOCAL = "What each client does to its answer under local trust; auto takes what has the least variance."
_CHOICE = (
    "What the server does under central trust: choose by the exponential mechanism, which auto stands for, "
    "or release all counts and read the answer off, which may be better for a short list: compare both."
)
_CENTRAL = "What the server does under central trust; auto takes what has the least error."


class _Query(Section):
    column: str = Field("answer", min_length=1, description="The column of the query.")
    weight: float = Field(
        1.0, gt=0, le=1e6, description="Its part of the budget, beside the weights of the other queries."
    )


class _Bit(_Query):
    equals: Finite | None = Field(None, description="What counts as yes, such as 1.0.")
    above: Finite | None = Field(None, description="Whatever is larger counts as yes, such as 65.0.")
    local: ForBits = Field("auto", description=_LOCAL)
    central: ByServer = Field("auto", description=_CENTRAL)


class MeanOfBits(_Bit):
    """The share of the clients with a yes."""

    kind: Literal["mean-of-bits"]


class Count(_Bit):
    """The number of clients with a yes."""

    kind: Literal["count"]


class Mean(_Query):
    """The mean of numbers between two bounds; numbers beyond are cut."""

    kind: Literal["mean"]
    low: Finite = Field(description="The lower bound.", examples=[0.0])
    high: Finite = Field(description="The upper bound.", examples=[100.0])
    local: ForBits = Field("auto", description=_LOCAL)
    central: Literal["auto", "laplace"] = Field("auto", description=_CENTRAL)


class _Categorical(_Query):
    first: int | None = Field(
        None, ge=-(10**12), le=10**12, description="The least category, a whole number.", examples=[0]
    )
    last: int | None = Field(None, ge=-(10**12), le=10**12, description="The largest category.", examples=[9])
    edges: tuple[Finite, ...] | None = Field(
        None,
        strict=False,
        min_length=1,
        max_length=MAX_CELLS,
        description="Instead of first and last: where a number passes from one category to the next.",
    )
    names: Annotated[tuple[str, ...], AfterValidator(no_repeats)] | None = Field(
        None, strict=False, min_length=2, max_length=MAX_CELLS, description="What the categories are called."
    )
    local: ForCategories = Field("auto", description=_LOCAL)


class Histogram(_Categorical):
    """The number of clients in each category; numbers beyond the last count there."""

    kind: Literal["histogram"]
    bound_probability: float = Field(
        0.95,
        gt=0,
        lt=1,
        description="With which probability the bound on the largest error holds, such as 0.95.",
    )
    central: ByServer = Field("auto", description=_CENTRAL)


class MostCommon(_Categorical):
    """The category that most clients are in."""

    kind: Literal["most-common"]
    per_client: int = Field(
        1,
        ge=1,
        le=1000,
        description="In how many categories a client counts at most, once in each that it has a record of; "
        "with 1 its records share the one vote that it has.",
    )
    central: Literal["auto", "noisy-max", "exponential-mechanism", "permute-and-flip", "all-counts"] = Field(
        "auto", description=_CENTRAL
    )


class ShareByGroup(_Categorical):
    """The share of yes among the clients of each group; `column` is yes or no, `by` names the group."""

    kind: Literal["share-by-group"]
    by: str = Field(min_length=1, description="The column of the groups.", examples=["age"])
    equals: Finite | None = Field(None, description="What counts as yes, such as 1.0.")
    above: Finite | None = Field(None, description="Whatever is larger counts as yes, such as 65.0.")
    central: ByServer = Field("auto", description=_CENTRAL)


class _Grid(_Query):
    local: ForCategories = Field("auto", description=_LOCAL)


class Quantile(_Grid):
    """Quantiles, to within a public grid of candidates from `low` to `high`."""

    kind: Literal["quantile"]
    low: Finite = Field(description="The least candidate.", examples=[0.0])
    high: Finite = Field(description="The largest candidate.", examples=[100_000.0])
    steps: int = Field(100, ge=1, le=100_000, description="The steps from low to high, such as 100.")
    quantiles: Annotated[tuple[Annotated[float, Field(gt=0, lt=1)], ...], AfterValidator(no_repeats)] = Field(
        (0.5,),
        strict=False,
        min_length=1,
        max_length=100,
        description="Which quantiles, such as [0.25, 0.5].",
    )
    central: Literal["auto", "exponential-mechanism", "all-counts"] = Field("auto", description=_CHOICE)


class BestPrice(_Grid):
    """The price of a public list that earns most where each client pays it if it bids as much."""

    kind: Literal["best-price"]
    prices: tuple[Annotated[float, Field(gt=0, le=1e12)], ...] = Field(
        strict=False,
        min_length=2,
        max_length=100_000,
        description="The prices that may be set, rising.",
        examples=[[1.0, 2.0, 3.0]],
    )
    central: Literal["auto", "exponential-mechanism", "all-counts"] = Field("auto", description=_CHOICE)


Query = Annotated[
    MeanOfBits | Count | Mean | Histogram | MostCommon | ShareByGroup | Quantile | BestPrice,
    Field(discriminator="kind"),
]
QUERIES: dict[str, type[Section]] = {
    "mean-of-bits": MeanOfBits,
    "count": Count,
    "mean": Mean,
    "histogram": Histogram,
    "share-by-group": ShareByGroup,
    "quantile": Quantile,
    "most-common": MostCommon,
    "best-price": BestPrice,
}
