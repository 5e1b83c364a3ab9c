"""`fedprivacy risk` and the report say whose records a stored replay found to be exposed."""

from __future__ import annotations

import copy
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from warm import ENVIRONMENT, warm

from fedprivacy import report
from fedprivacy.errors import InputError
from fedprivacy.report.attacks import exposed
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.loading import loads
from scenarios.attacks.replay import replay

TEXT = """name = "small"
seed = 1
[data]
name = "purchase-like"
records = 400
test_records = 40
features = 30
classes = 2
flip = 0.4
partition = "iid"
clients = 2
public_fraction = 0.5
[model]
name = "logistic"
[training]
learning_rate = 0.3
batch_size = 20
[server]
rounds = 8
[sampling]
name = "all"
[privacy]
trust = "none"
[federation]
chunk_size = 1
[game]
members = 60
nonmembers = 60
[attacks.by-threshold]
kind = "released"
methods = ["loss"]
references = 16
[attacks.by-reference]
kind = "released"
methods = ["loss", "lira-global"]
references = 16
[attacks.offline]
kind = "released"
methods = ["lira-offline"]
references = 16
"""


def fedprivacy(*args: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*warm(), *args], capture_output=True, text=True, env=ENVIRONMENT, timeout=300, check=False
    )
    assert "Traceback" not in done.stderr + done.stdout
    return done


@pytest.fixture(scope="module")
def played(tmp_path_factory) -> dict[str, Any]:
    asked = loads(TEXT)
    assert isinstance(asked, AttackScenario)
    return replay(asked, tmp_path_factory.mktemp("out"), workers=1)


@pytest.mark.exhaustive
def test_it_names_the_most_exposed_records_with_what_they_rest_on(played) -> None:
    done = fedprivacy("risk", played["path"], "--most", "3", "--json", "--operator")
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert (told["schema"], told["kind"], told["attack"], told["method"]) == (
        1,
        "risk",
        "by-reference",
        "lira-global",
    )
    assert told["most_exposed"] == played["exposures"][0]["most_exposed"][:3]
    assert {"most_exposed", "classes", "exposed"} <= set(told["operator_only"])
    assert {"auc", "carried", "spread", "notes"} <= set(told["operator_only"])
    assert sum(told["spread"]["certain"]) == told["exposed"]
    assert sum(told["spread"]["certain"] + told["spread"]["others"]) == told["records"]
    assert told["auc"]["low"] < told["auc"]["value"] < told["auc"]["high"]
    assert any("16 reference models" in note for note in told["notes"])
    assert any("of the true positives" in note for note in told["notes"])
    shown = fedprivacy("risk", played["path"], "--most", "3")
    for one in told["most_exposed"]:
        assert f"{one['hits']} of {one['models']}" in shown.stdout
        assert str(one["record"]) in shown.stdout
    assert "For the operator only" in shown.stdout
    assert "class 0 0." in shown.stdout
    other = json.loads(
        fedprivacy("risk", played["path"], "--attack", "offline", "--json", "--operator").stdout
    )
    assert (other["method"], len(other["most_exposed"])) == ("lira-offline", 20)


def test_more_than_the_run_keeps_is_said_to_be_missing(played) -> None:
    done = fedprivacy("risk", played["path"], "--most", "1000")
    assert "it has the 200 most exposed" in done.stdout


def test_the_report_tells_it_to_the_operator_alone_and_the_table_to_all(played) -> None:
    folder = Path(played["path"])
    claims, operator = ((folder / name).read_text() for name in ("report.html", "operator.html"))
    assert "most exposed record" not in claims
    assert "20 most exposed records" in operator
    assert "Each class, by the attack offline" in operator
    for name in ("exposed-1-records", "exposed-2-records", "exposed-1-classes", "exposed-2-classes"):
        assert f'<svg class="{name}-wide"' in operator
        assert name not in claims
    assert "of the true positives" in operator
    assert "of the true positives" not in claims
    assert "The released model" in claims
    assert "Of the model in training" in claims
    assert "LiRA with one variance for all records" in claims


def test_a_damaged_exposure_is_refused_in_words(played, tmp_path) -> None:
    wrong = copy.deepcopy(played)
    wrong["exposures"][0]["most_exposed"][0]["advantage"]["value"] = 7.0
    with pytest.raises(InputError, match=r"damaged: exposures\[0\].most_exposed\[0\].advantage.value"):
        exposed.read(wrong)
    (tmp_path / "run.json").write_text(json.dumps(wrong))
    done = fedprivacy("risk", str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert "damaged: exposures[0]" in done.stderr
    with pytest.raises(InputError, match="damaged"):
        report.render(wrong, operator=True)


@pytest.mark.exhaustive
def test_a_run_without_such_an_attack_is_told_what_to_play(played, tmp_path) -> None:
    bare = {key: value for key, value in played.items() if key != "exposures"}
    (tmp_path / "run.json").write_text(json.dumps(bare))
    done = fedprivacy("risk", str(tmp_path))
    assert done.returncode == 2
    assert "fedprivacy replay" in done.stderr
    assert "--attack exposure" in done.stderr
    (tmp_path / "run.json").write_text(json.dumps({"schema": 1, "kind": "run"}))
    assert "a run, and who is exposed is found by attacks" in fedprivacy("risk", str(tmp_path)).stderr
    for args, said in (
        (("risk", str(tmp_path / "nowhere")), "Name a run directory"),
        (("risk", played["path"], "--attack", "by-threshold"), "These do: by-reference, offline"),
        (("risk", played["path"], "--most", "0"), "--most"),
    ):
        done = fedprivacy(*args)
        assert done.returncode == 2
        assert said in done.stderr
