"""Tables become arrays, and everything that is read off the records is reported."""

from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fedprivacy.data import tables
from fedprivacy.data.tables import table
from fedprivacy.errors import InputError


def frame(**columns: object) -> pd.DataFrame:
    return pd.DataFrame({"age": [30, 40, 50], "sex": ["f", "m", "f"], "sick": ["no", "yes", "no"], **columns})


def message(*arguments: object, **more: object) -> str:
    with pytest.raises(InputError) as caught:
        table(*arguments, **more)
    return str(caught.value)


def test_texts_become_categories_and_labels_become_classes() -> None:
    result = table(frame(), "sick")
    assert result.feature_names == ("age", "sex=f", "sex=m")
    assert result.x.tolist() == [[30, 1, 0], [40, 0, 1], [50, 1, 0]]
    assert result.x.dtype == np.float32
    assert (result.y.tolist(), result.classes) == ([0, 1, 0], ("no", "yes"))
    assert any("sex: its 2 categories, read off the records" in note for note in result.notes)
    assert any("no, yes" in note for note in result.notes)


def test_missing_numbers_become_zero_with_a_column_that_marks_them() -> None:
    result = table(frame(chol=[1.5, None, np.inf]), "sick")
    assert result.feature_names[-2:] == ("chol", "chol=missing")
    assert result.x[:, -2:].tolist() == [[1.5, 0], [0, 1], [0, 1]]
    assert any("2 missing values" in note for note in result.notes)


def test_missing_answers_of_yes_and_no_are_marked_too() -> None:
    result = table(
        frame(smokes=pd.Series([True, None, False], dtype="boolean"), old=[True, False, True]), "sick"
    )
    assert result.feature_names[-3:] == ("smokes", "smokes=missing", "old")
    assert result.x[:, -3:].tolist() == [[1, 0, 1], [0, 1, 0], [0, 0, 1]]


def test_names_that_collide_are_refused() -> None:
    text = message(frame(**{"chol": [1, None, 2], "chol=missing": [1, 2, 3]}), "sick", source="mine.csv")
    assert text.startswith("mine.csv: chol=missing: two columns would get this name")
    assert "sex=f: two columns" in message(frame(**{"sex=f": [1, 2, 3]}), "sick")


def test_columns_whose_names_are_numbers_can_be_dropped() -> None:
    result = table(pd.DataFrame({0: [1, 2], 1: [3, 4], "sick": [0, 1]}), "sick", drop=[0])
    assert result.feature_names == ("1",)


def test_missing_texts_are_a_category() -> None:
    assert table(frame(smokes=["a", None, "b"]), "sick").feature_names[-3:] == (
        "smokes=a",
        "smokes=b",
        "smokes=missing",
    )


def test_records_without_a_label_are_left_out_and_counted() -> None:
    result = table(frame(sick=["no", None, "yes"]), "sick")
    assert result.positions.tolist() == [0, 2]
    assert any("1 records without a label" in note for note in result.notes)


@pytest.mark.parametrize(
    ("labels", "expected", "classes"),
    [
        ([0, 1, 2], [0, 1, 2], ()),
        ([5, 7, 5], [0, 1, 0], ("5", "7")),
        ([-1, 1, -1], [0, 1, 0], ("-1", "1")),
        ([True, False, True], [1, 0, 1], ("False", "True")),
    ],
)
def test_numeric_labels(labels: list, expected: list, classes: tuple) -> None:
    result = table(frame(sick=labels), "sick")
    assert (result.y.tolist(), result.classes) == (expected, classes)
    assert any("read off the labels (sick)" in note for note in result.notes)


@pytest.mark.parametrize("kind", ["category", "string", "Int64", "boolean"])
def test_types_of_pandas_columns(kind: str) -> None:
    values = {
        "category": ["a", "b", "a"],
        "string": ["a", "b", "a"],
        "Int64": [1, 2, 1],
        "boolean": [True, False, True],
    }
    result = table(frame(other=pd.Series(values[kind], dtype=kind)), "sick")
    assert np.isfinite(result.x).all()


def test_all_mistakes_come_at_once() -> None:
    text = message(frame(), "sik", "clinic", ["aeg"])
    assert len(text.splitlines()) == 3
    assert all(name in text for name in ("'sik'", "'clinic'", "'aeg'", "It has: age, sex, sick"))


def test_columns_that_cannot_be_used_come_at_once_with_a_remedy() -> None:
    many = pd.DataFrame({"sick": [0, 1] * 100, "name": [f"n{at}" for at in range(200)], "when": [datetime.datetime(2020, 1, 1)] * 200,
                         "long": [datetime.timedelta(1)] * 200, "complex": [1j] * 200,
                         "none": [np.nan] * 200, "huge": [1e300] * 200})  # fmt: skip
    text = message(many, "sick")
    assert len(text.splitlines()) == 6
    assert all(
        f"rop the column ({name})" in text for name in ("name", "when", "long", "complex", "none", "huge")
    )


def test_two_columns_of_one_name_are_refused() -> None:
    twice = frame()
    twice.columns = ["age", "sick", "sick"]
    assert "two columns have this name" in message(twice, "sick")


def test_labels_that_are_no_classes_are_refused() -> None:
    assert "no classes" in message(frame(sick=[0.5, 1.5, 2.5]), "sick")
    assert "no record has a label" in message(frame(sick=[None, None, None]), "sick")
    assert "no records" in message(frame().iloc[:0], "sick")
    assert "no column is left" in message(frame(), "sick", None, ["age", "sex"])
    assert "no owner" in message(frame(who=["a", None, "b"]), "sick", "who")


def people(users: int, each: int = 10) -> tables.Table:
    owners = [f"u{at}" for at in range(users) for _ in range(each)]
    return table(
        pd.DataFrame({"x": range(len(owners)), "y": [0, 1] * (len(owners) // 2), "who": owners}), "y", "who"
    )


def test_of_many_users_whole_users_are_held_out() -> None:
    train, test, note = tables.split(people(30), 0.2)
    assert not set(train.users) & set(test.users)
    assert "6 of 30 users" in note


def test_of_few_users_each_ones_records_are_split() -> None:
    train, test, note = tables.split(people(4), 0.2)
    assert set(train.users) == set(test.users)
    assert [int((test.users == user).sum()) for user in np.unique(test.users)] == [2] * 4
    assert "8 of 40 records" in note


@pytest.mark.parametrize(("users", "whole"), [(19, False), (20, True), (21, True)])
def test_from_twenty_users_on_whole_ones_are_held_out(users: int, whole: bool) -> None:
    train, test, _ = tables.split(people(users), 0.2)
    assert tables.owners_hidden(users) == whole
    assert (not set(train.users) & set(test.users)) == whole


def test_a_split_repeats_and_follows_its_seed() -> None:
    first, again, other = (tables.split(people(4), 0.2, seed)[1].positions.tolist() for seed in (0, 0, 1))
    assert first == again != other


def test_owners_who_do_not_train_are_named() -> None:
    owners = ["one", *["many"] * 9]
    whole = table(pd.DataFrame({"x": range(10), "y": [0, 1] * 5, "who": owners}), "y", "who")
    assert "all their records were held out: one." in tables.split(whole, 0.6)[2]
    assert "Not training" not in tables.split(whole, 0.2)[2]


def test_a_split_that_leaves_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="no records to test on"):
        tables.split(people(2, 2), 0.01)


def test_bounds_are_as_given_or_read_off_and_listed() -> None:
    result = table(frame(flag=[0, 1, 0], wide=[1_000_006, 1_000_007, 1_000_014]), "sick")
    low, high, read = tables.public_bounds(result, {"age": (0, 120)})
    assert (low[0], high[0]) == (0, 120)
    assert read == ["wide"]  # neither yes-or-no columns nor categories
    at = result.feature_names.index("wide")
    assert low[at] <= 1_000_006
    assert high[at] >= 1_000_014


def test_bounds_of_zero_and_one_are_read_off_unless_no_other_value_is_there() -> None:
    """A share may be 0 or 1 by chance; a column of yes and no has these bounds whatever the records are."""
    result = table(frame(share=[0, 0.5, 1], yes=[1, 1, 1], no=[0, 0, 0], wide=[1, 1.5, 1]), "sick")
    low, high, read = tables.public_bounds(result, {"age": (0, 120)})
    assert read == ["share", "wide"]
    for name in ("share", "yes", "no"):
        at = result.feature_names.index(name)
        assert (low[at], high[at]) == (0, 1)


def test_bounds_that_are_none_come_at_once() -> None:
    with pytest.raises(InputError) as caught:
        tables.checked_bounds({"a": (1, 0), "b": "x", "c": (0, float("nan")), "d": (0, 1)}, "bounds")
    assert len(str(caught.value).splitlines()) == 3


def test_tables_with_other_columns_are_not_joined() -> None:
    with pytest.raises(InputError) as caught:
        tables.joined(frame(extra=[1, 2, 3]), frame(more=[1, 2, 3]), "t")
    assert "extra: the test records lack it" in str(caught.value)
    assert "more: only the test records have it" in str(caught.value)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_files_give_the_same_arrays(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t{suffix}"
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
        frame().to_parquet(path)
    else:
        frame().to_csv(path, index=False, sep="\t" if suffix == ".tsv" else ",")
    assert table(tables.read_table(path), "sick").x.tolist() == table(frame(), "sick").x.tolist()


@pytest.mark.parametrize(("first", "second"), [(",", ","), (",", "")])
def test_rows_that_end_in_a_comma_keep_their_columns(tmp_path: Path, first: str, second: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"age,bmi,sick\n30,20,0{first}\n40,21,1{second}\n")
    assert tables.read_table(path).to_dict("list") == {"age": [30, 40], "bmi": [20, 21], "sick": [0, 1]}


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ("1,2,0,9\n1,2,0", 2),
        ("1,2,0,\n1,2,0,9", 3),
        ("\n1,2,0,\n\n1,2,0,9", 5),
        ("1,2,0\n1,2,0,9", 3),
        ('"a\nb",2,0,9', 3),
        ("1,2,0,,9", 2),
    ],
)
def test_rows_of_more_fields_than_names_are_refused(tmp_path: Path, rows: str, line: int) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"age,bmi,sick\n{rows}\n")
    with pytest.raises(InputError, match=f"line {line}"):
        tables.read_table(path)


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("t.csv", None, "no such file"),
        ("t.xlsx", b"", "not a table"),
        ("t.csv", b"", "not a table"),
        ("t.csv", b"a\xff\n1\n", "not a table"),
        ("t.parquet", b"PAR1 nothing", "not a table"),
    ],
)
def test_files_that_are_no_tables_are_refused(
    tmp_path: Path, name: str, content: bytes | None, problem: str
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=problem) as caught:
        tables.read_table(path)
    assert "\n" not in str(caught.value)
