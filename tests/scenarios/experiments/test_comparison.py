from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedprivacy.documents.redaction import TESTED_NOTE, public
from fedprivacy.errors import InputError
from fedprivacy.guarantees.ledger import BROKEN_OFF
from fedprivacy.plan.run_streams import run_streams
from fedprivacy.population.clients import population
from fedprivacy.records.comparison_summary import finding
from fedprivacy.records.seed_statistics import (
    Difference,
    difference,
    interval,
    mean_curve,
    mean_per_class,
    weakest,
    within_range,
)
from fedprivacy.report import client_curve, page_of, render
from fedprivacy.scenario import Scenario
from fedprivacy.scenario.variations import variations
from fedprivacy.training.model_spec import model_spec
from fedprivacy.verification.verify import checked_document
from scenarios.experiments.comparison import _close_broken_runs, cells_of, compare
from scenarios.runner import run
from server import app

SMALL = ("compare={epsilons=[1.0, 8.0], seeds=[1, 2]}",)


@pytest.fixture
def asked(make_scenario, base_text: str):
    text = base_text.replace("noise_multiplier = 2.0", "epsilon = 1.0")
    text += "[compare]\nepsilons = [1.0, 8.0]\nseeds = [3, 4]\n[compare.local]\nserver.rounds = 2\n"
    return make_scenario(text=text)


def test_cells_differ_in_trust_and_epsilon_alone_and_their_seeds_are_paired(asked) -> None:
    people = population(asked.data)
    cells = cells_of(asked, model_spec(asked.model, people.features, people.dataset.classes))
    assert [(cell.corner.trust, cell.epsilon) for cell in cells] == [
        ("none", None), ("central", 1.0), ("central", 8.0), ("local", 1.0), ("local", 8.0), ("none", None)
    ]  # fmt: skip
    assert {tuple(cell.scenarios) for cell in cells} == {(3, 4)}
    noisy = [cell for cell in cells if cell.epsilon]
    assert {(c.plan.delta, c.plan.unit, c.plan.adjacency) for c in noisy} == {(1e-3, "client", "replace-one")}
    for cell in noisy:
        assert 0.99 * cell.epsilon < cell.plan.spent().epsilon <= cell.epsilon
    assert {cell.plan.rounds for cell in cells if cell.corner.trust == "local"} == {2}


@pytest.mark.exhaustive
def test_the_numbers_do_not_depend_on_the_number_of_workers(asked, tmp_path: Path) -> None:
    one = compare(asked, tmp_path / "one", workers=1)
    two = compare(asked, tmp_path / "two", workers=2)
    assert [cell["accuracies"] for cell in one["cells"]] == [cell["accuracies"] for cell in two["cells"]]
    assert one["finding"] == two["finding"]


def test_the_document_of_a_comparison(asked, tmp_path: Path) -> None:
    ran = []
    document = compare(asked, tmp_path, workers=1, on_run=lambda *args: ran.append(args))
    path = Path(document["path"])
    assert document == json.loads((path / "run.json").read_text())
    assert (document["kind"], document["status"]) == ("compare", "finished")
    assert len(ran) == 12
    assert ran[-1][1:] == (12, 12)
    [clipped] = document["baselines"]
    assert (clipped["trust"], clipped["epsilon"], clipped["clipping_norm"]) == ("none", None, 1.0)
    assert all(guarantee["epsilon"] is None for guarantee in clipped["guarantees"])
    for cell in document["cells"]:
        assert cell["seeds"] == [3, 4]
        assert cell["accuracy"]["low"] <= cell["accuracy"]["mean"] <= cell["accuracy"]["high"]
        runs = [json.loads((path / run / "run.json").read_text()) for run in cell["runs"]]
        assert [run["final"]["accuracy"] for run in runs] == cell["accuracies"]
        last = cell["curve"][-1]
        assert (last["round"], last["accuracy"]) == (cell["rounds"], pytest.approx(cell["accuracy"]["mean"]))
        for at, one in enumerate(cell["per_class"]):
            assert one["accuracy"] == np.mean([run["final"]["per_class"][at]["accuracy"] for run in runs])
        for guarantee in cell["guarantees"]:
            expected = {"none": [], "central": ["participant", "outsider"]}.get(cell["trust"])
            protected = expected is None or guarantee["observer"] in expected
            assert (guarantee["epsilon"] is not None) == protected
    assert (path / "report.html").stat().st_size > 1000


def test_an_interrupted_comparison_says_how_far_it_came(asked, tmp_path: Path) -> None:
    def stop(label: str, done: int, total: int) -> None:
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(asked, tmp_path, workers=2, on_run=stop)
    (path,) = tmp_path.iterdir()
    left = json.loads((path / "run.json").read_text())
    assert left["status"] == "interrupted"
    assert sum(len(cell["seeds"]) for cell in left["cells"]) == 4
    assert (path / "report.html").exists()


@pytest.mark.parametrize("status", ["interrupted", "failed"])
def test_a_run_whose_process_was_ended_is_closed_with_what_it_charged(
    make_scenario, tmp_path: Path, status: str
) -> None:
    def kill(event: dict) -> None:
        raise Killed

    with pytest.raises(Killed):
        run(make_scenario(), tmp_path / "central", on_round=kill)
    _close_broken_runs(tmp_path, status)
    (path,) = (tmp_path / "central").iterdir()
    document = json.loads((path / "run.json").read_text())
    assert (document["status"], document["error"]) == (status, "the comparison was broken off")
    assert checked_document(path) == document
    for guarantee in document["privacy"]["guarantees"]:
        if guarantee["epsilon"] is not None:
            assert "charged in advance" in guarantee["words"]
            assert ("broke off" in guarantee["words"]) == (status == "failed")


class Killed(BaseException):
    """Nothing in the code catches it: what is on disk is what a killed process leaves."""


def test_a_cell_states_the_guarantees_of_its_weakest_seed() -> None:
    def stated(*epsilons: float | None) -> list[dict]:
        pairs = zip(("server", "outsider"), epsilons, strict=True)
        return [{"observer": one, "epsilon": epsilon, "assumptions": []} for one, epsilon in pairs]

    assert weakest([stated(1.0, 0.5), stated(2.0, 0.25)]) == stated(2.0, 0.5)
    assert weakest([stated(None, 0.5), stated(2.0, 0.25)]) == stated(None, 0.5)


@pytest.mark.exhaustive
def test_a_comparison_that_failed_says_so_of_the_cell_whose_run_was_resumed(
    make_scenario, base_text: str, tmp_path: Path, monkeypatch
) -> None:
    text = base_text.replace("noise_multiplier = 2.0", "epsilon = 1.0")
    asked = make_scenario("compare={trusts=['central', 'local'], epsilons=[8.0], seeds=[3, 4]}", text=text)
    measure, calls = app.evaluate, iter(range(100))

    def fail(*given: Any) -> Any:
        if next(calls) == 4:  # in the second run, which the first cell does not take its figures from
            raise RuntimeError("a fault")
        return measure(*given)

    with monkeypatch.context() as patched:
        patched.setattr(app, "evaluate", fail)
        with pytest.raises(RuntimeError, match="a fault"):
            compare(asked, tmp_path, workers=1)
    [path] = tmp_path.iterdir()
    assert checked_document(path)["status"] == "failed"
    compare(asked, tmp_path, workers=1, resume=path)
    document = checked_document(path)
    assert document["status"] == "finished"
    said = [[BROKEN_OFF in one["assumptions"] for one in cell["guarantees"]] for cell in document["cells"]]
    assert said == [[False, True, True], [False] * 3]
    for one in document["cells"][0]["guarantees"][1:]:
        assert BROKEN_OFF in one["words"]


def test_what_cannot_be_accounted_is_refused_before_the_first_run(make_scenario, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        compare(make_scenario("privacy.adjacency=add-remove"), tmp_path, workers=1)
    assert not list(tmp_path.iterdir())


def test_a_scenario_without_privacy_has_nothing_to_compare(make_scenario, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"privacy.trust = .none.: a comparison"):
        compare(make_scenario("privacy={trust='none'}"), tmp_path, workers=1)
    assert not list(tmp_path.iterdir())


def test_intervals_are_students_over_seeds() -> None:
    found = interval([0.5, 0.6, 0.7])
    assert found["mean"] == pytest.approx(0.6)
    assert found["high"] - 0.6 == pytest.approx(4.3027 * 0.1 / 3**0.5, rel=1e-4)
    assert interval([0.5]) == {"mean": 0.5, "low": None, "high": None}
    assert interval([0.0, 1.0]) == {"mean": 0.5, "low": 0.0, "high": 1.0}


def seeds_of(*accuracies: float) -> dict:
    return {
        "seeds": [*range(1, len(accuracies) + 1)],
        "accuracies": [*accuracies],
        "accuracy": interval(accuracies),
    }


def plain_cell(trust: str, epsilon: float | None, *accuracies: float) -> dict:
    return {"trust": trust, "epsilon": epsilon, **seeds_of(*accuracies)}


def test_the_finding_says_what_local_costs_in_numbers() -> None:
    cells = [plain_cell("none", None, 0.97), plain_cell("central", 1.0, 0.9), plain_cell("local", 1.0, 0.2)]
    assert finding(cells) == (
        "Not having to trust the server (local) costs 70.0 points at epsilon 1 (20.0 % against 90.0 % under "
        "central; one seed, no interval); without any noise the model reaches 97.0 %."
    )
    assert "Central reaches 90.0 % at epsilon 1" in finding(cells[:2])
    assert finding([]) == "No cell of the comparison has finished."


def test_a_difference_stands_with_its_interval_over_paired_seeds() -> None:
    # Differences 0.60, 0.61, 0.62: 61 points, and 4.3027 * 1 / sqrt(3) = 2.484 to either side; the seeds
    # themselves differ by far more, which pairing takes away.
    central, local = plain_cell("central", 1.0, 0.7, 0.8, 0.9), plain_cell("local", 1.0, 0.1, 0.19, 0.28)
    assert finding([central, local]) == (
        "Not having to trust the server (local) costs 61.0 points at epsilon 1 (19.0 % against 80.0 % under "
        "central; 95 % interval 58.5 to 63.5 over 3 paired seeds)."
    )
    assert finding([{**central, "trust": "local"}, {**local, "trust": "central"}]).startswith(
        "Not having to trust the server (local) gains 61.0 points at epsilon 1 (80.0 % against 19.0 % under "
        "central; 95 % interval 58.5 to 63.5 over"
    )


def test_seeds_are_paired_by_their_number_and_those_of_one_cell_alone_left_out() -> None:
    central = plain_cell("central", 1.0, 0.5, 0.9, 0.8)
    local = {**plain_cell("local", 1.0, 0.6, 0.7), "seeds": [3, 2]}
    assert difference(central, local) == Difference(
        pytest.approx(0.85), pytest.approx(0.65), 20.0, 20.0, 20.0, seeds=2
    )
    apart = {**local, "seeds": [8, 9]}
    assert difference(central, apart) is None
    assert finding([central, apart]).startswith("Central reaches 73.3 % at epsilon 1; local reaches 65.0 %")


def test_an_interval_ends_at_100_points_also_in_what_an_earlier_version_stored() -> None:
    text = finding([plain_cell("central", 1.0, 0.9, 0.95), plain_cell("local", 1.0, 0.85, 0.03)])
    assert "95 % interval -100.0 to 100.0 over 2 paired seeds" in text
    assert within_range(text.replace("-100.0 to 100.0", "-508.3 to 605.3")) == text


def test_an_interval_of_an_r2_may_end_beyond_100_points() -> None:
    def of_score(cell: dict[str, Any], *scores: float) -> dict[str, Any]:
        return {**cell, "accuracies": [None] * len(scores), "scores": list(scores)}

    central = of_score(plain_cell("central", 1.0, 0.5, 0.5), 0.5, 0.6)
    local = of_score(plain_cell("local", 1.0, 0.5, 0.5), -1.5, -1.8)
    gap = difference(central, local)
    assert gap is not None
    assert gap.high is not None
    assert gap.high > 220
    assert gap.interval() == f"95 % interval {gap.low:.1f} to {gap.high:.1f} over 2 paired seeds"


def test_where_the_interval_covers_0_no_difference_is_told() -> None:
    cells = [
        plain_cell("central", 1.0, 0.90, 0.91, 0.92), plain_cell("central", 8.0, 0.90, 0.90, 0.90),
        plain_cell("local", 1.0, 0.20, 0.21, 0.22), plain_cell("local", 8.0, 0.92, 0.88, 0.87),
    ]  # fmt: skip
    assert finding(cells) == (
        "Not having to trust the server (local) costs 70.0 points at epsilon 1 (21.0 % against 91.0 % under "
        "central; 95 % interval 70.0 to 70.0 over 3 paired seeds) and makes no difference that can be told at "
        "epsilon 8 (89.0 % against 90.0 % under central; a cost of 1.0 points, 95 % interval -5.6 to 7.6)."
    )
    same = [plain_cell("central", 1.0, 0.9, 0.8), plain_cell("local", 1.0, 0.9, 0.8)]
    assert "makes no difference that can be told" in finding(same)


def test_a_cost_of_unknown_size_is_no_number_of_the_finding() -> None:
    central = plain_cell("central", 8.0, 0.88, 0.9)
    text = finding([central, plain_cell("local", 8.0, 0.25, 0.19)])
    # Differences 63 and 71: 12.706 * 5.66 / sqrt(2) = 50.8 points to either side of 67.
    assert text == (
        "Not having to trust the server (local) costs an amount that 2 seeds are too few to tell at epsilon 8 "
        "(22.0 % against 89.0 % under central; a cost of 67.0 points, 95 % interval 16.2 to 100.0 over 2 paired "
        "seeds)."
    )
    gap = difference(central, plain_cell("local", 8.0, 0.25, 0.19))
    assert (gap.vague, gap.undecided, gap.seeds_needed) == (True, False, 3)
    assert not difference(central, plain_cell("local", 8.0, 0.25, 0.26)).vague


def local_cells(*rows: tuple[str, str, float, float]) -> list[dict]:
    return [
        {
            "trust": "local", "asked": asked, "mechanism": ran, "epsilon": epsilon,
            **seeds_of(mean - 0.01, mean, mean + 0.01),
        }
        for asked, ran, epsilon, mean in rows
    ]  # fmt: skip


def test_the_finding_names_the_local_mechanism_and_what_the_best_one_gains() -> None:
    central = [plain_cell("central", e, 0.88, 0.9, 0.92) for e in (1.0, 8.0)]
    auto = local_cells(("auto", "gaussian", 1.0, 0.2), ("auto", "privunit", 8.0, 0.783))
    plain = local_cells(("gaussian", "gaussian", 1.0, 0.21), ("gaussian", "gaussian", 8.0, 0.347))
    assert finding([*central, *plain, *auto]) == (
        "Not having to trust the server (local) costs 70.0 points at epsilon 1 (Gaussian 20.0 % against 90.0 % "
        "under central; 95 % interval 67.5 to 72.5 over 3 paired seeds) and 11.7 points at epsilon 8 (PrivUnitG "
        "78.3 % against 90.0 % under central; 95 % interval 9.2 to 14.2). "
        "At epsilon 8 the best local mechanism is PrivUnitG (chosen by auto): it reaches 78.3 %, Gaussian 34.7 % "
        "(43.6 points less, 95 % interval 43.6 to 43.6)."
    )
    one = finding([central[1], auto[1], plain[1]])
    assert one.startswith("Not having to trust the server (local, PrivUnitG) costs")
    assert finding([auto[1], plain[1]]).startswith("Local (PrivUnitG) reaches 78.3 % at epsilon 8. At")
    assert "best" not in finding([*central, *auto])  # nothing to compare it with


def test_the_finding_calls_best_what_was_measured_best() -> None:
    cells = local_cells(
        ("auto", "privunit", 8.0, 0.3), ("gaussian", "gaussian", 8.0, 0.4), ("sqkr", "sqkr", 8.0, 0.1),
        ("privunit", "privunit", 8.0, 0.3),
    )  # fmt: skip
    assert finding(cells).endswith(
        "At epsilon 8 the best local mechanism is Gaussian: it reaches 40.0 %, PrivUnitG (chosen by auto) 30.0 % "
        "(10.0 points less, 95 % interval 10.0 to 10.0 over 3 paired seeds), SQKR 10.0 % (30.0 points less, "
        "95 % interval 30.0 to 30.0)."
    )
    same = local_cells(("auto", "gaussian", 8.0, 0.3), ("gaussian", "gaussian", 8.0, 0.4))
    assert finding(same).endswith(
        "At epsilon 8 both local choices are Gaussian: 40.0 % by name and 30.0 % chosen by auto."
    )


def test_no_mechanism_is_called_best_where_one_other_cannot_be_told_apart() -> None:
    cells = local_cells(
        ("auto", "privunit", 8.0, 0.4), ("gaussian", "gaussian", 8.0, 0.1), ("sqkr", "sqkr", 8.0, 0.3)
    )
    cells[2].update(seeds_of(0.39, 0.43, 0.35))  # differences 0, -0.03 and 0.06
    assert finding(cells).endswith(
        "At epsilon 8 no local mechanism can be told to be better than all others: PrivUnitG (chosen by auto) "
        "reaches 40.0 %, SQKR 39.0 % (1.0 points less, 95 % interval -10.4 to 12.4 over 3 paired seeds), Gaussian "
        "10.0 % (30.0 points less, 95 % interval 30.0 to 30.0)."
    )
    for cell in cells:
        cell.update(seeds_of(cell["accuracy"]["mean"]))
    assert "no local mechanism can be told to be better" in finding(cells)  # one seed tells nothing
    assert "SQKR 39.0 % (1.0 points less, one seed, no interval)" in finding(cells)


@pytest.mark.exhaustive
def test_several_local_mechanisms_stand_side_by_side(make_scenario, base_text: str, tmp_path: Path) -> None:
    text = base_text.replace("noise_multiplier = 2.0", "epsilon = 1.0") + (
        "[compare]\ntrusts = ['central', 'local']\nepsilons = [8.0]\nseeds = [3]\n"
        "mechanisms = ['auto', 'gaussian']\n"
    )
    document = compare(make_scenario(text=text), tmp_path, workers=1)
    for cell in document["cells"]:
        run = json.loads((Path(document["path"]) / cell["runs"][0] / "run.json").read_text())
        for key in ("max_participations", "population"):
            assert cell[key] == run["privacy"][key]
    assert document["cells"][1]["max_participations"] > 0
    assert [(cell["trust"], cell["asked"]) for cell in document["cells"]] == [
        ("central", None), ("local", "auto"), ("local", "gaussian")
    ]  # fmt: skip
    chosen = [one["mechanism"] for one in document["cells"][1]["candidates"] if one["chosen"]]
    assert chosen == [document["cells"][1]["mechanism"]]
    page = (Path(document["path"]) / "report.html").read_text()
    assert "Local, best mechanism (auto)" in page
    assert "Local, Gaussian" in page


def test_a_mean_curve_has_the_rounds_that_all_seeds_have_evaluated() -> None:
    one = [{"round": 0, "accuracy": 0.2}, {"round": 1, "accuracy": None}, {"round": 2, "accuracy": 0.6}]
    two = [{"round": 1, "accuracy": 0.3}, {"round": 2, "accuracy": 0.8}]
    assert mean_curve([one, two]) == [{"round": 3, "accuracy": pytest.approx(0.7)}]
    assert mean_curve([one, []]) == []


def test_classes_have_no_mean_where_a_seed_has_none() -> None:
    classes = [{"class": 0, "label": None, "accuracy": 0.5, "records": 2}]
    empty = [{"class": 0, "label": None, "accuracy": None, "records": 0}]
    assert mean_per_class([classes, None]) is None
    assert mean_per_class([empty, empty]) == empty
    assert mean_per_class([classes, [{**classes[0], "accuracy": 1.0}]])[0]["accuracy"] == 0.75


# --- units of privacy

UNITS = """name = "units"
[data]
name = "synthetic"
records = 60
test_records = 50
features = 4
partition = "iid"
clients = 12
[model]
name = "logistic"
[server]
rounds = 3
[sampling]
name = "all"
[privacy]
trust = "central"
clipping_norm = 1.0
epsilon = 1.0
delta = 1e-3
[compare]
units = ["client", "example"]
epsilons = [8.0]
seeds = [5, 6]
[compare.unit.example]
training = { batches = "poisson", steps = 1, rate = 0.5 }
"""


@pytest.fixture(scope="module")
def units(tmp_path_factory: pytest.TempPathFactory) -> dict:
    return compare(Scenario.from_text(UNITS), tmp_path_factory.mktemp("units"), workers=1)


@pytest.mark.exhaustive
def test_each_unit_is_compared_under_each_trust_model_that_has_noise(units: dict) -> None:
    assert [(cell["trust"], cell["unit"]) for cell in units["cells"]] == [
        ("none", "client"), ("central", "client"), ("central", "example"), ("local", "client"), ("local", "example"),
    ]  # fmt: skip
    for cell in units["cells"]:
        assert {guarantee["unit"] for guarantee in cell["guarantees"]} == {cell["unit"]}
        of_records = cell["unit"] == "example"
        assert (cell["batches"] or {}).get("name") == ("poisson" if of_records else None)
        assert (cell["records_per_client"] is not None) == of_records
        if of_records:
            assert cell["records_per_client"] == {"smallest": 5, "median": 5, "largest": 5}
        kind = cell["trust"] if cell["trust"] == "none" else f"{cell['trust']}-{cell['unit']}-epsilon-8"
        assert {Path(run).parent.name for run in cell["runs"]} == {kind}
    assert "With unit example not having to trust the server" in units["finding"]
    assert "Protecting a client and not a record alone (central)" in units["finding"]


def test_all_units_are_at_the_same_epsilon_delta_and_adjacency_with_paired_seeds(units: dict) -> None:
    noisy = [cell for cell in units["cells"] if cell["trust"] != "none"]
    assert {tuple(cell["seeds"]) for cell in units["cells"]} == {(5, 6)}
    for cell in noisy:
        held = [guarantee for guarantee in cell["guarantees"] if guarantee["epsilon"] is not None]
        assert {(one["delta"], one["adjacency"]) for one in held} == {(1e-3, "replace-one")}
        assert 7.9 < max(one["epsilon"] for one in held) <= 8.0


def test_the_report_tells_units_apart_and_a_changed_unit_is_refused(units: dict) -> None:
    path = Path(units["path"])
    page = (path / "report.html").read_text()
    for name in (
        "Central, unit client",
        "Central, unit example",
        "Local, unit client",
        "Local, unit example",
    ):
        assert name in page
    assert checked_document(path) == units
    whole = (path / "run.json").read_text()
    for change in ({"unit": "example"}, {"trust": "local"}, {"records_per_client": {"smallest": 1}}):
        changed = json.loads(whole)
        changed["cells"][1].update(change)
        (path / "run.json").write_text(json.dumps(changed))
        with pytest.raises(InputError, match=r"cells\[1\].* compare again"):
            checked_document(path)
    older = json.loads(whole)  # of a version that knew one unit alone
    older["cells"] = older["cells"][:2]
    del older["scenario"]["compare"]["units"]
    for cell in older["cells"]:
        del cell["unit"], cell["batches"], cell["records_per_client"]
    assert "Central, unit" not in render(older)
    (path / "run.json").write_text(whole)


def test_without_units_labels_and_noise_are_what_they_were(asked) -> None:
    people = population(asked.data)
    cells = cells_of(asked, model_spec(asked.model, people.features, people.dataset.classes))
    assert [cell.label for cell in cells] == [
        "none", "central-epsilon-1", "central-epsilon-8", "local-epsilon-1", "local-epsilon-8",
        "clipping-alone",
    ]  # fmt: skip
    named = Scenario.from_text(asked.to_toml(), overrides=["compare.units=['client']"])
    for trust, epsilon in (("central", 1.0), ("local", 8.0)):
        plain, other = asked.cell(trust, epsilon, 3), named.cell(trust, epsilon, 3, unit="client")
        assert plain == other
        assert run_streams(plain, people).run == run_streams(other, people).run


@pytest.mark.exhaustive
def test_settings_are_varied_one_at_a_time(make_scenario, tmp_path: Path) -> None:
    asked = make_scenario(
        "privacy.epsilon=8.0", "compare.seeds=[1, 2]", "compare.trusts=['central']", "compare.epsilons=[8.0]",
        "compare.vary.training.learning_rate=[0.5, 0.001]", "compare.vary.server.rounds=[3, 1]",
    )  # fmt: skip
    document = compare(asked, tmp_path, workers=1)
    [cell] = document["cells"]
    varied = {(one["varied"]["key"], one["varied"]["value"]): one for one in document["variations"]}
    assert list(varied) == [
        ("training.learning_rate", 0.5), ("training.learning_rate", 0.001),
        ("server.rounds", 3), ("server.rounds", 1),
    ]  # fmt: skip
    # The scenario's own value is its own cell.
    for own in (varied["training.learning_rate", 0.5], varied["server.rounds", 3]):
        assert own["accuracies"] == cell["accuracies"]
        assert own["epsilon"] == 8.0
    assert varied["training.learning_rate", 0.001]["accuracies"] != cell["accuracies"]
    fewer = varied["server.rounds", 1]
    assert (fewer["rounds"], len(fewer["runs"])) == (1, 2)
    assert max(g["epsilon"] for g in fewer["guarantees"] if g["epsilon"]) <= 8.0
    path = Path(document["path"])
    assert checked_document(path) == document
    page = (path / "report.html").read_text()
    assert "What the settings do" in page
    assert "would have to be charged for" in page
    document["variations"][0]["guarantees"][1]["epsilon"] = 0.1
    (path / "run.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"variations\[0\].guarantees\[1\].epsilon: says 0.1"):
        checked_document(path)


@pytest.mark.parametrize(
    ("vary", "message"),
    [
        ("training.learning_rate=[0.1]", "needs at least two different values"),
        ("training.learning_rate=[0.1, 0.1]", "needs at least two different values"),
        ("training.learning_rate=0.1", "a list is needed"),
        ("training.learning_rate=[0.1, -1]", "must be above 0"),
        ("training.lerning_rate=[0.1, 0.2]", "unknown key. Did you mean learning_rate?"),
        ("privacy.epsilon=[1.0, 2.0]", "the comparison sets it"),
        ("data.clients=[10, 20]", "more than the 12 clients that there are. At most 12."),
        ("data.seed=[1, 2]", "the comparison sets it"),
    ],
)
def test_a_variation_that_cannot_be_is_told_once(make_scenario, vary: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        make_scenario("privacy.epsilon=8.0", f"compare.vary.{vary}")
    assert str(caught.value).count(message) == 1


def test_settings_are_varied_at_an_epsilon(make_scenario) -> None:
    with pytest.raises(InputError, match=r"compare.vary.*own trust model and epsilon"):
        make_scenario("compare.vary.training.learning_rate=[0.1, 1.0]")


@pytest.mark.exhaustive
def test_the_number_of_clients_is_varied_where_each_keeps_its_records(make_scenario, tmp_path: Path) -> None:
    fixed = ("data.partition='fixed-records'", "data.records_per_client=5", "privacy.epsilon=8.0")
    asked = make_scenario(*fixed, "compare.vary.data.clients=[4, 12]", "compare.seeds=[1]", "server.rounds=1")
    few, many = (population(asked.varied(each, 1).data) for each in variations(asked.compare))
    assert [each.partition.clients for each in (few, many)] == [4, 12]
    assert np.array_equal(few.partition.order, many.partition.order[:20])
    assert np.array_equal(few.dataset.x_test, many.dataset.x_test)
    document = compare(asked, tmp_path, workers=1)
    assert [cell["population"] for cell in document["variations"]] == [4, 12]
    assert checked_document(Path(document["path"])) == document


@pytest.mark.parametrize(
    "data",
    [
        ("data.partition='dirichlet'", "data.alpha=0.5"),
        ("data={name='purchase-like', records=60, test_records=20, features=8, classes=3}",),
    ],
    ids=["dirichlet", "one record each"],
)
def test_the_number_of_clients_is_varied_however_records_are_dealt(
    make_scenario, tmp_path: Path, data: tuple[str, ...]
) -> None:
    """The first clients of one order, each with the records that it has among all; as a run by itself has them."""
    asked = make_scenario(*data, "privacy.epsilon=8.0", "server.rounds=1", "compare.seeds=[1]",
        "compare.trusts=['central']", "compare.epsilons=[8.0]", "compare.vary.data.clients=[4, 9]",
        "compare.vary.server.rounds=[1, 2]")  # fmt: skip
    few, many = (population(asked.varied(each, 1).data) for each in variations(asked.compare)[:2])
    assert set(few.partition.order) < set(many.partition.order)
    document = compare(asked, tmp_path, workers=1)
    varied = document["variations"]
    assert [cell["population"] for cell in varied[:2]] == [4, 9]
    assert [(cell["varied"]["key"], cell["varied"]["value"]) for cell in varied[:2]] == [
        ("data.clients", 4), ("data.clients", 9),
    ]  # fmt: skip
    alone = run(
        make_scenario(*data, "privacy.epsilon=8.0", "server.rounds=1", "data.first_clients=4"), tmp_path
    )
    assert varied[0]["accuracies"] == [alone["final"]["accuracy"]]
    assert checked_document(Path(document["path"])) == document


def test_a_page_has_the_law_of_the_number_of_clients_with_enough_numbers_and_seeds(
    make_scenario, tmp_path: Path
) -> None:
    vary = ("compare.trusts=['none', 'central']", "compare.epsilons=[8.0]", "compare.baselines=false",
        "compare.vary.data.clients=[3, 6, 9, 12]", "compare.seeds=[1, 2]", "server.rounds=1")  # fmt: skip
    document = compare(make_scenario("privacy.epsilon=8.0", *vary), tmp_path, workers=1)
    checked = checked_document(Path(document["path"]))
    [section] = [section for section in page_of(checked).sections if section.id == "clients"]
    _, fitted, read = section.blocks
    assert "floor 50.0 %" in fitted.text  # guessing one of two classes
    assert "in no interval here" in read.text
    assert client_curve.BOUNDED in read.text
    # All clients are those of the scenario itself, so the last number is its own cell.
    central = next(cell for cell in document["cells"] if cell["trust"] == "central")
    assert document["variations"][-1]["accuracies"] == central["accuracies"]
    # Without noise fewer clients may reach less than more do with noise.
    fewer = [{**cell, "population": 6} if cell["trust"] == "none" else cell for cell in checked["cells"]]
    [section] = [each for each in page_of({**checked, "cells": fewer}).sections if each.id == "clients"]
    assert client_curve.UNBOUNDED in section.blocks[-1].text
    checked["variations"] = checked["variations"][1:]
    assert not [section for section in page_of(checked).sections if section.id == "clients"]
    single = {
        **checked,
        "variations": [{**cell, "accuracies": cell["accuracies"][:1]} for cell in document["variations"]],
    }
    assert not [section for section in page_of(single).sections if section.id == "clients"]


@pytest.mark.exhaustive
def test_options_are_compared_with_the_scenario_without_them_at_every_epsilon(
    make_scenario, tmp_path: Path
) -> None:
    asked = make_scenario(
        "privacy.epsilon=8.0", "compare.seeds=[1, 2]", "compare.trusts=['none', 'central']",
        "compare.epsilons=[2.0, 8.0]", "compare.option.same.server.denoise='none'",
        "compare.option.shrunk.server={denoise='james-stein', learning_rate=0.5}",
    )  # fmt: skip
    document = compare(asked, tmp_path, workers=1)
    options = {(one["option"], one["epsilon"]): one for one in document["options"]}
    assert list(options) == [("same", 2.0), ("same", 8.0), ("shrunk", 2.0), ("shrunk", 8.0)]
    plain = {cell["epsilon"]: cell for cell in document["cells"]}
    assert set(plain) == {None, 2.0, 8.0}  # an option is no cell of its own
    for epsilon in (2.0, 8.0):
        assert options["same", epsilon]["accuracies"] == plain[epsilon]["accuracies"]
        assert options["same", epsilon]["difference"] == {"points": 0.0, "low": 0.0, "high": 0.0}
        shrunk = options["shrunk", epsilon]
        assert (shrunk["server"]["denoise"], shrunk["server"]["learning_rate"]) == ("james-stein", 0.5)
        gaps = [a - b for a, b in zip(shrunk["accuracies"], plain[epsilon]["accuracies"], strict=True)]
        assert shrunk["difference"]["points"] == round(100 * sum(gaps) / 2, 1)
        assert max(g["epsilon"] for g in shrunk["guarantees"] if g["epsilon"]) <= epsilon
    path = Path(document["path"])
    assert checked_document(path) == document
    assert "options[].seeds" in document["operator_only"]
    page = (path / "report.html").read_text()
    assert "What the options do" in page
    assert "would have to be charged for" in page
    assert "same: undecided at epsilon 2 and 8." in page
    document["options"][0]["guarantees"][1]["epsilon"] = 0.1
    (path / "run.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"options\[0\].guarantees\[1\].epsilon: says 0.1"):
        checked_document(path)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["compare.option.x.server.denoize='student-t'"], "Did you mean denoise?"),
        (["compare.option.x.privacy.epsilon=2.0"], "the comparison sets it"),
        (["compare.option.x={}"], "has no key"),
        (["compare.option.x.server={}"], "has no key"),
        (["compare.option.'a b'.server.rounds=2"], "must be letters, digits and hyphens"),
        (["compare.option.x.server.rounds=2", "compare.trusts=['local']"], "nothing to compare with"),
        (["compare.option.x.server.rounds=2", "privacy.trust=none"], "it has none"),
        (["compare.option.x.server.rounds=2", "compare.units=['client']"], "not with several"),
    ],
)
def test_an_option_that_cannot_be_is_told_once(make_scenario, settings: list[str], message: str) -> None:
    with pytest.raises(InputError) as caught:
        make_scenario("privacy.epsilon=8.0", *settings)
    assert str(caught.value).count(message) == 1, str(caught.value)


def test_accuracy_is_withheld_where_held_out_records_are_those_of_clients_of_some_cells(
    make_scenario, tmp_path: Path
) -> None:
    """The scenario's own clients have no held-out records, and other clients in a cell of more do."""
    users = [f"u{number:02d}" for number in range(12)]
    x = np.random.default_rng(1).standard_normal((120, 4)).astype(np.float32)
    y, owners, path = (x[:, 0] > 0).astype(np.int64), np.tile(users, 10), tmp_path / "p.npz"

    def asked_of(*owning: str) -> Scenario:
        np.savez(path, x_train=x, y_train=y, x_test=x[:60], y_test=y[:60], user_train=owners,
            user_test=np.repeat(owning, 20))  # fmt: skip
        return make_scenario(
            f"data={{name='npz', path='{path}', partition='by-user', first_clients=4}}",
            "privacy.epsilon=8.0", "server.rounds=1", "compare.seeds=[1]", "compare.trusts=['central']",
            "compare.epsilons=[8.0]", "compare.baselines=false", "compare.vary.data.clients=[4, 12]",
        )  # fmt: skip

    taking_part = owners[population(asked_of("a", "b", "c").data).partition.order]
    asked = asked_of(*sorted(set(users) - set(taking_part))[:3])
    few, many = (population(asked.varied(each, 1).data) for each in variations(asked.compare))
    assert [people.tests_clients("test") for people in (few, many)] == [False, True]
    document = compare(asked, tmp_path / "out", workers=1)
    assert TESTED_NOTE in document["notes"]
    assert "accuracy" not in public(document)["variations"][1]
    assert checked_document(Path(document["path"])) == document
