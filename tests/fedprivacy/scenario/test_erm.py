"""Scenarios of private estimates: read, written, and refused with the line and what to do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedprivacy.errors import InputError, ScenarioError
from fedprivacy.scenario.bundled import own_scenario, scenario_of_app
from fedprivacy.scenario.erm import ErmScenario
from fedprivacy.scenario.loading import loads

BASE = """
name = "small"
seed = 3
[data]
name = "logistic-model"
records = 400
features = 2
[objective]
loss = "logistic"
regularisation = 0.05
[approaches.out]
kind = "output-perturbation"
[approaches.path]
kind = "gradient-perturbation"
steps = 20
[study]
epsilons = [0.5, 1.0, 2.0]
repeats = 5
"""


def table(tmp_path: Path) -> str:
    file = tmp_path / "people.npz"
    stream = np.random.default_rng(1)
    x = np.stack([stream.integers(1, 17, 60), stream.integers(0, 300_000, 60)], axis=1)
    y = stream.integers(0, 2, 60)
    np.savez(file, x_train=x, y_train=y, x_test=x, y_test=y, feature_names=np.array(["educ", "income"]))
    return f'''
name = "npz"
path = "{file}"
label = "married"
features = ["educ"]
low = [1.0]
high = [16.0]
target = "income"
target_high = 200_000.0'''


def with_table(tmp_path: Path) -> str:
    given = 'name = "logistic-model"\nrecords = 400\nfeatures = 2'
    return BASE.replace(given, table(tmp_path)).replace('"logistic"', '"squared"')


def test_it_is_read_and_written_back() -> None:
    scenario = loads(BASE)
    assert isinstance(scenario, ErmScenario)
    assert loads(scenario.to_toml()) == scenario
    assert scenario.population == 400
    assert scenario.privacy.adjacency == "replace-one"
    assert list(scenario.sections) == [
        (), ("data",), ("objective",), ("approaches", "out"), ("approaches", "path"), ("privacy",),
        ("federation",), ("study",)
    ]  # fmt: skip


def test_a_table_is_read(tmp_path: Path) -> None:
    scenario = loads(with_table(tmp_path))
    assert isinstance(scenario, ErmScenario)
    assert scenario.population == 60
    assert loads(scenario.to_toml()) == scenario


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("steps = 20", "stpes = 20", "small.toml:15: approaches.path.stpes: unknown key. Did you mean steps?"),
        ('kind = "output-perturbation"', 'kind = "output"', "small.toml:12: approaches.out.kind"),
        ("regularisation = 0.05", "", "objective.regularisation: missing. Add regularisation = 0.01."),
        ("regularisation = 0.05", "regularisation = 0.0", "must be at least 1e-12"),
        ("regularisation = 0.05", "regularisation = 1e-300", "must be at least 1e-12"),
        ("regularisation = 0.05", "regularisation = 0.05\nradius = 1e-12", "radius = 1e-12: must be at least 0.001"),
        ("regularisation = 0.05", "regularisation = 0.05\nwidth = 1e-300", "width = 1e-300: must be at least 1e-06"),
        ("steps = 20", "step_size = 1e-320", "step_size = 1e-320: must be at least 1e-12"),
        ("repeats = 5", "repeats = 1", "small.toml:18: study.repeats"),
        ('"logistic"', '"squared"', "has classes to tell"),
        ("steps = 20", "silos = 300", "is 300, of 400 records. Each needs two at least."),
        ("steps = 20", 'trust = "local"', 'trust = "local" is of several silos'),
        ("steps = 20", "silos = 4\n[privacy]\nadjacency = 'add-remove'", "must be 1 under add-remove"),
        ("[study]", "[privacy]\ndelta = 0.01\n[study]", "must be below 1/(number of records) = 0.0025"),
        ('kind = "output-perturbation"', 'kind = "sufficient-statistics"', "of the squared loss alone"),
        ('kind = "output-perturbation"', 'kind = "exponential-grid"\npoints = 1000\n[approaches.b]\n'
         'kind = "exponential-grid"\npoints = 1001', "points"),
        ("[approaches.out]", "[approaches.'no name']", "must be letters, digits and hyphens"),
        ("[study]", "[studie]", "Did you mean study?"),
    ],
)  # fmt: skip
def test_mistakes_are_told_with_their_line(old: str, new: str, said: str) -> None:
    assert old in BASE
    with pytest.raises(ScenarioError) as caught:
        loads(BASE.replace(old, new), "small.toml")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('["educ"]', '["educc"]', 'unknown column. Did you mean "educ"?'),
        ('target = "income"', 'target = "educ"', "is a feature too"),
        ('target = "income"', 'target = "incme"', "unknown column"),
        ("[1.0]", "[1.0, 2.0]", "has 2 bounds for 1 features"),
        ("[16.0]", "[1.0]", "is not below high"),
        ("200_000.0", "-1.0", "is not below target_high"),
        ("people.npz", "nobody.npz", "data.path"),
        ("repeats = 5", "repeats = 5\nrecords = [50, 500]", "asks for 500 of 60 records"),
    ],
)
def test_mistakes_of_a_table(old: str, new: str, said: str, tmp_path: Path) -> None:
    text = with_table(tmp_path)
    assert old in text
    with pytest.raises(ScenarioError) as caught:
        loads(text.replace(old, new), "small.toml")
    assert said in str(caught.value)


def test_no_approach() -> None:
    text = BASE[: BASE.index("[approaches.out]")] + "[approaches]\n"
    with pytest.raises(ScenarioError, match=r"approaches: no approach. Add \[approaches.NAME\]"):
        loads(text)


def test_flower_runs_it_and_no_node_holds_it_as_its_own() -> None:
    assert scenario_of_app(BASE) == loads(BASE)
    with pytest.raises(InputError, match="fits private estimates, a study of known records"):
        own_scenario(BASE)
