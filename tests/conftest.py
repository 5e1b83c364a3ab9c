"""What many tests share: small scenarios, real people, and a federation over the real apps."""

from __future__ import annotations

import gc
import itertools
import os
import socket
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from clients.app import make_app
from clients.fleet import Fleet
from fedprivacy.data.datasets import Dataset
from fedprivacy.guarantees.ledger import Ledger
from fedprivacy.population.clients import Population, population
from fedprivacy.population.partition import Partition
from fedprivacy.scenario import Scenario
from fedprivacy.scenario.statistics import Statistics
from scenarios.engines.embedded import EmbeddedGrid
from server.app import federation_of
from server.secure_sum import secured

pytest_plugins = ["tests.slices", "pytester"]
# Before any test imports them, so that their failures show values.
pytest.register_assert_rewrite("pages", "shown")
os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")
os.environ.setdefault(
    "RAY_worker_niceness", "0"
)  # else Ray's workers starve beside the tests of the other core
torch.set_num_threads(1)
# A run waits for the disk some twenty times. What tests kill are processes, and the system's cache outlives those.
os.fsync = lambda file: None
# Collecting makes a million objects, all of which stay.
gc.disable()

BASE = """
name = "small"
seed = 1
[data]
name = "synthetic"
records = 60
test_records = 50
features = 4
partition = "iid"
clients = 12
[model]
name = "logistic"
[training]
learning_rate = 0.5
[server]
rounds = 3
[sampling]
name = "all"
[privacy]
trust = "central"
clipping_norm = 1.0
noise_multiplier = 2.0
delta = 1e-3
[federation]
chunk_size = 5
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What starts whole federations comes first: begun last it would keep one core busy and the other idle."""
    items.sort(key=lambda item: "tests/scenarios/engines/" not in item.nodeid)


def pytest_collection_finish() -> None:
    """What was imported and collected stays: the collector need not look at it again and again, nor forks copy it."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)  # a test makes thousands of objects that go by themselves
    gc.enable()


def scenario(*overrides: str, text: str = BASE) -> Scenario:
    """A small scenario with overrides as `--set` takes them."""
    return Scenario.from_text(text, overrides=overrides)


@pytest.fixture(scope="session")
def make_scenario() -> Callable[..., Scenario]:
    return scenario


@pytest.fixture(scope="session")
def base_text() -> str:
    return BASE


STATISTICS = """
name = "asked"
seed = 1
[data]
name = "bits"
clients = 100
share = 0.6
[queries.seen]
kind = "mean-of-bits"
[privacy]
trust = "central"
epsilon = 1.0
"""


def statistics(*overrides: str, text: str = STATISTICS) -> Statistics:
    """A small statistics scenario with overrides as `--set` takes them."""
    return Statistics.from_text(text, overrides=overrides)


@pytest.fixture(scope="session")
def make_statistics() -> Callable[..., Statistics]:
    return statistics


@pytest.fixture(scope="session")
def statistics_text() -> str:
    return STATISTICS


@pytest.fixture
def make_table(tmp_path: Path) -> Callable[..., Path]:
    """Writes columns of numbers as the training records of an .npz file, and says where it is."""

    def make(users: list[int] | None = None, **columns: list[float]) -> Path:
        path = tmp_path / "table.npz"
        x = np.column_stack([np.asarray(values, dtype=np.float64) for values in columns.values()])
        labels = np.arange(len(x), dtype=np.int64) % 2
        owners = {} if users is None else {"user_train": np.asarray(users)}
        np.savez(
            path,
            x_train=x,
            y_train=labels,
            x_test=x[:1],
            y_test=labels[:1],
            feature_names=np.array(list(columns)),
            **owners,
        )
        return path

    return make


class Trial:
    """One federation over the real ClientApp and the embedded grid, round by round, without files."""

    def __init__(self, asked: Scenario, people: Population | None = None, **fleet_options: object) -> None:
        self.people = people or population(asked.data)
        self.fleet = fleet_options.get("fleet") or Fleet.of(asked, self.people, fleet_options.get("plan"))
        self.grid = EmbeddedGrid(make_app(self.fleet, fleet_options.get("mods", ())), [{}])
        self.ledger = Ledger(self.fleet.plan)
        wrap = fleet_options.get("wrap", lambda grid: grid)
        grid = wrap(secured(self.grid, self.fleet.plan))
        self.federation, _ = federation_of(grid, asked, self.ledger, self.people, self.fleet.model)
        self.federation.plan = fleet_options.get("server_plan") or self.fleet.plan

    def play(self, rounds: int | None = None) -> np.ndarray:
        """Plays rounds and returns the weights."""
        for number in range(self.fleet.plan.rounds if rounds is None else rounds):
            self.federation.round(number)
        return self.federation.weights


@pytest.fixture
def trial() -> type[Trial]:
    return Trial


def people_of(x: np.ndarray, y: np.ndarray, classes: int = 2) -> Population:
    """One client for each record of arrays made by a test."""
    x, y = x.astype(np.float32), y.astype(np.int64)
    partition = Partition(np.arange(len(y)), np.arange(len(y) + 1), np.arange(0))
    return Population(Dataset(x, y, x[:1], y[:1], classes), partition)


@pytest.fixture
def make_people() -> Callable[..., Population]:
    return people_of


@pytest.fixture(scope="session")
def free_ports() -> Callable[[int], int]:
    """Says the first of so many ports in a row, on loopback, on which nobody listens."""
    following = itertools.count(20000 + os.getpid() % 2000 * 16, 8)  # another test process has others

    def first(count: int) -> int:
        for port in following:
            try:
                for number in range(port, port + count):
                    with socket.socket() as tried:
                        tried.bind(("127.0.0.1", number))
            except OSError:
                continue
            return port
        raise AssertionError

    return first


@pytest.fixture(scope="session")
def real_data() -> Callable[[str], Path]:
    """The path of a file of real data; the test skips where the folder is missing."""

    def path(name: str) -> Path:
        found = Path(__file__).parents[2] / "shared" / "data" / name
        if not found.exists():
            pytest.skip(f"the real data {name} is not here")
        return found

    return path


ON_NODES = """
name = "on-nodes"
[data]
name = "on-nodes"
features = 4
classes = 2
clients = 3
[model]
name = "logistic"
[training]
learning_rate = 0.5
[server]
rounds = 3
[sampling]
name = "all"
[privacy]
trust = "local"
clipping_norm = 1.0
noise_multiplier = 2.0
delta = 1e-3
[federation]
hosts = 3
observe = "each"
"""


class Owners:
    """Three owners of records, each with a node, a scenario, a file and a home of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def config(self, node: int = 0, *overrides: str, text: str = ON_NODES, **more: object) -> dict:
        """The node config of one of them; what is None in `more` is left out."""
        own = self.folder / f"node-{node}"
        if not own.exists():
            (own / "home").mkdir(parents=True)
            self.give(node)
        config = {
            "partition-id": node,
            "num-partitions": 3,
            "scenario": scenario(*overrides, text=text).to_toml(),
            "data": str(own / "own.npz"),
            "home": str(own / "home"),
        } | {key.replace("_", "-"): value for key, value in more.items()}
        return {key: value for key, value in config.items() if value is not None}

    def give(self, node: int, **arrays: object) -> Path:
        """Writes the records of a node."""
        stream = np.random.default_rng(node)
        x = stream.standard_normal((20, 4)).astype(np.float32)
        own = {"x_train": x, "y_train": (x[:, 0] > 0).astype(np.int64)} | arrays
        path = self.folder / f"node-{node}" / "own.npz"
        np.savez(path, **{name: array for name, array in own.items() if array is not None})
        return path

    def account(self, node: int = 0) -> Path:
        """The file of a node's account."""
        return self.folder / f"node-{node}" / "home" / "answers.json"


@pytest.fixture
def owners(tmp_path: Path) -> Owners:
    return Owners(tmp_path)


@pytest.fixture
def on_nodes_text() -> str:
    return ON_NODES
