"""The data section of a scenario, a class for each data set; reading it loads no data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from fedprivacy.data.tasks import CLASSIFICATION, NEXT_TOKEN, REGRESSION
from fedprivacy.scenario.base import MAX_SEED, Section

if TYPE_CHECKING:
    from fedprivacy.data.npz import Facts
    from fedprivacy.data.targets import TargetBounds

# The keys that belong to one way of dealing out records, or of scaling them, and to no other.
KEYS_OF: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "partition": {
        "one-per-example": (),
        "iid": ("clients",),
        "by-user": (),
        "dirichlet": ("clients", "alpha"),
        "by-label": ("clients",),
        "fixed-records": ("records_per_client",),
    },
    "scaling": {"none": (), "per-record": (), "per-image": (), "bounds": ("low", "high"), "public": ("cut",)},
}
# Keys of a way that it can do without.
OPTIONAL_KEYS_OF: Mapping[str, tuple[str, ...]] = {"fixed-records": ("clients",)}


DEALT_BY_LABEL = ("dirichlet", "by-label")


def keys_of(choice: str, way: str) -> tuple[str, ...]:
    """The keys that have an effect where `choice` ("partition" or "scaling") is `way`."""
    return KEYS_OF[choice][way] + OPTIONAL_KEYS_OF.get(way, ())


def foreign_keys(choice: str, chosen: object) -> set[str]:
    """The keys that have no effect where `choice` ("partition" or "scaling") is `chosen`."""
    ways = KEYS_OF[choice]
    chosen_keys = keys_of(choice, chosen) if isinstance(chosen, str) and chosen in ways else ()
    return {key for keys in ways.values() for key in keys}.difference(chosen_keys)


def count_clients(
    *,
    records: int,
    users: int | None,
    public_fraction: float,
    partition: str,
    clients: int | None,
    records_per_client: int | None,
) -> int | None:
    """The number of clients, or None where something is missing that `partition` needs.

    Args:
        records: All training records.
        users: The distinct users of the training records, if the data name any.
        public_fraction: The share of the records (by user: of the users) that no client owns.
        partition: How records are dealt out.
        clients: The scenario's `clients`.
        records_per_client: The scenario's `records_per_client`.
    """
    private = records - round(records * public_fraction)
    if partition == "one-per-example":
        return private
    if partition == "by-user":
        return None if users is None else users - round(users * public_fraction)
    if partition == "fixed-records":
        if records_per_client is None or clients is not None:
            return clients
        return private // records_per_client
    return clients


def _bound(value: Any) -> float | tuple[float, ...]:
    numbers = value if isinstance(value, list | tuple) else [value]
    good = [isinstance(n, int | float) and not isinstance(n, bool) and math.isfinite(n) for n in numbers]
    if not good or not all(good) or not all(abs(n) <= 1e30 for n in numbers):
        raise PydanticCustomError("bound", "must be a number, or a list with one for each column")
    return tuple(map(float, value)) if isinstance(value, list | tuple) else float(value)


def _columns(value: Any) -> tuple[str | int, ...]:
    named = value if isinstance(value, list | tuple) else ()
    if not named or not all(isinstance(n, str | int) and not isinstance(n, bool) for n in named):
        raise PydanticCustomError("columns", "must be a list of column names, or of places counted from 0")
    return tuple(named)


Bound = Annotated[float | tuple[float, ...], BeforeValidator(_bound)]
Columns = Annotated[tuple[str | int, ...], BeforeValidator(_columns)]


class _Data(Section):
    partition: Literal["one-per-example", "iid", "by-user", "dirichlet", "fixed-records", "by-label"] = Field(
        "one-per-example", description="How the records are dealt out to clients."
    )
    clients: int | None = Field(None, ge=1, le=10**9, description="The number of clients.", examples=[100])
    alpha: float | None = Field(
        None,
        ge=1e-3,
        le=10**6,
        description="How even the labels of a client are: near 0 each client has one, 100 is nearly iid.",
        examples=[0.3],
    )
    records_per_client: int | None = Field(
        None,
        ge=1,
        le=10**9,
        description="The records of each client; those that are too few for one more are left out, and with "
        "`clients` all beyond so many clients.",
        examples=[10],
    )
    first_clients: int | None = Field(
        None,
        ge=1,
        le=10**9,
        description="Only so many of the clients take part, each with the records that it has among all; the "
        "order is drawn by `seed`, so that the first 10 are among the first 100.",
        examples=[100],
    )
    public_fraction: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="The share of the training records (by user: of the users) that no client owns, "
        "such as 0.1.",
    )
    scaling: Literal["none", "per-record", "per-image", "bounds", "public"] = Field(
        "none",
        description="What is done to records: nothing; each one's own mean subtracted and its own standard "
        "deviation divided by; the same for square images, with most of the mean of each column of pixels "
        "taken away too; given bounds mapped to 0 and 1; or the mean and deviation of the public part.",
    )
    low: Bound | None = Field(
        None,
        description="What becomes 0, one number or one for each column; values below are cut.",
        examples=[0.0],
    )
    high: Bound | None = Field(
        None,
        description="What becomes 1, one number or one for each column; values above are cut.",
        examples=[255.0],
    )
    cut: float | None = Field(
        None,
        gt=0,
        le=10**6,
        description="The standard deviations at which a scaled value is cut, such as 3.0.",
        examples=[3.0],
    )
    public: bool = Field(
        False,
        description="Whether everybody may see the records: pictures that an attack rebuilds are then on the "
        "public page too, and else on the operator's alone.",
    )
    seed: int = Field(0, ge=0, le=MAX_SEED, description="The seed of the partition, such as 0.")

    def count(self, records: int, users: int | None = None) -> int:
        """The number of clients that so many training records of so many users make."""
        if self.first_clients is not None:
            return self.first_clients
        return (
            count_clients(
                records=records,
                users=users,
                public_fraction=self.public_fraction,
                partition=self.partition,
                clients=self.clients,
                records_per_client=self.records_per_client,
            )
            or 0
        )


class Digits(_Data):
    """scikit-learn's handwritten digits: 1797 images of 8 x 8 pixels, 10 classes."""

    train_records: ClassVar[int] = 1437
    test_records: ClassVar[int] = 360
    name: Literal["digits"]

    @property
    def population(self) -> int:
        """The number of clients."""
        return self.count(self.train_records)


class _Predicted(_Data):
    task: Literal["classification", "regression", "multi-label", "next-token"] = Field(
        CLASSIFICATION,
        description="What is predicted of a record: its class, numbers, labels that are each yes or no, or "
        "at each position of a text the token that follows.",
    )
    target_low: Bound | None = Field(
        None,
        description="Of a regression: the target that becomes 0, one number or one for each target; "
        "targets of clients below are cut.",
        examples=[0.0],
    )
    target_high: Bound | None = Field(
        None,
        description="Of a regression: the target that becomes 1, one number or one for each target; "
        "targets of clients above are cut.",
        examples=[100.0],
    )

    def target_bounds(self, targets: int) -> TargetBounds | None:
        """The public bounds of the targets of a regression; None for another task."""
        if self.task != REGRESSION:
            return None
        assert self.target_low is not None
        assert self.target_high is not None
        from fedprivacy.data.targets import TargetBounds  # needs numpy, and reading a scenario does not

        return TargetBounds.of(self.target_low, self.target_high, targets)


class Synthetic(_Predicted):
    """Records drawn from a linear or logistic model with known parameters, as many as wanted."""

    name: Literal["synthetic"]
    records: int = Field(100_000, ge=1, le=10**9, description="The number of training records.")
    test_records: int = Field(10_000, ge=1, le=10**9, description="The number of test records.")
    features: int = Field(20, ge=1, le=10**6, description="The number of features of a record, such as 20.")
    signal: float = Field(
        4.0,
        ge=0,
        le=10**6,
        description="How far the true parameters are from zero (their norm), such as 4.0.",
    )
    targets: int | None = Field(
        None,
        ge=1,
        le=1000,
        description="The numbers or labels of a record, such as 3; without it 1.",
        examples=[3],
    )

    @property
    def train_records(self) -> int:
        return self.records

    @property
    def population(self) -> int:
        """The number of clients."""
        return self.count(self.train_records)


class PurchaseLike(_Data):
    """Random bits around class prototypes: easy to memorise, so that members stand out.

    Like Purchase100 of the membership literature (600 bits, 100 classes), but made up.
    """

    name: Literal["purchase-like"]
    records: int = Field(3_000, ge=1, le=10**8, description="The number of training records.")
    test_records: int = Field(1_000, ge=1, le=10**8, description="The number of test records.")
    features: int = Field(600, ge=1, le=10**6, description="The number of bits of a record, such as 600.")
    classes: int = Field(100, ge=2, le=10**6, description="The number of prototypes, such as 100.")
    flip: float = Field(
        0.2,
        ge=0,
        le=0.5,
        description="How likely each bit of a record differs from its prototype, such as 0.2.",
    )

    @property
    def train_records(self) -> int:
        return self.records

    @property
    def population(self) -> int:
        """The number of clients."""
        return self.count(self.train_records)


class FileData(_Predicted):
    """Records of an .npz file; `facts` and `population` read no records."""

    missing: Literal["error", "zero"] = Field(
        "error",
        description="A missing value (NaN, infinite or beyond float32) is an error, or 0 after scaling.",
    )
    classes: int | None = Field(
        None,
        ge=2,
        le=10**6,
        description="The number of classes; without it that of the data's names of classes, or else the "
        "largest training label and one.",
    )

    @property
    def file(self) -> str:
        """The path of the .npz file."""
        raise NotImplementedError

    @property
    def facts(self) -> Facts:
        """The file's own facts, read again only when the file has changed.

        Raises:
            NpzError: if it is not a file that can be used.
        """
        from fedprivacy.data.npz import facts

        return facts(self.file, self.task)

    @property
    def population(self) -> int:
        """The number of clients, from the file's headers and user column.

        Raises:
            NpzError: if it is not a file that can be used.
        """
        return self.count(self.facts.records, self.facts.users)


class Npz(FileData):
    """A numpy file with the arrays x_train, y_train, x_test, y_test, and user_train if users are clients."""

    name: Literal["npz"]
    path: str = Field(
        min_length=1,
        description="The file, seen from the folder where the command runs.",
        examples=["data/mnist.npz"],
    )
    columns: Columns | None = Field(
        None, description='The columns to keep, in this order, such as ["age", "income"].'
    )
    without: Columns | None = Field(None, description='The columns to leave out, such as ["divorced"].')

    @property
    def file(self) -> str:
        """The path of the .npz file."""
        return self.path


class FlwrDatasets(FileData):
    """A data set that flwr-datasets loads: of the Hugging Face Hub, or of a folder with tables or images."""

    name: Literal["flwr-datasets"]
    path: str = Field(
        min_length=1,
        description="A data set of the Hugging Face Hub by owner and name, or a folder, seen from where the "
        "command runs.",
        examples=["ylecun/mnist"],
    )
    subset: str | None = Field(
        None,
        min_length=1,
        description="Which of its configurations, if there are several.",
        examples=["mnist"],
    )
    revision: str | None = Field(
        None,
        min_length=1,
        description="Which version on the Hub: a commit or a tag. Without it the newest when first loaded, "
        "which is kept.",
        examples=["main"],
    )
    train: str = Field("train", min_length=1, description="The split that is dealt out to clients.")
    test: str = Field("test", min_length=1, description="The split of held-out records.")
    inputs: tuple[str, ...] | None = Field(
        None,
        strict=False,
        min_length=1,
        description='The columns that make a record, such as ["image"]; without it all but label and user.',
        examples=[["image"]],
    )
    label: str = Field(min_length=1, description="The column of the labels.", examples=["label"])
    user: str | None = Field(
        None,
        min_length=1,
        description='The column that says whose a record is, for partition "by-user".',
        examples=["writer"],
    )

    @property
    def file(self) -> str:
        """The path of the .npz file that the data set was made into, made now if it is not there.

        Raises:
            SourceError: if it cannot be loaded, or not be made into one.
        """
        from fedprivacy.data.hub import file
        from fedprivacy.data.source import Source

        return file(Source.of(dict(self)))


def _label(value: Any) -> str | tuple[str, ...]:
    if isinstance(value, str) and value:
        return value
    named = value if isinstance(value, list | tuple) else ()
    if not named or not all(isinstance(name, str) and name for name in named) or len(set(named)) < len(named):
        raise PydanticCustomError("label", "must be the name of a column, or a list of different ones")
    return tuple(named)


class TableFile(FileData):
    """A CSV, TSV or Parquet file with a row for each record; texts become categories and classes."""

    name: Literal["table"]
    path: str = Field(
        min_length=1,
        description="The file, seen from the folder where the command runs.",
        examples=["hospitals.csv"],
    )
    label: Annotated[str | tuple[str, ...], BeforeValidator(_label)] = Field(
        description="The column of the labels or targets; of several targets or labels a list.",
        examples=["disease"],
    )
    user: str | None = Field(
        None,
        min_length=1,
        description='The column that names the owner of a record, for partition "by-user".',
        examples=["hospital"],
    )
    drop: tuple[str, ...] = Field(
        (), strict=False, description='The columns to leave out, such as ["name", "address"].'
    )
    held_out: float = Field(
        0.2,
        gt=0,
        lt=1,
        description="The share of records to test on, of whole users where there are many; without test.",
    )
    test: str | None = Field(
        None,
        min_length=1,
        description="A file of test records with the same columns, in place of held_out.",
        examples=["hospitals-test.csv"],
    )

    @property
    def file(self) -> str:
        """The path of the .npz file that the table was made into, made now if it is not there.

        Raises:
            SourceError: if the table cannot be read, or a column cannot be used.
        """
        from fedprivacy.data.table_file import TableSource, file

        return file(TableSource.of(dict(self)))


def _vocabulary(value: str) -> str:
    if len(set(value)) < len(value):
        raise PydanticCustomError("vocabulary", "must have each character once")
    return value


class TextFile(FileData):
    """A text of several authors, by whom a model of the next character is trained; or a simulated play."""

    name: Literal["text"]
    task: Literal["next-token"] = Field(
        NEXT_TOKEN, description="What is predicted: at each position of a text the character that follows."
    )
    path: str | None = Field(
        None,
        min_length=1,
        description="The file in UTF-8, seen from the folder where the command runs; without it a simulated "
        "play.",
        examples=["plays.txt"],
    )
    authors: Literal["speakers", "paragraphs"] = Field(
        "speakers",
        description='Whose a part is: that of the speaker whose line "NAME:" is above it, after an empty '
        "line; or each part between empty lines is an author's.",
    )
    window: int = Field(
        64, ge=2, le=10_000, description="The characters of a record, such as 64; a shorter rest is left out."
    )
    vocabulary: Annotated[str, AfterValidator(_vocabulary)] | None = Field(
        None,
        min_length=2,
        max_length=10_000,
        description="The characters that are tokens, which must be public; all others are one more. Without "
        "it printable ASCII and the end of a line.",
        examples=["abcdefghijklmnopqrstuvwxyz "],
    )
    held_out: float = Field(
        0.2, gt=0, lt=1, description="The share of each author's records, the last ones, to test on."
    )
    roles: int | None = Field(
        None,
        ge=1,
        le=10_000,
        description="The speakers of a simulated play; without it 100.",
        examples=[100],
    )
    speeches: int | None = Field(
        None,
        ge=1,
        le=10_000,
        description="The speeches of each speaker of a simulated play; without it 4.",
        examples=[4],
    )
    secrets: int = Field(
        0,
        ge=0,
        le=1000,
        description="The number of authors in whose text a made-up secret is, to measure how exposed it is, "
        "such as 10.",
    )
    copies: int = Field(
        10, ge=1, le=10_000, description="How often each secret is in its author's text, whole in a record."
    )

    @property
    def file(self) -> str:
        """The path of the .npz file that the text was made into, made now if it is not there.

        Raises:
            SourceError: if the text cannot be read, or is too short.
        """
        from fedprivacy.data.text_file import TextSource, file

        return file(TextSource.of(dict(self)))
