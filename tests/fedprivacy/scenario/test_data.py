"""What a user is told about the data of a scenario: its keys, and the file that it names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedprivacy.errors import ScenarioError
from fedprivacy.scenario import Scenario

REST = """
[model]
name = "logistic"
[server]
rounds = 3
[sampling]
name = "all"
[privacy]
trust = "central"
clipping_norm = 1
epsilon = 2.0
delta = 1e-4
"""


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table `d.npz`, pictures `p.npz`, a table with values missing `m.npz`, all in the current folder."""
    monkeypatch.chdir(tmp_path)
    labels = {"y_train": np.arange(20) % 3, "y_test": np.arange(4) % 3}
    x, x_test = np.ones((20, 3)), np.ones((4, 3))
    names = {"feature_names": np.array(["age", "income", "region"])}
    people = {"user_train": np.arange(20) // 4}
    np.savez("d.npz", x_train=x, x_test=x_test, **labels, **names, **people)
    np.savez("p.npz", x_train=np.ones((20, 2, 2)), x_test=np.ones((4, 2, 2)), **labels)
    holes = x.copy()
    holes[1, 1:] = np.nan
    np.savez("m.npz", x_train=holes, x_test=x_test, **labels, **names)
    np.savez("c.npz", x_train=x, x_test=x_test, **labels, classes=np.array(["red", "green"]))
    high = {**labels, "y_test": np.array([0, 1, 2, 7])}
    np.savez("h.npz", x_train=x, x_test=x_test, **high)


def text(data: str) -> str:
    return f'name = "x"\n[data]\n{data}\n{REST}'


def complaints(data: str, *overrides: str) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        Scenario.from_text(text(data), "my.toml", overrides)
    return str(caught.value).split("\n")


@pytest.mark.parametrize(
    ("data", "clients"),
    [
        ('path = "d.npz"', 20),
        ('path = "d.npz"\npartition = "by-user"', 5),
        ('path = "d.npz"\npartition = "by-user"\npublic_fraction = 0.4', 3),
        ('path = "d.npz"\npartition = "iid"\nclients = 7', 7),
        ('path = "d.npz"\npartition = "dirichlet"\nclients = 7\nalpha = 0.5', 7),
        ('path = "d.npz"\npartition = "fixed-records"\nrecords_per_client = 3\npublic_fraction = 0.1', 6),
        ('path = "p.npz"\nscaling = "bounds"\nlow = 0\nhigh = 255', 20),
        ('path = "d.npz"\ncolumns = ["income", 0]\nscaling = "bounds"\nlow = [0, 0]\nhigh = [9, 1e5]', 20),
        ('path = "m.npz"\nmissing = "zero"', 20),
        ('path = "m.npz"\nwithout = ["income", "region"]', 20),
        ('path = "h.npz"\nclasses = 8', 20),
    ],
)
def test_good_data_keep_their_settings_when_saved(data: str, clients: int) -> None:
    scenario = Scenario.from_text(text(f'name = "npz"\n{data}'))
    assert scenario.population == clients
    assert Scenario.from_text(scenario.to_toml()) == scenario


# The data section without its name, and all that is said.
MISTAKES: dict[str, tuple[str, list[str]]] = {
    "no path": (
        "",
        [
            'my.toml:2: data.path: missing. Add path = "data/mnist.npz". '
            "The file, seen from the folder where the command runs."
        ],
    ),
    "no file": (
        'path = "e.npz"',
        [
            'my.toml:4: data.path = "e.npz": no such file. '
            "Give its path from the folder where the command runs."
        ],
    ),
    "a misspelt column": (
        'path = "d.npz"\nwithout = ["incom", 3, 2, "region"]',
        [
            'my.toml:5: data.without[0] = "incom": unknown column. Did you mean "income"?',
            "my.toml:5: data.without[1] = 3: there are columns 0 to 2. They are counted from 0.",
            'my.toml:5: data.without[3] = "region": the list names this column twice. Remove one of them.',
        ],
    ),
    "columns without names": (
        'path = "c.npz"\ncolumns = ["age"]',
        [
            *(
                f"my.toml:4: data.path: {part} has the label 2, but the 2 classes that the file names are 0 to 1. "
                "Correct the labels."
                for part in ("y_train", "y_test")
            ),
            'my.toml:5: data.columns[0] = "age": the file names no columns. Give places, 0 to 2.',
        ],
    ),
    "no column left": (
        'path = "d.npz"\nwithout = [0, 1, 2]',
        ["my.toml:5: data.without: leaves no column. Name fewer."],
    ),
    "two lists of columns": (
        'path = "d.npz"\ncolumns = [0]\nwithout = [1]',
        [
            "my.toml:6: data.without: given together with columns, but each says which are used. "
            "Keep one of them."
        ],
    ),
    "columns of pictures": (
        'path = "p.npz"\ncolumns = [0]',
        ["my.toml:5: data.columns: records have the shape (2, 2), which has no columns. Remove it."],
    ),
    "columns that are none": (
        'path = "d.npz"\ncolumns = [0.5]',
        [
            "my.toml:5: data.columns = [0.5]: must be a list of column names, or of places counted from 0. "
            'The columns to keep, in this order, such as ["age", "income"].'
        ],
    ),
    "values missing": (
        'path = "m.npz"\nwithout = ["region"]',
        [
            "my.toml:4: data.path: values are missing (NaN, infinite or beyond float32) in column income. "
            'Leave out what lacks values (without = ["income"]), or set missing = "zero": 0 after scaling.'
        ],
    ),
    "labels beyond the training labels": (
        'path = "h.npz"',
        [
            "my.toml:4: data.path: y_test has the label 7, but the 3 classes of the training labels are "
            "0 to 2. Set classes = 8, or correct the labels."
        ],
    ),
    "labels beyond the classes": (
        'path = "d.npz"\nclasses = 2',
        [
            f"my.toml:5: data.classes: {part} has the label 2, but the 2 classes given are 0 to 1. "
            "Set classes = 3, or correct the labels."
            for part in ("y_train", "y_test")
        ],
    ),
    "other classes than the file names": (
        'path = "c.npz"\nclasses = 3',
        ["my.toml:5: data.classes = 3: the file names 2 classes. Remove it, or set 2."],
    ),
    "no users": (
        'path = "p.npz"\npartition = "by-user"',
        [
            'my.toml:5: data.partition = "by-user": the file has no array user_train. '
            'Use "iid" or "one-per-example".'
        ],
    ),
    "all users public": (
        'path = "d.npz"\npartition = "by-user"\npublic_fraction = 0.95',
        [
            "my.toml:6: data.public_fraction = 0.95: leaves none of 5 users to clients. Make it smaller.",
        ],
    ),
    "too many records for each": (
        'path = "d.npz"\npartition = "fixed-records"\nrecords_per_client = 21',
        [
            "my.toml:6: data.records_per_client = 21: more than the 20 records that clients can own. "
            "At most 20."
        ],
    ),
    "too many clients of as many records each": (
        'path = "d.npz"\npartition = "fixed-records"\nrecords_per_client = 6\nclients = 4',
        [
            "my.toml:7: data.clients = 4: more clients than 20 records are enough for. "
            "At most 3, or fewer records_per_client.",
        ],
    ),
    "too many clients of a Dirichlet partition": (
        'path = "d.npz"\npartition = "dirichlet"\nclients = 21\nalpha = 1',
        [
            "my.toml:6: data.clients = 21: more clients than the 20 records that they can own. At most 20.",
        ],
    ),
    "keys of other choices": (
        'path = "d.npz"\npartition = "dirichlet"\nclients = 4\nrecords_per_client = 3\nlow = 0',
        [
            'my.toml:2: data.alpha: missing: partition "dirichlet" needs it. Add alpha = 0.3. '
            "How even the labels of a client are: near 0 each client has one, 100 is nearly iid.",
            'my.toml:7: data.records_per_client: has no effect with partition = "dirichlet". '
            'Remove it, or set partition = "fixed-records".',
            'my.toml:8: data.low: has no effect with scaling = "none". Remove it, or set scaling = "bounds".',
        ],
    ),
    "no public part to scale by": (
        'path = "d.npz"\nscaling = "public"',
        [
            'my.toml:2: data.public_fraction: scaling "public" needs records that no client owns, to take '
            "mean and deviation from. Set public_fraction = 0.1."
        ],
    ),
    "bounds for other columns": (
        'path = "d.npz"\nwithout = [0]\nscaling = "bounds"\nlow = 0\nhigh = [1, 2, 3]',
        [
            "my.toml:8: data.high: 3 numbers for 2 columns. "
            "Give one number, or one for each column that is used."
        ],
    ),
    "bounds for the columns of pictures": (
        'path = "p.npz"\nscaling = "bounds"\nlow = 0\nhigh = [1, 2, 3, 4]',
        [
            "my.toml:7: data.high: records have no columns. "
            "Give one number, or one for each column that is used."
        ],
    ),
    "bounds the wrong way round": (
        'path = "d.npz"\nscaling = "bounds"\nlow = 1\nhigh = [\n2,\n0.5,\n3]',
        ["my.toml:9: data.high[1] = 0.5: must be above low = 1. low becomes 0, high 1."],
    ),
    "a bound that is none": (
        'path = "d.npz"\nscaling = "bounds"\nlow = "0"\nhigh = inf',
        [
            'my.toml:6: data.low = "0": must be a number, or a list with one for each column. '
            "What becomes 0, one number or one for each column; values below are cut.",
            "my.toml:7: data.high = inf: must be a number, or a list with one for each column. "
            "What becomes 1, one number or one for each column; values above are cut.",
        ],
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_in_the_data(case: str) -> None:
    data, said = MISTAKES[case]
    assert complaints(f'name = "npz"\n{data}') == said


def test_the_file_s_mistakes_come_with_all_others_and_once_for_all_cells() -> None:
    data = (
        'name = "npz"\npath = "m.npz"\nclients = 3\nclassses = 3\n[compare]\nlocal = {privacy = {clip = 1}}'
    )
    said = complaints(data, "federation.hosts=21", "evaluation.on=public")
    assert len(said) == 6
    for words in ("values are missing", "data.clients", "Did you mean classes", "hosts", "public", "clip"):
        assert sum(words in line for line in said) >= 1, words


def test_what_users_and_files_are_asked_of_other_data() -> None:
    assert complaints('name = "digits"\npartition = "by-user"') == [
        'my.toml:4: data.partition = "by-user": the data set "digits" has no users. '
        'Use "iid" or "one-per-example".'
    ]
    assert complaints('name = "digits"\npath = "d.npz"') == [
        'my.toml:4: data.path: has no effect with name = "digits". Remove it, or set name = "npz" or name = "table" or name = "text" or name = "flwr-datasets".'
    ]


@pytest.mark.parametrize(
    ("data", "good"),
    [('name = "digits"', True), ('name = "synthetic"', False), ('name = "npz"\npath = "d.npz"', False),
     ('name = "npz"\npath = "p.npz"', True)],
)  # fmt: skip
def test_only_square_images_can_be_scaled_as_images(data: str, good: bool) -> None:
    said = complaints(f'{data}\nscaling = "per-image"\nclients = 3')  # which is wrong in any case
    assert any("data.scaling" in line and "needs square images" in line for line in said) == (not good)


def test_another_choice_takes_its_keys_along() -> None:
    data = (
        'name = "npz"\npath = "d.npz"\npartition = "dirichlet"\nclients = 4\nalpha = 1\n'
        'scaling = "bounds"\nlow = 0\nhigh = 1'
    )
    changed = Scenario.from_text(text(data), overrides=["data.partition=iid", "data.scaling=none"])
    assert (changed.data.clients, changed.data.alpha, changed.data.low) == (4, None, None)
    digits = Scenario.from_text(text(data), overrides=["data.name=digits"])
    assert digits.data.alpha == 1.0
    assert complaints(data, "data.partition=by-user", "data.alpha=2")[0].startswith(
        "--set data.alpha=2: has no effect"
    )


def test_a_scenario_made_in_python_is_checked_against_its_file_too() -> None:
    scenario = Scenario.from_text(text('name = "npz"\npath = "d.npz"'))
    parts = {**dict(scenario), "data": scenario.data.model_copy(update={"path": "m.npz"})}
    with pytest.raises(ScenarioError, match="values are missing"):
        Scenario(**parts)


def test_a_model_too_large_for_the_file_s_records_is_refused() -> None:
    np.savez(
        "wide.npz",
        x_train=np.zeros((2, 50_000), np.uint8),
        x_test=np.zeros((1, 50_000), np.uint8),
        y_train=[0, 1],
        y_test=[0],
    )
    data = 'name = "npz"\npath = "wide.npz"'
    [line] = complaints(data, "model={name='mlp', hidden=[30_000]}")
    assert "more than 1,000,000,000 parameters" in line
