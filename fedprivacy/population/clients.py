"""The data of a scenario, dealt to its clients, with what the server may see for evaluation."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedprivacy.data import npz, storage
from fedprivacy.data.columns import chosen
from fedprivacy.data.datasets import Dataset, digits, purchase_like, synthetic, synthetic_targets
from fedprivacy.data.scaling import Scaling, moments
from fedprivacy.data.targets import TargetBounds
from fedprivacy.data.targets import columns as columns_of
from fedprivacy.data.tasks import CLASSIFICATION
from fedprivacy.errors import InputError
from fedprivacy.population.first_clients import first_clients
from fedprivacy.population.partition import (
    Partition,
    by_label,
    by_user,
    dirichlet,
    fixed_records,
    iid,
    one_per_example,
)
from fedprivacy.scenario.data import (
    Digits,
    FileData,
    FlwrDatasets,
    Npz,
    PurchaseLike,
    Synthetic,
    TableFile,
    TextFile,
)
from fedprivacy.scenario.on_nodes import OnNodes

Options = Digits | Synthetic | PurchaseLike | Npz | FlwrDatasets | TableFile | TextFile


@dataclass(frozen=True)
class Population:
    """One array of records, with the owner of each.

    `test_owned`: whether test records belong to clients, or may; if users are the clients, only a file that
    names the users of both parts can show that they do not. `judged`: the targets of a membership game, which
    no defence may read.
    """

    dataset: Dataset
    partition: Partition
    test_owned: bool = False
    judged: NDArray[np.int64] | None = None

    @property
    def features(self) -> tuple[int, ...]:
        """The shape of one record."""
        return self.dataset.x.shape[1:]

    @cached_property
    def digest(self) -> str:
        """Identifies these records, labels and owners among others."""
        digest = hashlib.blake2b(digest_size=16)
        for array in (self.dataset.x, self.dataset.y, self.partition.order, self.partition.offsets):
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def tests_clients(self, where: str) -> bool:
        """Whether the accuracy on a held-out part (`held_out`) depends on clients' held-out records."""
        return where == "test" and self.test_owned

    @property
    def references(self) -> NDArray[np.int64]:
        """The indices of the public records that a defence may use; in a game without its targets."""
        public = self.partition.public
        return public if self.judged is None else np.setdiff1d(public, self.judged)

    def held_out(self, where: str) -> tuple[NDArray[np.float32], NDArray[Any]]:
        """Records to evaluate on, which no client trains on: the "test" part or, "public", the references."""
        if where == "test":
            return self.dataset.x_test, self.dataset.y_test
        return self.dataset.x[self.references], self.dataset.y[self.references]


def population(options: Options | OnNodes) -> Population:
    """Loads and deals the data of a scenario; the runs of a comparison share one copy.

    Raises:
        InputError: if a file does not match the scenario, or the records are not here.
    """
    if isinstance(options, OnNodes):
        raise InputError(
            'data.name = "on-nodes": the records of this scenario are on nodes, and not here. It runs over '
            "SuperNodes that were given them (docs/nodes.md): fedprivacy run SCENARIO --engine superlink"
        )
    return _population(options, npz.stamp(options.file) if isinstance(options, FileData) else None)


@lru_cache(maxsize=2)
def _population(options: Options, stamp: tuple[str, int, int] | None) -> Population:
    if isinstance(options, FileData):
        return _from_file(options)
    data = _generated(options)
    partition = _deal(options, data.y, None)
    data = replace(data, y=_within_bounds(data.y, data.target_bounds, partition))
    if options.scaling == "none":
        return Population(data, partition)
    scaling = _scaling(options, None, lambda: [data.x[partition.public]])
    return Population(replace(data, x=scaling(data.x), x_test=scaling(data.x_test)), partition)


def _from_file(options: Npz | FlwrDatasets | TableFile | TextFile) -> Population:
    path, facts = options.file, options.facts
    y, y_test = (npz.array(path, name) for name in ("y_train", "y_test"))
    bounds = None
    if facts.targets is None:
        y, y_test = y.astype(np.int64), y_test.astype(np.int64)
    else:
        bounds = options.target_bounds(facts.targets)
        y, y_test = _targets(y, bounds), _targets(y_test, bounds)
    users = npz.array(path, "user_train") if options.partition == "by-user" else None
    partition = _deal(options, y, users)
    y = _within_bounds(y, bounds, partition)
    columns, names = None, facts.feature_names
    if isinstance(options, Npz) and (options.columns is not None or options.without is not None):
        columns = chosen(options.columns, options.without, names, facts.features[0])
        names = tuple(names[column] for column in columns) if names else ()
    is_public = np.zeros(len(y), dtype=bool)
    is_public[partition.public] = True

    def public() -> Iterator[NDArray[Any]]:
        start = 0
        for block in npz.blocks(path, "x_train"):
            rows = block[is_public[start : start + len(block)]]
            yield rows if columns is None else rows[:, list(columns)]
            start += len(block)

    # Only public records: a mean or deviation of clients' records would be an uncharged release.
    scaling = _scaling(options, columns, public)
    x, x_test = (storage.records(path, name, scaling) for name in ("x_train", "x_test"))
    classes = facts.classes(options.classes)
    owned = users is not None and (not facts.test_users or _owned(path, users[partition.order]))
    dataset = Dataset(x, y, x_test, y_test, classes, names, facts.class_names, options.task, bounds)
    return Population(dataset, partition, owned)


def _targets(y: NDArray[Any], bounds: TargetBounds | None) -> NDArray[np.float32]:
    """Numbers scaled by public bounds, or labels as 0 and 1, float32, shape (records, targets)."""
    return columns_of(y).astype(np.float32) if bounds is None else bounds.scaled(columns_of(y))


def _within_bounds(y: NDArray[Any], bounds: TargetBounds | None, partition: Partition) -> NDArray[Any]:
    """Targets, cut to their bounds except those of public records.

    Metrics on these show bounds that are too narrow.
    """
    if bounds is None:
        return y
    within = np.clip(y, 0.0, 1.0)
    within[partition.public] = y[partition.public]
    return within


def _owned(path: str, users: NDArray[Any]) -> bool:
    """Whether a test record is one of these users'."""
    return bool(np.isin(npz.array(path, "user_test").astype(str), users.astype(str)).any())


def _scaling(
    options: Options,
    columns: tuple[int, ...] | None,
    public: Callable[[], Iterable[NDArray[Any]]],
) -> Scaling:
    """The scaling of a scenario; `public` gives the used columns of the records that no client owns."""
    fill = isinstance(options, FileData) and options.missing == "zero"
    plain = Scaling(options.scaling, columns, fill)
    if options.scaling == "bounds":
        low, high = np.array(options.low, np.float64), np.array(options.high, np.float64)
        return replace(plain, low=low, width=high - low)
    if options.scaling == "public":
        mean, deviation = moments(public())
        assert options.cut is not None
        return replace(plain, low=mean, width=deviation, cut=options.cut)
    return plain


def _deal(options: Options, labels: NDArray[Any], users: NDArray[Any] | None) -> Partition:
    """The clients that take part."""
    partition = _deal_all(options, labels, users)
    if options.first_clients is None:
        return partition
    return partition.only(first_clients(partition.clients, options.first_clients, options.seed))


def _deal_all(options: Options, labels: NDArray[Any], users: NDArray[Any] | None) -> Partition:
    records, fraction, seed = len(labels), options.public_fraction, options.seed
    if options.partition == "by-user" and users is not None:
        return by_user(users, public_fraction=fraction, seed=seed)
    if options.partition == "iid" and options.clients is not None:
        return iid(records, options.clients, public_fraction=fraction, seed=seed)
    if options.partition == "dirichlet" and options.clients is not None and options.alpha is not None:
        return dirichlet(labels, options.clients, options.alpha, public_fraction=fraction, seed=seed)
    if options.partition == "by-label" and options.clients is not None:
        return by_label(labels, options.clients, public_fraction=fraction, seed=seed)
    if options.partition == "fixed-records" and options.records_per_client is not None:
        each = options.records_per_client
        return fixed_records(records, each, options.clients, public_fraction=fraction, seed=seed)
    if options.partition == "one-per-example":
        return one_per_example(records, public_fraction=fraction, seed=seed)
    raise InputError(f'data.partition = "{options.partition}": the data lack what it needs.')


def _generated(options: Digits | Synthetic | PurchaseLike) -> Dataset:
    """The data set of a scenario that is made here, or comes with scikit-learn."""
    if isinstance(options, Digits):
        return digits()
    if isinstance(options, PurchaseLike):
        return purchase_like(
            records=options.records,
            test_records=options.test_records,
            features=options.features,
            classes=options.classes,
            flip=options.flip,
            seed=options.seed,
        )
    if options.task != CLASSIFICATION:
        targets = options.targets or 1
        return synthetic_targets(
            records=options.records,
            test_records=options.test_records,
            features=options.features,
            signal=options.signal,
            targets=targets,
            bounds=options.target_bounds(targets),
            seed=options.seed,
        )
    return synthetic(
        records=options.records,
        test_records=options.test_records,
        features=options.features,
        signal=options.signal,
        seed=options.seed,
    )
