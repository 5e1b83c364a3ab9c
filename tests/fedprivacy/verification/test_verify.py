"""A stored comparison is accounted for again from the ledgers of its runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fedprivacy.errors import InputError
from fedprivacy.verification.verify import checked_document
from scenarios.experiments.comparison import compare
from scenarios.experiments.statistics_run import ask


def test_a_changed_comparison_is_refused(make_scenario, base_text: str, tmp_path: Path) -> None:
    text = base_text.replace("noise_multiplier = 2.0", "epsilon = 2.0")
    only = '[compare]\ntrusts = ["central"]\nepsilons = [2.0]\nseeds = [1, 2]\n'
    document = compare(make_scenario(text=text + only), tmp_path, workers=1)
    path = Path(document["path"])
    assert checked_document(path) == document
    cell = document["cells"][0]
    stored = path / cell["runs"][0] / "run.json"
    for file, said in (
        (path / "run.json", r"cells\[0\].guarantees\[1\].epsilon: says 0.001"),
        (stored, r"privacy.guarantees\[1\].epsilon: says 0.001"),
    ):
        whole = file.read_text()
        changed = json.loads(whole)
        stated = changed["cells"][0] if "cells" in changed else changed["privacy"]
        stated["guarantees"][1]["epsilon"] = 0.001
        file.write_text(json.dumps(changed))
        with pytest.raises(InputError, match=said):
            checked_document(path)
        file.write_text(whole)
    file, whole = path / "run.json", (path / "run.json").read_text()
    undigested = {key: value for key, value in json.loads(whole).items() if key != "scenario_digest"}
    file.write_text(json.dumps(undigested))
    with pytest.raises(InputError, match=r"run\.json: damaged: scenario_digest is missing"):
        checked_document(path)
    file.write_text(whole)
    stored.unlink()
    with pytest.raises(InputError, match="No such file"):
        checked_document(path)


def test_a_changed_budget_of_a_statistics_run_is_refused(make_statistics, tmp_path: Path) -> None:
    path = Path(ask(make_statistics(), tmp_path)["path"])
    checked_document(path)
    stored = (path / "run.json").read_text()
    for change in ("privacy", "scenario"):
        document = json.loads(stored)
        section = document["privacy"] if change == "privacy" else document["scenario"]["privacy"]
        section["epsilon"] /= 10
        (path / "run.json").write_text(json.dumps(document))
        with pytest.raises(InputError, match="epsilon: says"):
            checked_document(path)
