"""Whole runs: the record, determinism, resuming, and what a broken run leaves."""

from __future__ import annotations

import html
import json
import shlex
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from flwr.app import Context, RecordDict

from clients.app import app as client_app
from clients.record_inputs import RecordInputs
from fedprivacy.errors import InputError, RunError
from fedprivacy.guarantees.charge import BLINDLY
from fedprivacy.guarantees.ledger import BROKEN_OFF, has_broken_off
from fedprivacy.guarantees.statement import guarantees
from fedprivacy.plan.privacy_plan import Plan
from fedprivacy.population.clients import population
from fedprivacy.records.run_directory import RunDirectory
from fedprivacy.scenario import Scenario
from fedprivacy.verification.verify import checked_document
from scenarios.engines.embedded import EmbeddedGrid
from scenarios.runner import resume, run
from server import app, strategy
from server.app import app as server_app

REQUIRED = {"schema", "kind", "name", "seed", "path", "versions", "scenario", "rounds", "final", "privacy"}
LOCAL = ("privacy.trust=local", "privacy.max_participations=3", "sampling={name='poisson', rate=0.6}")
SHARED = ("privacy.trust=distributed", "server.rounds=5", "federation.dropout=0.3")
ADAM = ("server={rounds=5, optimizer='adam', learning_rate=0.1}",)


def weights(path: str | Path) -> np.ndarray:
    return RunDirectory(Path(path)).load_checkpoint().tensors["weights"]


def test_a_missing_gpu_is_reported_before_the_noise_is_calibrated(
    make_scenario, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(Plan, "calibrate", lambda *_: pytest.fail("calibrated first"))
    with pytest.raises(InputError, match="torch finds no GPU here"):
        run(make_scenario("training.device=cuda", "privacy.epsilon=2.0"), tmp_path)


def test_the_record_of_a_run_is_complete(make_scenario, tmp_path: Path) -> None:
    document = run(make_scenario(), tmp_path, command="fedprivacy run small")
    path = Path(document["path"])
    assert document.keys() >= REQUIRED
    assert (document["kind"], document["status"], document["error"]) == ("run", "finished", None)
    assert [event["round"] for event in document["rounds"]] == [0, 1, 2]
    assert document["final"]["accuracy"] == document["rounds"][-1]["accuracy"]
    classes = document["final"]["per_class"]
    right = sum(one["accuracy"] * one["records"] for one in classes)
    assert (len(classes), sum(one["records"] for one in classes)) == (2, 50)  # all of the held-out records
    assert right / 50 == pytest.approx(document["final"]["accuracy"])
    assert document == json.loads((path / "run.json").read_text())
    lines = (path / "events.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == document["rounds"]
    assert {g["observer"] for g in document["privacy"]["guarantees"]} == {"server", "participant", "outsider"}
    assert (path / "report.html").stat().st_size > 1000
    assert not list(path.rglob("*.part"))


def test_classes_go_by_the_names_that_their_file_gives_them(make_scenario, tmp_path: Path) -> None:
    stream = np.random.default_rng(0)
    x = stream.normal(size=(40, 4)).astype(np.float32)
    y = (x[:, 0] > 0).astype(np.int64)
    names = np.array(["walking", "sitting"])
    np.savez(tmp_path / "d.npz", x_train=x[:30], y_train=y[:30], x_test=x[30:], y_test=y[30:], classes=names)
    data = f"data={{name='npz', path='{tmp_path / 'd.npz'}', partition='iid', clients=12}}"
    document = run(make_scenario(data), tmp_path)
    assert [one["label"] for one in document["final"]["per_class"]] == ["walking", "sitting"]
    assert "walking" in (Path(document["path"]) / "report.html").read_text()


def test_the_saved_scenario_is_complete_and_gives_the_same_run(make_scenario, tmp_path: Path) -> None:
    first = run(make_scenario(), tmp_path, report=False)
    saved = Path(first["path"]) / "scenario.toml"
    stored = tomllib.loads(saved.read_text())
    assert stored["training"]["epochs"] == 1
    federation = {"hosts": 1, "chunk_size": 5, "observe": "sum", "timeout": 3600.0, "dropout": 0.0}
    assert stored["federation"] == federation
    second = run(Scenario.read(saved), tmp_path, report=False)
    assert np.array_equal(weights(first["path"]), weights(second["path"]))


def test_a_stored_run_can_be_accounted_again(make_scenario, tmp_path: Path) -> None:
    stored = json.loads((Path(run(make_scenario(), tmp_path, report=False)["path"]) / "run.json").read_text())
    again = [guarantee.to_json() for guarantee in guarantees(stored["ledger"])]
    assert again == stored["privacy"]["guarantees"]


def test_operator_only_fields_are_named(make_scenario, tmp_path: Path) -> None:
    document = run(make_scenario(), tmp_path, report=False)
    assert {"rounds[].cohort", "rounds[].zeroed", "rounds[].failures"} <= set(document["operator_only"])


def test_evaluation_every_n_rounds_and_at_the_end(make_scenario, tmp_path: Path) -> None:
    document = run(make_scenario("server.rounds=5", "evaluation.every=2"), tmp_path, report=False)
    evaluated = [event["round"] for event in document["rounds"] if event["accuracy"] is not None]
    assert evaluated == [1, 3, 4]


def test_a_resumed_run_knows_the_classes_of_its_last_evaluation(make_scenario, tmp_path: Path) -> None:
    def stop(event: dict) -> None:
        if event["round"] == 2:  # evaluated was round 1
            raise Stop

    with pytest.raises(Stop):
        run(make_scenario("server.rounds=5", "evaluation.every=2"), tmp_path, on_round=stop)
    (path,) = tmp_path.iterdir()
    left = json.loads((path / "run.json").read_text())
    kept = RunDirectory(path).load_checkpoint().facts["per_class"]
    assert left["final"]["per_class"] == kept
    right = sum(one["accuracy"] * one["records"] for one in kept)
    assert right / 50 == pytest.approx(left["rounds"][1]["accuracy"])


class Stop(Exception):
    """A fault in the middle of a run."""


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize(
    "overrides",
    [("server.rounds=5",), (*ADAM, "server.denoise=student-t"), (*LOCAL, "server.rounds=5"), SHARED],
)
@pytest.mark.parametrize("fault", [KeyboardInterrupt, Stop])
def test_a_resumed_run_ends_with_the_same_bits(make_scenario, tmp_path: Path, overrides, fault) -> None:
    asked = make_scenario(*overrides)
    whole = run(asked, tmp_path, report=False)

    def stop(event: dict) -> None:
        if event["round"] == 2:
            raise fault

    with pytest.raises(fault):
        run(asked, tmp_path / "broken", on_round=stop)
    (path,) = (tmp_path / "broken").iterdir()
    left = json.loads((path / "run.json").read_text())
    assert left["status"] == ("interrupted" if fault is KeyboardInterrupt else "failed")
    assert len(left["rounds"]) == 3
    assert left["ledger"]["rounds"] == whole["ledger"]["rounds"] == 5  # the planned charge stays
    assert left["privacy"]["completed"]["rounds"] == 3
    page = html.unescape((path / "report.html").read_text())
    assert "Whole plan: the claim" in page
    assert BLINDLY[left["status"]] in page
    resumed = resume(path)
    assert resumed["status"] == "finished"
    assert np.array_equal(weights(path), weights(whole["path"]))
    # Whoever saw that it failed knows more than the models: no later round takes that back.
    assert [has_broken_off(one["ledger"]) for one in (left, resumed)] == [fault is Stop] * 2
    assert without_fault(resumed["ledger"]) == whole["ledger"]
    assert "completed" not in resumed["privacy"]
    for folder in (path, Path(whole["path"])):
        assert checked_document(folder)["status"] == "finished"
    strip = [[{k: v for k, v in e.items() if k != "seconds"} for e in d["rounds"]] for d in (resumed, whole)]
    assert strip[0] == strip[1]
    assert resumed["final"] == whole["final"]


def without_fault(ledger: dict[str, Any]) -> dict[str, Any]:
    """The ledger as it would be if the run had never failed."""
    claims = [
        {**claim, "assumptions": [one for one in claim["assumptions"] if one != BROKEN_OFF]}
        for claim in ledger["claims"]
    ]
    return {**ledger, "claims": claims}


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("overrides", [("server.rounds=4",), (*LOCAL, "server.rounds=4")])
def test_a_round_that_fails_after_its_release_is_charged_and_repeated_with_the_same_noise(
    make_scenario, tmp_path: Path, monkeypatch, overrides
) -> None:
    """Its release is counted while it is the last, and once it has been repeated, bit for bit, no second time."""
    asked = make_scenario(*overrides)
    whole = run(asked, tmp_path / "whole", report=False)
    released: list[bytes] = []
    add, measure = strategy.add_central_noise, app.evaluate

    def listen(*given: Any) -> Any:
        noisy = add(*given)
        released.append(noisy.tobytes())
        return noisy

    def stop(*given: Any) -> Any:
        if len(released) == 2:
            raise Stop
        return measure(*given)

    monkeypatch.setattr(strategy, "add_central_noise", listen)
    with monkeypatch.context() as patched:
        patched.setattr(app, "evaluate", stop)
        with pytest.raises(Stop):
            run(asked, tmp_path / "broken")
    (path,) = (tmp_path / "broken").iterdir()
    left = checked_document(path)
    assert (left["status"], len(left["rounds"]), left["ledger"]["rounds"]) == ("failed", 1, 4)
    assert left["privacy"]["completed"]["rounds"] == 2
    if "participations" in left["ledger"]:
        answers = left["ledger"]["completed"]["participations"]
        assert sum(int(count) * clients for count, clients in answers.items()) > left["rounds"][0]["cohort"]
    resumed = resume(path)
    assert len(released) == 5
    assert released[1] == released[2]
    assert len(set(released)) == 4
    assert resumed["ledger"]["rounds"] == 4
    assert without_fault(resumed["ledger"]) == whole["ledger"]
    assert has_broken_off(checked_document(path)["ledger"])


def test_a_run_that_failed_and_is_stopped_later_says_both(make_scenario, tmp_path: Path) -> None:
    def ended(fault: type[BaseException], number: int) -> Callable[[dict], None]:
        def end(event: dict) -> None:
            if event["round"] == number:
                raise fault

        return end

    with pytest.raises(Stop):
        run(make_scenario("server.rounds=5"), tmp_path, on_round=ended(Stop, 0))
    (path,) = tmp_path.iterdir()
    for fault, status, number in ((KeyboardInterrupt, "interrupted", 1), (Stop, "failed", 2)):
        with pytest.raises(fault):
            resume(path, on_round=ended(fault, number))
        document = checked_document(path)
        assert document["status"] == status
        for stated in (document["privacy"], document["privacy"]["completed"]):
            said = [one["assumptions"] for one in stated["guarantees"] if one["epsilon"] is not None]
            assert said
            assert all(one.count(BROKEN_OFF) == 1 for one in said)
            assert all((one[0] == BLINDLY[status]) is (stated is not document["privacy"]) for one in said)
    deleted = json.loads((path / "run.json").read_text())
    deleted["ledger"]["claims"][1]["assumptions"].remove(BROKEN_OFF)
    (path / "run.json").write_text(json.dumps(deleted))
    with pytest.raises(InputError, match="assumptions"):
        checked_document(path)


class Killed(BaseException):
    """Nothing in the code catches it: what is on disk is what a killed process leaves."""


def kill_at(number: int) -> Callable[[dict], None]:
    def kill(event: dict) -> None:
        if event["round"] == number:
            raise Killed

    return kill


def killed_after(asked: Scenario, out: Path, rounds: int) -> Path:
    with pytest.raises(Killed):
        run(asked, out, on_round=kill_at(rounds - 1))
    (path,) = out.iterdir()
    return path


@pytest.mark.exhaustive(beyond=2)
@pytest.mark.parametrize("overrides", [("server.rounds=5",), (*LOCAL, "server.rounds=5")])
@pytest.mark.parametrize("rounds", [1, 3])
def test_the_record_of_a_killed_run_claims_no_less_than_was_released(
    make_scenario, tmp_path: Path, overrides, rounds: int
) -> None:
    asked = make_scenario(*overrides)
    whole = run(asked, tmp_path / "whole", report=False)
    path = killed_after(asked, tmp_path / "killed", rounds)
    left = json.loads((path / "run.json").read_text())
    assert left["status"] == "running"
    for said, spent in zip(left["privacy"]["guarantees"], whole["privacy"]["guarantees"], strict=True):
        assert said["epsilon"] == spent["epsilon"] or said["epsilon"] >= spent["epsilon"] > 0
    resumed = resume(path)
    assert resumed["ledger"] == whole["ledger"]
    assert np.array_equal(weights(path), weights(whole["path"]))


@pytest.mark.parametrize("overrides", [("server.rounds=5",), (*LOCAL, "server.rounds=5")])
def test_a_resumed_run_that_ends_early_claims_no_less_than_before(
    make_scenario, tmp_path: Path, monkeypatch, overrides
) -> None:
    path = killed_after(make_scenario(*overrides), tmp_path, 3)
    (path / "checkpoint" / "round-000003.safetensors").unlink()
    before = json.loads((path / "run.json").read_text())["ledger"]

    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("server.app.deal_hosts", interrupted)
    with pytest.raises(KeyboardInterrupt):
        resume(path)
    left = json.loads((path / "run.json").read_text())
    assert (left["status"], left["ledger"]) == ("interrupted", before)


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("overrides", [("server.rounds=6",), (*LOCAL, "server.rounds=6")])
def test_a_run_that_is_stopped_twice_says_what_was_released_only_where_it_is_known(
    make_scenario, tmp_path: Path, overrides
) -> None:
    def stop_at(number: int) -> Callable[[dict], None]:
        def stop(event: dict) -> None:
            if event["round"] == number:
                raise KeyboardInterrupt

        return stop

    def stopped(work: Callable[[], object]) -> dict:
        with pytest.raises(KeyboardInterrupt):
            work()
        [path] = tmp_path.iterdir()
        document = json.loads((path / "run.json").read_text())
        checked_document(path)
        assert document["ledger"]["rounds"] == 6
        return document

    first = stopped(lambda: run(make_scenario(*overrides), tmp_path, on_round=stop_at(2)))
    [path] = tmp_path.iterdir()
    second = stopped(lambda: resume(path, on_round=stop_at(3)))
    assert [one["privacy"]["completed"]["rounds"] for one in (first, second)] == [3, 4]
    for number in (3, 4):  # the rounds are played again, and the run is stopped before it has caught up
        (path / "checkpoint" / f"round-{number:06d}.safetensors").unlink()
    third = stopped(lambda: resume(path, on_round=stop_at(1)))
    assert (len(third["rounds"]), "completed" in third["privacy"]) == (2, False)
    assert "completed" not in third["ledger"]
    assert resume(path)["ledger"]["rounds"] == 6


def test_a_resume_that_is_refused_leaves_the_record_as_it_is(make_scenario, tmp_path: Path) -> None:
    path = killed_after(make_scenario(*LOCAL), tmp_path, 2)
    before = (path / "run.json").read_bytes()
    directory = RunDirectory(path)
    checkpoint = directory.load_checkpoint()
    tensors = {name: array for name, array in checkpoint.tensors.items() if not name.startswith("node/")}
    directory.save_checkpoint(replace(checkpoint, tensors=tensors))
    with pytest.raises(InputError, match=r"the checkpoint does not hold the states of all nodes"):
        resume(path)
    assert (path / "run.json").read_bytes() == before
    (path / "events.jsonl").write_text("")
    directory.save_checkpoint(checkpoint)
    with pytest.raises(InputError, match="damaged"):
        resume(path)
    assert (path / "run.json").read_bytes() == before


def crash_before_last_checkpoint(path: Path, rounds: int) -> None:
    """Leaves a run as a crash between the event of its last round and its checkpoint leaves it."""
    (path / "checkpoint" / f"round-{rounds:06d}.safetensors").unlink()
    document = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps(document | {"status": "running"}))


def test_a_round_that_was_written_without_its_checkpoint_is_played_again(
    make_scenario, tmp_path: Path
) -> None:
    asked = make_scenario(*LOCAL, "server.rounds=4")
    whole = run(asked, tmp_path, report=False)
    path = Path(run(asked, tmp_path, report=False)["path"])
    crash_before_last_checkpoint(path, 4)
    resumed = resume(path)
    assert resumed["ledger"] == whole["ledger"]
    assert np.array_equal(weights(path), weights(whole["path"]))
    # What the clients themselves have counted is restored too, not only the server's ledger.
    mine, theirs = (RunDirectory(Path(p)).load_checkpoint().tensors for p in (path, whole["path"]))
    assert mine.keys() == theirs.keys()
    assert all(np.array_equal(mine[name], theirs[name]) for name in mine)
    assert any(name.startswith("node/1/budgets") for name in mine)


def test_a_run_whose_scenario_was_changed_cannot_be_resumed(make_scenario, tmp_path: Path) -> None:
    """Otherwise rounds that were played with little noise would be accounted with much."""
    path = Path(run(make_scenario(), tmp_path, report=False)["path"])
    crash_before_last_checkpoint(path, 3)
    text = (path / "scenario.toml").read_text()
    (path / "scenario.toml").write_text(text.replace("noise_multiplier = 2.0", "noise_multiplier = 20.0"))
    with pytest.raises(InputError, match="changed since the run began"):
        resume(path)


def test_a_run_that_flowers_own_engine_began_cannot_be_gone_on_with_here(
    make_scenario, tmp_path: Path
) -> None:
    """Its clients were handed their plan, and ours would say that they hold their own."""
    asked = make_scenario(*LOCAL)
    config = {"scenario": asked.to_toml(), "out": str(tmp_path), "allow-code": False}
    grid = EmbeddedGrid(client_app, [{}], run_config=config)
    context = Context(
        run_id=grid.run.run_id, node_id=0, node_config={}, state=RecordDict(), run_config=config
    )
    server_app(grid, context)
    (path,) = tmp_path.iterdir()
    document = json.loads((path / "run.json").read_text())
    for guarantee in document["privacy"]["guarantees"]:
        assert "by the plan that came with the run" in " ".join(guarantee["assumptions"])
    embedded = run(asked, tmp_path / "embedded", report=False)
    assert document["noise_key"] == embedded["noise_key"]
    assert [e["loss"] for e in document["rounds"]] == [e["loss"] for e in embedded["rounds"]]
    (path / "run.json").write_text(json.dumps(document | {"status": "running"}))
    for checkpoint in (path / "checkpoint").iterdir():
        checkpoint.unlink()
    with pytest.raises(InputError, match="made by `flwr run`"):
        resume(path)


def test_a_run_whose_data_or_versions_changed_cannot_be_resumed(
    make_scenario, tmp_path: Path, monkeypatch
) -> None:
    """A round that is played again has the same noise: on other data it would show the difference."""
    asked = make_scenario()
    path = killed_after(asked, tmp_path, 1)
    people = population(asked.data)
    changed = replace(people, dataset=replace(people.dataset, y=1 - people.dataset.y))
    monkeypatch.setattr("scenarios.runner.population", lambda options: changed)
    with pytest.raises(InputError, match="the data changed since the run began"):
        resume(path)
    monkeypatch.undo()
    document = json.loads((path / "run.json").read_text())
    document["versions"]["torch"] = "1.0"
    (path / "run.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"begun with torch 1\.0 \(here "):
        resume(path)


def test_two_runs_that_differ_release_other_noise(make_scenario, tmp_path: Path) -> None:
    """Both clip to nothing to speak of, so that what they release is their noise."""
    noise_alone = ("privacy.noise_multiplier=1e6", "server.rounds=1")
    for trust in ("central", "local"):
        asked = (f"privacy.trust={trust}", *noise_alone)
        first, same, other = (
            weights(
                run(make_scenario(*asked, f"training.learning_rate={rate}"), tmp_path, report=False)["path"]
            )
            for rate in (0.5, 0.5, 0.25)
        )
        assert np.array_equal(first, same)
        assert not np.allclose(first, other, rtol=0.01)


@pytest.mark.parametrize(
    ("key", "value"), [("noise_multiplier", 20.0), ("noise_multiplier", 0.2), ("clipping_norm", 0.5)]
)
def test_a_noise_in_the_record_that_is_not_that_of_its_scenario_is_not_believed(
    make_scenario, tmp_path: Path, key: str, value: float
) -> None:
    path = Path(run(make_scenario(), tmp_path, report=False)["path"])
    crash_before_last_checkpoint(path, 3)
    document = json.loads((path / "run.json").read_text())
    document["plan"]["mechanism"][key] = value
    changed = json.dumps(document)
    (path / "run.json").write_text(changed)
    with pytest.raises(InputError, match=rf"plan.mechanism.{key}: says {value}, its scenario asks for"):
        resume(path)
    assert (path / "run.json").read_text() == changed
    (path / "run.json").write_text(json.dumps({**document, "plan": "none"}))
    with pytest.raises(InputError, match=r"damaged|not a privacy plan"):
        resume(path)


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("overrides", [("server.rounds=5",), (*LOCAL, "server.rounds=5")])
@pytest.mark.parametrize("damaged", [1, 2])
def test_a_damaged_checkpoint_is_told_and_the_one_before_used_or_the_start(
    make_scenario, tmp_path: Path, capsys, overrides, damaged: int
) -> None:
    """Damaged ones, of more rounds, do not push out those that are written now."""
    asked = make_scenario(*overrides)
    whole = run(asked, tmp_path / "whole", report=False)
    path = killed_after(asked, tmp_path / "killed", 4)
    files = sorted((path / "checkpoint").iterdir())
    for file in files[-damaged:]:
        file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(Killed):
        resume(path, on_round=kill_at(3 if damaged == 1 else 0))
    said = capsys.readouterr().err
    assert all(str(file) in said for file in files[-damaged:])
    assert ("the checkpoint of round 3" if damaged == 1 else "the first round") in said
    assert RunDirectory(path).load_checkpoint().rounds == (4 if damaged == 1 else 1)
    resumed = resume(path)
    assert "Damaged" not in capsys.readouterr().err
    assert resumed["ledger"] == whole["ledger"]
    mine, theirs = (RunDirectory(Path(p)).load_checkpoint().tensors for p in (path, whole["path"]))
    assert mine.keys() == theirs.keys()
    assert all(np.array_equal(mine[name], theirs[name]) for name in mine)
    assert [e["loss"] for e in resumed["rounds"]] == [e["loss"] for e in whole["rounds"]]


def test_a_checkpoint_of_another_run_is_refused(make_scenario, tmp_path: Path) -> None:
    path = killed_after(make_scenario(), tmp_path / "one", 2)
    other = killed_after(make_scenario("seed=2", "training.learning_rate=0.25"), tmp_path / "two", 2)
    before = (path / "run.json").read_bytes()
    for file in (other / "checkpoint").iterdir():
        (path / "checkpoint" / file.name).write_bytes(file.read_bytes())
    with pytest.raises(InputError, match=r"checkpoint: of another run"):
        resume(path)
    assert (path / "run.json").read_bytes() == before


def test_what_a_kill_leaves_beside_is_swept_away_and_a_report_made_good(
    make_scenario, tmp_path: Path
) -> None:
    path = killed_after(make_scenario(), tmp_path, 2)
    left = [path / "run.json.7.part", path / "checkpoint" / "round-000003.safetensors.7.part",
            path / ".report.7.html", path / "lock"]  # fmt: skip
    for file in left:
        file.write_text("half of i")
    document = resume(path)
    assert not [file for file in left if file.exists()]
    (path / "report.html").unlink()
    assert resume(path) == document
    assert (path / "report.html").stat().st_size > 1000


def test_where_nothing_was_begun_one_is_told_to_start_anew(make_scenario, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no run was started in it"):
        resume(tmp_path)
    path = RunDirectory.create(tmp_path, "it's", make_scenario().to_toml()).path
    with pytest.raises(InputError) as caught:
        resume(path)
    assert str(caught.value).endswith(f"Start it anew: fedprivacy run {shlex.quote(f'{path}/scenario.toml')}")


def test_a_run_that_is_under_way_is_not_gone_on_with_by_another(make_scenario, tmp_path: Path) -> None:
    refused = []

    def second(event: dict) -> None:
        [path] = tmp_path.iterdir()
        with pytest.raises(InputError, match="is at work on it"):
            resume(path)
        refused.append(event["round"])

    assert run(make_scenario(), tmp_path, on_round=second)["status"] == "finished"
    assert refused == [0, 1, 2]


@pytest.mark.parametrize("events", ["", "not JSON\n", '{"round": 0}\n{"round": 0}\n'])
def test_a_run_with_damaged_events_cannot_be_resumed(make_scenario, tmp_path: Path, events: str) -> None:
    path = Path(run(make_scenario(), tmp_path, report=False)["path"])
    crash_before_last_checkpoint(path, 3)
    (path / "events.jsonl").write_text(events)
    with pytest.raises(InputError, match=r"events.jsonl: damaged"):
        resume(path)


@pytest.mark.parametrize(
    "document", [{"schema": 1}, {"schema": 1, "kind": "compare"}, {"schema": 1, "kind": "run"}]
)
def test_only_a_run_with_a_whole_record_can_be_resumed(make_scenario, tmp_path: Path, document: dict) -> None:
    path = Path(run(make_scenario(), tmp_path, report=False)["path"])
    (path / "run.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"not a run|damaged"):
        resume(path)


def test_a_model_that_diverges_is_recorded(make_scenario, tmp_path: Path) -> None:
    document = run(make_scenario("server.learning_rate=1e6", "training.learning_rate=1e6"), tmp_path)
    assert document["status"] == "finished"


def test_resuming_a_finished_run_changes_nothing(make_scenario, tmp_path: Path) -> None:
    first = run(make_scenario(), tmp_path, report=False)
    assert resume(Path(first["path"])) == first
    assert json.loads((Path(first["path"]) / "run.json").read_text()) == first


def test_a_resumed_run_keeps_its_start_and_adds_up_its_seconds(make_scenario, tmp_path: Path) -> None:
    first = run(make_scenario(), tmp_path, command="fedprivacy run small", report=False)
    path = Path(first["path"])
    crash_before_last_checkpoint(path, 3)
    again = resume(path)
    assert (again["command"], again["started"]) == (first["command"], first["started"])
    assert again["performance"]["seconds"] > first["performance"]["seconds"]


@pytest.mark.parametrize("trust", ["central", "local"])
def test_all_clients_failing_is_a_failed_run_with_the_first_error(
    make_scenario, tmp_path: Path, monkeypatch, trust: str
) -> None:
    def broken(self, clients):
        raise MemoryError("no room")

    monkeypatch.setattr(RecordInputs, "ready", broken)
    with pytest.raises(
        RunError, match=r"round 0: all 12 clients failed. First: client 0: MemoryError: no room"
    ):
        run(make_scenario(f"privacy.trust={trust}"), tmp_path)
    (path,) = tmp_path.iterdir()
    left = json.loads((path / "run.json").read_text())
    assert left["status"] == "failed"
    assert "MemoryError" in left["error"]
    claims = [g for g in left["privacy"]["guarantees"] if g["epsilon"] is not None]
    assert claims
    assert all(any("broke off" in text for text in claim["assumptions"]) for claim in claims)


def test_faults_under_local_trust_are_counted_for_the_operator(
    make_scenario, tmp_path: Path, monkeypatch
) -> None:
    """No message says so, but who simulates can look at the nodes."""
    asked = make_scenario("privacy.trust=local", "data.partition=one-per-example", "data.records=12")
    people = population(asked.data)
    x, y = people.dataset.x.copy(), people.dataset.y.copy()
    x[3], y[5] = np.nan, 99
    broken = replace(people, dataset=replace(people.dataset, x=x, y=y))
    monkeypatch.setattr("scenarios.runner.population", lambda options: broken)
    for event in run(asked, tmp_path, report=False)["rounds"]:
        assert (event["zeroed"], event["failures"]) == (1, 1)
        assert (event["faults"], event["contributed"]) == ({"raised": 1, "not_finite": 1}, 10)
        assert "client 5" in event["first_failure"]


def test_what_cannot_be_accounted_is_refused_before_anything_is_written(
    make_scenario, tmp_path: Path
) -> None:
    with pytest.raises(InputError):
        run(make_scenario("sampling={name='fixed', cohort=5}", "privacy.adjacency=add-remove"), tmp_path)
    assert not list(tmp_path.iterdir())
