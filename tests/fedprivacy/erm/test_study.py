"""Studies: the records they fit, their cells, and the document that says what was found and promised."""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pages import HOSTILE, Page, check_whole, poisoned, safe

from fedprivacy import report
from fedprivacy.erm.assumptions import ErmAssumption
from fedprivacy.erm.study.approaches import cells_of
from fedprivacy.erm.study.cells import _on_test, exact, run_cell
from fedprivacy.erm.study.claims import AS_PLANNED
from fedprivacy.erm.study.document import slopes_of
from fedprivacy.erm.study.lots import Lot, SiloReplies, SiloStudy
from fedprivacy.erm.study.people import HeldOut, records, study_streams
from fedprivacy.errors import InputError
from fedprivacy.guarantees.assumptions import TrainingAssumption
from fedprivacy.guarantees.remote_nodes import Stated
from fedprivacy.scenario.erm import ErmScenario
from fedprivacy.verification.verify import checked_document
from scenarios.experiments.erm_study import fit

TEXT = """
name = "small"
seed = 3
[data]
name = "logistic-model"
records = 300
features = 2
[objective]
loss = "logistic"
regularisation = 0.05
radius = 2.0
[approaches.out]
kind = "output-perturbation"
noise = "gaussian"
[approaches.obj]
kind = "objective-perturbation"
noise = "gaussian"
[approaches.path]
kind = "gradient-perturbation"
steps = 20
[approaches.grid]
kind = "exponential-grid"
points = 5
[approaches.average]
kind = "objective-perturbation"
silos = 3
[approaches.silos]
kind = "gradient-perturbation"
steps = 10
silos = 3
trust = "local"
[approaches.served]
kind = "gradient-perturbation"
steps = 10
silos = 3
[study]
epsilons = [0.01, 1.0, 8.0]
repeats = 4
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs")
    document = fit(ErmScenario.from_text(TEXT), out)
    return Path(document["path"])


@pytest.fixture
def document(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "run.json").read_text())  # type: ignore[no-any-return]


def test_made_up_people_lie_in_the_ball_and_follow_their_truth() -> None:
    text = TEXT.replace("records = 300", "records = 40_000")
    people = records(ErmScenario.from_text(text))
    assert np.linalg.norm(people.x, axis=1).max() <= 1
    assert people.truth is not None
    assert np.linalg.norm(people.truth) == pytest.approx(3.0)
    chance = 1 / (1 + np.exp(-people.x @ people.truth))
    # The mean of y given each half of the chances: four standard errors.
    for part in (chance < 0.5, chance >= 0.5):
        assert np.mean(people.y[part] > 0) == pytest.approx(
            chance[part].mean(), abs=4 * 0.5 / math.sqrt(part.sum())
        )


def test_columns_of_a_table_are_scaled_by_their_public_bounds(tmp_path: Path) -> None:
    x = np.array([[1, 0], [16, 200_000], [20, 999_999], [8, 50_000]])
    y = np.array([0, 1, 1, 0])
    np.savez(
        tmp_path / "t.npz",
        x_train=x,
        y_train=y,
        x_test=x,
        y_test=y,
        feature_names=np.array(["educ", "income"]),
    )
    data = f'name = "npz"\npath = "{tmp_path}/t.npz"\nfeatures = ["educ"]\nlow = [1.0]\nhigh = [16.0]\n'
    head = 'name = "t"\n[objective]\nloss = "squared"\nregularisation = 0.1\n[approaches.s]\nkind = "output-perturbation"\n'
    income = records(
        ErmScenario.from_text(
            f'{head}[data]\n{data}target = "income"\ntarget_high = 200_000.0\n[privacy]\ndelta = 0.1'
        )
    )
    order = np.argsort(income.y, kind="stable")
    assert np.allclose(income.x[order] * math.sqrt(2), [[1, -1], [1, -1 / 15], [1, 1], [1, 1]])
    assert np.allclose(income.y[order], [-1, -0.5, 1, 1])
    # A theta of (0, sqrt 2) is a prediction from -1 to 1 over the bounds: 200,000 over 15 steps.
    assert income.units[1] * math.sqrt(2) == pytest.approx(200_000 / 15)
    married = records(
        ErmScenario.from_text(
            f'{head.replace("squared", "logistic")}[data]\n{data}target = "label"\n[privacy]\ndelta = 0.1'
        )
    )
    assert sorted(married.y.tolist()) == [-1, -1, 1, 1]
    assert np.linalg.norm(married.x, axis=1).max() <= 1


def test_each_cell_states_what_it_lost_and_what_is_promised(document: dict[str, Any]) -> None:
    assert document["status"] == "finished"
    assert [(c["approach"], c["epsilon"]) for c in document["cells"]] == [
        (name, epsilon)
        for name in ("out", "obj", "path", "grid", "average", "silos", "served")
        for epsilon in (0.01, 1.0, 8.0)
    ]
    for cell in document["cells"]:
        if cell["refused"]:
            assert (cell["kind"], cell["epsilon"]) == ("objective-perturbation", 0.01)
            assert "the Hessian of one record costs" in cell["refused"]
            continue
        assert cell["excess"]["mean"] > -1e-9
        if cell["bound"] is not None:
            assert cell["excess"]["mean"] < 2 * cell["bound"]
        claims = {g["observer"]: g["epsilon"] for g in cell["guarantees"]}
        assert max(e for e in claims.values() if e is not None) == pytest.approx(cell["epsilon"])
        if cell["approach"] == "served":
            assert claims["server"] is None
        if cell["approach"] == "silos":
            assert claims["outsider"] < claims["participant"] < claims["server"]
        assert {g["unit"] for g in cell["guarantees"]} == {"example"}
    assert "of 300 records" in document["finding"].lower()


def test_every_guarantee_says_what_its_randomness_is(document: dict[str, Any]) -> None:
    """Curators too. A descent of silos played again with others absent is another release: excluded."""
    found = [(c["approach"], g) for c in document["cells"] for g in c["guarantees"]]
    for approach, one in [*found, ("path", document["surface"]["guarantee"])]:
        promised = one["epsilon"] is not None
        assert (TrainingAssumption.SIMULATED in one["assumptions"]) == promised
        assert (ErmAssumption.RELEASED_ONCE in one["assumptions"]) == (
            promised and approach in ("silos", "served")
        )
        assert not any("the submitter of the run" in said for said in one["assumptions"])  # all are ours
    assert {approach for approach, _ in found} == {"out", "obj", "path", "grid", "average", "silos", "served"}


def test_what_silos_draw_is_said_of_nodes_that_are_not_our_own() -> None:
    scenario = ErmScenario.from_text(TEXT, overrides=["approaches.served.rate=0.5", "study.epsilons=[1.0]"])
    people = records(scenario)
    truth, streams = exact(scenario, people, 300), study_streams(scenario, people)
    at_server, on_nodes = (
        "come from the operating system's entropy at the server",
        "what is drawn on the nodes",
    )
    expected = {
        "out": [(True, False)],
        "average": [None, (False, True), (False, True)],
        "silos": [None, (False, True), (False, True)],
        "served": [None, (True, True), (True, True)],  # the silos draw the batches
    }
    for cell in cells_of(scenario):
        if cell.name in expected:
            played = run_cell(scenario, people, truth, cell, streams, stated=Stated(noise="system"))
            for one, said in zip(played["guarantees"], expected[cell.name], strict=True):
                assert (one["epsilon"] is None) == (said is None)
                assert said is None or (at_server in one["words"], on_nodes in one["words"]) == said
                assert TrainingAssumption.SIMULATED not in one["assumptions"]
                assert ErmAssumption.RELEASED_ONCE not in one["assumptions"]


def test_where_silos_were_absent_no_bound_is_claimed_and_noise_is_as_planned() -> None:
    """Here one of three answers: the estimate is worse than the bound that theory has of all three."""
    scenario = ErmScenario.from_text(TEXT, overrides=["study.epsilons=[1.0]"])
    people = records(scenario)
    truth, streams = exact(scenario, people, 300), study_streams(scenario, people)
    side = SiloStudy(scenario, people, streams)

    def first_alone(lot: Lot, step: int, thetas: np.ndarray) -> SiloReplies:
        rows = side.request(lot, step, thetas).rows.copy()
        rows[:, 1:] = 0
        return SiloReplies(rows, 1, "gone")

    for cell in cells_of(scenario):
        if cell.name in ("average", "silos", "served"):
            whole, broken = (
                run_cell(scenario, people, truth, cell, streams, ask) for ask in (None, first_alone)
            )
            assert (whole["bound"] is None) == (cell.name == "average")
            assert broken["bound"] is None
            assert broken["noise"] == whole["noise"] + AS_PLANNED
            assert (whole["absent"], broken["absent"]) == (0, 2 if cell.name == "average" else 20)


def test_the_path_on_the_surface_is_that_of_the_first_estimate(document: dict[str, Any]) -> None:
    surface = document["surface"]
    assert np.allclose(np.mean(surface["path"], axis=0), surface["estimate"])
    scenario = ErmScenario.from_text(TEXT)
    people = records(scenario)
    truth = exact(scenario, people, 300)
    x, y = people.first(300)
    axis = surface["axis"]
    here = truth.objective.value(np.array([axis[3], axis[7]]), x, y)
    assert surface["values"][7][3] == pytest.approx(here)
    assert min(map(min, surface["values"])) >= truth.value


def test_the_same_seed_gives_the_same_numbers_and_other_settings_other_noise(
    document: dict[str, Any],
) -> None:
    scenario = ErmScenario.from_text(TEXT)
    people = records(scenario)
    truth, streams = exact(scenario, people, 300), study_streams(scenario, people)
    for cell, stored in list(zip(cells_of(scenario), document["cells"], strict=True))[-3:]:
        assert json.loads(json.dumps(run_cell(scenario, people, truth, cell, streams))) == stored
    other = ErmScenario.from_text(TEXT.replace("regularisation = 0.05", "regularisation = 0.06"))
    assert study_streams(other, people).run != streams.run
    named = ErmScenario.from_text(TEXT.replace('name = "small"', 'name = "tall"'))
    assert study_streams(named, people).run == streams.run


def test_slopes_are_lines_through_the_logarithms() -> None:
    cells = [
        {
            "approach": "a",
            "epsilon": e,
            "records": n,
            "refused": None,
            "excess": {"mean": 7 * e**-2 * n**-1.5},
        }
        for n in (100, 1000, 10_000)
        for e in (0.5, 1.0, 2.0)
    ]
    found = {one["over"]: one for one in slopes_of([*cells, {**cells[0], "refused": "no"}])}
    assert found["epsilon"]["slope"] == pytest.approx(-2)
    assert found["records"]["slope"] == pytest.approx(-1.5)
    assert (found["epsilon"]["at"], found["records"]["at"]) == (10_000, 2.0)
    assert slopes_of(cells[:2]) == []


def test_the_page_says_it_all_offline(document: dict[str, Any], folder: Path) -> None:
    text = (folder / "report.html").read_text()
    page = Page(text)
    check_whole(page)
    said = page.text("main")
    for words in (
        "Who is protected from whom",
        "silos",
        "Approaches that could not run",
        "Coordinates are those",
    ):
        assert words in said
    assert "delta 1e-6, unit example, adjacency replace-one" in said.replace("1e-06", "1e-6")
    assert document["finding"] in said


def test_hostile_text_stays_text(document: dict[str, Any]) -> None:
    hostile = {**poisoned(document), "operator_only": document["operator_only"]}
    assert HOSTILE in safe(report.render(hostile)).text("h1")


def test_a_record_that_was_changed_is_refused(document: dict[str, Any], tmp_path: Path) -> None:
    def stored(changed: dict[str, Any]) -> Path:
        (tmp_path / "run.json").write_text(json.dumps(changed))
        return tmp_path

    assert checked_document(stored(document))["kind"] == "erm"
    places = [at for at, cell in enumerate(document["cells"]) if cell["guarantees"]]
    for at in places:
        changed = copy.deepcopy(document)
        for one in changed["cells"][at]["guarantees"]:
            one["epsilon"] = 0.001
        with pytest.raises(InputError, match=rf"cells\[{at}\].guarantees\[0\].epsilon: says 0.001"):
            checked_document(stored(changed))
    changed = copy.deepcopy(document)
    changed["cells"][0]["claims"][0]["event"] = None
    with pytest.raises(InputError, match="claims"):
        checked_document(stored(changed))
    del changed["cells"][0]["guarantees"]
    with pytest.raises(InputError, match="guarantees"):
        checked_document(stored(changed))


def test_a_run_that_breaks_off_says_how_far_it_came(tmp_path: Path) -> None:
    def stop(cell: dict[str, Any]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(ErmScenario.from_text(TEXT), tmp_path, on_cell=stop)
    [path] = tmp_path.iterdir()
    document = json.loads((path / "run.json").read_text())
    assert (document["status"], len(document["cells"])) == ("interrupted", 1)
    assert (path / "report.html").exists()


REGRESSION = """
name = "income"
[data]
name = "npz"
path = "PATH"
features = ["educ"]
low = [0.0]
high = [10.0]
target = "income"
target_high = 200.0
[objective]
loss = "squared"
regularisation = 1e-6
[approaches.sums]
kind = "sufficient-statistics"
[privacy]
delta = 1e-6
[study]
epsilons = [0.1, 1000.0]
repeats = 4
"""


@pytest.fixture
def incomes(tmp_path: Path) -> Path:
    """Incomes of 20 for each year of education; those of test records are 6 more or less."""
    stream = np.random.default_rng(0)
    arrays = {}
    for part, count, error in (("train", 400, 0.0), ("test", 100, 6.0)):
        educ = stream.uniform(0, 9, count)
        income = 20 * educ + error * np.where(np.arange(count) % 2, 1, -1)
        arrays[f"x_{part}"] = np.stack([educ, np.clip(income, 0, 200)], axis=1)
        arrays[f"y_{part}"] = np.arange(count) % 2
    np.savez(tmp_path / "d.npz", feature_names=np.array(["educ", "income"]), **arrays)
    return tmp_path / "d.npz"


def test_a_regression_states_its_errors_on_test_records(incomes: Path, tmp_path: Path) -> None:
    document = fit(ErmScenario.from_text(REGRESSION.replace("PATH", str(incomes))), tmp_path / "out")
    noisy, exact_one = (cell["held_out"] for cell in document["cells"])
    with np.load(incomes) as arrays:
        income = arrays["x_test"][:, 1]
    assert exact_one["records"] == 100
    assert exact_one["rmse"]["mean"] == pytest.approx(6.0, abs=0.5)  # in the unit of the target
    assert exact_one["r2"]["mean"] == pytest.approx(1 - (exact_one["rmse"]["mean"] / income.std()) ** 2)
    assert noisy["rmse"]["mean"] > 2 * exact_one["rmse"]["mean"]
    assert noisy["rmse"]["low"] < noisy["rmse"]["mean"] < noisy["rmse"]["high"]
    assert "cells[].held_out" in document["simulation_only"]
    assert checked_document(Path(document["path"]))["cells"] == document["cells"]
    page = Page((Path(document["path"]) / "operator.html").read_text())  # of records of people
    assert "Errors in predicting income of test records" in page.text("held-out")


def test_classes_have_no_such_errors_and_equal_targets_no_share(incomes: Path) -> None:
    text = REGRESSION.replace("PATH", str(incomes)).replace("squared", "logistic")
    text = text.replace('"sufficient-statistics"', '"output-perturbation"').replace(
        "1e-6\n[app", "0.01\n[app"
    )
    assert records(ErmScenario.from_text(text)).test is None
    test = HeldOut(np.ones((3, 1)), np.full(3, 0.5), 100.0)
    errors = _on_test(test, np.array([[0.5], [0.7]]))
    assert errors["rmse"]["mean"] == pytest.approx(10.0)
    assert errors["r2"] is None
