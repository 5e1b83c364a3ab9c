"""The ready scenarios, and how they are found."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from fedprivacy.errors import InputError
from fedprivacy.population.clients import population
from fedprivacy.scenario import Scenario
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.scenario.erm import ErmScenario
from fedprivacy.scenario.loading import load, loads
from fedprivacy.scenario.tune import TuneScenario
from scenarios.authoring.catalogue import complete, describe, find, first_sentence, ready


def test_what_is_ready() -> None:
    assert {"digits", "local-vs-central", "synthetic-million"} <= set(ready())
    assert {"star-wars-survey", "first-names", "common-disease", "digital-goods-auction"} <= set(ready())
    assert list(ready()) == sorted(ready())


@pytest.mark.parametrize("name", sorted(ready()))
def test_each_is_valid_described_and_named_as_its_file(name: str) -> None:
    if not describe(name, ready()[name])["data_is_here"]:
        pytest.skip("its data are not here")
    scenario = load(ready()[name])
    assert scenario.name == name
    assert len(scenario.description) > 40
    assert "core" in scenario.duration
    assert loads(scenario.to_toml()) == scenario
    plain = not isinstance(scenario, AttackScenario | ErmScenario | TuneScenario)
    for trust in scenario.compare.trusts if plain else ():
        scenario.cell(trust, None if trust == "none" else 1.0, 1)


def test_the_comparison_is_the_one_that_we_promise() -> None:
    scenario = Scenario.read(ready()["local-vs-central"])
    assert scenario.population == 1437
    assert scenario.compare.trusts == ("none", "central", "local")
    assert scenario.compare.epsilons == (1.0, 2.0, 4.0, 8.0)
    assert len(scenario.compare.seeds) == 3
    assert (scenario.privacy.delta, scenario.privacy.adjacency) == (1e-5, "replace-one")


def test_the_frontier_has_every_possible_attack_in_every_arm_at_the_same_epsilons() -> None:
    scenario = load(ready()["frontier"])
    assert isinstance(scenario, AttackScenario)
    assert {one.seat for one in scenario.attacks.values()} == {"server", "participant", "outsider"}
    played: dict[str, list[float | None]] = {}
    for one in scenario.variants:
        assert {*one.attacks, *one.skipped} == set(scenario.attacks)
        # A secure sum shows nobody an update.
        updates = {"looking", "isolating", "watching"} if one.arm == "distributed" else set()
        assert set(one.skipped) == updates
        played.setdefault(one.arm, []).append(one.privacy.epsilon)
    assert played.pop("none") == [None]
    assert played == {arm: [1.0, 8.0, 64.0, 512.0] for arm in ("central", "distributed", "local", "dp-sgd")}
    assert scenario.game.repeats > 2


@pytest.mark.parametrize(
    ("name", "clients", "columns"),
    [("mnist-people", 60_000, None), ("mnist-writers", 539, None), ("census-married", 19_582, 13),
     ("activity", 32, 40)],
)  # fmt: skip
def test_real_data_have_the_clients_and_columns_that_their_scenarios_say(
    name: str, clients: int, columns: int | None, real_data
) -> None:
    scenario = Scenario.read(ready()[name], [f'data.path="{real_data(Path(data_of(name)).name)}"'])
    assert scenario.population == clients
    assert set(scenario.compare.trusts) == {"none", "central", "local"}
    assert scenario.compare.mechanisms[0] == "auto"
    if columns is not None:
        people = population(scenario.data)
        assert people.features == (columns,)
        assert not {"divorced", "XPEAK"} & set(people.dataset.feature_names)


@pytest.mark.parametrize(("name", "clients"), [("hospitals", 4), ("activity-records", 32)])
def test_records_of_real_data_are_protected_in_each_client(name: str, clients: int, real_data) -> None:
    scenario = Scenario.read(ready()[name], [f'data.path="{real_data(Path(data_of(name)).name)}"'])
    assert scenario.population == clients
    assert (scenario.privacy.trust, scenario.privacy.unit) == ("local", "example")
    assert set(scenario.compare.trusts) == {"none", "central", "local"}
    assert {1.0, 4.0, 8.0} <= set(scenario.compare.epsilons)


def test_dp_sgd_has_one_client_and_a_picture_for_each_setting() -> None:
    scenario = Scenario.read(ready()["dp-sgd-digits"])
    assert scenario.population == 1
    assert {key for keys in scenario.compare.vary.values() for key in keys} == {
        "batch_size", "learning_rate", "clipping_norm",
    }  # fmt: skip


def data_of(name: str) -> str:
    return str(tomllib.loads(ready()[name].read_text())["data"]["path"])


def test_the_million() -> None:
    scenario = Scenario.read(ready()["synthetic-million"])
    assert scenario.population == 1_000_000
    assert scenario.sampling.model_dump() == {"name": "poisson", "rate": 0.01}
    assert (scenario.privacy.trust, scenario.privacy.delta) == ("central", 1e-7)


def test_find_by_name_and_by_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find("digits") == ready()["digits"]
    file = tmp_path / "mine.toml"
    file.write_text("")
    assert find(str(file)) == file
    monkeypatch.chdir(tmp_path)
    (tmp_path / "digits").mkdir()
    assert find("digits") == ready()["digits"]
    assert find("./digits") == Path("digits")


@pytest.mark.parametrize(
    ("name", "guess"),
    [
        ("digitz", " Did you mean digits?"),
        ("local-vs-centrl.toml", " Did you mean local-vs-central?"),
        ("zzz", ""),
        ("", ""),
        ("x" * 5000, ""),
        ("a\0b", ""),
    ],
)
def test_neither_a_name_nor_a_path(name: str, guess: str) -> None:
    with pytest.raises(InputError) as caught:
        find(name)
    assert str(caught.value) == (
        f"{name[:200]!r}: no ready scenario and no file.{guess} "
        "Give the path of a .toml file, or a name that `fedprivacy scenarios` lists."
    )


@pytest.mark.parametrize("name", sorted(ready()))
def test_what_it_is_for_is_one_sentence(name: str) -> None:
    entry = describe(name, ready()[name])
    assert entry["purpose"].endswith(".")
    assert entry["description"].startswith(entry["purpose"])
    assert 20 < len(entry["purpose"]) <= 46
    text = ready()[name].read_text()
    command = (
        "replay"
        if "[attacks." in text
        else "tune"
        if "[tune]" in text
        else "compare"
        if "[compare]" in text
        else "run"
    )
    assert entry["command"] == f"fedprivacy {command} {name}"


def test_data_that_is_missing_here_is_named(tmp_path: Path) -> None:
    """Whether or not a scenario can be read without its data: the list needs none."""
    file = tmp_path / "far.toml"
    missing = tmp_path / "far.npz"
    file.write_text(f'description = "Far."\nduration = "1 s"\n[data]\nname = "npz"\npath = "{missing}"\n')
    entry = describe("far", file)
    assert (entry["data"], entry["data_is_here"], entry["clients"]) == (str(missing), False, None)


def test_first_sentence() -> None:
    assert first_sentence("What costs 2.5 at most? That. ") == "What costs 2.5 at most?"
    assert first_sentence("One, e.g. this") == "One, e.g. this"


def test_completion_of_a_scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    for name in ("mine.toml", "sub/own.toml", "notes.txt", ".hidden.toml"):
        (tmp_path / name).touch()
    assert complete("") == [*ready(), "mine.toml", "sub/"]
    assert complete("sub/") == ["sub/own.toml"]
    assert complete("sub/o") == ["sub/own.toml"]
    assert complete(".h") == [".hidden.toml"]
    assert complete(f"{tmp_path}/m") == [f"{tmp_path}/mine.toml"]
    assert complete("nowhere/") == []
