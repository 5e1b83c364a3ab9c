"""What a user is told about a data file, word by word, and what is read from a good one."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedprivacy.data import npz

GOOD: dict[str, Any] = {
    "x_train": np.arange(12.0).reshape(6, 2),
    "y_train": np.array([0, 1, 2, 0, 1, 2]),
    "x_test": np.ones((3, 2)),
    "y_test": np.array([0, 1, 1]),
    "user_train": np.array(["a", "b", "a", "b", "c", "a"]),
    "feature_names": np.array(["age", "income"]),
}


def save(folder: Path, **changes: Any) -> str:
    """A good file with some arrays changed, or left out where the change is None."""
    arrays = {name: array for name, array in {**GOOD, **changes}.items() if array is not None}
    np.savez_compressed(folder / "d.npz", **arrays)
    return str(folder / "d.npz")


def complaints(path: str) -> list[str]:
    with pytest.raises(npz.NpzError) as caught:
        npz.facts(path)
    assert caught.value.exit_code == 2
    return [f"{what}. {remedy}" for what, remedy in caught.value.wrongs]


def test_the_facts_of_a_good_file(tmp_path: Path) -> None:
    facts = npz.facts(save(tmp_path))
    assert (facts.records, facts.test_records, facts.features, facts.users) == (6, 3, (2,), 3)
    assert (facts.classes(), facts.classes(5), facts.feature_names) == (3, 5, ("age", "income"))
    named = npz.facts(save(tmp_path, classes=np.array([b"x", b"y", b"z", b"w"])))
    assert (named.class_names, named.classes()) == (("x", "y", "z", "w"), 4)


def test_a_loop_of_links_is_named(tmp_path: Path) -> None:
    (tmp_path / "d.npz").symlink_to(tmp_path / "d.npz")
    assert complaints(str(tmp_path / "d.npz")) == ["a link that leads back to itself. Correct the path."]


def test_a_file_that_changes_is_read_again(tmp_path: Path) -> None:
    assert npz.facts(save(tmp_path)).users == 3
    assert npz.facts(save(tmp_path, user_train=None)).users is None


WHOLE = "Labels are whole numbers, counted from 0."
PLAIN = "Save it as a plain array."
MISTAKES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "missing arrays": (
        {"y_train": None, "x_test": None},
        [
            "the file has no y_train and no x_test. It has x_train, y_test, user_train, feature_names; "
            "records and labels are x_train, y_train, x_test, y_test."
        ],
    ),
    "objects": (
        {"x_train": np.array([[{}, 1]] * 6, dtype=object), "feature_names": np.array([{}, 1], dtype=object)},
        [
            f"x_train holds objects (a pickle, never read), numbers are needed. {PLAIN}",
            f"feature_names holds objects (a pickle, never read), names are needed. {PLAIN}",
        ],
    ),
    "labels in words": (
        {"y_train": np.array(["cat", "dog"] * 3)[:6]},
        [
            "y_train holds text, numbers are needed. Number the classes from 0, the same in both parts, as "
            "numpy.unique(labels, return_inverse=True) does. Their names may go into an array classes."
        ],
    ),
    "text for numbers": (
        {"x_test": np.array([["a", "b"]] * 3)},
        [
            "x_test holds text, numbers are needed. Encode words as numbers, such as one column of 0 and 1 for each word."
        ],
    ),
    "complex records": (
        {"x_train": np.ones((6, 2), complex)},
        [
            "x_train holds complex numbers, numbers are needed. Save real numbers, such as the real and the "
            "imaginary parts as columns of their own."
        ],
    ),
    "a table of labels": (
        {"y_train": np.zeros((6, 3), int)},
        ["y_train has shape (6, 3). A plain list is needed: one dimension."],
    ),
    "a list of records": (
        {"x_test": np.zeros(3)},
        [
            "x_test has shape (3,). One row for each record is needed: (records, features).",
            "records have shape (2,) in x_train and () in x_test. Both must be of the same kind.",
        ],
    ),
    "rows that do not fit": (
        {"y_train": np.zeros(5, int), "user_train": np.zeros(4, int)},
        [
            "x_train and y_train do not fit each other: 6 rows and 5. Row i of both must be the same record.",
            "x_train and user_train do not fit each other: 6 rows and 4. "
            "Row i of both must be the same record.",
        ],
    ),
    "no rows": (
        {"x_test": np.zeros((0, 2)), "y_test": np.zeros(0, int)},
        ["x_test has no rows. At least one is needed."],
    ),
    "other columns in the test part": (
        {"x_test": np.zeros((3, 4))},
        ["records have shape (2,) in x_train and (4,) in x_test. Both must be of the same kind."],
    ),
    "too few names": (
        {"feature_names": np.array(["age"])},
        ["feature_names has shape (1,). A name for each of the 2 columns is needed."],
    ),
    "a name twice": (
        {"feature_names": np.array(["age", "age"])},
        ["feature_names has a name twice. Give each column a name of its own."],
    ),
    "negative label": ({"y_train": np.array([0, 1, -1, 0, 1, 1])}, [f"y_train has the label -1. {WHOLE}"]),
    "half a label": (
        {"y_test": np.array([0, 0.5, 1])},
        [
            f"y_test has the label 0.5. {WHOLE} To predict numbers name the file in a scenario with "
            'data.task = "regression".'
        ],
    ),
    "no label": ({"y_test": np.array([0, np.nan, 1])}, [f"y_test has the label nan. {WHOLE}"]),
    "a label like an id": (
        {"y_test": np.array([0, 1, 10**12])},
        [f"y_test has the label 1000000000000, beyond 1,000,000 classes. {WHOLE}"],
    ),
    "users that are numbers with a point": (
        {"user_train": np.zeros(6)},
        ["user_train holds values of type float64, ids are needed. Save whole numbers or words."],
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_file_that_cannot_be_used(case: str, tmp_path: Path) -> None:
    changes, said = MISTAKES[case]
    assert complaints(save(tmp_path, **changes)) == said


def test_whole_labels_with_a_point_are_labels(tmp_path: Path) -> None:
    assert npz.facts(save(tmp_path, y_train=np.array([0.0, 1, 2, 0, 1, 1]))).classes() == 3


def test_what_is_no_npz_file(tmp_path: Path) -> None:
    path = tmp_path / "d.npz"
    assert complaints(str(path)) == ["no such file. Give its path from the folder where the command runs."]
    assert complaints(str(tmp_path)) == ["a folder, not a file. Name the .npz file in it."]
    for content, begin in (
        (b"", "an empty file, not .npz. "),
        (
            b"a,b\n1,2\n" * 100,
            "not an .npz file but text, such as CSV. Load it with numpy.loadtxt or pandas.read_csv",
        ),
        (("größe\n" * 200).encode()[:511], "not an .npz file but text, such as CSV. "),
        (("größe;1\r\n" * 200).encode("cp1252"), "not an .npz file but text, such as CSV. "),
        (("größe;1\n" * 200).encode("utf-16"), "or pandas.read_csv (encoding='utf-16'), and save"),
        (("größe;1\n" * 200).encode("utf-16-le"), "or pandas.read_csv (encoding='utf-16-le'), and save"),
        (("größe;1\n" * 200).encode("utf-16-be"), "or pandas.read_csv (encoding='utf-16-be'), and save"),
        (b"\x80\x04]q\x00.", "not an .npz file but probably a pickle, which is never read. "),
        (b"\x93NUMPY\x01\x00", "not an .npz file but one array (.npy). Load it with numpy.load"),
        (b"PK\x03\x04" + b"x" * 1000, "not an .npz file, or a damaged one ("),
        (b"\x00\x01\x02" * 100, "not an .npz file, or a damaged one ("),
    ):
        path.write_bytes(content)
        [said] = complaints(str(path))
        assert begin in said
        assert ("Fetch it again" in said) == (not content or "damaged" in begin)
    with zipfile.ZipFile(path, "w") as archive:
        for name in npz.NEEDED:
            archive.writestr(f"{name}.npy", b"no array")
    [said] = complaints(str(path))
    assert said.startswith("cannot be read: ")


def test_damage_anywhere_is_an_error_of_its_own_and_never_a_traceback(tmp_path: Path) -> None:
    whole = Path(save(tmp_path)).read_bytes()
    path = tmp_path / "d.npz"
    for length in range(0, len(whole), 40):
        path.write_bytes(whole[:length])
        assert complaints(str(path))
    for at in range(0, len(whole), 11):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        try:
            facts = npz.facts(str(path))
            for name in npz.NEEDED:
                npz.array(str(path), name)
        except npz.NpzError:
            continue
        assert facts.records == 6  # a name or a date that nobody looks at


def test_a_header_that_promises_more_than_there_is_allocates_nothing(tmp_path: Path) -> None:
    path = save(tmp_path)
    with zipfile.ZipFile(path, "a") as archive:
        header = "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 2)}"
        archive.writestr(
            "user_test.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()
        )
    assert complaints(path) == ["cannot be read: user_test is cut off. Fetch or save it again."]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<f4", ">f8", "|u1", "<i8", "|b1", "<f2"])
def test_blocks_together_are_the_array(order: str, dtype: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(npz, "_BLOCK_BYTES", 50)
    x = np.asarray(np.arange(60).reshape(10, 3, 2) % 2, dtype=dtype, order=order)
    path = save(tmp_path, x_train=x)
    found = list(npz.blocks(path, "x_train"))
    assert len(found) > 1
    assert np.array_equal(np.concatenate(found), np.load(path)["x_train"])
    assert npz.header_of(path, "x_train").fortran == (order == "F")


def test_columns_with_missing_values_are_found_in_both_parts(tmp_path: Path) -> None:
    x, x_test = GOOD["x_train"].copy(), GOOD["x_test"].copy()
    assert npz.unusable_columns(save(tmp_path)) == ()
    x[3, 1] = np.nan
    assert npz.unusable_columns(save(tmp_path, x_train=x)) == (1,)
    x_test[0, 0] = -np.inf
    assert npz.unusable_columns(save(tmp_path, x_train=x, x_test=x_test)) == (0, 1)
    assert npz.unusable_columns(save(tmp_path, x_train=np.full((6, 2), 1e300))) == (0, 1)


@pytest.mark.parametrize(
    ("name", "records", "features", "users", "classes"),
    [
        ("mnist.npz", 60_000, (28, 28), 539, 10),
        ("pums_fulton.npz", 20_613, (14,), 7, 2),
        ("wisdm_har.npz", 4332, (43,), 36, 6),
        ("heart_disease.npz", 490, (13,), 4, 2),
        ("adult.npz", 32_561, (108,), None, 2),
        ("location30.npz", 4007, (446,), None, 30),
        ("cifar100_subset.npz", 14_000, (32, 32, 3), None, 100),
    ],
)
def test_real_files(real_data, name, records, features, users, classes) -> None:
    facts = npz.facts(os.path.relpath(real_data(name)))
    assert (facts.records, facts.features, facts.users, facts.classes()) == (
        records,
        features,
        users,
        classes,
    )
    if name == "wisdm_har.npz":
        lacking = [facts.feature_names[at] for at in npz.unusable_columns(str(real_data(name)))]
        assert lacking == ["XPEAK", "YPEAK", "ZPEAK"]
