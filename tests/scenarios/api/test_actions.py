"""Calls of the API run what the commands run, to the same bits, and leave nothing half-written."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from torch import nn
from warm import warm

import fedprivacy as fp
from fedprivacy.account.account import Account
from fedprivacy.account.entering import create
from fedprivacy.account.policy import Policy
from fedprivacy.records.run_directory import read_document
from fedprivacy.scenario import Scenario
from tests.scenarios.engines.hashes import final_hash

ROOT = Path(__file__).parents[3]
QUIET = {"progress": False, "workers": 1}


def two_layers() -> Callable[[], nn.Module]:
    return lambda features, classes: nn.Linear(features[0], classes)


@pytest.mark.exhaustive
def test_a_command_a_file_and_arrays_give_the_same_bits(tmp_path: Path, arrays: tuple) -> None:
    x, y, users = arrays
    people = fp.people(x, y, users=users)
    settings = {"rounds": 2, "epsilon": 3, "seed": 5}
    first = fp.run(people, out=tmp_path / "arrays", **settings, **QUIET)
    saved = people.save(tmp_path / "people.npz")
    from_file = fp.run(saved, out=tmp_path / "file", **settings, **QUIET)
    (tmp_path / "s.toml").write_text(fp.scenario_for(saved, **settings).to_toml())
    done = subprocess.run(
        [*warm(), "run", "s.toml", "--out", "command", "--workers", "1", "--json"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert (
        final_hash(first.document)
        == final_hash(from_file.document)
        == final_hash(json.loads(done.stdout), tmp_path)
    )
    assert final_hash(fp.run(from_file.scenario, out=tmp_path / "again", **QUIET).document) == final_hash(
        first.document
    )
    assert final_hash(
        fp.run(saved, out=tmp_path / "other", **{**settings, "seed": 6}, **QUIET).document
    ) != final_hash(first.document)


@pytest.mark.exhaustive
def test_a_ready_scenario_gives_the_bits_of_its_command(tmp_path: Path) -> None:
    result = fp.run("digits", epsilon=8, rounds=1, out=tmp_path, **QUIET)
    done = subprocess.run(
        [*warm(), *result.document["command"].split()[1:], "--out", str(tmp_path), "--json", "--operator"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    other = json.loads(done.stdout)
    assert final_hash(other) == final_hash(result.document)
    assert other["noise_key"] == result.document["noise_key"]
    assert other["scenario"] == result.document["scenario"]
    assert sorted(path.name for path in result.path.iterdir()) == sorted(
        path.name for path in Path(other["path"]).iterdir()
    )


def test_from_a_table_with_texts_to_a_report_in_under_ten_lines(
    tmp_path: Path, patients: pd.DataFrame
) -> None:
    people = fp.people(patients, "sick", users="hospital", bounds={"age": (0, 120)})
    result = fp.run(people, rounds=2, out=tmp_path, **QUIET)
    assert result.report.read_text().startswith("<!DOCTYPE html>")
    assert result.guarantees["outsider"].unit == "example"  # with four clients no client can be hidden


def test_a_record_of_objects_says_what_it_lacks(central: object) -> None:
    scenario = central.document["scenario"]
    assert "cannot be repeated from its record alone: it lacks the records" in scenario["description"]
    assert central.document["command"] == ""


def test_no_digest_and_no_seed_is_in_what_others_read(central: object) -> None:
    shown = [
        central.document["scenario"]["description"],
        repr(central),
        central._repr_html_(),
    ]
    for text in shown:
        assert central.document["noise_key"] not in text
        assert central.document["scenario_digest"] not in text


def weights(model: nn.Module | Callable, out: Path, **settings: object) -> str:
    result = fp.run("digits", model=model, rounds=1, out=out, **settings, **QUIET)
    assert result.status == "finished"
    return str(result.document["noise_key"])


def test_models_of_other_weights_or_code_have_other_noise(tmp_path: Path) -> None:
    module = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    first = weights(module, tmp_path)
    assert weights(module, tmp_path) == first
    with __import__("torch").no_grad():
        module[1].weight[0, 0] += 1
    assert weights(module, tmp_path) != first


def test_the_same_module_twice_gives_the_same_bits(tmp_path: Path) -> None:
    module = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    first, again = (
        fp.run("digits", model=module, rounds=2, out=tmp_path, **QUIET).document for _ in range(2)
    )
    assert final_hash(first) == final_hash(again)


def with_act(act: object) -> nn.Module:
    return nn.Linear(64, 10)


def test_what_a_model_calls_gives_other_noise(tmp_path: Path) -> None:
    import torch

    one, again, other = (partial(with_act, act=act) for act in (torch.relu, torch.relu, torch.tanh))
    keys = [weights(model, tmp_path) for model in (one, again, other)]
    assert keys[0] == keys[1] != keys[2]


MAIN = """
import sys
import fedprivacy as fp
from torch import nn

class Net(nn.Linear):
    pass

def keys(count=0):
    for number in range(2):
        globals()[f"other_{number}"] = number  # as cells of a notebook do
        open(__file__, "a").write("# edited while it runs\\n")
        model = lambda features, classes: Net(features[0], classes)
        result = fp.run("digits", model=model, rounds=1, out=sys.argv[1], workers=1, progress=False)
        yield result.document["noise_key"]

one, two = keys()
assert one == two
"""


@pytest.mark.exhaustive
def test_a_model_of_the_main_program_gives_the_same_bits_twice(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(MAIN)
    subprocess.run([sys.executable, str(tmp_path / "main.py"), str(tmp_path / "runs")], cwd=ROOT, check=True)


def test_two_functions_on_one_line_are_two_models(tmp_path: Path) -> None:
    single, double = lambda classes: nn.Linear(64, classes), lambda classes: nn.Sequential(nn.Linear(64, 8), nn.Linear(8, classes))  # fmt: skip
    scenarios = [fp.scenario_for("digits", model=model) for model in (single, double)]
    runs = [fp.run(scenario, rounds=1, out=tmp_path, **QUIET) for scenario in scenarios]
    assert runs[0].document["noise_key"] != runs[1].document["noise_key"]
    sizes = [sum(array.size for array in checkpoint(run).values()) for run in runs]
    assert sizes[0] != sizes[1]


def checkpoint(run: object) -> dict[str, np.ndarray]:
    from fedprivacy.records.run_directory import RunDirectory

    stored = RunDirectory.open(run.path).load_checkpoint()
    assert stored is not None
    return stored.tensors


def test_a_model_of_another_process_is_refused(tmp_path: Path) -> None:
    named = {"model": {"name": "code", "factory": "fedprivacy_objects:model_0"}}
    with pytest.raises(fp.InputError, match="an object of another Python process"):
        fp.run("digits", set=named, out=tmp_path, allow_code=True, **QUIET)
    assert not list(tmp_path.iterdir())


@pytest.mark.exhaustive
def test_attacks_take_a_model_that_is_an_object(tmp_path: Path) -> None:
    small = {"game.members": 20, "game.nonmembers": 40, "attacks.passive.rounds": 2}
    settings = {"attacks": ["passive"], "rounds": 2, "set": small}
    result = fp.replay(
        "active-gradient-ascent",
        model=lambda features, classes: nn.Linear(*features, classes),
        out=tmp_path,
        **settings,
        **QUIET,
    )
    assert len(result.roc_points)
    assert result.roc()._repr_png_().startswith(b"\x89PNG")


def test_recorded_commands_have_the_options_of_the_call(tmp_path: Path) -> None:
    settings = {"canaries": 50, "method": "one-run", "trials": 2, "rounds": 1, "seed": 3}
    audit = fp.audit("digits", out=tmp_path, **settings, **QUIET)
    assert audit.document["command"] == (
        "fedprivacy audit digits --set server.rounds=1 --canaries 50 --method one-run --trials 2 --seed 3"
    )
    small = {"game.members": 20, "game.nonmembers": 40, "model.hidden": [16], "attacks.passive.rounds": 2}
    replay = fp.replay(
        "active-gradient-ascent", attacks="passive", rounds=2, set=small, out=tmp_path, **QUIET
    )
    assert replay.document["command"].endswith(" --attack passive")
    assert set(replay.table["attack"]) == {"passive"}


def test_a_model_by_code_in_a_file_still_needs_leave(tmp_path: Path) -> None:
    with pytest.raises(fp.InputError, match="allow"):
        fp.run("digits", set={"model": {"name": "code", "factory": "nowhere:make"}}, out=tmp_path, **QUIET)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda out: fp.run("digits", epsilonn=2, delta=0.5, rounds=-1, clipping_norm=object(), seed=1.5, out=out),
         ["epsilonn: no such setting", "no value of a scenario", "seed=1.5: not a whole number", "rounds=-1", "delta=0.5"]),
        (lambda out: fp.run("digits", model=3, epsilon="x", out=out), ["model = 3", "epsilon='x'"]),
        (lambda out: fp.run("digits", set=3, rounds=0, out=out), ["set: 3 is no dictionary", "rounds=0"]),
        (lambda out: fp.run("digits", set={"no.key": 1}, out=out), ["no.key=1"]),
        (lambda out: fp.run("digits", engine="superlink", out=out), ["engine='superlink'"]),
        (lambda out: fp.run("digits", engine="ray", model=nn.Linear(64, 10), out=out),
         ['engine="ray"', "an object of this one", 'engine="embedded"']),
        (lambda out: fp.run("digits", workers=0, out=out), ["workers"]),
        (lambda out: fp.run("nowhere", out=out), ["nowhere"]),
        (lambda out: fp.run(5, out=out), ["int: no scenario"]),
        (lambda out: fp.run("active-gradient-ascent", out=out), ["active-gradient-ascent"]),
        (lambda out: fp.ask("digits", out=out), ["no [queries.NAME]"]),
        (lambda out: fp.replay("digits", out=out), ["digits"]),
        (lambda out: fp.replay("active-gradient-ascent", attacks=["nope"], out=out), ["no attack 'nope'"]),
        (lambda out: fp.audit("star-wars-survey", out=out), ["star-wars-survey"]),
        (lambda out: fp.audit("digits", canaries=0, out=out), ["canaries"]),
        (lambda out: fp.tune("digits", out=out), ["digits"]),
        (lambda out: fp.compare("digits", trusts=["x"], epsilons=[-1], out=out), ["trusts=['x']", "epsilons=[-1]"]),
        (lambda out: fp.noise(epsilon=-1, delta=2, rounds=0), ["epsilon -1", "delta 2", "rounds 0"]),
        (lambda out: fp.read(out), ["run"]),
        (lambda out: fp.runs(out / "no"), ["no such folder"]),
    ],
)  # fmt: skip
def test_mistakes_come_at_once_and_nothing_is_written(
    tmp_path: Path, call: Callable, expected: list[str]
) -> None:
    with pytest.raises(fp.InputError) as caught:
        call(tmp_path / "runs")
    assert all(text in str(caught.value) for text in expected), str(caught.value)
    assert not list(tmp_path.iterdir())


def test_an_interrupted_run_leaves_its_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from scenarios.api import actions

    def interrupt(event: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(actions, "_shown", lambda *_: nullcontext(interrupt))
    with pytest.raises(KeyboardInterrupt):
        fp.run("digits", rounds=3, out=tmp_path, workers=1)
    (path,) = tmp_path.iterdir()
    assert read_document(path / "run.json")["status"] == "interrupted"
    stored = fp.read(path)
    assert stored.status == "interrupted"
    assert list(stored.rounds["round"]) == [1]


def test_an_interrupted_run_of_an_object_promises_no_resumption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from scenarios.api import actions

    def interrupt(event: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(actions, "_shown", lambda *_: nullcontext(interrupt))
    with pytest.raises(KeyboardInterrupt):
        fp.run("digits", model=nn.Linear(64, 10), rounds=3, out=tmp_path, workers=1)
    assert "cannot be resumed: it lacks the model, which was an object in Python" in capsys.readouterr().err


@pytest.mark.parametrize("call", [fp.run, fp.compare])
def test_interrupted_work_on_arrays_promises_no_resumption(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arrays: tuple,
    call: Callable,
) -> None:
    from scenarios.api import actions

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(actions, "_shown", lambda *_: nullcontext(interrupt))
    x, y, users = arrays
    people = fp.people(x, y, users=users)
    more = {"trusts": ["central"], "epsilons": [2], "seeds": [1]} if call is fp.compare else {}
    with pytest.raises(KeyboardInterrupt):
        call(people, rounds=2, out=tmp_path, workers=1, **more)
    errors = capsys.readouterr().err
    assert "Resume with" not in errors
    assert "it lacks the records, which were arrays in Python. Save the people first" in errors


def test_a_scenario_object_names_what_was_changed() -> None:
    assert (
        "(Changed here: privacy.epsilon.)"
        in fp.scenario_for(fp.scenario_for("digits"), epsilon=8).description
    )
    assert isinstance(fp.scenario_for("digits"), Scenario)


def test_noise_is_that_of_the_command() -> None:
    noise = fp.noise(epsilon=2, rounds=100, rate=0.1)
    assert noise.noise_multiplier == pytest.approx(3.98213, rel=1e-5)
    assert "delta = 1e-05" in repr(noise)
    assert not hasattr(noise, "epsilon")


def test_a_comparison_of_people(tmp_path: Path, arrays: tuple) -> None:
    x, y, users = arrays
    both = fp.compare(
        fp.people(x, y, users=users), trusts=["local", "central"], epsilons=[1, 8], rounds=2, seed=3, out=tmp_path,
        set={"compare.seeds": [1, 2]}, **QUIET,
    )  # fmt: skip
    assert both.table[["trust", "epsilon"]].values.tolist() == [
        ["local", 1],
        ["local", 8],
        ["central", 1],
        ["central", 8],
    ]
    assert both.document["cells"][0]["seeds"] == [3, 4]
    assert [line.get_label() for line in both.figure().axes[0].lines]


def test_calls_charge_an_account_with_the_errors_of_the_commands(tmp_path: Path) -> None:
    path, out = tmp_path / "clients.account", tmp_path / "out"
    create(path, Policy.of_options(4.0, 1e-5, "client", "replace-one"))
    options = {"out": out, "account": str(path), **QUIET}
    fp.run("digits", rounds=2, **options)
    account = Account.read(path)
    (entry,) = account.entries.values()
    assert (entry["command"], entry["parts"][0]["rounds"]) == ("run", 2)
    assert [end["outcome"] for end in account.ended.values()] == ["finished"]
    two = {"trusts": ["central"], "seeds": [3, 4], "rounds": 1, "set": {"compare.baselines": False}}
    fp.compare("digits", epsilons=[0.3], **two, **options)
    *_, entry = Account.read(path).entries.values()
    assert (entry["command"], len(entry["parts"])) == ("compare", 2)
    before, files = path.read_bytes(), sorted(out.iterdir())
    refused: list[tuple[str, Callable[..., object]]] = [
        ("The largest plan that fits: the first", partial(fp.run, "digits", epsilon=6, seed=9)),
        ("same seed as digits", partial(fp.run, "digits", rounds=1)),
        ("The largest part of it that fits", partial(fp.compare, "digits", epsilons=[2.5], seed=6, **two)),
        ("--limits of it cannot reveal any", partial(fp.run, "digits", limits=True)),
        ("same seed as digits", partial(fp.audit, "digits")),
        ("has no guarantee against the participant", partial(fp.replay, "white-box")),
        ("its adjacency is add-remove", partial(fp.tune, "tuned", rounds=2)),
        ("are about other data", partial(fp.ask, "star-wars-survey", trust="central")),
    ]
    for message, call in refused:
        with pytest.raises(fp.InputError, match=message):
            call(**options)
    with pytest.raises(fp.InputError, match="No such file"):
        fp.run("digits", out=out, account=tmp_path / "missing", **QUIET)
    assert path.read_bytes() == before
    assert sorted(out.iterdir()) == files
