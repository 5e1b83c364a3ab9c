"""Clients that drop out by a coin: what the model gets of it, what the record says, and what it costs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedprivacy.records.bias import SCALED
from scenarios.runner import run

ROUNDS = 60
STILL = (
    f"server.rounds={ROUNDS}",
    "server.learning_rate=1e-9",
    "federation.chunk_size=12",
)  # the same model in each round


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("rate", [0.0, 0.1, 0.3, 0.5])
def test_the_mean_update_is_shorter_by_the_rate_and_points_the_same_way(make_scenario, trial, rate) -> None:
    """Five standard deviations for each of ten coordinates: false alarms below 1e-5."""
    none = "privacy.trust=none"
    whole = trial(make_scenario(none, *STILL)).federation.round(0)[1].updates
    played = trial(make_scenario(none, *STILL, f"federation.dropout={rate}"))
    totals = [played.federation.round(number)[1] for number in range(ROUNDS)]
    mean = np.mean([total.updates for total in totals], axis=0)
    # No update of the twelve is longer than the clipping norm 1.
    deviation = np.sqrt(rate * (1 - rate) * 12 / ROUNDS)
    assert np.abs(mean - (1 - rate) * whole).max() <= 5 * deviation + 1e-6
    gone = sum(total.faults["dropped"] for total in totals)
    assert abs(gone / (12 * ROUNDS) - rate) <= 5 * np.sqrt(rate * (1 - rate) / (12 * ROUNDS))
    assert all(total.failed == 0 and total.contributed == 12 - total.faults["dropped"] for total in totals)


@pytest.mark.parametrize("trust", ["central", "local"])
def test_the_record_says_so_and_charges_all_who_were_asked(make_scenario, tmp_path: Path, trust: str) -> None:
    asked = (f"privacy.trust={trust}", "server.rounds=4")
    whole = run(make_scenario(*asked), tmp_path / "whole", report=False)
    document = run(make_scenario(*asked, "federation.dropout=0.5"), tmp_path / "half", report=False)
    assert whole["estimate"] == {"unbiased": True, "share": 1.0, "words": whole["estimate"]["words"]}
    there = [event["contributed"] for event in document["rounds"]]
    assert there == [12 - event["faults"].get("dropped", 0) for event in document["rounds"]]
    assert document["estimate"]["share"] == pytest.approx(sum(there) / 48, abs=1e-6)
    assert not document["estimate"]["unbiased"]
    assert SCALED in document["estimate"]["words"]
    assert any("probability 0.5" in note for note in document["notes"])
    assert {"estimate", "rounds[].faults", "rounds[].contributed"} <= set(document["operator_only"])
    # What is claimed may be less sharp where shares of noise are missing, and never sharper.
    for one, other in zip(whole["privacy"]["guarantees"], document["privacy"]["guarantees"], strict=True):
        assert other["epsilon"] is None or other["epsilon"] >= one["epsilon"]
    assert document["ledger"].get("participations") == whole["ledger"].get("participations")
    assert document["noise_key"] != whole["noise_key"]  # else the two would give away who is missing
