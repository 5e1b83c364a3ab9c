"""Data from arrays, tables, torch datasets and files."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import fedprivacy as fp


def loaded(people: object) -> dict[str, np.ndarray]:
    with np.load(people.path) as content:
        return dict(content)


def message(*arguments: object, **more: object) -> str:
    with pytest.raises(fp.InputError) as caught:
        fp.people(*arguments, **more)
    assert "people.npz" not in str(caught.value)
    return str(caught.value)


def test_arrays_with_a_share_to_test_on(arrays: tuple) -> None:
    x, y, users = arrays
    content = loaded(fp.people(x, y, users=users, test=0.25))
    assert content["x_train"].shape == (150, 3)
    assert not set(content["user_train"]) & set(content["user_test"])
    assert "feature_names" not in content


def test_arrays_with_test_records(arrays: tuple) -> None:
    x, y, users = arrays
    content = loaded(fp.people(x[:150], y[:150], users=users[:150], test=(x[150:], y[150:], users[150:])))
    assert (content["x_test"] == x[150:]).all()
    assert "user_test" in content


def test_test_records_of_clients_are_reported(arrays: tuple) -> None:
    x, y, users = arrays
    text = "accuracy and loss depend on clients' records"
    assert f"belong to clients: {text}" in repr(fp.people(x, y, users=users, test=(x, y, users)))
    assert f"may belong to clients: {text}" in repr(fp.people(x, y, users=users, test=(x, y)))
    others = np.char.add("other-", users.astype(str))
    for people in (
        fp.people(x, y, users=users, test=(x, y, others)),
        fp.people(x, y, users=users),
        fp.people(x, y),
    ):
        assert text not in repr(people)


def test_text_labels_mean_the_same_in_both_parts() -> None:
    x = np.eye(4)
    content = loaded(fp.people(x, ["a", "b", "c", "a"], test=(x[:2], ["c", "b"])))
    assert content["classes"].tolist() == ["a", "b", "c"]
    assert content["y_test"].tolist() == [2, 1]


def test_a_table_with_text_labels_and_a_column_of_clients(patients: pd.DataFrame) -> None:
    people = fp.people(patients, "sick", users="hospital")
    assert people.clients == 4
    assert people.facts.class_names == ("no", "yes")
    assert people.facts.feature_names == ("age", "sex=f", "sex=m")
    text = repr(people)
    assert "4 clients" in text
    assert "The bounds of age were read off the records: a release that no epsilon covers" in text


def test_public_bounds_release_nothing(patients: pd.DataFrame) -> None:
    people = fp.people(patients, "sick", users="hospital", bounds={"age": (0, 120)})
    assert people.bounds == ([0, 0, 0], [120, 1, 1])
    assert "bounds" not in repr(people)
    assert fp.scenario_for(people).data.high == (120, 1, 1)


def test_labels_and_users_of_a_table_as_arrays(patients: pd.DataFrame) -> None:
    rest = patients.drop(columns=["sick", "hospital"]).rename(columns={"sex": "label"})
    people = fp.people(rest, (patients.age > 55).to_numpy(), users=patients.hospital.to_numpy())
    assert people.facts.feature_names == ("age", "label=f", "label=m")  # the column of this name stays
    assert people.clients == 4


def test_a_table_with_a_table_or_a_file_of_test_records(patients: pd.DataFrame, tmp_path: Path) -> None:
    patients.iloc[100:].to_csv(tmp_path / "test.csv", index=False)
    patients.iloc[:100].to_csv(tmp_path / "train.csv", index=False)
    whole = fp.people(patients.iloc[:100], "sick", users="hospital", test=patients.iloc[100:])
    for people in (
        fp.people(patients.iloc[:100], "sick", users="hospital", test=tmp_path / "test.csv"),
        fp.people(tmp_path / "train.csv", "sick", users="hospital", test=str(tmp_path / "test.csv")),
    ):
        assert people.facts.test_records == 20
        for name, array in loaded(whole).items():
            assert (loaded(people)[name] == array).all(), name


def test_polars(patients: pd.DataFrame) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(patients.to_dict(orient="list"))
    assert (
        loaded(fp.people(frame, "sick"))["x_train"] == loaded(fp.people(patients, "sick"))["x_train"]
    ).all()


def test_a_torch_dataset_of_images() -> None:
    dataset = torch.utils.data.TensorDataset(torch.rand(20, 1, 6, 6), torch.arange(20) % 2)
    people = fp.people(dataset, test=dataset)
    assert people.facts.features == (6, 6)
    assert people.facts.test_records == 20
    assert fp.people(
        torch.utils.data.TensorDataset(torch.rand(20, 3, 6, 6), torch.arange(20) % 2)
    ).facts.features == (6, 6, 3)


def test_a_file_of_arrays_is_used_as_it_is(arrays: tuple, tmp_path: Path) -> None:
    x, y, _ = arrays
    saved = fp.people(x, y).save(tmp_path / "mine.npz")
    again = fp.people(tmp_path / "mine.npz")
    assert again.path == saved.path == tmp_path / "mine.npz"
    assert not again.temporary
    with pytest.raises(fp.InputError, match="already exists"):
        fp.people(x, y).save(tmp_path / "mine.npz")
    assert "Give the path alone" in message(tmp_path / "mine.npz", y)
    for test in (x, (x, y), pd.DataFrame(x)):
        assert "Give the path alone" in message(tmp_path / "mine.npz", test=test)
    for call in (fp.tune, fp.ask, fp.replay, fp.audit):
        with pytest.raises(fp.InputError) as caught:
            call(fp.people(x, y), **({"canaries": 0} if call is fp.audit else {}))
        assert "People:" not in str(caught.value)


def test_saved_records_are_private_and_whole(
    arrays: tuple, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y, _ = arrays
    people = fp.people(x, y)
    assert people.path.stat().st_mode & 0o77 == 0
    assert people.save(tmp_path / "mine.npz").path.stat().st_mode & 0o77 == 0

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shutil.copyfileobj", full)
    with pytest.raises(fp.InputError, match="No space left"):
        people.save(tmp_path / "other.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.npz"]
    with pytest.raises(fp.InputError, match="No such file"):
        people.save(tmp_path / "nowhere" / "mine.npz")


@pytest.mark.parametrize("where", ["tempfile.mkdtemp", "fedprivacy.data.tables.np.savez"])
def test_a_full_disk_is_explained(arrays: tuple, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(where, full)
    assert "set TMPDIR" in message(*arrays[:2])


def test_temporary_files_are_private_and_go_with_their_object(arrays: tuple) -> None:
    x, y, _ = arrays
    people = fp.people(x, y)
    folder = people.path.parent
    assert folder.stat().st_mode & 0o77 == 0
    scenario = fp.scenario_for(people)
    del people
    gc.collect()
    assert folder.exists()  # the scenario still needs it
    del scenario
    gc.collect()
    assert not folder.exists()


@pytest.mark.parametrize(
    ("arguments", "more", "expected"),
    [
        ((np.eye(4),), {}, "give the labels as y"),
        ((np.eye(4), [0, 1]), {}, "(4, 4) records and (2,) labels"),
        ((np.eye(4), [0, 1, 0, 1]), {"users": [1]}, "(1,) users for (4,) records"),
        ((np.eye(4), [0, 1, 0, 1]), {"test": 1.5}, "above 0 and below 1"),
        ((np.eye(4), [0, 1, 0, 1]), {"test": (1, 2, 3, 4)}, "give (x, y)"),
        ((np.eye(4), [0, 1, 0, 1]), {"bounds": {"a": (0, 1)}}, "for tables"),
        ((np.eye(4), [0, 1, None, 1]), {}, "has no label"),
        ((np.eye(40).astype(complex), [0, 1] * 20), {}, "complex"),
        ((np.array([["a"]] * 40), [0, 1] * 20), {}, "x_train holds text"),
        ((np.array([[{}]] * 40), [0, 1] * 20), {}, "people: "),
        ((np.eye(40), [0.5, 1] * 20), {}, "label 0.5"),
        ((np.eye(2), [0, 1]), {"users": ["a", None]}, "users: a record has no owner"),
        ((np.eye(2), [0, 1]), {"users": ["a", np.nan]}, "users: a record has no owner"),
        ((np.eye(2), [0, 1]), {"users": pd.Series(["a", pd.NA])}, "users: a record has no owner"),
        ((np.eye(2), [0, 1]), {"users": np.array([1, np.nan])}, "users: a record has no owner"),
        ((np.eye(2), ["a", np.nan]), {}, "has no label"),
        ((pd.DataFrame({"a": [1.0, 2.0]}), [0, 1]), {"users": ["u", np.nan]}, "users: a record has none"),
        ((pd.DataFrame({"a": [1j, 2.0], "y": [0, 1]}), "y"), {}, "complex"),
        ((pd.DataFrame({"a": [1.0, 2.0], "y": [0, 1]}), "y"), {"bounds": "a"}, "bounds: give a dictionary"),
        (([[1], [1, 2]], [0, 1]), {}, "x: no array"),
        ((np.eye(2), [[0], [1, 2]]), {}, "y: no array"),
        ((torch.eye(2, requires_grad=True), [0, 1]), {}, "detach"),
        (({"a": 1},), {}, "(record, label) pairs"),
        ((np.eye(2), [0, 1]), {"seed": "a"}, "seed = 'a'"),
        ((np.eye(2), [0, 1]), {"test": np.eye(2)}, "test = ndarray"),
        (("no.csv", "y"), {}, "no such file"),
        (("no.xlsx", "y"), {}, "not a data set"),
        ((torch.utils.data.TensorDataset(torch.rand(3, 2)),), {}, "(record, label) pairs"),
    ],
)  # fmt: skip
def test_mistakes_say_what_to_do(arguments: tuple, more: dict, expected: str) -> None:
    assert expected in message(*arguments, **more)


def test_mistakes_with_tables(patients: pd.DataFrame) -> None:
    assert "no column 'sik'" in message(patients, "sik")
    assert "name a column" in message(patients, [1, 2])
    assert "name a column" in message(patients, None)
    assert "no column of numbers 'aeg'. There are: age" in message(patients, "sick", bounds={"aeg": (0, 1)})
    assert "no bounds" in message(patients, "sick", bounds={"age": (1, 0)})
    assert "the test records lack it" in message(patients, "sick", test=patients.drop(columns="age"))
    assert "name the columns" in message(patients, patients.sick.to_numpy(), test=patients)


@pytest.mark.parametrize(("owners", "unit"), [(19, "example"), (20, "client"), (24, "client")])
def test_from_twenty_owners_on_clients_are_protected_and_not_named(owners: int, unit: str) -> None:
    names = np.repeat([f"owner-{at}" for at in range(owners)], 10)
    table = pd.DataFrame({"age": np.arange(len(names)), "who": names, "sick": np.arange(len(names)) % 2})
    people = fp.people(table, "sick", users="who", bounds={"age": (0, 500)})
    assert fp.scenario_for(people).privacy.unit == unit
    assert ("owner-1" in people.owners) == (unit == "example")


def test_numbers_and_several_targets_are_refused_with_a_remedy_that_holds(arrays: tuple) -> None:
    x, y, _ = arrays
    several = message(x, np.stack([y, y], axis=1))
    assert "save the arrays with numpy.savez" in several
    assert "docs/tasks.md" in several
    assert "savez" not in message(x, y[:-1])
    assert "in a scenario with data.task" in message(x, y + 0.5)
