"""What a scenario may ask of defences in training."""

from __future__ import annotations

import pytest

from fedprivacy.errors import ScenarioError
from fedprivacy.scenario import Scenario

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
        (["server.patience=2"], "training would end where the test records say"),
        (["server.patience=0", "evaluation.on='public'"], "server.patience=0: must be at least 1"),
        (["server.patience=2", "evaluation.on='public'", "data.public_fraction=0.0"], "no public part"),
    ],
)
def test_what_cannot_be_is_refused_with_a_remedy(sets: list[str], said: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        Scenario.from_text(TEXT, "my.toml", sets)
    assert said in str(caught.value)
    assert len(caught.value.problems) == 1


def test_on_nodes_there_are_no_references() -> None:
    text = TEXT.replace(
        '{name = "digits", partition = "iid", clients = 10, public_fraction = 0.3}',
        '{name = "on-nodes", clients = 2, features = 4, classes = 2, records_per_client = 9}',
    )
    with pytest.raises(ScenarioError, match="there is no public part"):
        Scenario.from_text(text, "my.toml", ["training.adversarial=3.0"])
