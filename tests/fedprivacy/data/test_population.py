from __future__ import annotations

import numpy as np
import pytest

from fedprivacy.data.datasets import digits, synthetic, true_parameters
from fedprivacy.data.partition import iid, one_per_example
from fedprivacy.data.population import population


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


@pytest.mark.parametrize("fraction", [0.0, 0.25])
def test_partitions_give_each_owned_record_to_one_client_and_the_public_ones_to_none(fraction: float) -> None:
    for dealt in (
        iid(103, 10, public_fraction=fraction, seed=1),
        one_per_example(103, public_fraction=fraction, seed=1),
    ):
        owned = np.concatenate([dealt.records(client) for client in range(dealt.clients)])
        assert np.array_equal(np.sort(np.concatenate([owned, dealt.public])), np.arange(103))
        assert len(dealt.public) == round(103 * fraction)


def test_iid_sizes_differ_by_at_most_one_and_the_order_is_random() -> None:
    dealt = iid(103, 10, public_fraction=0.0, seed=1)
    assert set(np.diff(dealt.offsets)) == {10, 11}
    assert not np.array_equal(dealt.order, np.sort(dealt.order))
    assert not np.array_equal(dealt.order, iid(103, 10, public_fraction=0.0, seed=2).order)


def test_the_population_of_a_scenario_has_as_many_clients_as_the_scenario_says(make_scenario) -> None:
    for overrides in ([], ["data.public_fraction=0.3"]):
        asked = make_scenario(*overrides)
        assert population(asked.data).partition.clients == asked.population
    digits = make_scenario('data={name="digits", public_fraction=0.1}', "privacy.delta=1e-5")
    assert population(digits.data).partition.clients == digits.population == 1437 - 144


def test_held_out_records_belong_to_nobody(make_scenario) -> None:
    people = population(make_scenario("data.public_fraction=0.5").data)
    x, y = people.held_out("public")
    assert len(x) == len(y) == 30
    assert not np.intersect1d(people.partition.public, people.partition.order).size
    assert np.array_equal(people.held_out("test")[0], people.dataset.x_test)
