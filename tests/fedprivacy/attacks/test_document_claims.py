"""Notes of a replay's document that follow from its scenario alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fedprivacy.attacks.document_claims import frame_of
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.loading import loads

TEXT = """name = "attacked"
seed = 1
[data]
{}
[model]
name = "logistic"
[server]
rounds = 5
[sampling]
name = "all"
[privacy]
trust = "none"
[federation]
chunk_size = 1
[game]
members = 10
nonmembers = 10
[attacks.look]
kind = "passive"
"""
IID = 'name = "purchase-like"\nrecords = 600\npartition = "iid"\nclients = 4\npublic_fraction = 0.4'


def stated_game(data: str) -> str:
    asked = loads(TEXT.format(data))
    assert isinstance(asked, AttackScenario)
    return frame_of(asked)["notes"][0]


def test_the_stated_pool_is_that_of_the_game(tmp_path: Path) -> None:
    """Where clients are users, public records have no part in it."""
    stream, path, users = np.random.default_rng(0), tmp_path / "users.npz", np.arange(400) % 4
    x, y = stream.random((400, 4)), np.arange(400) % 3
    np.savez(path, x_train=x, y_train=y, x_test=x, y_test=y, user_train=users, user_test=users + 4)
    of_users = stated_game(f'name = "npz"\npath = "{path}"\npartition = "by-user"')
    assert of_users.startswith("Each record of the victim is a member by a fair coin of its own; the victim")
    assert "public" not in of_users
    pool = (
        "Each record of the victim and of the public part is a member by a fair coin of its own; the victim"
    )
    assert stated_game(IID).startswith(pool)
