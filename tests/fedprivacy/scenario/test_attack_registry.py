"""Every kind of attack in the registry is complete, and a scenario with any of them is read without torch."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Literal

import pytest

from fedprivacy.attacks.released.attack import Released
from fedprivacy.attacks.rounds_attack import RoundsAttack
from fedprivacy.attacks.trials import TrialAttack
from fedprivacy.scenario.attack.registry import ATTACK_KINDS, REGISTRY

ORDER = {  # of the fields that key the noise of stored runs
    "active-gradient-ascent": ["seat", "sees", "isolating", "attacker", "kind", "targets_per_round", "level"],
    "property": ["kind", "seat", "trials", "rounds", "column", "value", "low", "high", "shadows"],
}


@pytest.mark.parametrize("name", REGISTRY)
def test_a_kind_has_its_name_a_label_a_family_and_nothing_abstract(name: str) -> None:
    kind = ATTACK_KINDS[name]
    assert kind.model_fields["kind"].annotation == Literal[name]
    assert kind.label
    assert kind.__doc__
    assert issubclass(kind, RoundsAttack | TrialAttack | Released)
    assert not kind.__abstractmethods__
    if issubclass(kind, TrialAttack):
        assert kind.success
        assert kind.scoring <= kind.model_fields.keys()


def test_labels_differ_and_the_keys_of_noise_keep_their_order() -> None:
    assert len({kind.label for kind in ATTACK_KINDS.values()}) == len(REGISTRY)
    for name, fields in ORDER.items():
        assert list(ATTACK_KINDS[name].model_fields)[: len(fields)] == fields


def test_a_scenario_with_attacks_is_read_without_torch() -> None:
    code = (
        "import json, sys; from fedprivacy.scenario.attack.registry import ATTACK_KINDS;"
        "print(json.dumps([len(list(ATTACK_KINDS.values())), 'torch' in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [len(REGISTRY), False]
