"""Groups of records: categories, ranges of numbers, missing values, and columns that are no features."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fedprivacy.data.groups import MOST, grouping, regrouped
from fedprivacy.data.record_columns import OTHERS, Column, feature, held_out_column, names, origin_of
from fedprivacy.data.table_file import TableSource, file
from fedprivacy.errors import InputError


def numbers(*values: float) -> Column:
    return Column(numbers=np.array(values, dtype=np.float64))


def texts(*values: str) -> Column:
    return Column(texts=np.array(values, dtype=object))


def members(grouped) -> dict[str, list[int]]:
    """The records of each group."""
    return {label: np.flatnonzero(grouped.codes == at).tolist() for at, label in enumerate(grouped.labels)}


def test_categories_are_groups() -> None:
    grouped = grouping("sex", texts("m", "f", "m", "missing"))
    assert members(grouped) == {"f": [1], "m": [0, 2], "missing": [3]}
    assert grouped.edges == ()


def test_few_different_numbers_have_a_group_each_and_missing_ones_too() -> None:
    assert members(grouping("sex", numbers(1, 0, np.nan, 1))) == {"0": [1], "1": [0, 3], "missing": [2]}


def test_many_numbers_are_cut_at_their_quartiles() -> None:
    values = np.arange(40.0)
    grouped = grouping("age", Column(numbers=np.append(values, np.nan)))
    assert grouped.edges == (9.75, 19.5, 29.25)
    assert grouped.labels == ("below 9.75", "9.75 to 19.5", "19.5 to 29.25", "29.25 and above", "missing")
    assert np.bincount(grouped.codes).tolist() == [10, 10, 10, 10, 1]
    same = np.append(np.zeros(90), np.arange(1, 12.0))
    assert grouping("gain", Column(numbers=same)).labels == ("all",)  # three quarters are the least


def test_given_edges_begin_their_range() -> None:
    grouped = grouping("age", numbers(29.9, 30, 44, 45, 80), (30, 45, 60))
    assert members(grouped) == {
        "below 30": [0],
        "30 to 45": [1, 2],
        "45 to 60": [3],
        "60 and above": [4],
    }
    with pytest.raises(InputError, match="sex: has categories, not numbers"):
        grouping("sex", texts("f"), (1.0,))


def test_too_many_groups_are_refused() -> None:
    with pytest.raises(InputError, match=f"town: has 51 different values, at most {MOST} become groups"):
        grouping("town", texts(*map(str, range(51))))


def test_other_records_fall_into_the_same_groups() -> None:
    like = grouping("age", Column(numbers=np.arange(40.0)))
    assert regrouped("age", numbers(-5, 20, 100), like).codes.tolist() == [0, 2, 3]
    like = grouping("town", texts("Oslo", "Rome"))
    other = regrouped("town", texts("Rome", "Bern", "Oslo"), like)
    assert (other.labels, other.codes.tolist()) == (("Oslo", "Rome"), [1, -1, 0])


@pytest.fixture
def arrays(tmp_path: Path) -> str:
    """A file with numbers, one with its missing values marked, and one-hot columns with and without a base."""
    titles = ["age", "chol", "chol=missing", "sex=f", "sex=m", "pain=2", "pain=3"]
    x = np.array([[30, 0, 1, 1, 0, 0, 0], [40, 200, 0, 0, 1, 1, 0], [50, 180, 0, 0, 1, 0, 1]], np.float32)
    path = tmp_path / "d.npz"
    y = np.array([0, 1, 0])
    np.savez(
        path,
        x_train=x,
        y_train=y,
        x_test=x,
        y_test=y,
        feature_names=np.array(titles),
        user_test=np.array(["a", "b", "a"]),
        user_train=np.array(["c", "d", "e"]),
    )
    return str(path)


def test_features_are_read_as_they_were_before_scaling(arrays: str) -> None:
    assert names(arrays, None) == ["age", "chol", "sex", "pain", "user"]
    assert feature(arrays, "age", "test").numbers.tolist() == [30, 40, 50]
    assert feature(arrays, "chol", "test").numbers.tolist()[1:] == [200, 180]
    assert np.isnan(feature(arrays, "chol", "test").numbers[0])  # 0 in the file, and marked as missing
    assert feature(arrays, "sex", "test").texts.tolist() == ["f", "m", "m"]
    assert feature(arrays, "pain", "train").texts.tolist() == [OTHERS, "2", "3"]
    assert feature(arrays, "se", "test") is None
    assert held_out_column(arrays, None, "user").texts.tolist() == ["a", "b", "a"]
    assert held_out_column(arrays, None, "town") is None


def test_columns_of_a_table_that_are_no_features_come_with_its_test_records_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    stream = np.random.default_rng(0)
    age = stream.integers(20, 90, 200)
    table = pd.DataFrame({"age": age, "sick": np.where(age > 50, "yes", "no"), "weight": age * 2.0})
    table["race"] = np.where(age % 2, "black", "white")
    table.loc[table.index[table.age > 80], "race"] = None
    table.loc[3, "sick"] = None  # a record without a label is left out
    path = tmp_path / "d.csv"
    table.to_csv(path, index=False)
    keys = {"path": str(path), "label": "sick", "drop": ("race", "weight"), "held_out": 0.2}
    source = origin_of("table", keys)
    assert isinstance(source, TableSource)
    made = file(source)
    assert sorted(names(made, source)) == ["age", "race", "weight"]
    ages = feature(made, "age", "test").numbers
    assert held_out_column(made, source, "weight").numbers.tolist() == (2 * ages).tolist()
    races = held_out_column(made, source, "race").texts.tolist()
    expected = ["missing" if a > 80 else "black" if a % 2 else "white" for a in ages]
    assert races == expected
    with np.load(made) as stored:
        assert set(stored) == {"x_train", "y_train", "x_test", "y_test", "feature_names", "classes"}


def test_columns_of_a_second_table_of_test_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name, town in (("train", "Oslo"), ("test", "Rome")):
        pd.DataFrame({"age": [1, 2, 3], "sick": [0, 1, 0], "town": town}).to_csv(tmp_path / f"{name}.csv")
    keys = {"path": f"{tmp_path}/train.csv", "test": f"{tmp_path}/test.csv", "label": "sick"}
    source = origin_of("table", {**keys, "drop": ["town"], "held_out": 0.2})
    assert held_out_column(file(source), source, "town").texts.tolist() == ["Rome"] * 3
