"""Attacks in trials through the clients' own code: the noise of a plan, fresh in each trial, and a bound."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import binom, chi2

from fedprivacy.attacks import trials
from fedprivacy.errors import InputError
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.loading import loads
from fedprivacy.verification.verify import checked_document
from scenarios.attacks.game_setup import GameSetup
from scenarios.attacks.replay import replay
from scenarios.attacks.victim import AttackedClient

FALSE_ALARM = 1e-4
TEXT = """name = "property"
seed = 1
[data]
name = "digits"
partition = "iid"
clients = 40
public_fraction = 0.5
[model]
name = "logistic"
[training]
learning_rate = 0.1
batch_size = 10
[server]
rounds = 4
[sampling]
name = "all"
[privacy]
trust = "local"
mechanism = "gaussian"
noise_multiplier = 5.0
delta = 1e-5
clipping_norm = 0.5
[federation]
chunk_size = 1
[game]
warm_up = 1
[attacks.threes]
kind = "property"
value = "3"
rounds = 2
trials = 60
shadows = 60
"""
CENTRAL = TEXT.replace('"local"\nmechanism = "gaussian"', '"central"')


def scenario(text: str = TEXT) -> AttackScenario:
    loaded = loads(text)
    assert isinstance(loaded, AttackScenario)
    return loaded


def victim(text: str, seat: str, rounds: int = 2, in_sum: bool = False) -> AttackedClient:
    setup = GameSetup(scenario(text))
    model = np.zeros(setup.fleet.parameters, np.float32)
    return AttackedClient(setup, seat, (model,) * rounds, 1, "threes", in_sum)


@pytest.mark.parametrize(("text", "seat"), [(TEXT, "server"), (CENTRAL, "participant")])
def test_each_trial_has_the_noise_of_the_plan_in_each_round_and_noise_of_its_own(
    text: str, seat: str
) -> None:
    """The variance of 20 x 650 coordinates against chi-square, both ends together at 1e-4."""
    attacked = victim(text, seat)
    worlds = [attacked.pools()[0][: attacked.size]] * 20
    noise = attacked.answers(worlds, "trial") - attacked.answers(worlds, "trial", noisy=False)
    assert attacked.deviation == pytest.approx(0.5 * 5.0 * np.sqrt(2))  # noise multiplier 5, two rounds
    ends = chi2.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], noise.size)
    assert ends[0] < (noise**2).sum() / attacked.deviation**2 < ends[1]
    correlations = np.corrcoef(noise)[np.triu_indices(20, 1)]
    assert np.abs(correlations).max() < 6 / np.sqrt(noise.shape[1])
    shadows = attacked.answers(worlds, "shadow") - attacked.answers(worlds, "shadow", noisy=False)
    assert abs(np.corrcoef(noise.ravel(), shadows.ravel())[0, 1]) < 6 / np.sqrt(noise.size)


@pytest.mark.parametrize("noisy", [True, False])
@pytest.mark.parametrize(
    ("text", "seat", "in_sum"),
    [
        (TEXT, "server", False),
        (TEXT, "server", True),
        (CENTRAL, "participant", False),
    ],
)
def test_worlds_observed_in_blocks_have_the_same_bits(
    text: str, seat: str, in_sum: bool, noisy: bool, monkeypatch
) -> None:
    """Worlds of several sizes, in blocks of 3 and at once."""
    attacked = victim(text, seat, in_sum=in_sum)
    pool = attacked.pools()[0]
    worlds = [pool[start : start + attacked.size - start % 2] for start in range(8)]
    whole = attacked.answers(worlds, "trial", noisy=noisy)
    monkeypatch.setattr(trials, "NUMBERS", 6 * attacked.setup.fleet.parameters + 5)
    blocks = list(trials.observations(attacked, worlds, "trial", rows=2, noisy=noisy))
    assert [block for block, _ in blocks] == [range(3), range(3, 6), range(6, 8)]
    assert np.array_equal(np.concatenate([rows for _, rows in blocks]), whole)
    assert not np.array_equal(whole[:3], attacked.answers(worlds[:3], "trial", first=3, noisy=noisy))


def test_a_property_is_guessed_alike_in_blocks_of_one(monkeypatch) -> None:
    text = TEXT.replace("noise_multiplier = 5.0", "noise_multiplier = 0.5")
    attacked, attack = victim(text, "server"), scenario(text).attacks["threes"]
    whole = attack.run(attacked)
    monkeypatch.setattr(trials, "NUMBERS", 1)
    assert attack.run(attacked) == whole
    assert 30 < whole.successes < 60


def test_the_server_under_central_trust_sees_the_clipped_update_without_noise() -> None:
    attacked = victim(CENTRAL, "server", rounds=1)
    [pool, _] = attacked.pools()
    seen = attacked.answers([pool[: attacked.size]], "trial")
    assert attacked.deviation == 0.0
    assert 0 < np.linalg.norm(seen) <= 0.5 * (1 + 1e-6)


def test_a_world_answers_as_the_victim_does() -> None:
    """With the victim's own records, and the first client as victim, so that the shuffles are the same."""
    attacked = victim(CENTRAL, "server", rounds=1)
    setup = attacked.setup
    grid = setup._grid(setup.fleet)  # the real apps
    federation, _ = setup._federation(grid)
    federation.weights = np.zeros_like(federation.weights)
    captured: list[np.ndarray] = []

    def seen(messages: Any, **kwargs: Any) -> Any:
        for reply in type(grid).send_and_receive(grid, messages, **kwargs):
            arrays = reply.content.array_records["arrays"]
            if arrays["clients"].numpy()[0] == 0:
                captured.append(arrays["updates"].numpy().reshape(-1))
            yield reply

    grid.send_and_receive = seen  # type: ignore[method-assign]
    federation.round(1)
    [answered] = captured
    own = attacked.answers([setup.game.people.partition.records(0)], "trial")[0]
    assert own == pytest.approx(answered, abs=1e-6)


def test_worlds_and_shadows_are_of_different_records() -> None:
    attacked = victim(TEXT, "server")
    worlds, shadows = attacked.pools()
    assert not set(worlds) & set(shadows)
    others = {
        record
        for client in range(1, 40)
        for record in attacked.setup.game.people.partition.records(client).tolist()
    }
    assert not others & (set(worlds.tolist()) | set(shadows.tolist()))


def test_a_replay_finds_the_property_without_noise_and_not_with_much(tmp_path: Path) -> None:
    text = TEXT.replace("warm_up = 1", "warm_up = 1\nunprotected = true\nrepeats = 2")
    document = replay(scenario(text), tmp_path, workers=1)
    private, bare = document["trials"]
    assert bare["success"]["value"] > 0.95
    assert bare["bound"]["success"] is None
    assert private["success"]["low"] <= 0.5 <= private["success"]["high"]
    assert 0.5 < private["bound"]["success"] < 0.75
    assert private["runs"] == [
        {"successes": private["runs"][0]["successes"], "trials": 60},
        private["runs"][1],
    ]
    assert document["verdict"]["checked"] == ["threes (noise multiplier 5)"]
    folder = Path(document["path"])
    page = (folder / "report.html").read_text()
    assert "the attacker guesses right whether the victim has the property" in page
    assert checked_document(folder)["trials"] == document["trials"]
    spent = json.loads((next(folder.glob("noise-multiplier-5/run-*")) / "spent.json").read_text())
    assert [row["rounds"] for row in spent] == [2]  # trials share the observed rounds

    def refused(change: Any) -> str:
        stored = json.loads((folder / "run.json").read_text())
        change(stored["trials"][0])
        other = tmp_path / "changed"
        other.mkdir(exist_ok=True)
        (other / "run.json").write_text(json.dumps(stored))
        with pytest.raises(InputError) as error:
            checked_document(other)
        return str(error.value)

    assert "success" in refused(lambda trial: trial["success"].update(value=0.5, low=0.0))
    assert "bound" in refused(lambda trial: trial["bound"].update(success=0.51))
    assert "more successes than trials" in refused(lambda trial: trial["runs"][0].update(successes=61))
    assert "runs" in refused(lambda trial: trial["runs"].pop())
    fewer = {"successes": 1, "trials": 2}
    assert "other trials than 60" in refused(lambda trial: trial.update(runs=[fewer, fewer]))

    def compare(trial: Any) -> None:
        trial["without"] = {"success": trial["success"], "figures": {}}
        for run in trial["runs"]:
            run["without"] = run["successes"]

    assert "of a kind that has none" in refused(compare)


def test_a_smaller_world_is_sampled_at_the_rate_that_the_ledger_accounts_for() -> None:
    """A single record in place of 18 is in a Poisson batch of 2 in one of 9 steps, never in every one.

    The ends of the binomial distribution for 600 worlds at 1e-4 together.
    """
    text = TEXT.replace("batch_size = 10", 'batches = "poisson"\nbatch_size = 2\nsteps = 1').replace(
        "noise_multiplier = 5.0", 'noise_multiplier = 0.02\nunit = "example"\nadjacency = "add-remove"'
    )
    attacked = victim(text, "server", rounds=1)
    [pool, _] = attacked.pools()
    lengths = np.linalg.norm(attacked.answers([pool[:1]] * 600, "trial"), axis=1)
    drawn = int((lengths > 2 * np.median(lengths)).sum())
    ends = binom.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], 600, 2 / attacked.size)
    assert ends[0] <= drawn <= ends[1]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('value = "3"', 'value = "12"', "attacks.threes.value"),
        ('value = "3"', 'value = "3"\ncolumn = "sex"', "no columns with names"),
        ('value = "3"', 'value = "3"\nlow = 0.9', "must be below high"),
        ('value = "3"', 'value = "3"\nseat = "participant"', 'Set seat = "server"'),
        ("rounds = 2", "rounds = 4", "attacks.threes"),
    ],
)
def test_impossible_attacks_are_refused_with_the_key(old: str, new: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        loads(TEXT.replace(old, new))
    assert message in str(error.value)


def test_too_few_free_records_are_refused_before_anything_is_trained(tmp_path: Path) -> None:
    text = TEXT.replace("clients = 40", "clients = 8")
    with pytest.raises(InputError, match=r"attacks\.threes: \d+ records in the group '3' are free"):
        replay(scenario(text), tmp_path, workers=1)
    assert not list(tmp_path.iterdir())


def test_worlds_that_do_not_differ_are_refused_before_anything_is_trained(tmp_path: Path) -> None:
    text = TEXT.replace('value = "3"', 'value = "3"\nlow = 0.4\nhigh = 0.401')
    with pytest.raises(
        InputError, match=r"attacks\.threes: low = 0\.4 and high = 0\.401 are the same number of records"
    ):
        replay(scenario(text), tmp_path, workers=1)
    assert not list(tmp_path.iterdir())


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)
