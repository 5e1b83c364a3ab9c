"""Values for the rules of training scenarios: valid keys, and quantities derived from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fedprivacy.data.tasks import CLASSIFICATION
from fedprivacy.errors import Finding
from fedprivacy.io.toml_text import literal
from fedprivacy.mechanisms.combinations import Terms
from fedprivacy.scenario.data import Digits, count_clients
from fedprivacy.scenario.on_nodes import ON_NODES, shape_of

if TYPE_CHECKING:
    from fedprivacy.data.npz import Facts

CONVERTED = ("table", "text", "flwr-datasets")  # data sets that are made into an .npz file
# Term of the privacy plan -> the key that sets it.
PLAN_KEYS = {
    "trust": "privacy.trust",
    "unit": "privacy.unit",
    "adjacency": "privacy.adjacency",
    "rounds": "server.rounds",
    "sampling": "sampling.name",
    "cohort": "sampling.cohort",
    "separation": "sampling.separation",
    "rate": "sampling.rate",
    "mechanism": "privacy.mechanism",
    "noise_draw": "privacy.noise_draw",
    "min_survivors": "privacy.min_survivors",
    "encoding": "privacy.encoding",
    "clipping_quantile": "privacy.clipping_quantile",
    "bands": "privacy.bands",
    "groups": "privacy.groups",
    "personal": "training.personal",
}


@dataclass(frozen=True)
class Values:
    """The values of a scenario that are valid by themselves.

    Args:
        valid: `section.key` -> value, defaults included.
        broken: `section.key` that were given but are wrong by themselves.
    """

    valid: Mapping[str, Any]
    broken: frozenset[str] = frozenset()

    def __getitem__(self, key: str) -> Any:
        return self.valid.get(key)

    def given(self, key: str) -> bool:
        return key in self.broken or self.valid.get(key) is not None

    @cached_property
    def terms(self) -> Terms:
        """The valid terms of the scenario's privacy plan."""
        terms = {term: self[key] for term, key in PLAN_KEYS.items()}
        if terms["bands"] == "auto":
            terms["bands"] = 1  # one of its candidates, and under every bound
        return Terms(**terms, population=self.population, names=PLAN_KEYS)

    @cached_property
    def facts(self) -> Facts | None:
        """The facts of the data file; None without a usable file."""
        return None if isinstance(self.read, tuple) else self.read

    @cached_property
    def read(self) -> Facts | tuple[Finding, ...] | None:
        """The facts of the data file, or its problem; None without a file."""
        file = self.file
        return (
            file
            if file is None or isinstance(file, tuple)
            else read_facts(file, self["data.path"], self.task)
        )

    @cached_property
    def file(self) -> str | tuple[Finding, ...] | None:
        """The .npz file of the data, or the error in making it; None where none is named."""
        if self["data.name"] == "npz":
            return self["data.path"] or None
        return loaded_file(self) if self["data.name"] in CONVERTED else None

    @property
    def records(self) -> int | None:
        """All training records."""
        if self["data.name"] == "digits":
            return Digits.train_records
        if self["data.name"] == ON_NODES:
            return self._agreed
        records: int | None = self.facts.records if self.facts else self["data.records"]
        return records

    @property
    def _agreed(self) -> int | None:
        """All records that clients on nodes are agreed to have; None where nothing is agreed."""
        sizes, clients = self["data.records_per_client"], self["data.clients"]
        each = sizes is not None and clients is not None
        return (sizes * clients if isinstance(sizes, int) else sum(sizes)) if each else None

    @property
    def features(self) -> tuple[int, ...] | None:
        """The shape of a record, as far as it can be known."""
        if self["data.name"] == "digits":
            return (64,)
        if self.facts is None:
            return shape_of(self["data.features"]) if self["data.features"] else None
        return self.facts.features if len(self.facts.features) > 1 else (len(used_columns(self)),)

    @property
    def width(self) -> int | None:
        """The numbers of one record."""
        return None if self.features is None else math.prod(self.features)

    @property
    def task(self) -> str:
        """What is predicted of a record (`fedprivacy.data.tasks`)."""
        return self["data.task"] or CLASSIFICATION

    @property
    def classes(self) -> int | None:
        """The number of classes, or of targets."""
        if self.task != CLASSIFICATION and self["data.name"] == "synthetic":
            return self["data.targets"] or 1
        known = {"digits": 10, "synthetic": 2}.get(self["data.name"], self["data.classes"])
        if isinstance(known, list | tuple):  # their names
            return len(known)
        return self.facts.classes(self["data.classes"]) if self.facts else known

    @property
    def owners(self) -> int | None:
        """The dealt units, public part included: all training records, or by user all users."""
        users = self.facts.users if self.facts else None
        return users if self["data.partition"] == "by-user" else self.records

    @property
    def private(self) -> int | None:
        """The training records (by user: the users) that are not public."""
        owners, fraction = self.owners, self["data.public_fraction"]
        return None if owners is None or fraction is None else owners - round(owners * fraction)

    @property
    def population(self) -> int | None:
        """The number of clients that take part, as far as it can be known and makes sense."""
        first, dealt = self["data.first_clients"], self.dealt_clients
        return dealt if first is None or dealt is None else min(first, dealt)

    @property
    def dealt_clients(self) -> int | None:
        """The number of clients that the records are dealt to, of whom maybe not all take part."""
        if self["data.name"] == ON_NODES:
            clients: int | None = self["data.clients"]
            return clients
        records, fraction, partition = self.records, self["data.public_fraction"], self["data.partition"]
        if records is None or fraction is None or partition is None:
            return None
        count = count_clients(
            records=records,
            users=self.facts.users if self.facts else None,
            public_fraction=fraction,
            partition=partition,
            clients=self["data.clients"],
            records_per_client=self["data.records_per_client"],
        )
        return count or None

    @property
    def batch(self) -> int:
        """The records of a step of a client with as many records as any other."""
        fixed = self["data.records_per_client"] if self["data.partition"] == "fixed-records" else None
        each = fixed or math.ceil((self.records or 1) / (self.dealt_clients or 1))
        if self["training.rate"] is not None:
            return math.ceil(each * self["training.rate"])
        return (
            each if self["training.batch_size"] in (None, "all") else min(each, self["training.batch_size"])
        )

    @property
    def units(self) -> tuple[int | None, str]:
        """The number of protected units, if known, and their kind.

        Where a comparison has both units it is the larger number, since all its cells have the same delta.
        """
        if "example" not in (self["privacy.unit"], *(self["compare.units"] or ())):
            return self.population, "clients"
        records, fraction = self.records, self["data.public_fraction"]
        if self["data.name"] == ON_NODES:
            return records, "records"
        known = records is not None and fraction is not None
        return (records - round(records * fraction) if records and known else None), "records"


def loaded_file(v: Values) -> str | tuple[Finding, ...] | None:
    """The .npz file that a table, text or data set of flwr-datasets is made into, or the reason for none.

    None where a key of the source is missing or wrong by itself.
    """
    from fedprivacy.data import hub, table_file, text_file
    from fedprivacy.data.source import Source, SourceError

    kinds: dict[str, tuple[Any, Callable[[Any], str], tuple[str, ...]]] = {
        "table": (table_file.TableSource, table_file.file, ("path", "label", "held_out")),
        "text": (
            text_file.TextSource,
            text_file.file,
            ("authors", "window", "held_out", "secrets", "copies", "seed"),
        ),
        "flwr-datasets": (Source, hub.file, ("path", "train", "test", "label")),
    }
    source, make, needed = kinds[v["data.name"]]
    keys = {field.name: v[f"data.{field.name}"] for field in fields(source)}
    if any(keys[key] is None for key in needed) or any(f"data.{key}" in v.broken for key in keys):
        return None
    try:
        return make(source.of(keys))
    except SourceError as error:
        return error.findings


def read_facts(file: str, path: str, task: str = CLASSIFICATION) -> Facts | tuple[Finding, ...]:
    """The facts of an .npz file for a task, or its problem; `path` is the scenario's."""
    from fedprivacy.data.npz import NpzError, facts

    try:
        return facts(file, task)
    except NpzError as error:
        return tuple(Finding(("data", "path"), *wrong, literal(path)) for wrong in error.wrongs)


def used_columns(v: Values) -> tuple[int, ...]:
    """The places of the columns that are used, of those that are there."""
    from fedprivacy.data.columns import chosen

    assert v.facts is not None
    return chosen(v["data.columns"], v["data.without"], v.facts.feature_names, v.facts.features[0])
