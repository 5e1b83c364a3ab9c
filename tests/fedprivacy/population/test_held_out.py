"""Test records are dealt as training records are, each to one client."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedprivacy.population.clients import population
from fedprivacy.population.held_out import owners_of_test
from fedprivacy.scenario.data import Digits, Npz


@pytest.mark.parametrize("skew", [{"partition": "dirichlet", "alpha": 0.1}, {"partition": "by-label"}])
def test_label_skew_deals_labels_that_a_client_has(skew: dict) -> None:
    data = Digits(name="digits", clients=40, **skew)
    people = population(data)
    owners = owners_of_test(data, people)
    assert owners is not None
    assert (owners >= 0).all()
    for client in np.unique(owners).tolist():
        held = set(people.dataset.y_test[owners == client].tolist())
        assert held <= set(people.dataset.y[people.partition.records(client)].tolist())
    mean = np.bincount(owners, minlength=40) / people.partition.sizes
    assert abs(mean.mean() - 360 / 1437) < 0.01
    assert np.array_equal(owners, owners_of_test(data, people))


def test_other_records_are_dealt_by_size() -> None:
    data = Digits(name="digits", partition="iid", clients=36)
    owners = owners_of_test(data, population(data))
    assert owners is not None
    counts = np.bincount(owners, minlength=36)
    assert counts.sum() == 360
    assert 9 <= counts.min() <= counts.max() <= 11


def test_users_have_their_own_test_records_alone(tmp_path: Path) -> None:
    users, test_users = np.array(["b", "a", "c", "a"]), np.array(["c", "x", "a", "c"])
    records = {"x_train": np.eye(4), "y_train": np.array([0, 1, 0, 1]), "user_train": users}
    tests = {"x_test": np.eye(4), "y_test": np.array([0, 1, 0, 1])}
    for name, owned in (("own", test_users), ("others", np.array(["x", "y", "x", "y"]))):
        np.savez(tmp_path / f"{name}.npz", **records, **tests, user_test=owned)
    data = Npz(name="npz", path=str(tmp_path / "own.npz"), partition="by-user")
    assert owners_of_test(data, population(data)).tolist() == [2, -1, 0, 2]
    data = Npz(name="npz", path=str(tmp_path / "others.npz"), partition="by-user")
    assert owners_of_test(data, population(data)) is None
