from __future__ import annotations

import json
from typing import Any

import pytest

from fedprivacy.erm.assumptions import ErmAssumption
from fedprivacy.guarantees.assumptions import Assumption, TrainingAssumption
from fedprivacy.guarantees.ledger import broke_off
from fedprivacy.statistics.assumptions import StatisticsAssumption
from fedprivacy.tuning.assumptions import TuningAssumption

KINDS: list[type[Assumption]] = [TrainingAssumption, StatisticsAssumption, TuningAssumption, ErmAssumption]


def ledger_of(*texts: str) -> dict[str, Any]:
    return {"claims": [{"observer": "server", "event": None, "assumptions": list(texts)}]}


@pytest.mark.parametrize("kind", KINDS)
def test_each_text_leads_back_to_its_id(kind: type[Assumption]) -> None:
    for assumption in kind:
        assert kind.of(str(assumption)) is assumption
        assert json.loads(json.dumps([assumption])) == [str(assumption)]
    assert kind.of("the moon is full") is None


def test_a_fault_stands_before_the_assumptions_that_follow_it_in_a_ledger() -> None:
    first, later = str(TrainingAssumption.TESTED_CLIENTS), str(TrainingAssumption.PUBLIC_SHAPE)
    assert broke_off([first, later]) == [first, str(TrainingAssumption.BROKEN_OFF), later]
    assert broke_off([first]) == [first, str(TrainingAssumption.BROKEN_OFF)]
