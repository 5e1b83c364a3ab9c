"""Attacks on models of which a part is frozen: they see the gradients of what is trained."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from fedprivacy.attacks.signals import Probe
from fedprivacy.models.by_name import flat_weights
from fedprivacy.scenario.loading import loads
from fedprivacy.verification.verify import checked_document
from scenarios.attacks.game_setup import GameSetup
from scenarios.attacks.replay import replay
from tests.scenarios.attacks.test_released_model import TEXT

FROZEN = TEXT.replace("hidden = [16]", 'hidden = [16]\nfreeze = ["1.*"]')
PARAMETERS = 16 * 4 + 4


def test_the_signals_are_those_of_the_whole_model() -> None:
    setup = GameSetup(loads(FROZEN))
    fleet, rows = setup.fleet, torch.from_numpy(setup.game.targets)
    whole = Probe(fleet.module, fleet.x[rows], fleet.y[rows])
    weights = torch.from_numpy(flat_weights(fleet.module))
    updates = torch.randn(3, PARAMETERS, generator=torch.Generator().manual_seed(1))
    assert setup.probe.parameters == whole.parameters == PARAMETERS
    torch.testing.assert_close(setup.probe.losses(weights), whole.losses(weights))
    for found, expected in zip(
        setup.probe.alignment(weights, updates), whole.alignment(weights, updates), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.exhaustive
def test_a_replay_is_complete_and_verified(tmp_path: Path) -> None:
    document = replay(loads(FROZEN), tmp_path, workers=1)
    assert document["status"] == "finished"
    for attack in document["attacks"]:
        assert 0.0 <= attack["auc"]["value"] <= 1.0
    assert all(plan["frozen"]["trained"] == PARAMETERS for plan in document["plans"])
    assert checked_document(Path(document["path"]))["attacks"] == document["attacks"]
