from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedprivacy.documents.kinds import read_as
from fedprivacy.documents.plan import PlanDocument
from fedprivacy.documents.redaction import public
from fedprivacy.errors import InputError
from fedprivacy.forecast.question import Question
from fedprivacy.report.answers.plan import sentence
from fedprivacy.scenario import Scenario
from fedprivacy.verification.plan import answers
from fedprivacy.verification.verify import checked_document
from scenarios.cli.main import app
from scenarios.experiments import planning
from scenarios.experiments.planning import plan

TEXT = """
name = "small"
seed = 1
[data]
name = "synthetic"
records = 200
test_records = 100
features = 4
partition = "one-per-example"
[model]
name = "logistic"
[training]
learning_rate = 1.0
[server]
rounds = 2
[sampling]
name = "all"
[privacy]
trust = "central"
adjacency = "replace-one"
clipping_norm = 1.0
epsilon = 2.0
delta = 1e-4
[compare.local]
sampling.name = "fixed"
sampling.cohort = 50
privacy.max_participations = 1
"""
HOW_MANY = Question(("central", "local"), target_accuracy=0.7, epsilon=4.0, repeats=2)


def small(*overrides: str) -> Scenario:
    return Scenario.from_text(TEXT, overrides=overrides)


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return plan(small(), HOW_MANY, tmp_path_factory.mktemp("plan"), workers=1)


def differing(document: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key not in ("path", "performance", "started")}


@pytest.mark.slow
def test_the_number_of_workers_changes_nothing(planned: dict[str, Any], tmp_path: Path) -> None:
    again = plan(small(), HOW_MANY, tmp_path, workers=3)
    assert differing(again) == differing(planned)


def test_clients_rise_and_cohorts_keep_their_share(planned: dict[str, Any]) -> None:
    central, local = planned["curves"]
    assert planned["development"]["clients"] == 160
    assert [point["x"] for point in central["points"]][-1] == planned["baseline"]["x"] == 160
    assert min(point["x"] for point in local["points"]) >= 4  # of whom a quarter is one client
    assert all(len(point["accuracies"]) == 2 for point in central["points"])
    final = local["test"]["clients"]
    assert local["planned"]["sampler"]["cohort"] == 50 * final // 200
    assert local["planned"]["population"] == final


def test_a_run_as_planned_spends_the_epsilon(planned: dict[str, Any]) -> None:
    for curve in planned["curves"]:
        stated = [g["epsilon"] for g in curve["guarantees"] if g["epsilon"] is not None]
        assert max(stated) <= 4.0
        assert max(stated) == pytest.approx(4.0, rel=0.01)


def test_only_the_answer_is_measured_on_test_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[bool] = []
    inner = planning._run

    def spied(*given: Any) -> dict[str, float]:
        ran.append(given[4])
        return inner(*given)

    monkeypatch.setattr(planning, "_run", spied)
    document = plan(small(), Question(("central",), epsilon=4.0, clients=40, repeats=2), tmp_path, workers=1)
    assert sum(ran) == 2
    assert not any(ran[:-2])
    [curve] = document["curves"]
    assert curve["answer"]["verdict"] == "measured"
    assert curve["test"]["clients"] == 40
    assert 40.0 in [point["x"] for point in curve["points"]]


def test_the_least_epsilon(tmp_path: Path) -> None:
    question = Question(("central",), target_accuracy=0.65, clients=100, repeats=2)
    document = plan(small(), question, tmp_path, workers=1)
    [curve] = document["curves"]
    assert [point["x"] for point in curve["points"]] == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0]
    assert curve["planned"]["population"] == 100
    value = curve["answer"]["value"]
    assert curve["epsilon"] == (16.0 if value is None else value)
    assert checked_document(Path(document["path"])) == document


def test_a_target_above_no_noise_is_told_at_once(tmp_path: Path) -> None:
    document = plan(small(), Question(("local",), 0.999, 4.0, repeats=2), tmp_path, workers=1)
    assert document["curves"][0]["answer"]["verdict"] == "beyond"  # more clients bring more records
    assert len(list((Path(document["path"]) / "cells").iterdir())) == 2  # the runs without noise
    answer = sentence(read_as(PlanDocument, document))
    assert "takes more than the 160 clients that can train here, with or without noise" in answer
    assert checked_document(Path(document["path"])) == document
    assert "out of reach" not in (Path(document["path"]) / "report.html").read_text()


def test_a_target_above_no_noise_is_out_of_reach_of_so_many_clients(tmp_path: Path) -> None:
    question = Question(("local",), 0.999, clients=100, repeats=2)
    document = plan(small(), question, tmp_path, workers=1)
    assert document["curves"][0]["answer"]["verdict"] == "unreachable"
    assert "out of reach: 160 clients without noise reach" in sentence(read_as(PlanDocument, document))
    assert checked_document(Path(document["path"])) == document
    assert "out of reach" in (Path(document["path"]) / "report.html").read_text()


def test_accuracy_without_noise_is_measured_at_half_of_the_clients_too(planned: dict[str, Any]) -> None:
    half = planned["baseline_of_half"]
    assert half["x"] == 80
    assert len(half["accuracies"]) == 2
    points = [(point["x"], point["accuracies"]) for point in planned["curves"][0]["points"]]
    base, development = [0.9, 0.9], planned["development"]
    for of_half, goes in (([0.5, 0.5], False), ([0.899, 0.9], True), (None, False)):
        answered = answers(HOW_MANY, points, base, of_half, development, 1, [1.0])
        assert not answered["law"]["extrapolates"] or goes


@pytest.mark.exhaustive
def test_an_interrupted_plan_resumes_to_the_same(planned: dict[str, Any], tmp_path: Path) -> None:
    def broken(label: str, done: int, total: int) -> None:
        if "local" in label:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        plan(small(), HOW_MANY, tmp_path, workers=1, on_run=broken)
    [folder] = tmp_path.iterdir()
    ran: list[str] = []
    command = ["plan", "--resume", str(folder), "--workers", "1", "--json", "--operator"]
    app(command, standalone_mode=False)
    resumed = json.loads((folder / "run.json").read_text())
    assert differing(resumed) == differing(planned)
    plan(small(), HOW_MANY, tmp_path, workers=1, resume=folder, on_run=lambda *told: ran.append(told[0]))
    assert not ran
    with pytest.raises(InputError, match=r"Leave out --target-accuracy.* and --out"):
        app([*command, "--epsilon", "2"], standalone_mode=False)


def lower_value(document: dict[str, Any]) -> None:
    document["curves"][0]["answer"]["value"] = 2.0


def better_accuracy(document: dict[str, Any]) -> None:
    document["curves"][0]["points"][-1]["accuracies"] = [0.99, 0.99]


def lower_epsilon(document: dict[str, Any]) -> None:
    for guarantee in document["curves"][1]["guarantees"]:
        guarantee["epsilon"] = 0.1


def other_noise(document: dict[str, Any]) -> None:
    document["curves"][0]["planned"]["mechanism"]["noise_multiplier"] = 0.01


def other_target(document: dict[str, Any]) -> None:
    document["question"]["target_accuracy"] = 0.6


def better_test(document: dict[str, Any]) -> None:
    document["curves"][0]["test"]["accuracy"]["mean"] = 0.99


def made_public(document: dict[str, Any]) -> None:
    document["development"]["public"] = False


@pytest.mark.parametrize(
    "change",
    [lower_value, better_accuracy, lower_epsilon, other_noise, other_target, better_test, made_public],
)
def test_a_record_that_was_changed_is_not_shown(
    planned: dict[str, Any], tmp_path: Path, change: Callable[[Any], None]
) -> None:
    document = copy.deepcopy(planned)
    (tmp_path / "run.json").write_text(json.dumps(document))
    assert checked_document(tmp_path) == document
    change(document)
    (tmp_path / "run.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"plan again"):
        checked_document(tmp_path)


def records(path: Path) -> str:
    """A file of records that nobody has declared public."""
    stream = np.random.default_rng(1)
    x = stream.standard_normal((220, 3)).astype(np.float32)
    y = (x[:, 0] > 0).astype(np.int64)
    np.savez(path, x_train=x[:200], y_train=y[:200], x_test=x[200:], y_test=y[200:])
    return f"data={{name='npz', path='{path}', partition='one-per-example'}}"


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("declared", [False, True])
def test_results_on_records_of_clients_are_the_operators(tmp_path: Path, declared: bool) -> None:
    own = [records(tmp_path / "mine.npz"), *["data.public=true"] * declared]
    question = Question(("central",), target_accuracy=0.7, epsilon=8.0, repeats=2)
    document = plan(small(*own), question, tmp_path / "out", workers=1)
    folder = Path(document["path"])
    assert checked_document(folder) == document
    shown = public(document)
    [curve] = shown["curves"]
    assert ("baseline" in shown) is ("answer" in curve) is ("points" in curve)
    assert ("baseline" in shown) is declared
    unreached = plan(small(*own), Question(("central",), 0.999, 8.0, repeats=2), tmp_path / "out", workers=1)
    if not declared:  # one bit of the accuracy for each question would give all of it
        varying = ("started", "question", "performance", "path")
        first, second = (
            {key: value for key, value in public(each).items() if key not in varying}
            for each in (document, unreached)
        )
        assert first == second
    page, whole = (folder / "report.html").read_text(), (folder / "operator.html").read_text()
    assert ("with the fitted law" in page) is declared
    if not declared:
        assert "The answer is operator-only" in page
        assert "with the fitted law" in whole
        assert "operator&#39;s simulation" in page or "operator's simulation" in page
    else:
        assert "cost nobody privacy" in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--epsilon", "4"], "--target-accuracy and --clients are unknown"),
        (["--target-accuracy", "0.8", "--epsilon", "4", "--clients", "9"], "nothing is unknown"),
        (["--target-accuracy", "80", "--epsilon", "4"], "For 80 % write 0.8"),
        (
            ["--target-accuracy", "0.8", "--epsilon", "4", "--trust", "nobody"],
            "--trust nobody: no trust model",
        ),
        (["--epsilon", "4", "--clients", "5000"], "--clients 5000: 160 of 200 clients can train here"),
        (["--target-accuracy", "0.8", "--clients", "161"], "Give at most 160"),
        (["--target-accuracy", "0.8", "--epsilon", "4", "--set", "server.round=2"], "Did you mean rounds"),
    ],
)
def test_what_cannot_be_planned_is_refused_and_nothing_is_written(
    arguments: list[str], message: str, tmp_path: Path
) -> None:
    file = tmp_path / "small.toml"
    file.write_text(TEXT)
    with pytest.raises(InputError, match=message):
        app(["plan", str(file), *arguments, "--out", str(tmp_path / "out")], standalone_mode=False)
    assert not (tmp_path / "out").exists()


def test_scenarios_of_other_kinds_and_too_few_clients_are_refused(tmp_path: Path) -> None:
    asked = ["--target-accuracy", "0.8", "--epsilon", "4", "--out", str(tmp_path / "out")]
    with pytest.raises(InputError, match="trains no model"):
        app(["plan", "first-names", *asked], standalone_mode=False)
    with pytest.raises(InputError, match=r"has a \[tune\], which `fedprivacy plan` does not support"):
        app(["plan", "tuned", *asked], standalone_mode=False)
    few = small(
        "data={name='synthetic', records=200, features=4, partition='iid', clients=3}",
        "compare.local.sampling.cohort=3",
    )
    with pytest.raises(InputError, match=r"3 clients give 3 numbers of clients .* Bring more clients"):
        plan(few, Question(("central",), 0.8, 4.0), tmp_path / "out", workers=1)
    assert not (tmp_path / "out").exists()


def test_records_of_few_held_out_clients_widen_the_interval(planned: dict[str, Any], tmp_path: Path) -> None:
    data = "data={name='synthetic', records=600, features=4, partition='dirichlet', alpha=0.1, clients=30}"
    plain = Question(("central",), epsilon=8.0, clients=20, repeats=2)
    document = plan(small(data, "compare.local.sampling.cohort=30"), plain, tmp_path, workers=1)
    [curve] = document["curves"]
    assert document["development"]["source"] == "clients"
    assert max(point["design_effect"] for point in curve["points"]) > 1.5
    assert checked_document(Path(document["path"])) == document
    points = [(point["x"], point["accuracies"]) for point in curve["points"]]
    base, development = document["baseline"]["accuracies"], document["development"]
    independent = answers(plain, points, base, None, development, 1, [1.0])["answer"]
    assert curve["answer"]["high"] - curve["answer"]["low"] > independent["high"] - independent["low"]
    assert "6 clients do not train" in (Path(document["path"]) / "report.html").read_text().replace(
        "\xa0", " "
    )
    assert all(point["design_effect"] == 1.0 for point in planned["curves"][0]["points"])


PUBLIC_HALF = (
    "data={name='synthetic', records=600, features=4, partition='iid', clients=50, public_fraction=0.5}"
)


@pytest.mark.parametrize(
    ("overrides", "question", "message"),
    [
        (
            ["privacy.groups={strict={epsilon=0.5, share=0.2}}"],
            HOW_MANY,
            r"privacy\.groups: .* Remove them, and plan with each group's epsilon",
        ),
        (
            [PUBLIC_HALF, "server.patience=1"],
            Question(("central",), 0.7, 4.0),
            r"server\.patience = 1: .* Remove it, and set server\.rounds",
        ),
        (
            [PUBLIC_HALF, "training.adversarial=1.0"],
            Question(("central",), 0.7, 4.0),
            r"training\.adversarial = 1: trains on the public records",
        ),
        ([], Question(("local",), epsilon=4.0, clients=3), r"--clients 3: .* Give 4 or more"),
        ([], Question(("local",), 0.7, clients=3), r"--clients 3: .* Give 4 or more"),
    ],
)
def test_settings_that_the_runs_of_a_plan_would_not_have_are_refused(
    overrides: list[str], question: Question, message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        plan(small(*overrides), question, tmp_path / "out", workers=1)
    assert not (tmp_path / "out").exists()


def test_another_task_is_refused_with_the_reason(tmp_path: Path) -> None:
    scenario = small()
    regression = scenario.model_copy(update={"data": scenario.data.model_copy(update={"task": "regression"})})
    with pytest.raises(InputError, match=r'data\.task = "regression": a plan forecasts accuracy'):
        plan(regression, HOW_MANY, tmp_path / "out", workers=1)
    assert not (tmp_path / "out").exists()


def test_the_page_and_the_terminal_have_the_answer(
    planned: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(planned["path"])
    answer = sentence(read_as(PlanDocument, planned))
    page = (folder / "report.html").read_text().replace("\N{NO-BREAK SPACE}", " ")
    assert answer in page
    for part in (
        "The law and its error",
        "with the fitted law",
        "The data end",
        "Target",
        "Largest, predicted",
    ):
        assert part in page
    app(["show", str(folder)], standalone_mode=False)
    shown = capsys.readouterr().out
    assert f"small: {answer}" in shown
    assert "unit client, adjacency replace-one, of a run as planned." in shown
    assert "cost nobody privacy" in shown
