"""What a user is told about evaluation.groups and its edges."""

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
    """A table with names, `d.npz`, and one without, `n.npz`."""
    monkeypatch.chdir(tmp_path)
    labels = {"y_train": np.arange(120) % 2, "y_test": np.arange(60) % 2}
    x, x_test = np.ones((120, 3)), np.arange(180.0).reshape(60, 3)
    titles = {"feature_names": np.array(["age", "sex=f", "sex=m"])}
    np.savez("d.npz", x_train=x, x_test=x_test, **labels, **titles)
    np.savez("n.npz", x_train=x, x_test=x_test, **labels)
    ids = {"feature_names": np.array([f"id={place}" for place in range(60)])}
    np.savez("i.npz", x_train=np.ones((120, 60)), x_test=np.eye(60), **labels, **ids)


def text(evaluation: str, data: str = 'name = "npz"\npath = "d.npz"') -> str:
    return f'name = "x"\n[data]\n{data}\n{REST}[evaluation]\n{evaluation}\n'


def complaints(evaluation: str, **more: str) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        Scenario.from_text(text(evaluation, **more), "my.toml")
    assert caught.value.exit_code == 2
    return str(caught.value).split("\n")


def test_groups_are_read_and_written() -> None:
    scenario = Scenario.from_text(text('groups = ["sex", "age"]\nedges.age = [30, 60.5]'))
    assert scenario.evaluation.groups == ("sex", "age")
    assert scenario.evaluation.edges == {"age": (30.0, 60.5)}
    assert Scenario.from_text(scenario.to_toml()) == scenario
    assert "groups" not in Scenario.from_text(text("every = 2")).to_toml()  # stored ones stay as they are


@pytest.mark.parametrize(
    ("evaluation", "said"),
    [
        ('groups = ["sx"]', '[0] = "sx": no such column. Did you mean "sex"?'),
        ('groups = ["religion"]', '[0] = "religion": no such column. Known here: "age", "sex".'),
        ('groups = ["sex", "sex"]', "the list names something twice"),
        ("groups = []", "the list is empty"),
        ('groups = "sex"', "is text, a list is needed"),
        ('groups = ["sex"]\nedges.sex = [1.0]', "has categories, not numbers. Remove its edges."),
        ('groups = ["sex"]\nedges.age = [1.0]', 'groups does not name it. Set groups = ["sex", "age"]'),
        ('groups = ["age"]\nedges.age = [2, 1]', "must be numbers in rising order"),
        (
            'groups = ["age"]\non = "public"',
            'groups are columns of the test records, and evaluation.on = "public"',
        ),
    ],
)
def test_mistakes_are_named_with_a_remedy(evaluation: str, said: str) -> None:
    lines = complaints(evaluation)
    assert any(said in line for line in lines), lines


@pytest.mark.parametrize(
    "data",
    ['name = "digits"', 'name = "synthetic"\nrecords = 100', 'name = "npz"\npath = "n.npz"'],
)
def test_records_without_named_columns_have_no_groups(data: str) -> None:
    [line] = complaints('groups = ["sex"]', data=data)
    assert "have no columns with names. Remove it: each report has the accuracy within each class" in line


def test_too_many_groups() -> None:
    [line] = complaints('groups = ["id"]', data='name = "npz"\npath = "i.npz"')
    assert 'groups[0] = "id": has 60 different values, at most 50 become groups.' in line


def test_a_column_left_out_of_training_can_still_make_groups() -> None:
    data = 'name = "npz"\npath = "d.npz"\ncolumns = ["age"]'
    assert Scenario.from_text(text('groups = ["sex"]', data)).evaluation.groups == ("sex",)
