"""What an attacker sees in trials is stored, and scored again without training, requests or spending."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fedprivacy.attacks.document_claims import SCORED_AGAIN, TRANSCRIPTS
from fedprivacy.attacks.stored_trials import TrialRecording
from fedprivacy.attacks.trials import trials_of
from fedprivacy.errors import InputError
from fedprivacy.scenario.loading import loads
from fedprivacy.verification.verify import checked_document
from scenarios.attacks import target_run
from scenarios.attacks.game_setup import GameSetup
from scenarios.attacks.replay import replay
from scenarios.attacks.target_run import TargetRun
from scenarios.stored.removal import check_removable

RUN = """name = "seen"
seed = 1
[data]
name = "digits"
partition = "iid"
clients = 40
public_fraction = 0.5
[model]
name = "logistic"
[training]
learning_rate = 0.1
batch_size = "all"
[server]
rounds = 2
[sampling]
name = "all"
[privacy]
trust = "local"
mechanism = "gaussian"
noise_multiplier = 0.5
delta = 1e-5
clipping_norm = 0.5
[federation]
chunk_size = 1
[game]
warm_up = 1
"""
PROPERTY = '[attacks.threes]\nkind = "property"\nvalue = "3"\ntrials = 20\nshadows = 20\n'
INFORMED = (
    '[attacks.one]\nkind = "reconstruction"\nmethod = "informed"\ncandidates = 5\nbatch = 1\ntrials = 20\n'
)
FLIP = '[attacks.flip]\nkind = "poisoning"\ngoal = "label-flip"\nsource = 3\ntarget = 5\n'


def run(text: str, out: Path, **options: Any) -> dict[str, Any]:
    return replay(loads(text), out, workers=1, report=False, **options)


def without_seconds(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [{**trial, "seconds": None} for trial in document["trials"]]


def no_training(*args: Any, **options: Any) -> Any:
    raise AssertionError("the run is trained")


@pytest.mark.parametrize("attack", [PROPERTY, INFORMED, FLIP])
def test_stored_trials_are_scored_again_without_the_run(attack: str, tmp_path: Path, monkeypatch) -> None:
    document = run(RUN + attack, tmp_path / "first")
    folder = Path(document["path"])
    spent = (folder / "run-1" / "spent.json").read_bytes()
    monkeypatch.setattr(GameSetup, "resume", no_training)
    again = run(RUN + attack, tmp_path / "again", stored=folder)
    assert without_seconds(again) == without_seconds(document)
    assert TRANSCRIPTS in again["notes"]
    assert (folder / "run-1" / "spent.json").read_bytes() == spent


def test_other_scoring_takes_the_same_trials_and_another_experiment_new_ones(
    tmp_path: Path, monkeypatch
) -> None:
    document = run(RUN + PROPERTY, tmp_path)
    folder = Path(document["path"])
    [view] = (folder / "run-1" / "seen").iterdir()
    with monkeypatch.context() as patched:
        patched.setattr(GameSetup, "resume", no_training)
        more = run(RUN + PROPERTY.replace("shadows = 20", "shadows = 40"), tmp_path, stored=folder)
    assert more["trials"][0]["runs"][0]["trials"] == 20
    with pytest.raises(InputError, match="2 of which are spent"):
        run(RUN + PROPERTY.replace('"3"', '"4"'), tmp_path, stored=folder)  # one answer was left
    # A file that was changed is refused, and not scored.
    [block] = view.glob("*/block-000001.safetensors")
    block.write_bytes(block.read_bytes()[:-1] + b"\x01")
    with pytest.raises(InputError, match="its content was changed"):
        run(RUN + PROPERTY, tmp_path, stored=folder)


def test_attacks_that_differ_in_scoring_alone_each_see_trials_with_noise_of_their_own(tmp_path: Path) -> None:
    """Else the results would depend on which of them has run before."""
    other = PROPERTY.replace("threes", "others").replace("shadows = 20", "shadows = 40")
    text = RUN.replace("rounds = 2", "rounds = 3") + PROPERTY + other
    folder = Path(run(text, tmp_path)["path"])
    [view] = (folder / "run-1" / "seen").iterdir()
    first, second = (json.loads(index.read_text()) for index in view.glob("*/transcript.json"))
    assert first["facts"]["blocks"] == second["facts"]["blocks"]
    assert first["rounds"]["1"] != second["rounds"]["1"]


def test_of_too_many_observations_digests_and_seed_are_stored(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(target_run, "MOST_BYTES", 1000)
    document = run(RUN + PROPERTY, tmp_path)
    [view] = (Path(document["path"]) / "run-1" / "seen").iterdir()
    [file] = [path for path in view.rglob("*") if path.is_file()]
    first = json.loads(file.read_text())
    assert first["facts"]["stored"] is False
    assert first["facts"]["seed"] == 1
    again = run(RUN + PROPERTY, tmp_path, stored=Path(document["path"]))
    assert without_seconds(again) == without_seconds(document)
    assert json.loads(file.read_text())["rounds"] == first["rounds"]  # the same observations


def test_a_scenario_may_want_no_transcripts_and_earlier_results_are_still_read(tmp_path: Path) -> None:
    text = RUN.replace("warm_up = 1", "warm_up = 1\ntranscripts = false") + PROPERTY
    document = run(text, tmp_path / "none")
    assert not (Path(document["path"]) / "run-1" / "seen").exists()
    assert TRANSCRIPTS not in document["notes"]
    folder = Path(run(RUN + PROPERTY, tmp_path / "stored")["path"])
    stored = json.loads((folder / "run.json").read_text())
    stored["notes"].remove(TRANSCRIPTS)  # as versions before wrote it
    (folder / "run.json").write_text(json.dumps(stored))
    assert TRANSCRIPTS not in checked_document(folder)["notes"]


def test_trials_of_other_settings_are_named_and_are_no_fresh_test(tmp_path: Path) -> None:
    """Settings may have been chosen after the outcome of these trials."""
    document = run(RUN + PROPERTY, tmp_path / "first")
    assert "scored_again" not in document["trials"][0]["runs"][0]
    assert SCORED_AGAIN not in document["notes"]
    assert document["verdict"]["checks"] == 1
    assert check_removable([Path(document["path"])]) == [Path(document["path"]).resolve()]
    more = PROPERTY.replace("shadows = 20", "shadows = 40")
    again = run(RUN + more, tmp_path / "again", stored=Path(document["path"]))
    observer = trials_of(loads(RUN + PROPERTY))["threes"].recording
    assert again["trials"][0]["runs"][0]["scored_again"] == observer
    assert SCORED_AGAIN in again["notes"]
    assert (again["verdict"]["checks"], again["verdict"]["scored_again"]) == (0, ["threes"])
    file = Path(again["path"]) / "run.json"
    assert checked_document(file.parent)["verdict"]["holds"] is None
    stored = json.loads(file.read_text())
    for value in (None, trials_of(loads(RUN + more))["threes"].recording):
        stored["trials"][0]["runs"][0]["scored_again"] = value
        file.write_text(json.dumps(stored))
        with pytest.raises(InputError, match="ttack again"):
            checked_document(file.parent)


@pytest.mark.parametrize("order", [(20, 30), (30, 20)])
def test_other_scoring_takes_the_trials_that_were_charged_first(
    order: tuple[int, int], tmp_path: Path
) -> None:
    def with_shadows(shadows: int) -> TargetRun:
        scenario = loads(RUN + PROPERTY.replace("shadows = 20", f"shadows = {shadows}"))
        return TargetRun(scenario, 0, tmp_path, GameSetup(scenario).fleet.plan)

    rows = []
    for shadows in order:
        [branch] = with_shadows(shadows).branches
        rows.append({"key": branch.key, "isolating": False, "rounds": 1})
        recording = TrialRecording(tmp_path / "seen" / branch.attack.view / branch.attack.recording)
        recording.complete({})
    (tmp_path / "spent.json").write_text(json.dumps(rows))
    for shadows, expected in ((40, order[0]), (20, 20), (30, 30)):
        target = with_shadows(shadows)
        [branch] = target.branches
        [other] = with_shadows(expected).branches
        assert target.transcript(branch).folder.name == other.attack.recording
    # One that was charged and not observed yet has trials of its own, whatever is stored beside it.
    rows.append({"key": with_shadows(50).branches[0].key, "isolating": False, "rounds": 1})
    (tmp_path / "spent.json").write_text(json.dumps(rows))
    assert with_shadows(50).transcript(with_shadows(50).branches[0]) is None


@pytest.mark.parametrize(("spare", "stores"), [(0, True), (-1, False)])
def test_the_largest_transcript_counts_observations_and_models(
    spare: int, stores: bool, tmp_path: Path, monkeypatch
) -> None:
    scenario = loads(RUN.replace("rounds = 2", "rounds = 4") + PROPERTY + "rounds = 3\n")
    setup = GameSetup(scenario)
    monkeypatch.setattr(target_run, "MOST_BYTES", (8 * 20 + 4 * 3) * setup.fleet.parameters + spare)
    (tmp_path / "spent.json").write_text("[]")
    target = TargetRun(scenario, 0, tmp_path, setup.fleet.plan)
    [branch] = target.branches
    assert target_run._of_trials(target, setup, branch, branch.attack).stores is stores
