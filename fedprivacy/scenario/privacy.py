"""The privacy section of a scenario, a class for each trust model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, Field, PlainSerializer

from fedprivacy.mechanisms.central import CENTRAL_NAMES, all_options
from fedprivacy.mechanisms.combinations import SHARED
from fedprivacy.mechanisms.local import LOCAL
from fedprivacy.mechanisms.options import (
    AdaptiveOptions,
    BandedOptions,
    EncodingOptions,
    LayerShares,
    SharesOptions,
)
from fedprivacy.sampling.group_limits import MOST_GROUPS, NAME
from fedprivacy.scenario.base import Section
from fedprivacy.scenario.client_ids import MOST, collapsed, expanded

if TYPE_CHECKING:
    MechanismName = str
    CentralMechanismName = str
    SharedMechanismName = str

    class _Options(BaseModel):
        pass
else:
    _Options = all_options()
    MechanismName = Literal[(*LOCAL, "auto")]
    CentralMechanismName = Literal[CENTRAL_NAMES]
    SharedMechanismName = Literal[SHARED]

Unit = Literal["client", "example"]
LEAST_NORM = (
    1e-9  # far above where float32 rounds coarsely, and a clipped gradient may be longer than the bound
)


Ids = Annotated[
    tuple[Annotated[int, Field(ge=0)], ...],
    Field(strict=False, min_length=1, max_length=MOST),
    BeforeValidator(expanded),
    PlainSerializer(collapsed),
]


class BudgetGroup(Section):
    """Clients with a stricter budget than the others; which clients, and what it costs them, is public."""

    share: float | None = Field(
        None, gt=0, lt=1, description="The share of all clients that is drawn for the group, such as 0.2."
    )
    clients: Ids | None = Field(
        None,
        description='The ids of its clients, in place of a share, such as [0, 1, 2], or "0-99" for a range.',
    )
    epsilon: float | None = Field(
        None, gt=0, le=10**6, description="Its budget, at most privacy.epsilon, such as 1.0."
    )
    noise_multiplier: float | None = Field(
        None, ge=1e-4, le=10**7, description="Of its clients' own noise, where trust is local, such as 8.0."
    )
    through: Literal["weight", "rate"] | None = Field(
        None,
        description="What makes its epsilon smaller under central trust: a weight of its clipped updates, as "
        'without this key, or a lower rate of sampling, such as "rate".',
    )
    weight: float | None = Field(
        None, gt=0, le=1, description="The factor of its clipped updates, in place of epsilon, such as 0.5."
    )
    rate: float | None = Field(
        None, gt=0, le=1, description="Its own rate of Poisson sampling, in place of epsilon, such as 0.05."
    )


BUDGET_KEYS = ("epsilon", "noise_multiplier", "weight", "rate", "through")  # the others are its clients
Groups = dict[Annotated[str, Field(pattern=NAME)], BudgetGroup]


class _Privacy(Section):
    unit: Unit = Field(
        "client", description="What is protected: all records of one client, or one record (example)."
    )
    adjacency: Literal["replace-one", "add-remove", "zero-out"] = Field(
        "replace-one", description="Which two data sets the guarantee holds apart."
    )
    clipping_layers: LayerShares | None = Field(
        None,
        description="Clips each layer's part of an update to its own share of clipping_norm too: equal ones, "
        "or by the root of a layer's size; without it the whole update alone is clipped.",
        examples=["equal"],
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
    groups: Groups | None = Field(
        None,
        min_length=1,
        max_length=MOST_GROUPS,
        description="Groups of clients that have budgets under another trust model: here accuracy is "
        "measured for each, and nothing protects any.",
        examples=[{"cautious": {"share": 0.2}}],
    )


class _Budget(_Privacy):
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
    groups: Groups | None = Field(
        None,
        min_length=1,
        max_length=MOST_GROUPS,
        description="Groups of clients with a stricter budget, each a table [privacy.groups.NAME]; clients "
        "in none have the budget of this section.",
        examples=[{"cautious": {"share": 0.2, "epsilon": 1.0}}],
    )


class _Noisy(EncodingOptions, _Budget):
    """Noise and its budget; the options of encodings follow the keys of the budget."""


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


class DistributedPrivacy(SharesOptions, _Budget):
    """Each client adds a share of the noise; the server sees the secure sum of a round and no update."""

    direction: ClassVar[None] = None
    encoding: ClassVar[None] = None
    trust: Literal["distributed"]
    mechanism: SharedMechanismName = Field(
        "skellam", description="The integer noise of which each client adds a share."
    )
    max_participations: int = Field(
        ge=1, le=10**6, description="How often a client may take part; without it, in every round."
    )
    noise_draw: Literal["client", "sum"] = Field(
        "client", description="One draw of noise for each client, or one for the sum of a chunk."
    )


class _Central(_Noisy):
    max_participations: ClassVar[None] = None
    noise_draw: ClassVar[None] = None
    direction: ClassVar[None] = None
    trust: Literal["central"]
    mechanism: CentralMechanismName = Field("gaussian", description="The noise that the server adds.")


class CentralPrivacy(AdaptiveOptions, BandedOptions, _Options, _Central):
    """The server, which is trusted, adds noise once a round."""
