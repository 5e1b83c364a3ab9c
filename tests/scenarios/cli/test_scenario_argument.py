"""The SCENARIO argument with options applied: its texts, its seed, and the command that takes it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedprivacy.errors import InputError
from fedprivacy.scenario.bundled import scenario_of_app
from fedprivacy.scenario.loading import load
from scenarios.authoring.catalogue import ready
from scenarios.cli.kind_interface import ComparisonKind, RunKind
from scenarios.cli.kind_registry import KINDS, scenario_for
from scenarios.cli.scenario_argument import attack_scenario, seed_of


@pytest.fixture
def source(tmp_path: Path, base_text: str) -> str:
    file = tmp_path / "mine.toml"
    file.write_text('tuning = "Chosen with care."\ndescription = "Mine."\n' + base_text)
    return str(file)


@pytest.mark.parametrize(
    "incidental", [["federation.hosts=2"], ["seed=3"], ["compare.seeds=[1, 2]"], ["compare={epsilons=[2.0]}"]]
)
def test_texts_of_a_file_stay_as_they_are_if_only_the_measurement_changes(
    source: str, incidental: list[str]
) -> None:
    scenario = scenario_for("run", source, incidental, 5)
    assert (scenario.tuning, scenario.description, scenario.seed) == ("Chosen with care.", "Mine.", 5)


def test_texts_of_a_file_name_the_settings_that_changed(source: str) -> None:
    changes = ["server.rounds=2", "training={learning_rate=0.25}"]
    scenario = scenario_for("run", source, changes, None)
    changed = "server.rounds, training.learning_rate"
    assert scenario.tuning == f"Chosen with care. Written before these were changed: {changed}."
    assert scenario.description == f"Mine. (Changed here: {changed}.)"
    assert scenario_for("run", source, ["server.rounds=2", "tuning=New words."], None).tuning == "New words."
    stopping = ["data.public_fraction=0.2", "evaluation.on=public", "server.patience=1", "evaluation.every=2"]
    assert str(scenario_for("run", source, stopping, None).tuning).endswith(
        "server.patience, evaluation.every."
    )


@pytest.mark.parametrize(
    "change",
    ["data.public_fraction=0.2", "data.partition=iid", "privacy.adjacency=add-remove", "model.name=mlp"],
)
def test_a_description_that_no_longer_holds_is_written_from_the_settings(change: str) -> None:
    more = {"iid": ["data.clients=10"], "mlp": ["model.hidden=[4]"]}.get(change.rpartition("=")[2], [])
    scenario = scenario_for("run", "digits", [change, *more], None)
    assert "1437 clients with one handwritten digit each" not in scenario.description
    assert scenario.description.startswith(scenario.summary())
    assert change.partition("=")[0] in scenario.description
    compared = scenario_for("compare", "digits", [change, *more], None)
    assert "compared under trust" in compared.description
    own = scenario_for("run", "digits", [change, *more, "description=Mine."], None)
    assert own.description == "Mine."


def test_other_data_of_the_same_kind_is_another_description(tmp_path: Path) -> None:
    x, y = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32), np.arange(60) % 2
    for name in ("heart.npz", "lungs.npz"):
        np.savez(tmp_path / name, x_train=x[:40], y_train=y[:40], x_test=x[40:], y_test=y[40:])
    file = tmp_path / "mine.toml"
    text = scenario_for(
        "run", "digits", ["data.name=npz", f"data.path={tmp_path / 'heart.npz'}"], None
    ).to_toml()
    file.write_text(text.replace(text.split('description = "')[1].split('"')[0], "Hearts."))
    assert scenario_for("run", str(file), [], None).description == "Hearts."
    other = scenario_for("run", str(file), [f"data.path={tmp_path / 'lungs.npz'}"], None)
    assert other.description.startswith("40 clients, each with one record of lungs.npz (40 records)")


def test_a_seed_is_a_number_or_one_that_none_can_guess() -> None:
    assert (seed_of(None), seed_of("7")) == (None, 7)
    assert seed_of("random") != seed_of("random")
    for wrong in ("-1", "x", "1.5", str(2**63)):
        with pytest.raises(InputError, match="or random"):
            seed_of(wrong)


def test_attacks_are_not_ignored() -> None:
    with pytest.raises(InputError, match="has attacks, which `fedprivacy replay"):
        scenario_of_app("scenarios/active-participant.toml")
    scenario, stored = attack_scenario("active-participant", ["game.repeats=2"], ["ascent"], 7)
    assert (list(scenario.attacks), scenario.game.repeats, scenario.seed, stored) == (["ascent"], 2, 7, None)
    with pytest.raises(InputError, match=r"--attack rise: no such attack. There are: passive, ascent"):
        attack_scenario("active-participant", None, ["rise"], None)
    with pytest.raises(InputError, match=r"digits: has no \[attacks.NAME\]"):
        attack_scenario("digits", None, None, None)


@pytest.mark.parametrize(
    ("name", "commands", "refusal"),
    [
        ("digits", {"run", "compare", "tune", "replay", "audit", "federation up"}, ""),
        ("first-names", {"run", "compare", "tune", "replay", "audit", "federation up"}, ""),
        (
            "private-erm",
            {"run"},
            "fits private estimates, which `fedprivacy {}` does not support. Use ",
        ),
        ("active-participant", {"replay"}, "has attacks, which `fedprivacy {}` does not support. Use "),
        ("tuned", {"tune"}, "has a [tune], which `fedprivacy {}` does not support. Use "),
    ],
)
def test_a_kind_with_a_command_of_its_own_is_refused_by_the_others(
    name: str, commands: set[str], refusal: str
) -> None:
    for command in ("run", "compare", "tune", "replay", "audit", "federation up"):
        if command in commands:
            assert scenario_for(command, name, None, None).kind in KINDS
            continue
        with pytest.raises(InputError) as error:
            scenario_for(command, name, None, None)
        [only] = commands
        assert str(error.value) == f"{name}: {refusal.format(command)}`fedprivacy {only} {name}`."


def test_every_kind_of_scenario_is_registered_and_goes_with_its_command() -> None:
    kinds = {load(file).kind for file in ready().values()}
    assert kinds == set(KINDS)
    for kind in KINDS.values():
        assert isinstance(kind, RunKind) == (kind.command in ("", "run"))
        assert isinstance(kind, ComparisonKind) == (kind.command == "")
