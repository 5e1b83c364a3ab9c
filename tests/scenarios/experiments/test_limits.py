"""What limits a run, measured on small scenarios with a planted limit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from fedprivacy.errors import InputError, ScenarioError
from fedprivacy.report import render
from fedprivacy.scenario import Scenario
from fedprivacy.verification.verify import checked_document
from scenarios.experiments.comparison import compare
from scenarios.experiments.limits import check_limits, measure, with_ablations
from scenarios.runner import run

PLANTED = """
name = "planted"
seed = 1
[data]
name = "synthetic"
records = 2000
test_records = 1000
features = 10
partition = "iid"
clients = 200
[model]
name = "logistic"
[training]
learning_rate = 0.5
[server]
rounds = 8
[sampling]
name = "all"
[privacy]
trust = "central"
adjacency = "add-remove"
clipping_norm = 1.0
epsilon = 100.0
delta = 1e-3
"""


def measured(tmp_path: Path, *overrides: str) -> dict:
    scenario = Scenario.from_text(PLANTED, overrides=overrides)
    return measure(run(scenario, tmp_path), scenario, workers=1)


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize(
    ("overrides", "start"),
    [
        (["privacy.clipping_norm=0.001"], "Clipping limits this run"),
        (["privacy.epsilon=0.05"], "Noise limits this run"),
        (
            ["server.rounds=1", "model.name=mlp", "model.hidden=[32]", "privacy.epsilon=1e4",
             "privacy.clipping_norm=10.0", "training.learning_rate=0.3"],
            "Too few rounds limit this run",
        ),
    ],
)  # fmt: skip
def test_a_planted_limit_is_named(tmp_path: Path, overrides: list[str], start: str) -> None:
    document = measured(tmp_path, *overrides)
    assert document["limits"]["limiting"].startswith(start), document["limits"]
    path = Path(document["path"])
    assert checked_document(path) == document
    assert start in render(document)
    for variant in document["limits"]["variants"]:
        assert variant["epsilon"] == (
            None if variant["trust"] == "none" else document["scenario"]["privacy"]["epsilon"]
        )
    document["limits"]["limiting"] = "Nothing limits this run."
    (path / "run.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"limits\.limiting"):
        checked_document(path)


@pytest.mark.exhaustive
def test_interrupted_ablations_resume_to_the_same_numbers(tmp_path: Path) -> None:
    scenario = Scenario.from_text(PLANTED, overrides=["server.rounds=1"])
    document = run(scenario, tmp_path)
    ran: list[str] = []

    def stop(label: str, done: int, total: int) -> None:
        if done == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure(document, scenario, workers=1, on_run=stop)
    assert "limits" not in checked_document(Path(document["path"]))
    resumed = measure(document, scenario, workers=1, on_run=lambda label, *_: ran.append(label))
    other = measure(run(scenario, tmp_path / "other"), scenario, workers=1)
    assert resumed["limits"]["variants"] == other["limits"]["variants"]
    assert len(list((Path(document["path"]) / "limits").iterdir())) == 1


def test_all_that_applies_is_measured_with_five_seeds() -> None:
    planned = with_ablations(
        Scenario.from_text(PLANTED, overrides=["sampling.name=poisson", "sampling.rate=0.1"])
    )
    assert len(planned.compare.seeds) == 5
    assert set(planned.compare.limits) >= {"no-noise", "no-clipping", "cohort-double", "data-half"}
    assert "cohort-double" not in with_ablations(Scenario.from_text(PLANTED)).compare.limits


@pytest.mark.parametrize(
    ("overrides", "engine", "message"),
    [
        (["privacy.trust=none"], "embedded", "sets none"),
        (["privacy.noise_multiplier=1.0"], "embedded", "sets none"),
        ([], "superlink", "--engine superlink"),
    ],
)
def test_what_cannot_be_measured_is_refused(overrides: list[str], engine: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_limits(Scenario.from_text(PLANTED, overrides=overrides), engine)


@pytest.mark.parametrize(
    ("compare_table", "message"),
    [
        ('{limits=["cohort-double"], epsilons=[100.0]}', "needs Poisson sampling"),
        ('{limits=["no-noise"], epsilons=[1.0]}', "not among those compared"),
        ('{limits=["no-noise"], epsilons=[100.0], seeds=[1]}', "there is one seed"),
        ('{limits=["no-nois"]}', "limits"),
    ],
)
def test_limits_of_a_comparison_that_cannot_run_are_refused(compare_table: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        Scenario.from_text(PLANTED, overrides=[f"compare={compare_table}"])


@pytest.mark.exhaustive
def test_a_comparison_can_have_limits_and_then_clipping_alone_is_trained_once(tmp_path: Path) -> None:
    table = (
        'compare={trusts=["central"], epsilons=[100.0], seeds=[1, 2], limits=["no-noise", "rounds-double"]}'
    )
    document = compare(Scenario.from_text(PLANTED, overrides=[table]), tmp_path, workers=1)
    assert [cell["ablation"] for cell in document["limits"]] == ["no-noise", "rounds-double"]
    assert document["limits"][1]["rounds"] == 16
    assert "baselines" not in document
    assert checked_document(Path(document["path"])) == document
    page = render(document)
    assert "Clipping alone, no noise" in page
    assert "Most frequent class" in page


def test_a_comparison_of_an_earlier_version_has_no_baselines(tmp_path: Path) -> None:
    table = "compare={trusts=['central'], epsilons=[100.0], seeds=[1], baselines=false}"
    document = compare(Scenario.from_text(PLANTED, overrides=[table]), tmp_path, workers=1)
    assert "baselines" not in document


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("weighting", ["records", "clients"])
def test_without_noise_a_run_of_records_is_the_planned_run_at_a_huge_epsilon(
    weighting: str, tmp_path: Path
) -> None:
    """Clients that weigh by their records do so without noise too, or noise and weights would be confused."""
    stream = np.random.default_rng(0)
    x = stream.normal(size=(400, 4)).astype(np.float32)
    users = np.repeat([0, 1, 2], [300, 70, 30])
    y = ((x[:, 0] > 0) ^ (users == 0)).astype(np.int64)  # the largest client contradicts the others
    np.savez(tmp_path / "a.npz", x_train=x, y_train=y, user_train=users, x_test=x[300:], y_test=y[300:])
    text = f"""
        name = "weighted"
        [data]
        name = "npz"
        path = "{tmp_path / "a.npz"}"
        partition = "by-user"
        [model]
        name = "logistic"
        [training]
        learning_rate = 0.5
        batch_size = "all"
        epochs = 5
        weighting = "{weighting}"
        [server]
        rounds = 3
        [sampling]
        name = "all"
        [privacy]
        unit = "example"
        adjacency = "replace-one"
        clipping_norm = 1.0
    """
    noisy = f'{text}trust = "local"\nmax_participations = 3\nepsilon = 1e6\ndelta = 1e-5'
    planned = run(Scenario.from_text(noisy), tmp_path / "noisy")
    free = run(Scenario.from_text(f'{text}trust = "none"'), tmp_path / "free")
    assert free["final"]["loss"] == pytest.approx(planned["final"]["loss"], rel=0.02)
