"""What a scenario may ask of defences in training."""

from __future__ import annotations

import pytest

from fedprivacy.errors import ScenarioError
from fedprivacy.scenario import Scenario
from fedprivacy.scenario.attack import AttackScenario

TEXT = """name = "my"
data = {name = "digits", partition = "iid", clients = 10, public_fraction = 0.3}
model = {name = "logistic"}
server = {rounds = 3}
sampling = {name = "all"}
privacy = {trust = "none"}
"""


def test_defences_are_read_and_written_back() -> None:
    sets = ["training.adversarial=3.0", "training.adversarial_steps=2", "training.adversarial_first=5"]
    asked = Scenario.from_text(TEXT, "my.toml", [*sets, "server.patience=2", "evaluation.on='public'"])
    assert (asked.training.adversarial, asked.server.patience) == (3.0, 2)
    assert Scenario.from_text(asked.to_toml(), "my.toml") == asked


@pytest.mark.parametrize(
    ("sets", "said"),
    [
        (["training.adversarial=0.0"], "training.adversarial=0.0: must be above 0"),
        (["training.adversarial_steps=2"], "training.adversarial_steps=2: has no effect without"),
        (["training.adversarial_first=2"], "training.adversarial_first=2: has no effect without"),
        (["training.adversarial=3.0", "data.public_fraction=0.0"], "there is no public part of the data"),
        (["training.adversarial=3.0", "privacy.unit='example'"], 'works with privacy.unit = "client" alone'),
        (["server.patience=0"], "server.patience=0: must be at least 1"),
        (
            ["server.patience=2", "data.public_fraction=0.0"],
            "no public part of the data whose loss could say",
        ),
        (["server.patience=3"], "server.patience=3: has no effect: with evaluation.every = 1"),
        (["server.patience=1", "evaluation.every=3"], "Remove it, or make server.rounds larger."),
        (["server.patience=2", "evaluation.every=2", "server.rounds=4"], "Set patience to at most 1"),
    ],
)
def test_what_cannot_be_is_refused_with_a_remedy(sets: list[str], said: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        Scenario.from_text(TEXT, "my.toml", sets)
    assert said in str(caught.value)
    assert len(caught.value.problems) == 1


def test_patience_that_can_act_is_taken_whatever_is_evaluated_on() -> None:
    for on in ("test", "public"):
        Scenario.from_text(TEXT, "my.toml", ["server.patience=2", f"evaluation.on='{on}'"])
    Scenario.from_text(TEXT, "my.toml", ["server.patience=1", "evaluation.every=2"])


GAME = """[game]
members = 20
nonmembers = 20
[attacks.look]
kind = "released"
methods = ["loss"]
"""


@pytest.mark.parametrize(
    ("sets", "said"),
    [
        (["evaluation.on='test'"], 'Set on = "public"'),
        (["evaluation.on='public'", "game.warm_up=2"], "or make game.warm_up larger"),
        (["evaluation.on='public'", "game.warm_up=0"], "Remove it, or make game.warm_up larger"),
    ],
)
def test_in_a_game_early_stopping_reads_public_records_and_has_time(sets: list[str], said: str) -> None:
    usual = ["server.patience=2", "federation.chunk_size=1", *sets]
    with pytest.raises(ScenarioError) as caught:
        AttackScenario.from_text(TEXT + GAME, "my.toml", usual)
    assert said in str(caught.value)
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize("key", ["training.adversarial=3.0", "server.patience=2"])
def test_on_nodes_there_are_no_references(key: str) -> None:
    text = TEXT.replace(
        '{name = "digits", partition = "iid", clients = 10, public_fraction = 0.3}',
        '{name = "on-nodes", clients = 2, features = 4, classes = 2, records_per_client = 9}',
    )
    with pytest.raises(ScenarioError, match=r"there is no public part.*\s.*Remove it: nodes hold") as caught:
        Scenario.from_text(text, "my.toml", [key])
    assert len(caught.value.problems) == 1
