from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from fedprivacy.data.datasets import digits, synthetic, true_parameters
from fedprivacy.plan.run_streams import run_streams
from fedprivacy.population.clients import population
from fedprivacy.scenario import Npz


def test_digits_are_the_real_ones_with_every_class_in_both_parts() -> None:
    data = digits()
    assert data.x.shape == (1437, 64)
    assert data.x_test.shape == (360, 64)
    assert (data.x.min(), data.x.max(), data.classes) == (0, 1, 10)
    assert set(data.y) == set(data.y_test) == set(range(10))
    together = np.concatenate([data.x, data.x_test])
    assert len(np.unique(together, axis=0)) == len(np.unique(data.x, axis=0)) + len(
        np.unique(data.x_test, axis=0)
    )


def test_synthetic_follows_the_logistic_model_that_it_states() -> None:
    data = synthetic(records=200_000, test_records=10, features=3, signal=2.0, seed=4)
    theta = true_parameters(features=3, signal=2.0, seed=4)
    logits = data.x @ theta
    assert np.linalg.norm(theta) == pytest.approx(2.0)
    # Calibration in ten bins of the stated probability; false-alarm rate below 1e-6.
    chance = 1 / (1 + np.exp(-logits))
    for low in np.linspace(0, 0.9, 10):
        bin_ = (chance >= low) & (chance < low + 0.1)
        gap = data.y[bin_].mean() - chance[bin_].mean()
        assert abs(gap) < 5.5 * np.sqrt(chance[bin_].mean() * (1 - chance[bin_].mean()) / bin_.sum())
    assert data.x.std() == pytest.approx(1.0, abs=0.01)


def test_synthetic_data_is_a_matter_of_its_seed_alone() -> None:
    def make(records: int, seed: int) -> np.ndarray:
        return synthetic(records=records, test_records=5, features=3, signal=1.0, seed=seed).x

    assert np.array_equal(make(100, 1), make(100, 1))
    assert not np.array_equal(make(100, 1), make(100, 2))


DEALT = {
    "public": ["data.public_fraction=0.3"],
    "one-per-example": ["data.partition=one-per-example"],
    "dirichlet": ["data.partition=dirichlet", "data.alpha=0.3"],
    "by-label": ["data.partition=by-label"],
    "fixed-records": ["data.partition=fixed-records", "data.records_per_client=7", "data.clients=8"],
    "digits": ['data={name="digits", public_fraction=0.1}', "privacy.delta=1e-5"],
}


@pytest.mark.parametrize("case", DEALT)
def test_the_population_of_a_scenario_has_as_many_clients_as_the_scenario_says(make_scenario, case) -> None:
    asked = make_scenario(*DEALT[case])
    assert population(asked.data).partition.clients == asked.population


@pytest.mark.parametrize("scaling", ["per-record", "public"])
def test_digits_and_synthetic_records_can_be_scaled(make_scenario, scaling: str) -> None:
    plain = population(make_scenario("data.public_fraction=0.5").data)
    asked = make_scenario("data.public_fraction=0.5", f"data.scaling={scaling}")
    x, public = population(asked.data).dataset.x, plain.partition.public
    if scaling == "public":
        assert asked.data.cut == 3.0
        mean, deviation = plain.dataset.x[public].mean(axis=0), plain.dataset.x[public].std(axis=0)
        assert x == pytest.approx(np.clip((plain.dataset.x - mean) / deviation, -3, 3), abs=1e-4)
    else:
        assert x.std(axis=1) == pytest.approx(1, abs=1e-4)


def some_file(folder: Path, **changes: np.ndarray) -> str:
    """A small table of 40 records of 8 users, a missing value in column c."""
    x = np.random.default_rng(3).normal(5, 2, (40, 3))
    x[7, 2] = np.nan
    arrays = {
        "x_train": x,
        "y_train": np.arange(40) % 3,
        "x_test": np.ones((4, 3)),
        "y_test": np.zeros(4, int),
        "user_train": np.arange(40) // 5 + 100,
        "feature_names": np.array(["a", "b", "c"]),
        "classes": np.array(["red", "green", "blue"]),
        **changes,
    }
    np.savez(folder / "d.npz", **arrays)
    return str(folder / "d.npz")


def test_a_file_is_dealt_by_user_with_the_columns_that_are_asked_for(tmp_path: Path) -> None:
    path = some_file(tmp_path)
    asked = Npz(name="npz", path=path, partition="by-user", without=["c"], public_fraction=0.25, seed=3)
    people = population(asked)
    assert (asked.population, people.partition.clients, people.features) == (6, 6, (2,))
    assert people.dataset.feature_names == ("a", "b")
    assert people.dataset.class_names == ("red", "green", "blue")
    assert people.dataset.classes == 3
    assert np.array_equal(people.dataset.x, np.load(path)["x_train"][:, :2].astype(np.float32))
    assert (people.dataset.y.dtype, len(people.partition.public)) == (np.int64, 10)


def test_public_scaling_reads_nothing_but_the_public_part(tmp_path: Path) -> None:
    """Whatever private records hold, the others are scaled alike: the scaling costs no privacy."""
    options = {"partition": "by-user", "scaling": "public", "cut": 3.0, "public_fraction": 0.5}
    asked = Npz(name="npz", path=some_file(tmp_path), missing="zero", **options)
    people = population(asked)
    public = people.partition.public
    assert people.dataset.x[public].mean(axis=0) == pytest.approx(0, abs=0.3)
    x = np.load(asked.path)["x_train"]
    x[people.partition.order] *= 1000
    other = population(asked.model_copy(update={"path": some_file(tmp_path, x_train=x)}))
    assert np.array_equal(other.dataset.x[public], people.dataset.x[public])
    assert np.array_equal(other.dataset.x_test, people.dataset.x_test)
    assert np.abs(other.dataset.x).max() == 3


def test_a_file_that_changed_is_loaded_again_and_its_run_has_other_noise(make_scenario, tmp_path) -> None:
    path = some_file(tmp_path)
    asked = make_scenario(f"data={{name='npz', path='{path}', missing='zero'}}")
    before = population(asked.data)
    assert population(asked.data) is before
    y = np.arange(40) % 3
    y[4] = 0
    some_file(tmp_path, y_train=y)
    after = population(asked.data)
    assert after.digest != before.digest
    first, second = (run_streams(asked, p).noise("local").standard_normal(9) for p in (before, after))
    assert not np.isin(first, second).any()


def test_the_same_data_at_another_place_have_the_same_noise(make_scenario, tmp_path) -> None:
    (tmp_path / "there").mkdir()
    runs = []
    for folder in (tmp_path, tmp_path / "there"):
        asked = make_scenario(f"data={{name='npz', path='{some_file(folder)}', missing='zero'}}")
        runs.append(run_streams(asked, population(asked.data)))
    assert runs[0] == runs[1]


@pytest.mark.parametrize(
    ("name", "options", "clients", "features"),
    [
        ("mnist.npz", {"partition": "by-user", "scaling": "bounds", "low": 0, "high": 255}, 539, (28, 28)),
        ("pums_fulton.npz", {"without": ["divorced"]}, 20_613, (13,)),
        ("wisdm_har.npz", {"partition": "by-user", "without": ["XPEAK", "YPEAK", "ZPEAK"]}, 36, (40,)),
        ("wisdm_har.npz", {"partition": "by-user", "missing": "zero", "scaling": "per-record"}, 36, (43,)),
        ("heart_disease.npz", {"partition": "by-user"}, 4, (13,)),
    ],
)
def test_real_people(real_data, name, options, clients, features) -> None:
    asked = Npz(name="npz", path=os.path.relpath(real_data(name)), **options)
    people = population(asked)
    assert asked.population == people.partition.clients == clients
    assert people.features == features
    assert np.isfinite(people.dataset.x).all()
    if name == "mnist.npz":
        assert (people.dataset.x.min(), people.dataset.x.max()) == (0, 1)
        assert set(np.diff(people.partition.offsets)) <= set(range(19, 132))


@pytest.mark.parametrize(
    ("test_users", "partition", "on", "tested"),
    [
        ([9, 9, 8], "by-user", "test", False),
        ([9, 2, 8], "by-user", "test", True),
        ([9, 2, 8], "by-user", "public", False),
        ([9, 2, 8], "one-per-example", "test", False),
        (None, "by-user", "test", True),  # nobody knows
    ],
)
def test_whether_the_held_out_records_are_those_of_clients(
    tmp_path: Path, test_users, partition: str, on: str, tested: bool
) -> None:
    arrays = {"x_train": np.ones((6, 2)), "y_train": np.arange(6) % 2, "user_train": np.arange(6) // 2,
              "x_test": np.ones((3, 2)), "y_test": np.arange(3) % 2}  # fmt: skip
    if test_users is not None:
        arrays["user_test"] = np.array(test_users)
    np.savez(tmp_path / "d.npz", **arrays)
    people = population(Npz(name="npz", path=str(tmp_path / "d.npz"), partition=partition))
    assert people.tests_clients(on) == tested


def test_held_out_records_belong_to_nobody(make_scenario) -> None:
    people = population(make_scenario("data.public_fraction=0.5").data)
    x, y = people.held_out("public")
    assert len(x) == len(y) == 30
    assert not np.intersect1d(people.partition.public, people.partition.order).size
    assert np.array_equal(people.held_out("test")[0], people.dataset.x_test)
