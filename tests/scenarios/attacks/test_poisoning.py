"""Poisoning of a small run through the real apps, from the scenario to the checked document and the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedprivacy.attacks.poisoned_records import Poison
from fedprivacy.attacks.poisoning.attack import goal_of
from fedprivacy.errors import InputError
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.loading import loads
from fedprivacy.verification.verify import checked_document
from scenarios.attacks.game_setup import GameSetup, Stage
from scenarios.attacks.replay import replay
from scenarios.attacks.victim import AttackedClient

pytestmark = pytest.mark.slow  # four arms of twenty trials, each of them twice

TEXT = """name = "poisoned"
seed = 1
[data]
name = "npz"
path = "PATH"
partition = "by-user"
[model]
name = "logistic"
[training]
learning_rate = 0.5
batch_size = 10
[server]
rounds = 3
[sampling]
name = "all"
[privacy]
trust = "none"
[federation]
chunk_size = 1
observe = "each"
[game]
warm_up = 2
[attacks.door]
kind = "poisoning"
target = 0
pixels = [[3, 3]]
value = 4.0
passes = 20
[arms.open]
[arms.robust]
server.aggregation = "median"
[arms.noisy]
server.clips = true
privacy.trust = "central"
privacy.clipping_norm = 0.5
privacy.noise_multiplier = 2.0
privacy.delta = 1e-2
[arms.nodes-clip]
privacy.trust = "central"
privacy.clipping_norm = 0.5
privacy.noise_multiplier = 2.0
privacy.delta = 1e-2
"""


@pytest.fixture(scope="module")
def scenario(tmp_path_factory) -> AttackScenario:
    folder = tmp_path_factory.mktemp("pictures")
    path = folder / "pictures.npz"
    rng = np.random.default_rng(0)
    y = np.arange(420) % 3
    x = rng.normal(size=(420, 4, 4)) * 0.3 + np.eye(3, 16)[y].reshape(420, 4, 4)
    users = np.arange(300) // 3 % 10
    arrays = {"x_train": x[:300], "y_train": y[:300], "x_test": x[300:], "y_test": y[300:]}
    np.savez(path, **arrays, user_train=users, user_test=np.full(120, 10))
    loaded = loads(TEXT.replace("PATH", str(path)))
    assert isinstance(loaded, AttackScenario)
    return loaded


@pytest.fixture(scope="module")
def document(scenario: AttackScenario, tmp_path_factory) -> dict[str, Any]:
    return replay(scenario, tmp_path_factory.mktemp("runs"), workers=1)


def result(document: dict[str, Any], arm: str) -> dict[str, Any]:
    return next(trial for trial in document["trials"] if trial["arm"] == arm)


@pytest.mark.exhaustive
def test_one_client_decides_an_open_model_and_no_robust_one(document) -> None:
    rates = {arm: result(document, arm)["figures"]["target rate"]["value"] for arm in ("open", "robust")}
    before = result(document, "open")["without"]["figures"]["target rate"]["value"]
    assert rates["open"] > 0.9
    assert before < 0.2
    assert rates["robust"] < 0.3


def test_the_certificate_is_there_where_the_server_clips_and_nowhere_else(document) -> None:
    noisy = result(document, "noisy")
    assert noisy["bound"]["success"] is not None
    # One attacked round of noise 2 C: mu = 1, although the whole run has three rounds.
    assert noisy["bound"]["basis"].startswith("Gaussian noise without sampling, mu = 1: exact; 1 step")
    assert noisy["success"]["low"] <= noisy["bound"]["success"]
    rate = noisy["figures"]["target rate"]
    assert rate["low"] <= noisy["bound"]["figures"]["target rate"]
    assert noisy["bound"]["floors"]["main accuracy"] <= noisy["figures"]["main accuracy"]["high"]
    for arm, reason in (
        ("open", "nobody adds noise"),
        ("robust", "nobody adds noise"),
        ("nodes-clip", "nodes clip"),
    ):
        bound = result(document, arm)["bound"]
        assert bound["success"] is None
        assert reason in bound["assumptions"][0]


def test_honest_runs_of_a_trial_have_the_same_draws_and_trials_differ(scenario) -> None:
    noisy = next(variant for variant in scenario.variants if variant.arm == "noisy")
    setup = GameSetup(noisy)
    tensors = setup.warm_up()

    def resume(trial: int, mods: tuple[Any, ...]) -> Stage:
        return setup.resume(f"door/{trial}", tensors, mods=mods, trial=trial)

    attacked = AttackedClient(setup, "participant", (), noisy.warm_up, "door", False, resume, 1)
    first, again, other = (attacked.after_rounds(None, trial) for trial in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    # An attacker that uploads next to nothing leaves the draws of all others as they were.
    poison = Poison(goal_of(noisy.attacks["door"], 4.0), 1, 1e-9, 1)  # type: ignore[arg-type]
    share = 2 * noisy.privacy.clipping_norm / setup.fleet.plan.population
    assert 0 < np.linalg.norm(attacked.after_rounds(poison, 0) - first) <= share
    assert np.linalg.norm(other - first) > share


def test_the_stored_document_is_checked_by_its_counts(document) -> None:
    folder = Path(document["path"])
    path = folder / "run.json"
    assert checked_document(folder)["trials"] == json.loads(json.dumps(document["trials"]))
    for change, key in (
        (lambda trial: trial["runs"][0].update(without=20), "chance"),
        (lambda trial: trial["bound"].update(success=0.01), "bound"),
        (lambda trial: trial.pop("without"), "without"),
        (lambda trial: trial["runs"][0].update(without=21), "successes"),
        (lambda trial: trial["without"]["figures"]["target rate"].update(value=0.0), "bound"),
        (lambda trial: trial["without"]["figures"]["target rate"].update(value=-0.5), "without.figures"),
    ):
        stored = json.loads(path.read_text())
        change(next(trial for trial in stored["trials"] if trial["arm"] == "noisy"))
        original = path.read_bytes()
        try:
            path.write_text(json.dumps(stored))
            with pytest.raises(InputError, match=key):
                checked_document(folder)
        finally:
            path.write_bytes(original)


def test_the_page_shows_rates_with_and_without_the_attack_beside_the_certificate(document) -> None:
    page = (Path(document["path"]) / "report.html").read_text()
    assert "with these clients honest it does in" in page
    assert "without the attack" in page
    assert "No attack" in page
    assert "Target rate" in page
    assert (
        "There is no certificate on door (open and robust): nobody adds noise, so that one client may decide"
        in page
    )
    assert (
        "The certificate on door (noisy at epsilon 4.905) follows from the guarantee against a participant ("
        in page
    )
    assert "provided that the server clips each single update itself" in page
    assert "There is no certificate on door (nodes-clip at epsilon 4.905): nodes clip the updates" in page
