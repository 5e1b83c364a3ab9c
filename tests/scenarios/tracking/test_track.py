"""Trackers are observers: they get what is public, and more only on request. Against the real packages."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from fedprivacy.errors import InputError
from fedprivacy.scenario import Scenario
from fedprivacy.scenario.loading import load
from scenarios.authoring.catalogue import find
from scenarios.experiments.statistics_comparison import compare as compare_statistics
from scenarios.experiments.statistics_run import ask
from scenarios.runner import run
from scenarios.tracking.track import OPERATOR, Tracking, check_tracking, public_settings, tracking
from scenarios.tracking.tracker import TRACKERS, Tracker, tracker_class

SECRET_SEED = 77_123_451


class Memory(Tracker):
    """A tracker that remembers."""

    def __init__(self, label: str, out: Path) -> None:
        self.label = label
        self.keys: dict[str, str] = {}
        self.values: dict[int, dict[str, float]] = {}
        self.notes: dict[str, str] = {}
        self.finished: bool | None = None

    def settings(self, settings: Mapping[str, str]) -> None:
        self.keys.update(settings)

    def log(self, values: Mapping[str, float], step: int) -> None:
        self.values.setdefault(step, {}).update(values)

    def note(self, key: str, text: str) -> None:
        self.notes[key] = text

    def close(self, finished: bool) -> None:
        self.finished = finished


@pytest.fixture
def scenario(make_scenario) -> Scenario:
    return make_scenario(f"seed={SECRET_SEED}")


def followed(scenario: Scenario, out: Path, *, operator: bool = False) -> tuple[Memory, dict]:
    tracker = Memory(scenario.label, out)
    tracker.settings(public_settings(scenario))
    tracked = Tracking(tracker, operator)
    document = run(scenario, out, command="fedprivacy run", on_round=tracked.beside(lambda _: None))
    tracked.result(document)
    return tracker, document


def test_each_round_is_logged_by_its_public_values_alone(scenario, tmp_path) -> None:
    tracker, document = followed(scenario, tmp_path)
    rounds = document["rounds"]
    assert [tracker.values[step]["accuracy"] for step in range(1, len(rounds) + 1)] == [
        event["accuracy"] for event in rounds
    ]
    keys = {key for values in tracker.values.values() for key in values}
    so_far = {key for key in keys if key.startswith("epsilon_so_far/")}
    assert so_far == {
        f"epsilon_so_far/{name}/delta-0.001-client-replace-one" for name in ("outsider", "participant")
    }
    assert {key for key in keys - so_far if not key.startswith("epsilon/")} == {
        *("accuracy", "balanced_accuracy", "loss")
    }
    spent = [
        tracker.values[step][sorted(so_far)[0]]
        for step in range(1, len(rounds) + 1)
        if sorted(so_far)[0] in tracker.values[step]
    ]
    assert spent == sorted(spent)
    assert 0 < spent[0] <= spent[-1] <= document["privacy"]["guarantees"][-1]["epsilon"]
    assert str(SECRET_SEED) not in json.dumps([tracker.keys, tracker.notes])
    assert not {"seed", "compare.seeds", "description"} & set(tracker.keys)


def test_each_guarantee_is_logged_in_words_and_its_epsilon_under_all_its_terms(scenario, tmp_path) -> None:
    tracker, document = followed(scenario, tmp_path)
    stated = document["privacy"]["guarantees"]
    assert tracker.notes == {f"guarantee/{each['observer']}": each["words"] for each in stated}
    named = {
        f"epsilon/{each['observer']}/{each['unit']}-{each['adjacency']}-delta-{each['delta']:g}": each[
            "epsilon"
        ]
        for each in stated
        if each["epsilon"] is not None
    }
    logged = {key: value for values in tracker.values.values() for key, value in values.items()}
    assert named
    assert {key: value for key, value in logged.items() if key.startswith("epsilon/")} == named


def test_operator_only_values_are_logged_on_request_below_their_own_name(scenario, tmp_path) -> None:
    tracker, document = followed(scenario, tmp_path, operator=True)
    assert tracker.values[1][OPERATOR + "cohort"] == document["rounds"][0]["cohort"]
    assert tracker.notes[OPERATOR + "seed"] == str(SECRET_SEED)


def test_a_run_that_breaks_off_closes_the_tracker(scenario, tmp_path, monkeypatch) -> None:
    opened: list[Memory] = []

    def open_memory(*arguments: object) -> Memory:
        opened.append(Memory(*arguments))  # type: ignore[arg-type]
        return opened[-1]

    monkeypatch.setattr("scenarios.tracking.track.tracker_class", lambda _: open_memory)
    with pytest.raises(KeyboardInterrupt), tracking("tensorboard", scenario, tmp_path):
        raise KeyboardInterrupt
    with tracking("tensorboard", scenario, tmp_path):
        pass
    assert [tracker.finished for tracker in opened] == [False, True]


def test_wrong_options_name_the_remedy() -> None:
    with pytest.raises(InputError, match="--track nothing: no such tracker"):
        check_tracking("nothing", False, False)
    with pytest.raises(InputError, match="without a tracker nothing is sent"):
        check_tracking(None, True, False)
    with pytest.raises(InputError, match="--track with --resume"):
        check_tracking("tensorboard", False, True)
    check_tracking(None, False, True)


def test_a_tracker_that_is_not_installed_is_named_with_its_extra(monkeypatch) -> None:
    monkeypatch.setitem(TRACKERS, "wandb", "no_such_module:Wandb")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="wandb is not installed"):
        tracker_class("wandb")


def test_where_the_number_of_clients_is_private_no_setting_reveals_it(tmp_path) -> None:
    options = [
        "privacy.trust=central",
        "privacy.adjacency=add-remove",
        "data.clients=4321",
        'compare.trusts=["central"]',
        "compare.clients=[10]",
    ]
    scenario = load(find("star-wars-survey"), options)
    document = ask(scenario, tmp_path)
    tracker = Memory(scenario.label, tmp_path)
    Tracking(tracker).result(document)
    assert tracker.keys["privacy.adjacency"] == "add-remove"
    assert "data.clients" not in tracker.keys
    assert "4321" not in json.dumps(tracker.keys)


def test_a_comparison_of_statistics_reveals_no_private_size(tmp_path) -> None:
    options = [
        "privacy.trust=central", "privacy.adjacency=add-remove", "data.clients=4321", "compare.repeats=2",
        'compare.trusts=["central"]', "compare.clients=[987]", "compare.epsilons=[1.0]",
    ]  # fmt: skip
    document = compare_statistics(load(find("star-wars-survey"), options), tmp_path, workers=1)
    tracker = Memory("label", tmp_path)
    Tracking(tracker).result(document)
    assert tracker.keys["privacy.adjacency"] == "add-remove"
    text = json.dumps([tracker.keys, tracker.notes, list(tracker.values.values())])
    assert "4321" not in text
    assert "987" not in text


def test_where_held_out_records_belong_to_clients_accuracy_is_for_the_operator(scenario, tmp_path) -> None:
    for operator in (False, True):
        tracker = Memory(scenario.label, tmp_path)
        tracked = Tracking(tracker, operator, tested=True)
        run(scenario, tmp_path, on_round=tracked.beside(lambda _: None))
        keys = {key for values in tracker.values.values() for key in values}
        assert not {"accuracy", "loss"} & keys
        assert ({OPERATOR + "accuracy", OPERATOR + "loss"} <= keys) == operator


def test_an_error_of_a_tracker_ends_the_tracking_and_not_the_run(
    scenario, tmp_path, monkeypatch, capsys
) -> None:
    class Failing(Memory):
        def log(self, values: Mapping[str, float], step: int) -> None:
            raise ConnectionError("the server is gone")

    monkeypatch.setattr("scenarios.tracking.track.tracker_class", lambda _: Failing)
    with tracking("mlflow", scenario, tmp_path) as tracked:
        document = run(scenario, tmp_path, on_round=tracked.beside(lambda _: None))
        tracked.result(document)
    assert document["status"] == "finished"
    told = capsys.readouterr().err
    assert told.count("--track mlflow: stopped, and the run continues: ConnectionError") == 1


# ------------------------------------------------------------------ the real ones


def send(name: str, scenario: Scenario, out: Path) -> dict:
    with tracking(name, scenario, out) as tracked:
        document = run(
            scenario, out, command=f"--seed {SECRET_SEED}", on_round=tracked.beside(lambda _: None)
        )
        tracked.result(document)
    return document


def files_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_tensorboard_reads_what_was_logged(scenario, tmp_path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    document = send("tensorboard", scenario, tmp_path)
    [folder] = (tmp_path / "tensorboard").iterdir()
    events = EventAccumulator(str(folder)).Reload()
    logged = [event.value for event in events.Scalars("accuracy")]
    assert logged == pytest.approx([event["accuracy"] for event in document["rounds"]])
    assert "cohort" not in events.Tags()["scalars"]
    assert str(SECRET_SEED).encode() not in files_of(folder)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_mlflow_reads_what_was_logged(scenario, tmp_path, monkeypatch) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    try:
        document = send("mlflow", scenario, tmp_path / "runs")
        client = mlflow.MlflowClient()
        experiment = client.get_experiment_by_name("fedprivacy")
        [stored] = client.search_runs([experiment.experiment_id])
        history = client.get_metric_history(stored.info.run_id, "accuracy")
    finally:
        mlflow.set_tracking_uri(before)
    assert [metric.value for metric in history] == [event["accuracy"] for event in document["rounds"]]
    assert stored.info.status == "FINISHED"
    assert stored.info.run_name == scenario.label
    assert str(SECRET_SEED).encode() not in files_of(tmp_path / "mlruns")


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_wandb_writes_offline_and_neither_seed_nor_command(scenario, tmp_path, monkeypatch) -> None:
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    for name in ("WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    document = send("wandb", scenario, tmp_path)
    texts = [each["words"][:60].encode() for each in document["privacy"]["guarantees"]]
    deadline = time.monotonic() + 60
    content = b""
    while not all(
        text in content for text in texts
    ):  # a process of wandb's own writes the file, soon after the end
        assert time.monotonic() < deadline
        time.sleep(0.1)
        content = files_of(tmp_path / "wandb")
    assert str(SECRET_SEED).encode() not in content
    assert b"cohort" not in content.replace(b"the cohort of each round", b"")
