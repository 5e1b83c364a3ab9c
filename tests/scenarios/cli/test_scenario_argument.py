"""What the words of a scenario are once options are laid over it, and the seeds that may be asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedprivacy.errors import InputError
from fedprivacy.scenario.bundled import scenario_of_app
from scenarios.cli.scenario_argument import asked, attacked, seed_of


@pytest.fixture
def source(tmp_path: Path, base_text: str) -> str:
    file = tmp_path / "mine.toml"
    file.write_text('tuning = "Chosen with care."\ndescription = "Mine."\n' + base_text)
    return str(file)


@pytest.mark.parametrize(
    "beside", [["federation.hosts=2"], ["seed=3"], ["compare.seeds=[1, 2]"], ["compare={epsilons=[2.0]}"]]
)
def test_what_a_file_says_of_itself_holds_however_it_is_measured(source: str, beside: list[str]) -> None:
    found = asked(source, beside, 5)
    assert (found.tuning, found.description, found.seed) == ("Chosen with care.", "Mine.", 5)


def test_what_a_file_says_of_its_settings_is_not_said_of_others(source: str) -> None:
    found = asked(source, ["server.rounds=2", "training={learning_rate=0.25}"], None)
    changed = "server.rounds, training.learning_rate"
    assert found.tuning == f"Chosen with care. Said before these were changed: {changed}."
    assert found.description == f"Mine. (Changed here: {changed}.)"
    assert asked(source, ["server.rounds=2", "tuning=New words."], None).tuning == "New words."
    stopping = ["data.public_fraction=0.2", "evaluation.on=public", "server.patience=1", "evaluation.every=2"]
    assert str(asked(source, stopping, None).tuning).endswith("server.patience, evaluation.every.")


def test_a_seed_is_a_number_or_one_that_none_can_guess() -> None:
    assert (seed_of(None), seed_of("7")) == (None, 7)
    assert seed_of("random") != seed_of("random")
    for wrong in ("-1", "x", "1.5", str(2**63)):
        with pytest.raises(InputError, match="or random"):
            seed_of(wrong)


def test_attacks_are_not_left_out_without_a_word() -> None:
    for refuse in (
        lambda: asked("active-participant", None, None),
        lambda: scenario_of_app("scenarios/active-participant.toml"),
    ):
        with pytest.raises(InputError, match="has attacks, which `fedprivacy replay"):
            refuse()
    scenario, stored = attacked("active-participant", ["game.repeats=2"], ["ascent"], 7)
    assert (list(scenario.attacks), scenario.game.repeats, scenario.seed, stored) == (["ascent"], 2, 7, None)
    with pytest.raises(InputError, match=r"--attack rise: there is none. There are: passive, ascent"):
        attacked("active-participant", None, ["rise"], None)
    with pytest.raises(InputError, match=r"digits: has no \[attacks.NAME\]"):
        attacked("digits", None, None, None)
