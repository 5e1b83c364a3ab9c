"""Early stopping and adversarial regularisation through the real apps: runs, resuming, games."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from clients.fleet import Fleet
from fedprivacy.errors import InputError
from fedprivacy.guarantees.ledger import Ledger
from fedprivacy.guarantees.statement import guarantees
from fedprivacy.models.evaluation import evaluate
from fedprivacy.plan.from_scenario import plan_of
from fedprivacy.population.clients import population
from fedprivacy.records.run_directory import RunDirectory
from fedprivacy.scenario import Scenario
from fedprivacy.scenario.attack import AttackScenario
from fedprivacy.verification.verify import checked_document
from scenarios.attacks.game_setup import ROUNDS_TRAINED, GameSetup
from scenarios.attacks.replay import replay
from scenarios.authoring.catalogue import ready
from scenarios.cli.display_attacks import show_replay
from scenarios.engines.launch import Engine
from scenarios.experiments.comparison import compare
from scenarios.runner import resume, run

OVERFITTING = """name = "stopping"
seed = 3
data = {name = "purchase-like", records = 300, test_records = 60, features = 30, classes = 3, flip = 0.4, \
partition = "iid", clients = 3, public_fraction = 0.5}
model = {name = "mlp", hidden = [16]}
training = {learning_rate = 0.5, batch_size = 10, epochs = 2}
server = {rounds = 12}
sampling = {name = "all"}
privacy = {trust = "none"}
evaluation = {on = "public"}
federation = {chunk_size = 1}
"""
GAME = """[game]
members = 40
nonmembers = 40
[attacks.look]
kind = "released"
methods = ["loss"]
references = 8
"""
NOISE = ("privacy={trust='central', epsilon=50.0, delta=1e-3, clipping_norm=1.0}",)


def scenario(*sets: str) -> Scenario:
    return Scenario.from_text(OVERFITTING, "stopping.toml", sets)


def game(*sets: str) -> AttackScenario:
    return AttackScenario.from_text(OVERFITTING + GAME, "stopping.toml", sets)


def by_hand(losses: list[float], patience: int) -> int:
    """After how many rounds training ends: the first of which none of the last so many is a new least."""
    for count in range(1, len(losses) + 1):
        if count - 1 - int(np.argmin(losses[:count])) >= patience:
            return count
    return len(losses)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> dict:
    """Without the rule: the losses of all rounds."""
    return run(scenario(), tmp_path_factory.mktemp("whole"), report=False)


@pytest.mark.exhaustive(beyond=1)
@pytest.mark.parametrize("patience", [1, 3])
def test_a_run_ends_in_the_round_that_the_losses_without_the_rule_say(
    whole, tmp_path: Path, patience: int
) -> None:
    losses = [event["loss"] for event in whole["rounds"]]
    document = run(scenario(f"server.patience={patience}"), tmp_path)
    assert [event["loss"] for event in document["rounds"]] == losses[: by_hand(losses, patience)]
    assert len(document["rounds"]) < len(losses)
    assert document["status"] == "finished"
    said = next(note for note in document["notes"] if note.startswith("Early stopping"))
    assert f"ended after {len(document['rounds'])} of 12 rounds" in said
    assert "charged" not in said
    assert all(one["epsilon"] is None for one in document["privacy"]["guarantees"])
    assert said in (Path(document["path"]) / "report.html").read_text()


def test_the_rule_reads_public_records_and_the_accuracy_is_of_test_records(whole, tmp_path: Path) -> None:
    losses = [event["loss"] for event in whole["rounds"]]
    asked = scenario("server.patience=2", "evaluation.on='test'", "evaluation.every=2")
    document = run(asked, tmp_path, report=False)
    rounds = document["rounds"]
    assert [event.get("public_loss") for event in rounds[1::2]] == losses[1 : len(rounds) : 2]
    assert len(rounds) == 2 * by_hand(losses[1::2], 2) < 12
    assert all("public_loss" not in event for event in [*rounds[::2], *whole["rounds"]])
    weights = RunDirectory(Path(document["path"])).load_checkpoint().tensors["weights"].astype(np.float32)
    people = population(asked.data)
    tested = evaluate(Fleet.of(asked).module, weights, people.dataset.x_test, people.dataset.y_test)
    assert document["final"]["accuracy"] == tested.accuracy
    assert sum(one["records"] for one in document["final"]["per_class"]) == 60
    assert len(resume(Path(document["path"]), report=False)["rounds"]) == len(rounds)


@pytest.mark.exhaustive
def test_a_comparison_says_after_how_many_rounds_training_ended(tmp_path: Path) -> None:
    privacy = "privacy={trust='central', epsilon=900.0, delta=1e-3, clipping_norm=1.0}"
    sets = ("server.patience=1", "evaluation.on='test'", privacy, "compare={trusts=['none', 'central'],"
            "epsilons=[900.0], seeds=[3, 4, 5]}")  # fmt: skip
    document = compare(scenario(*sets), tmp_path, workers=1)
    path = Path(document["path"])
    for cell in document["cells"]:
        runs = [json.loads((path / run / "run.json").read_text()) for run in cell["runs"]]
        assert cell["rounds_played"] == [len(run["rounds"]) for run in runs]
        assert cell["rounds"] == 12
    cells = [*document["cells"], *document["baselines"]]
    played = [count for cell in cells for count in cell["rounds_played"]]
    early = [count for count in played if count < 12]
    assert len(set(document["cells"][0]["rounds_played"])) > 1  # else the first seed would speak for all
    (said,) = [note for note in document["notes"] if note.startswith("Early stopping")]
    assert (
        f"ended after {min(early)} to {max(early)} of 12 rounds in {len(early)} of {len(played)} runs" in said
    )
    assert "All 12 planned rounds are charged" in said
    page = (path / "report.html").read_text()
    assert said in page
    assert "Rounds until early stopping, each seed" in page
    one, two, three = document["cells"][0]["rounds_played"]
    assert f"{one}, {two} and {three}" in page
    assert "Early stopping has ended runs: a line ends" in page


def test_with_noise_all_planned_rounds_are_charged(tmp_path: Path) -> None:
    asked = scenario("server.patience=1", *NOISE)
    document = run(asked, tmp_path, report=False)
    assert len(document["rounds"]) < 12
    planned = [g.to_json() for g in guarantees(Ledger(plan_of(asked)).in_advance().to_json())]
    found = {one["observer"]: one["epsilon"] for one in document["privacy"]["guarantees"]}
    assert found == {one["observer"]: one["epsilon"] for one in planned}
    assert 49 < found["outsider"] <= 50
    assert any("All 12 planned rounds are charged" in note for note in document["notes"])
    assert checked_document(Path(document["path"]))["ledger"]["rounds"] == 12


def test_a_run_that_has_ended_early_is_not_gone_on_with_and_one_that_was_broken_off_is(
    whole, tmp_path: Path
) -> None:
    asked = scenario("server.patience=2")
    ended = run(asked, tmp_path, report=False)

    def break_off(event: dict) -> None:
        if event["round"] == 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(asked, tmp_path / "again", report=False, on_round=break_off)
    (folder,) = (tmp_path / "again").iterdir()
    again = resume(folder, report=False)
    assert [one["loss"] for one in again["rounds"]] == [one["loss"] for one in ended["rounds"]]
    assert len(resume(Path(ended["path"]), report=False)["rounds"]) == len(ended["rounds"])


def test_a_game_is_played_on_the_model_where_training_ended() -> None:
    setup = GameSetup(game("server.patience=1"))
    stopped = setup.warm_up()
    played = int(stopped[ROUNDS_TRAINED][0])
    fixed = GameSetup(game(f"server.rounds={played}")).warm_up()
    assert 1 < played < 12
    # The noise key differs with the settings, and nothing here is drawn from it.
    assert np.array_equal(stopped["weights"], fixed["weights"])
    assert int(fixed[ROUNDS_TRAINED][0]) == played


def test_no_defence_looks_at_a_target() -> None:
    setup = GameSetup(game("training.adversarial=3.0", "server.patience=1"))
    people, targets = setup.game.people, setup.game.targets
    assert len(people.references)
    assert not np.isin(people.references, targets).any()
    assert not np.isin(people.references, people.partition.order).any()
    assert len(people.held_out("public")[1]) == len(people.references)
    outside = setup.game.targets[~setup.game.members]
    assert len(people.references) + len(outside) == len(people.partition.public)


def test_a_game_that_leaves_no_references_is_refused() -> None:
    found = game("training.adversarial=3.0")
    setup = GameSetup(found)
    people = replace(setup.game.people, judged=setup.game.people.partition.public)
    for refused in (found, game("server.patience=1")):
        with pytest.raises(InputError, match=r"none are left.*public_fraction"):
            Fleet.of(refused, people)
    Fleet.of(game(), people)
    bare = replace(
        population(scenario().data), partition=replace(people.partition, public=np.zeros(0, np.int64))
    )
    with pytest.raises(InputError, match=r"= 1: of the public records, which it reads, none are left\. Make"):
        Fleet.of(scenario("server.patience=1"), bare)


LOOK = """[attacks.passive]
kind = "passive"
rounds = 3
skip = 1
"""


@pytest.mark.exhaustive
def test_passive_attacks_are_said_to_see_the_rounds_after_training_ended(tmp_path: Path) -> None:
    def observed(name: str, *sets: str) -> dict | None:
        asked = AttackScenario.from_text(
            OVERFITTING + GAME.partition("[attacks")[0] + LOOK, "stopping.toml", sets
        )
        document = replay(asked, tmp_path / name, workers=1, report=False)
        return next(one["observed"] for one in document["attacks"] if one["name"] == "passive")

    begun = [
        int(GameSetup(game("server.patience=1", f"seed={seed}")).warm_up()[ROUNDS_TRAINED][0])
        for seed in (3, 4)
    ]
    assert begun[0] != begun[1]
    stopped = {"first": begun[0] + 2, "last": begun[0] + 4, "count": 3}
    assert observed("one", "server.patience=1", "game.repeats=1") == stopped
    assert observed("two", "server.patience=1", "game.repeats=2") is None
    assert observed("whole", "game.repeats=1") == {"first": 14, "last": 16, "count": 3}


@pytest.mark.exhaustive
def test_adversarial_regularisation_gives_the_same_model_whoever_trains_and_another_one_than_without(
    whole, tmp_path: Path
) -> None:
    sets = ("training.adversarial=3.0", "server.rounds=2")
    one, two = (
        run(scenario(*sets), tmp_path / str(workers), engine=Engine(workers=workers), report=False)
        for workers in (1, 2)
    )
    plain = run(scenario("server.rounds=2"), tmp_path / "plain", report=False)
    weights = [
        RunDirectory(Path(document["path"])).load_checkpoint().tensors["weights"]
        for document in (one, two, plain)
    ]
    assert np.array_equal(weights[0], weights[1])
    assert not np.allclose(weights[0], weights[2], atol=1e-4)
    assert all(guarantee["epsilon"] is None for guarantee in one["privacy"]["guarantees"])
    assert "adversarial" in one["performance"]["way"]


def test_the_noise_of_earlier_scenarios_is_what_it_was() -> None:
    fleet = Fleet.of(scenario())
    assert Fleet.of(scenario("training.adversarial_steps=1")).streams == fleet.streams
    assert Fleet.of(scenario("training.adversarial=3.0")).streams != fleet.streams


def test_held_out_records_are_all_public_ones_without_a_game() -> None:
    people = population(scenario().data)
    assert np.array_equal(people.references, people.partition.public)
    weights = np.zeros(Fleet.of(scenario()).parameters, np.float32)
    assert sum(evaluate(Fleet.of(scenario()).module, weights, *people.held_out("public")).records) == 150


TINY = (
    *("data.records=400", "data.test_records=60", "data.features=30", "data.classes=4", "model.hidden=[8]"),
    *("game.members=60", "game.nonmembers=60", "game.repeats=1", "game.warm_up=2", "server.rounds=2"),
    *('attacks.outsider.methods=["loss"]', "attacks.outsider.references=8", "attacks.outsider.epochs=1"),
    *("attacks.server.rounds=1", "attacks.participant.rounds=1"),
    *("arms.local-dp.game.warm_up=2", "arms.local-dp.server.rounds=6", "arms.local-dp.privacy.delta=1e-3"),
    *("arms.central-dp.game.warm_up=2", "arms.central-dp.server.rounds=6"),
    "arms.early-stopping.server.patience=1",
    *("attacks.rebuilding.candidates=60", "attacks.rebuilding.trials=20"),
    *("arms.dp-sgd.game.warm_up=2", "arms.dp-sgd.server.rounds=6"),
)
HEURISTICS = ["none", "early-stopping", "weight-decay", "clipping-only", "adversarial"]
PRIVATE = {
    "local-dp": ("client", "replace-one", {"server": True, "participant": True, "outsider": True}),
    "central-dp": ("example", "add-remove", {"server": False, "participant": True, "outsider": True}),
    "dp-sgd": ("example", "add-remove", {"server": True, "participant": True, "outsider": True}),
}


@pytest.mark.exhaustive
def test_the_grid_of_defences_is_played_and_heuristics_have_no_epsilon(tmp_path: Path, capsys) -> None:
    asked = AttackScenario.from_text(ready()["defences"].read_text(), "defences.toml", TINY)
    document = replay(asked, tmp_path, workers=1)
    arms = {one["arm"]: one for one in document["arms"]}
    assert list(arms) == [*HEURISTICS, *PRIVATE]
    played = {(one["arm"], one["seat"]) for one in document["attacks"]}
    assert played == {(arm, seat) for arm in arms for seat in ("server", "participant", "outsider")}
    rebuilt = {each["arm"]: each["success"]["value"] for each in document["trials"]}
    assert list(rebuilt) == list(arms)
    assert rebuilt["none"] == rebuilt["clipping-only"] == 1.0
    assert rebuilt["local-dp"] == rebuilt["dp-sgd"] == 0.0
    for name in HEURISTICS:
        assert arms[name]["epsilon"] is None
        assert {one["epsilon"] for one in arms[name]["guarantees"]} == {None}
    for name, (unit, adjacency, holds) in PRIVATE.items():
        assert arms[name]["epsilon"] == 8.0
        for promise in arms[name]["guarantees"]:
            assert (promise["unit"], promise["adjacency"]) == (unit, adjacency)
            assert (promise["epsilon"] is not None) == holds[promise["observer"]]
            assert promise["epsilon"] is None or (promise["epsilon"] <= 8.0 and promise["delta"] < 1e-2)
    assert arms["none"]["rounds_played"] == [2]
    page, operator = (
        (Path(document["path"]) / name).read_text().replace("\N{NO-BREAK SPACE}", " ")
        for name in ("report.html", "operator.html")
    )
    for printed in ("As printed in the lectures", "80.1 %", "67.6 %", "51.6 %"):
        assert printed in page
    assert "92.2 %" in operator  # of accuracy in training
    show_replay(document, verbose=True)
    shown = capsys.readouterr().out
    rows = [
        line for line in shown.splitlines() if any(line.lstrip("│ ").startswith(f"{h},") for h in HEURISTICS)
    ]
    assert rows
    assert not any("epsilon" in row for row in rows)


@pytest.mark.exhaustive
def test_an_arm_that_ended_early_says_after_how_many_rounds(tmp_path: Path) -> None:
    arms = "[arms.whole]\n[arms.stopped]\nserver.patience = 1\n"
    asked = AttackScenario.from_text(OVERFITTING + GAME + arms, "stopping.toml")
    document = replay(asked, tmp_path, workers=1)
    whole, stopped = document["arms"]
    (played,) = stopped["rounds_played"]
    assert whole["rounds_played"] == [12]
    assert played == int(GameSetup(game("server.patience=1")).warm_up()[ROUNDS_TRAINED][0]) < 12
    assert f"ended after {played} of 12 rounds" in (Path(document["path"]) / "report.html").read_text()
    assert "As printed in the lectures" not in (Path(document["path"]) / "report.html").read_text()
