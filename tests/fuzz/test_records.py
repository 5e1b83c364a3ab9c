"""Stored runs that are broken in over a thousand ways end in an InputError, or are what they were."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from breaking import (
    DEEP,
    ODD,
    Tally,
    an_eighth_or_all,
    bounded,
    broken_bytes,
    broken_json,
    broken_tree,
    fuzz,
    places,
)
from hypothesis import given
from hypothesis import strategies as some

from fedprivacy.documents.kinds import read as read_report
from fedprivacy.documents.schemas import schema_of
from fedprivacy.errors import InputError
from fedprivacy.guarantees.ledger import Ledger
from fedprivacy.io import bounded_json
from fedprivacy.records.run_directory import Checkpoint, RunDirectory
from fedprivacy.records.run_record import RunRecord
from fedprivacy.report import render
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.verification.resume import plan_to_resume
from fedprivacy.verification.verify import checked_document
from scenarios.attacks.participation_budget import _read as read_account
from scenarios.attacks.replay import replay
from scenarios.cli.scenario_argument import comparison_to_resume
from scenarios.engines.node_states import decode_states
from scenarios.experiments.comparison import compare
from scenarios.experiments.statistics_run import ask
from scenarios.jobs.cell_store import CellStore, digest_of
from scenarios.runner import run

ATTACKED = """
name = "who-was-in"
seed = 3
[data]
name = "purchase-like"
partition = "iid"
clients = 3
records = 200
test_records = 100
public_fraction = 0.4
features = 50
classes = 4
[model]
name = "logistic"
[training]
batch_size = 16
learning_rate = 0.1
[server]
rounds = 3
[sampling]
name = "all"
[federation]
chunk_size = 1
[game]
warm_up = 1
members = 20
nonmembers = 30
[attacks.listening]
kind = "passive"
rounds = 2
[privacy]
trust = "local"
epsilon = 4.0
delta = 1e-5
clipping_norm = 1.0
"""
LOCAL = ("server.rounds=2", "privacy.trust=local", "server.optimizer=momentum")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory, make_scenario, make_statistics) -> dict[str, Path]:
    """A stored run of each kind."""
    out = tmp_path_factory.mktemp("runs")
    only = (
        "server.rounds=2",
        "privacy.epsilon=2.0",
        'compare={trusts=["central"], epsilons=[2.0], seeds=[1, 2]}',
    )
    played = {
        "run": run(make_scenario(*LOCAL), out),
        "compare": compare(make_scenario(*only), out, workers=1),
        "statistics": ask(make_statistics("privacy.trust=local"), out),
        "replay": replay(AttackScenario.from_text(ATTACKED), out, workers=1),
    }
    return {kind: Path(document["path"]) for kind, document in played.items()}


@pytest.mark.parametrize("kind", ["run", "statistics", "compare", "replay"])
def test_documents_fit_their_schemas(folders: dict[str, Path], kind: str) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    document = json.loads((folders[kind] / "run.json").read_text())
    schema = schema_of(kind)
    jsonschema.validate(document, schema, cls=jsonschema.Draft202012Validator)
    assert set(document) <= set(schema["properties"])  # no key of a document is unknown to its schema


@an_eighth_or_all
@pytest.mark.parametrize(
    ("kind", "examples"), [("run", 150), ("statistics", 100), ("compare", 80), ("replay", 70)]
)
def test_broken_documents_end_in_our_errors(
    part: int, folders: dict[str, Path], kind: str, examples: int
) -> None:
    folder, tally = folders[kind], Tally()
    file = folder / "run.json"
    whole = file.read_text()
    document = json.loads(whole)
    at = places(document)
    # What the accountant reads is a small part of a document: half of the examples break that.
    inner = [
        path
        for path in at
        if path[0] in ("ledger", "ledgers", "privacy", "cells", "attacks", "plan", "kind")
        and "curve" not in path
    ]

    def read() -> None:
        found = checked_document(folder)
        read_report(found, str(file))

    @fuzz(examples // part)
    @given(some.one_of(broken_json(document, inner), broken_json(document, at)))
    def each(data: bytes) -> None:
        file.write_bytes(data)
        tally.read(read)

    try:
        with bounded():
            each()
    finally:
        file.write_text(whole)
    assert tally.examples >= examples // part
    assert tally.refused > 0.2 * tally.examples


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize(("kind", "examples"), [("run", 6), ("statistics", 15)])  # drawing takes a while
def test_documents_that_are_read_are_rendered(folders: dict[str, Path], kind: str, examples: int) -> None:
    document, tally = json.loads((folders[kind] / "run.json").read_text()), Tally()

    @fuzz(examples)
    @given(broken_tree(document, places(document)))
    def each(broken: Any) -> None:
        tally.read(lambda: render(broken))

    with bounded():
        each()


@an_eighth_or_all
def test_broken_runs_are_not_gone_on_with(
    part: int, folders: dict[str, Path], tmp_path: Path, make_scenario, trial
) -> None:
    folder, tally = tmp_path / "run", Tally()
    shutil.copytree(folders["run"], folder)
    asked = make_scenario(*LOCAL)
    directory, tried = RunDirectory(folder), trial(asked)
    federation, noise_key = tried.federation, tried.fleet.streams.run
    whole = {name: (folder / name).read_bytes() for name in ("run.json", "events.jsonl")}
    document, stored = json.loads(whole["run.json"]), directory.load_checkpoint()
    assert stored is not None
    at = [path for path in places(document) if path[0] not in ("scenario", "rounds", "final")]
    facts, name = (
        {"least_shares": None, "rounds": 1, "per_class": None} | stored.facts,
        some.sampled_from([*stored.tensors]),
    )
    arrays = some.sampled_from(
        [
            np.zeros(0),
            np.zeros(5, np.float32),
            np.full(5, np.nan),
            np.zeros((2, 2)),
            np.arange(12),
            np.zeros(12, np.int8),
            np.frombuffer(b'{"1": [["a", "config", {"x": 1}]]}', np.uint8),
            np.frombuffer(b"[]", np.uint8),
        ]
    )

    def restore() -> None:
        earlier, plan = plan_to_resume(directory)
        checkpoint = directory.load_checkpoint()
        record = RunRecord(asked, plan, directory, earlier=earlier, noise_key=noise_key)
        if checkpoint is not None:
            decode_states(checkpoint.tensors)
            record.restore(checkpoint)
            federation.restore(checkpoint.tensors)

    restore()

    @fuzz(200 // part)
    @given(some.data())
    def each(data: some.DataObject) -> None:
        for part, content in whole.items():
            (folder / part).write_bytes(content)
        shutil.rmtree(folder / "checkpoint", ignore_errors=True)
        tensors, told, rounds = dict(stored.tensors), dict(stored.facts), stored.rounds
        match data.draw(some.integers(0, 4)):
            case 0:
                (folder / "run.json").write_bytes(data.draw(broken_json(document, at)))
            case 1:
                (folder / "events.jsonl").write_bytes(data.draw(broken_bytes(whole["events.jsonl"])))
            case 2:
                told = data.draw(broken_tree(facts, places(facts)))
            case 3:
                tensors[data.draw(name)] = data.draw(arrays)
            case _:
                tensors.pop(data.draw(name))
                rounds = data.draw(some.sampled_from([0, 1, 2, 10**6, 10**15]))
        directory.save_checkpoint(Checkpoint(rounds, tensors, told))
        tally.read(restore)

    with bounded():
        each()
    assert tally.refused > 0.5 * tally.examples


@an_eighth_or_all
def test_broken_checkpoint_files_are_passed_over(part: int, tmp_path: Path) -> None:
    directory, tally = RunDirectory(tmp_path), Tally()
    directory.save_checkpoint(
        Checkpoint(2, {"weights": np.arange(50.0), "n": np.array([3], np.int32)}, {"rounds": 2})
    )
    [file] = (tmp_path / "checkpoint").iterdir()
    whole = file.read_bytes()
    size = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + size])

    def lie(broken: Any) -> bytes:
        text = json.dumps(broken).encode()
        return len(text).to_bytes(8, "little") + text + whole[8 + size :]

    def read() -> Any:
        return directory.load_checkpoint()

    @fuzz(200 // part)
    @given(
        some.one_of(
            broken_bytes(whole),
            broken_tree(header, places(header)).map(lie),
            some.integers(0, 2**64 - 1).map(lambda n: n.to_bytes(8, "little") + whole[8:]),
        )
    )
    def each(data: bytes) -> None:
        file.write_bytes(data)
        found = tally.read(read)
        assert found is None or np.array_equal(found.tensors["weights"], np.arange(50.0))

    with bounded():
        each()
    assert (tally.examples, tally.refused) == (200 // part, 0)


@an_eighth_or_all
def test_broken_cells_are_played_again_and_broken_begins_are_refused(
    part: int, folders: dict[str, Path], tmp_path: Path
) -> None:
    folder, tally = tmp_path / "compare", Tally()
    shutil.copytree(folders["compare"], folder)
    begun, [cell, *_] = folder / "begun.json", sorted((folder / "cells").iterdir())
    began, kept = json.loads(begun.read_text()), json.loads(cell.read_text())
    origin = digest_of({**began, "command": "", "started": ""})
    cells = CellStore(folder / "cells", origin, 0.0)
    assert cells.find(kept["cell"]) == kept["result"]

    def signed(broken: Any) -> bytes:
        """With a digest that fits."""
        if isinstance(broken, dict):
            content = {key: value for key, value in broken.items() if key != "digest"}
            broken = {"digest": digest_of(content), **content}
        return json.dumps(broken).encode()

    def find() -> None:
        assert math.isfinite(cells.seconds())
        assert cells.seconds() >= 0
        cells.find(kept["cell"])

    @fuzz(150 // part)
    @given(
        some.one_of(broken_json(kept, places(kept)), broken_tree(kept, places(kept)).map(signed)),
        broken_json(began, places(began)),
    )
    def each(data: bytes, other: bytes) -> None:
        cell.write_bytes(data)
        begun.write_bytes(other)
        tally.read(find)
        tally.read(comparison_to_resume, folder)

    with bounded():
        each()
    assert tally.refused > 0.3 * tally.examples


@pytest.mark.parametrize(("text", "what"), [("[],", "lists and tables"), ("0,", "elements")])
def test_what_would_take_much_more_memory_than_its_text_is_refused(text: str, what: str) -> None:
    data = b"[" + text.encode() * 2**26 + b"0]"
    data = data[: bounded_json.MAX_BYTES]
    with bounded(), pytest.raises(ValueError, match=f"more than .* {what}"):
        bounded_json.loads(data)


@an_eighth_or_all
def test_broken_accounts_and_events_end_in_our_errors(part: int, tmp_path: Path) -> None:
    tally, directory = Tally(), RunDirectory(tmp_path)
    rows = [{"key": "a", "isolating": True, "rounds": 3}, {"key": "b", "isolating": False, "rounds": 1}]

    @fuzz(100 // part)
    @given(
        some.one_of(
            broken_json(rows, places(rows)),
            ODD.map(json.dumps).map(str.encode),
            DEEP.map(json.dumps).map(str.encode),
        )
    )
    def each(data: bytes) -> None:
        (tmp_path / "spent.json").write_bytes(data)
        (tmp_path / "events.jsonl").write_bytes(data)
        tally.read(read_account, tmp_path)
        tally.read(directory.keep_events, 10**15)

    with bounded():
        each()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"schema": 1, "kind": "run", "x": NaN}', "not finite"),
        ('{"schema": 1, "kind": "run", "x": 1e999}', "not finite"),
        ('{"schema": 1, "kind": "run", "x": ' + "9" * 30 + "}", "more than 64 bits"),
        ('{"schema": 1, "kind": "run", "x": ' + "9" * 9000 + "}", "damaged"),
        ('{"schema": 1, "kind": "run", "x": "\\ud800"}', "surrogates"),
        ('{"schema": 1, "x": ' + "[" * 100 + "]" * 100 + "}", "nested too deep"),
        ('{"schema": 1, "x": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deep"),
        ('{"schema": 1, "kind": "walk"}', "kind is wrong: 'walk' is none of run"),
        ('{"schema": 1, "kind": "run"}', "damaged: privacy is missing; ledger is missing"),
        ("[]", "schema"),
        ("", "not JSON"),
    ],
)
def test_what_is_wrong_with_a_document_is_said(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(InputError, match=words) as raised:
        checked_document(tmp_path)
    assert str(raised.value).startswith(str(tmp_path / "run.json"))


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("ledger", "claims", 1, "event"), 3, r"ledger.claims\[1\].event is not a table"),
        (("ledger", "claims", 0, "observer"), None, r"ledger.claims\[0\].observer is not text"),
        (("privacy", "guarantees", 1, "epsilon"), "2", r"privacy.guarantees\[1\].epsilon is not a number"),
        (("ledger", "rounds"), -1, "ledger.rounds is wrong"),
        (("ledger", "claims"), [{}] * 13, "ledger.claims is wrong|claims"),
    ],
)
def test_a_damaged_field_is_named(
    folders: dict[str, Path], tmp_path: Path, path: tuple[Any, ...], value: Any, words: str
) -> None:
    document = json.loads((folders["run"] / "run.json").read_text())
    holder = document
    for part in path[:-1]:
        holder = holder[part]
    holder[path[-1]] = value
    (tmp_path / "run.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=words) as raised:
        checked_document(tmp_path)
    assert "damaged" in str(raised.value)
    assert "Error" not in str(raised.value)


@pytest.mark.parametrize("run_", ["/etc", "../..", "a\0b"])
def test_runs_outside_a_comparison_are_not_read(folders: dict[str, Path], tmp_path: Path, run_: str) -> None:
    document = json.loads((folders["compare"] / "run.json").read_text())
    document["cells"][0]["runs"][0] = run_
    (tmp_path / "run.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"cells\[0\].runs\[0\] is wrong: it leads out of the folder"):
        checked_document(tmp_path)


def test_a_pipe_is_no_document(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "run.json")
    with pytest.raises(InputError, match="a pipe, not a file"):
        checked_document(tmp_path)


def test_a_ledger_that_goes_on_says_what_its_checkpoint_lacks(make_scenario, trial) -> None:
    ledger = Ledger(trial(make_scenario("privacy.trust=local")).fleet.plan)
    arrays, facts = ledger.state()
    with pytest.raises(InputError, match="should hold ledger/participations as int32"):
        ledger.restore({}, facts)
    with pytest.raises(InputError, match="least_shares is missing"):
        ledger.restore(arrays, {"rounds": 1})
    ledger.restore(arrays, facts)
