"""Who is asked: made-up people of a known truth, and tables with their owners."""

from __future__ import annotations

import numpy as np
import pytest

from fedprivacy.errors import InputError
from fedprivacy.scenario.statistics.data import Bits, Categories, NpzTable, Numbers
from fedprivacy.statistics.population import People, people, synthetic


@pytest.mark.parametrize(("clients", "share", "yes"), [(10, 0.6, 6), (7, 0.5, 4), (3, 0.0, 0), (3, 1.0, 3)])
def test_exactly_the_given_share_says_yes(clients: int, share: float, yes: int) -> None:
    answers = synthetic(Bits(name="bits", clients=clients, share=share))
    assert (len(answers), answers.sum()) == (clients, yes)
    assert set(answers) <= {0.0, 1.0}


def test_categories_follow_their_shares() -> None:
    """Chi-square at a false-alarm rate of 1e-3 each, for given shares and for Zipf's law."""
    from scipy.stats import chisquare

    for law, expected in (
        ({"shares": (5.0, 3.0, 2.0)}, [0.5, 0.3, 0.2]),
        ({"categories": 3, "exponent": 1.0}, np.array([6, 3, 2]) / 11),
        ({"categories": 3, "exponent": 0.0}, np.ones(3) / 3),
    ):
        answers = synthetic(Categories(name="categories", clients=30_000, **law))
        counts = np.bincount(answers.astype(int), minlength=3)
        assert chisquare(counts, 30_000 * np.asarray(expected)).pvalue > 1e-3


def test_a_category_of_share_0_has_nobody() -> None:
    data = Categories(name="categories", clients=10_000, shares=(0.0, 1.0, 0.0))
    assert set(synthetic(data)) == {1.0}


def test_numbers_follow_their_law() -> None:
    """Kolmogorov-Smirnov at a false-alarm rate of 1e-3 each."""
    from scipy.stats import kstest, lognorm, uniform

    lognormal = Numbers(name="numbers", clients=10_000, median=20.0, spread=0.5)
    assert kstest(synthetic(lognormal), lognorm(0.5, scale=20.0).cdf).pvalue > 1e-3
    flat = Numbers(name="numbers", clients=10_000, law="uniform", low=-3.0, high=5.0)
    assert kstest(synthetic(flat), uniform(-3.0, 8.0).cdf).pvalue > 1e-3


def test_made_up_people_depend_on_their_own_seed_alone() -> None:
    first, same, other = (
        synthetic(Numbers(name="numbers", clients=5, median=1.0, spread=1.0, seed=seed)) for seed in (1, 1, 2)
    )
    assert np.array_equal(first, same)
    assert not np.array_equal(first, other)


def test_records_of_a_user_stand_together_in_their_order(make_table) -> None:
    path = make_table(users=[9, 4, 9, 4, 4], age=[1.0, 2.0, 3.0, 4.0, 5.0])
    found = people(NpzTable(name="npz", path=str(path), owner="user"), ["age", "label"])
    assert found.offsets.tolist() == [0, 3, 5]  # user 4, then user 9
    assert found.columns["age"].tolist() == [2.0, 4.0, 5.0, 1.0, 3.0]
    assert found.columns["label"].tolist() == [1.0, 1.0, 0.0, 0.0, 0.0]
    assert (found.population, found.one_each) == (2, False)
    alone = people(NpzTable(name="npz", path=str(path)), ["age"])
    assert (alone.population, alone.one_each) == (5, True)
    assert alone.columns["age"].tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_a_changed_file_is_read_again(make_table) -> None:
    data = NpzTable(name="npz", path=str(make_table(age=[1.0, 2.0])))
    before = people(data, ["age"])
    make_table(age=[1.0, 2.0, 30.0])
    after = people(data, ["age"])
    assert (before.population, after.population) == (2, 3)
    assert before.digest != after.digest


def test_a_missing_file_is_told(tmp_path) -> None:
    with pytest.raises(InputError, match="no such file"):
        people(NpzTable(name="npz", path=str(tmp_path / "no.npz")), ["age"])


def test_the_digest_tells_values_columns_and_owners_apart() -> None:
    values, ids = np.array([1.0, 2.0]), np.array([0, 1, 2])
    every = [
        People({"a": values}, ids),
        People({"b": values}, ids),
        People({"a": values + 1}, ids),
        People({"a": values}, np.array([0, 2])),
    ]
    assert len({one.digest for one in every}) == len(every)
    assert People({"a": values.copy()}, ids).digest == every[0].digest
