"""What a user reads about a poisoning attack that cannot be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedprivacy.errors import ScenarioError
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.loading import loads

TEXT = """name = "poisoned"
seed = 1
[data]
name = "npz"
path = "PATH"
partition = "by-user"
[model]
name = "logistic"
[server]
rounds = 2
[sampling]
name = "all"
[privacy]
trust = "none"
[federation]
chunk_size = 1
[game]
warm_up = 1
[attacks.door]
kind = "poisoning"
target = 2
pixels = [[4, 5], [0, 0]]
"""


@pytest.fixture
def text(tmp_path: Path) -> str:
    """A scenario on small pictures of six writers."""
    rng, path = np.random.default_rng(0), tmp_path / "pictures.npz"
    x, y = rng.random((60, 5, 6)), np.arange(60) % 3
    np.savez(path, x_train=x, y_train=y, x_test=x, y_test=y, user_train=np.arange(60) % 6)
    return TEXT.replace("PATH", str(path))


def complaint(text: str, *overrides: str) -> str:
    with pytest.raises(ScenarioError) as caught:
        loads(text, "my.toml", overrides)
    assert caught.value.exit_code == 2
    return str(caught.value)


def test_writers_need_no_pool_of_records_and_rounds_no_certain_client(text: str) -> None:
    loaded = loads(text, "my.toml", ["sampling={name='poisson', rate=0.5}", "server.optimizer=momentum"])
    assert isinstance(loaded, AttackScenario)
    assert loaded.attacks["door"].pixels == ((4, 5), (0, 0))
    assert AttackScenario.from_text(loaded.to_toml()) == loaded


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["clients=6"], "clients=6: there are 6 clients, and one at least must be honest. At most 5."),
        (["target=3"], "target=3: no record has this label. Labels are 0 to 2."),
        (["source=7"], "source=7: no record has this label. Labels are 0 to 2."),
        (["source=2"], "source=2: the model should take these records for what they are"),
        (["pixels=[[5, 0]]"], "[5, 0] lies outside of the pictures of 5 x 6 pixels. Rows go from 0 to 4"),
        (["pixels=[[0, 6]]"], "[0, 6] lies outside of the pictures of 5 x 6 pixels"),
        (["pixels=[[-1, 0]]"], "[-1, 0] lies outside of the pictures of 5 x 6 pixels"),
        (["pixels=[[1]]"], "attacks.door.pixels"),
        (["goal=label-flip", "source=1"], "pixels: has no effect with goal"),
        (["goal=label-flop"], "unknown goal"),
        (["trials=5"], "must be at least 20"),
        (["boost=0.0"], "must be above 0"),
    ],
)
def test_a_wrong_key_is_named_with_the_reason(text: str, changes: list[str], message: str) -> None:
    assert message in complaint(text, *(f"attacks.door.{change}" for change in changes))


def test_a_backdoor_needs_pixels_and_a_label_flip_a_source(text: str) -> None:
    bare = text.replace("pixels = [[4, 5], [0, 0]]\n", "")
    assert "attacks.door.pixels: missing, and a backdoor has a trigger" in complaint(bare)
    assert "attacks.door.source: missing" in complaint(bare, "attacks.door.goal=label-flip")
    loads(bare, "my.toml", ["attacks.door.goal=label-flip", "attacks.door.source=1"])


def test_rows_of_numbers_have_no_pixels(text: str) -> None:
    digits = text.replace(
        text[text.index('name = "npz"') : text.index("[model]")], 'name = "digits"\nclients = 6\n'
    )
    assert "records are no pictures, they have 64 values in a row" in complaint(digits, "data.partition=iid")


def test_secure_sums_show_no_single_update(text: str) -> None:
    changes = ["privacy={trust='distributed', clipping_norm=1.0, noise_multiplier=2.0, delta=1e-3}"]
    assert "is not made for noise in shares" in complaint(text, *changes)
