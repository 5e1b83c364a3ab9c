"""The description of a scenario by its settings."""

from __future__ import annotations

import doctest
from pathlib import Path

import numpy as np
import pytest

from fedprivacy.scenario import summary as module
from fedprivacy.scenario.loading import load
from fedprivacy.scenario.summary import data_label
from scenarios.authoring.catalogue import find


@pytest.fixture
def heart(tmp_path: Path) -> Path:
    file = tmp_path / "heart.npz"
    draw = np.random.default_rng(0)
    x, y = draw.normal(size=(250, 8)).astype(np.float32), draw.integers(0, 2, 250)
    np.savez(file, x_train=x[:200], y_train=y[:200], x_test=x[200:], y_test=y[200:])
    return file


def test_a_training_is_described_by_its_clients_records_data_and_trust(heart: Path) -> None:
    scenario = load(find("digits"), ["data.name=npz", f"data.path={heart}"])
    assert scenario.summary() == (
        "200 clients, each with one record of heart.npz (200 records), train a logistic model together; the server "
        "adds noise (trust central); epsilon 2, delta 1e-05, unit client, adjacency replace-one."
    )
    local = load(find("digits"), ["data.public_fraction=0.2", "privacy.trust=none"])
    assert local.summary() == (
        "1,150 clients, each with one record of digits (1,437 records, 20 % of them public), train a logistic model "
        "together; nobody adds noise (trust none)."
    )
    fixed = ["data.partition=fixed-records", "data.records_per_client=20", "data.clients=6"]
    few = load(find("digits"), ["data.name=npz", f"data.path={heart}", *fixed, "privacy.trust=none"])
    assert few.summary().startswith(
        "6 clients, each with equally many records of heart.npz (120 of 200 records), train"
    )
    compared = load(find("local-vs-central")).summary(compared=True)
    assert compared.endswith("; compared under trust none, central, local.")


def test_the_number_of_clients_is_left_out_where_it_is_protected() -> None:
    overrides = ["privacy.trust=central", "privacy.adjacency=add-remove", 'compare={trusts=["central"]}']
    protected = load(find("star-wars-survey"), overrides).summary()
    assert protected.startswith("Clients answer seen-it from simulated answers; the server adds noise")
    assert (
        load(find("star-wars-survey"), ["data.clients=500"])
        .summary()
        .startswith("500 clients answer seen-it")
    )


@pytest.mark.parametrize(
    "name", ["private-erm", "tuned", "active-gradient-ascent", "first-names", "frontier"]
)
def test_scenarios_of_each_kind_have_a_description(name: str) -> None:
    text = load(find(name)).summary()
    assert data_label(load(find(name)).data.model_dump()) in text
    assert text.endswith(".")


def test_a_folder_is_not_named() -> None:
    assert data_label({"name": "npz", "path": "/home/ann/secret/heart.npz"}) == "heart.npz"
    assert data_label({"name": "flwr-datasets", "path": "/home/ann/records"}) == "records"
    assert data_label({"name": "flwr-datasets", "path": "ylecun/mnist"}) == "ylecun/mnist"


def test_examples_in_docstrings_are_true() -> None:
    results = doctest.testmod(module)
    assert results.attempted
    assert not results.failed
