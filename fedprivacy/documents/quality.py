"""The parts of a document about how good a model is, and for whom, on held-out records."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from fedprivacy.io.document_part import CHECKED, Number, Part

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Bits = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
Records = Annotated[int, Field(ge=0, le=10**12)]
# Metrics by name (`fedprivacy.models.metrics.registry`); null where one is not defined.
Measures = Annotated[dict[str, Annotated[float, Field(allow_inf_nan=False)] | None], Field(max_length=100)]
FEW = 30  # records: of fewer the figures of a group are too uncertain to be compared
# What is outside every guarantee where the held-out records are those of clients, as accuracy is.
MEASURED = tuple(
    f"{part}.{key}"
    for part in (
        "final",
        *(f"{name}[]" for name in ("cells", "variations", "options", "baselines", "limits")),
    )
    for key in ("measures", "groups", "users")
)


class ClassAccuracy(Part):
    """The accuracy on held-out records of one class."""

    number: int | str = Field(alias="class")
    label: str | None = None
    accuracy: float | None = None
    records: int | None = None

    @property
    def name(self) -> str:
        """The class as a person would call it."""
        return self.label or str(self.number)


class GroupAccuracy(Part):
    """The accuracy on one group's held-out records.

    Args:
        group: Its value, or range of values.
        records: How many held-out records it has.
        accuracy: On them; null where there are none.
        low: The lower end of its 95 % Wilson interval, over records for this model.
        high: The upper end.
        balanced_accuracy: The mean accuracy within the classes of its records.
        gap: How far its accuracy is below that of the best group of the column that is not too small.
        few: Whether it has too few records to be compared.
    """

    group: str
    records: Records
    accuracy: Share | None = None
    low: Share | None = None
    high: Share | None = None
    balanced_accuracy: Share | None = None
    gap: Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False)] | None = None
    few: bool = False


class ColumnGroups(Part):
    """The groups by one column; `edges` are those of its ranges, empty for categories."""

    column: str
    edges: tuple[Number, ...] = ()
    groups: Annotated[tuple[GroupAccuracy, ...], Field(max_length=1000)] = ()


class Quantile(Part):
    """The accuracy that this share of the users does not exceed."""

    share: Share
    accuracy: Share


class PersonalAccuracies(Part):
    """The accuracy of clients' personal models, each on its client's own held-out records.

    Args:
        mode: How clients get them (`training.personal`).
        clients: The number of clients that have held-out records.
        failed: How many of them count with the shared model, because their own fails.
        records: The number of these records.
        mean: The mean accuracy of the clients, each counted once.
        worst: The mean accuracy of the worst tenth of them.
        worst_clients: How many that are, a tenth rounded up.
        shared_mean: The mean with the model that all clients share, on the same records.
        shared_worst: That of its own worst tenth.
    """

    mode: str
    clients: Records
    failed: Records
    records: Records
    mean: Share
    worst: Share
    worst_clients: Records
    shared_mean: Share
    shared_worst: Share


class UserAccuracies(Part):
    """The accuracy on the records of each held-out user, none of whom is a client.

    Args:
        users: How many.
        mean: Their mean accuracy, each user counted once.
        worst: The mean accuracy of the worst tenth.
        worst_users: How many that are, a tenth rounded up.
        worst_by_chance: What the worst tenth would have if the model served all users equally well and only
            the chance of few records told them apart.
        quantiles: From the worst user to the best.
    """

    users: Records
    mean: Share
    worst: Share
    worst_users: Records
    worst_by_chance: Share | None = None
    quantiles: Annotated[tuple[Quantile, ...], Field(max_length=1001)] = ()


class ExposureBound(Part):
    """The largest mean exposure that a guarantee allows, over draws of the secrets, not of each run.

    Args:
        bits: The bound.
        observer: Whoever sees no more than that observer does.
        adjacency: That of the guarantee, of unit "client".
        steps: The number of its steps between texts with one secret and with another.
        basis: The basis of the trade-off curve.
        assumptions: Those of the guarantee.
    """

    bits: Annotated[Bits, CHECKED]
    observer: Annotated[str, CHECKED]
    adjacency: Annotated[str, CHECKED]
    steps: Annotated[int, Field(ge=1, le=2), CHECKED]
    basis: Annotated[str, CHECKED]
    assumptions: Annotated[tuple[str, ...], CHECKED]


class Exposure(Part):
    """The exposure of made-up secrets in clients' texts, in bits (`fedprivacy.attacks.secret_exposure`).

    It depends on the final model and on the secrets alone, so that whoever sees the model may see it too.

    Args:
        copies: How often each secret is in the text of its client, each time whole in a record.
        candidates: The number of candidates that it is ranked among.
        bits: The exposure of each secret.
        mean: Of these.
        chance: The mean exposure of a secret that the model has not seen.
        bound: That of the mean; null where no guarantee for a client implies one.
    """

    copies: Annotated[Records, CHECKED]
    candidates: Annotated[Records, CHECKED]
    bits: Annotated[tuple[Bits, ...], Field(min_length=1, max_length=1000), CHECKED]
    mean: Annotated[Bits, CHECKED]
    chance: Annotated[Bits, CHECKED]
    bound: Annotated[ExposureBound | None, CHECKED] = None
